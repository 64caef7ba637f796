"""What follows a comparison on disk keeps the limit: clusters come in ranges, and what has no room is left out."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from growth import growth

import fastbcubed as fb
from fastbcubed.cells.shards import SMALLEST_LIMIT
from fastbcubed.compare_runs import true_clusters, units
from fastbcubed.errors import EvaluationWarning, OptionError

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
    n, flow = cmp._flow("new")
    assert n == len(listed) == 100
    assert {(a, b): own for a, b, own in flow} == expected
    assert [own for *_, own in flow] == sorted(expected.values(), reverse=True)


@pytest.mark.parametrize("metrics", [None, ["f1", "pair_f1"]])
def test_errors_without_room_are_left_out_and_said(metrics, monkeypatch, tmp_path):
    monkeypatch.setattr(units, "BESIDE", 1 - SMALLEST_LIMIT)  # so that there is room for one byte
    cmp = fb.compare(TRUTH, RUNS, metrics=metrics, **DISK)
    with pytest.warns(
        EvaluationWarning, match=r"have no standard errors: they would take .* memory_limit of at least"
    ):
        deltas = cmp.deltas()
    assert np.isnan(deltas["se"].to_numpy()).all()
    assert deltas["delta"].to_pylist() == pytest.approx(
        fb.compare(TRUTH, RUNS, metrics=metrics).deltas()["delta"].to_pylist()
    )
    assert "There are no standard errors: they would take" in " ".join(repr(cmp).split())
    cmp.save(tmp_path)
    assert "There are no standard errors" in " ".join(repr(fb.load(tmp_path)).split())


def test_clusters_of_runs_with_different_items_are_refused_by_name(monkeypatch):
    """Their codes differ, so that they are numbered anew, all at once."""
    monkeypatch.setattr(units, "BESIDE", 1 - SMALLEST_LIMIT)
    fewer = {item: label for item, label in RUNS["new"].items() if item % 7}
    cmp = fb.compare(TRUTH, {"old": RUNS["old"], "new": fewer}, align="each", **DISK)
    with pytest.raises(OptionError, match=r"numbered anew: they would take .* memory_limit of at least"):
        cmp.clusters(limit=3)
    movers = cmp.report().content["movers"]
    assert "numbered anew" in movers["left_out"]
    assert "Clusters that changed are left out" in cmp.report().html


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
