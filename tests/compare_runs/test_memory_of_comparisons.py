"""Outputs of a comparison on disk keep the limit: clusters come in ranges, and errors without room are left out."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from documents import notices, of_section, parts, table
from growth import growth

import fastbcubed as fb
from fastbcubed.cells.shards import SMALLEST_LIMIT
from fastbcubed.compare_runs import comparison_listings, true_clusters, units
from fastbcubed.errors import EvaluationWarning, OptionError
from fastbcubed.results import large_tables, slice_sums

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.EvaluationWarning")

N = 300
RNG = np.random.default_rng(0)
TRUTH = {item: item // 3 for item in range(N)}
RUNS = {
    name: {item: int(RNG.integers(0, 100)) if RNG.random() < share else item // 3 for item in range(N)}
    for name, share in (("old", 0.1), ("new", 0.3), ("other", 0.2))
}
#: As if there were little room, for so few items.
DISK = {"engine": "disk", "memory_limit": SMALLEST_LIMIT}


@pytest.mark.cases(3)
@pytest.mark.parametrize("order_by", ["delta", "worse", "better", None])
@pytest.mark.parametrize("limit", [1, 7, 1000, None])
def test_clusters_in_ranges_are_those_of_memory(order_by, limit, monkeypatch):
    in_memory, on_disk = (fb.compare(TRUTH, RUNS, **how) for how in ({}, DISK))
    held = []
    take = true_clusters._Taken.take
    monkeypatch.setattr(true_clusters, "AT_ONCE", 16)
    monkeypatch.setattr(true_clusters._Taken, "take", lambda self, n: held.append(n) or take(self, n))
    for run in ("new", "other"):
        asked = {"run": run, "order_by": order_by, "limit": limit}
        own, other = (cmp.clusters(**asked) for cmp in (on_disk, in_memory))
        if order_by is None:  # by number, which is another one in either engine
            assert own.num_rows == other.num_rows
            continue
        assert own.column_names == other.column_names
        assert own["cluster"].to_pylist() == other["cluster"].to_pylist()
        assert own["delta"].to_pylist() == pytest.approx(other["delta"].to_pylist())
        assert own["old.outcome"].to_pylist() == other["old.outcome"].to_pylist()
        assert own[f"{run}.f1"].to_pylist() == pytest.approx(other[f"{run}.f1"].to_pylist())
    assert max(held) == 16


def test_the_flow_of_outcomes_is_counted_in_ranges(monkeypatch):
    monkeypatch.setattr(true_clusters, "AT_ONCE", 16)
    cmp = fb.compare(TRUTH, RUNS, **DISK)
    listed = cmp.clusters().to_pylist()
    expected = {}
    for row in listed:
        key = row["old.outcome"], row["new.outcome"]
        expected[key] = expected.get(key, 0) + 1
    n, flow = true_clusters.flow_of_runs(cmp.runs, ("old", "new"), cmp._true_numbers)
    assert n == len(listed) == 100
    assert {(a, b): own for a, b, own in flow} == expected
    assert [own for *_, own in flow] == sorted(expected.values(), reverse=True)


@pytest.mark.cases(0)
@pytest.mark.parametrize("metrics", [None, ["f1", "pair_f1"]])
def test_errors_without_room_are_left_out_and_said(metrics, monkeypatch, tmp_path):
    monkeypatch.setattr(units, "BESIDE", 1 - SMALLEST_LIMIT)  # so that there is room for one byte
    cmp = fb.compare(TRUTH, RUNS, metrics=metrics, **DISK)
    with pytest.warns(
        EvaluationWarning, match=r"have no standard errors: they would need .* memory_limit of at least"
    ):
        deltas = cmp.deltas()
    assert np.isnan(deltas["se"].to_numpy()).all()
    assert deltas["delta"].to_pylist() == pytest.approx(
        fb.compare(TRUTH, RUNS, metrics=metrics).deltas()["delta"].to_pylist()
    )
    assert "There are no intervals: they would need" in " ".join(repr(cmp).split())
    cmp.save(tmp_path)
    assert "There are no intervals" in " ".join(repr(fb.load(tmp_path)).split())


@pytest.mark.slow
def test_clusters_of_runs_with_different_items_are_refused_by_name(monkeypatch):
    """Their codes differ, so that they are renumbered, all at once."""
    monkeypatch.setattr(units, "BESIDE", 1 - SMALLEST_LIMIT)
    fewer = {item: label for item, label in RUNS["new"].items() if item % 7}
    cmp = fb.compare(TRUTH, {"old": RUNS["old"], "new": fewer}, align="each", **DISK)
    with pytest.raises(
        OptionError,
        match=r"renumbered when runs lack different items: they would need .* memory_limit of at least",
    ):
        cmp.clusters(limit=3)
    (note,) = notices(cmp.report().content, "Clusters that changed are left out")
    assert "renumbered" in note["message"]
    assert "Clusters that changed are left out" in cmp.report().html


MANY = {
    "item": list(TRUTH),
    "t": list(TRUTH.values()),
    **{run: list(own.values()) for run, own in RUNS.items()},
    "a": [f"v{item % 70}" if item % 70 else None for item in TRUTH],
    "b": [[0.5, float("nan"), 1.0][item % 3] for item in TRUTH],
}


@pytest.fixture
def few_at_once(monkeypatch):
    """Have slices in files from 17 on, which are read 8 at a time; return the numbers of rows put beside each other."""
    monkeypatch.setattr(slice_sums, "FEW", 16)
    monkeypatch.setattr(slice_sums, "CHUNK", 3000)
    monkeypatch.setattr(slice_sums, "LEAST_WAITING", 4000)
    monkeypatch.setattr(large_tables, "ROWS_AT_ONCE", 8)
    held, beside = [], comparison_listings._slice_by_slice

    def watched(cmp, tables, *rest):
        held.append(sum(table.num_rows for table in tables.values()))
        return beside(cmp, tables, *rest)

    monkeypatch.setattr(comparison_listings, "_slice_by_slice", watched)
    return held


def sliced(**how):
    return fb.compare(
        "t", {run: run for run in RUNS}, table=MANY, item="item", slices=["a", ("a", "b")], **how
    )


def same_rows(own: list, other: list) -> None:
    """Compare rows of two engines, of which one may have further columns: errors."""
    assert len(own) == len(other)
    for mine, its in zip(own, other, strict=True):
        assert mine == pytest.approx({name: its[name] for name in mine}, abs=1e-12, nan_ok=True)


@pytest.mark.cases(0)
@pytest.mark.parametrize("by", ["a", ("a", "b")])
@pytest.mark.parametrize(
    "asked", [{}, {"deltas": False}, {"order_by": "delta"}, {"order_by": "worse", "limit": 7}, {"limit": 5}]
)
def test_many_slices_of_runs_are_those_of_memory(by, asked, few_at_once):
    expected = sliced().slices(by, **asked).to_pylist()
    few_at_once.clear()
    cmp = sliced(**DISK)
    found = cmp.slices(by, **asked)
    assert found.is_large == (len(asked) == 0 or "deltas" in asked)
    same_rows(found.to_pylist(), expected)
    assert len(few_at_once) > 5
    assert max(few_at_once) < 80  # of 630 rows by a and b


def test_many_slices_that_runs_do_not_share_come_in_order(few_at_once):
    """Runs on their own items: a slice that one of them lacks has no row of it, and no difference."""
    fewer = {item: label for item, label in RUNS["new"].items() if item % 70 > 20}
    truth, old, new = (
        pa.table({"item": list(each), "cluster": list(each.values())}) for each in (TRUTH, RUNS["old"], fewer)
    )
    truth = truth.append_column("a", [MANY["a"]])
    cmp = fb.compare(truth, {"new": new, "old": old}, slices="a", align="each", unmatched="drop", **DISK)
    rows = cmp.slices("a").to_pylist()
    names = [row["a"] for row in rows if row["run"] == "old"]
    assert names == [*sorted({f"v{k}" for k in range(1, 70)}), None]
    lacking = {row["a"] for row in rows} - {row["a"] for row in rows if row["run"] == "new"}
    assert lacking == {None} | {f"v{k}" for k in range(1, 21)}
    assert all((row["f1_delta"] is None) == (row["a"] in lacking) for row in rows if row["run"] == "old")


@pytest.mark.slow
def test_many_slices_of_runs_are_shown_saved_and_loaded(few_at_once, tmp_path):
    in_memory, cmp = sliced(), sliced(**DISK)
    for by in ("a", "a,b"):
        found, expected = (
            np.concatenate(list(comparison_listings.deltas_by_slice(each, "new", by, "f1")))
            for each in (cmp, in_memory)
        )
        assert found == pytest.approx(expected, abs=1e-12)
    content = cmp.to_dict()
    assert content["n_rows"] == {"a": 210, "a,b": 630}
    assert {row["run"] for row in content["slices"]["a"]} == {"new", "other"}
    pages = [of_section(each.report().content, "slices") for each in (cmp, in_memory)]
    titles = [parts(page, "Heading")[0]["title"] for page in pages]
    assert titles == ["By a: most changed slices, against old, 20 of 140 rows"] * 2
    assert [row["a"] for row in table(pages[0])] == [row["a"] for row in table(pages[1])]
    cmp.save(tmp_path)
    loaded = fb.load(tmp_path)
    assert loaded.slices("a").is_large
    for by in ("a", ("a", "b")):
        assert repr(loaded.slices(by).to_pylist()) == repr(cmp.slices(by).to_pylist())
    assert repr(loaded.to_dict()["slices"]) == repr(content["slices"])


@pytest.mark.process
@pytest.mark.slow
def test_many_slices_of_runs_keep_the_limit(tmp_path):
    """200,000 slices of 100 letters of two runs: without a limit, the process grows by 400 MiB."""
    n, out = 200_000, repr(str(tmp_path / "out"))
    names = pa.array(np.char.add("value ", np.char.zfill(np.arange(n).astype(str), 94)))
    columns = {"item": np.arange(n), "t": np.arange(n) // 3, "p": np.arange(n) // 4, "q": np.arange(n) // 5}
    pq.write_table(pa.table({**columns, "a": names}), tmp_path / "rows.parquet", row_group_size=1 << 16)
    before = f"""
        def run(table, out):
            cmp = fb.compare(
                "t", {{"old": "p", "new": "q"}}, table=table, item="item", slices="a", engine="disk",
                memory_limit="64MiB",
            )
            repr(cmp), cmp.to_json(), cmp.report().html, cmp.save(out)
        run({{"item": [0, 1], "t": [0, 0], "p": [0, 1], "q": [0, 0], "a": ["x", "y"]}}, {out} + "few")
    """
    assert growth(before, f"run({str(tmp_path / 'rows.parquet')!r}, {out})") < 64 + 256


@pytest.mark.big
@pytest.mark.parametrize("after", ["repr(cmp)", "cmp.clusters(limit=20)", "cmp.report()", "cmp.save(OUT)"])
def test_what_follows_keeps_the_limit(after, tmp_path):
    rng, n = np.random.default_rng(0), 4_000_000
    true = np.arange(n) // 3
    for name, share in (("t", 0.0), ("a", 0.1), ("b", 0.15)):
        label = np.where(rng.random(n) < share, rng.integers(0, n // 3, n), true)
        at = rng.permutation(n)
        pq.write_table(pa.table({"item": at, "cluster": label[at]}), tmp_path / f"{name}.parquet")
    paths = {name: str(tmp_path / f"{name}.parquet") for name in "tab"}
    before = f"""
        OUT = {str(tmp_path / "out")!r}
        def run(truth, runs):
            cmp = fb.compare(truth, runs, engine="disk", memory_limit="64MiB")
            {after}
        small = {{0: 0, 1: 0, 2: 1, 3: 1}}
        run(small, {{"a": {{0: 0, 1: 1, 2: 1, 3: 1}}, "b": small}})
    """
    assert growth(before, f"run({paths['t']!r}, {{'a': {paths['a']!r}, 'b': {paths['b']!r}}})") < 64 + 256
