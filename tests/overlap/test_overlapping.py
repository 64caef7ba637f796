"""Overlapping clusterings through the pipeline: what may be given, what is refused, what comes back."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from documents import parts
from hypothesis import given
from hypothesis import strategies as st
from strategies import POLICIES, Pair, pairs

import fastbcubed as fb
from fastbcubed.cli.main import main
from fastbcubed.errors import (
    ColumnError,
    DuplicateItemError,
    EmptyInputError,
    MetricError,
    NullError,
    OptionError,
    OverlapError,
    TooMuchWorkError,
)
from fastbcubed.overlap.item_sets import signatures
from fastbcubed.overlap.memberships import Memberships
from fastbcubed.runtime.key_codes import number
from fastbcubed.runtime.threads import Pool

SCORES = ["precision", "recall", "f1", "mean_f1", "over_merge_rate", "under_merge_rate", "elm"]
#: Figure 16 of Amigó et al. 2009 as rows, and figure 21, which joins the two clusters that overlap.
TRUTH = {"item": [*list("1231245"), "6", "7"], "cluster": ["grey"] * 3 + ["black"] * 4 + ["white"] * 2}
MERGED = {"item": list("1234567"), "cluster": ["both"] * 5 + ["white"] * 2}
P, R = 31 / 35, 33 / 35  # items 1, 2: R 4/5; item 3: P 3/5; items 4, 5: P 4/5; all else 1


def table(columns: dict) -> pa.Table:
    return pa.table(columns)


def same(a: fb.Evaluation, b: fb.Evaluation) -> None:
    assert list(a.overall) == list(b.overall)
    for name in a.overall:
        assert a.overall[name] == pytest.approx(b.overall[name], rel=0, abs=1e-12), name


def clusters_of(ev: fb.Evaluation, side: str) -> list[tuple]:
    """List the clusters; those that a policy made are null, so they have no order of their own."""
    names = ["cluster", "n_items", "n_parts", "exact", "f1"]
    rows = zip(*(ev.clusters(side)[name].to_pylist() for name in names), strict=True)
    return sorted(rows, key=lambda row: (str(row[0]), *row[1:4], round(row[4], 9)))


# Partitions


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fastbcubed.EvaluationWarning")
@given(pairs(), st.sampled_from(POLICIES), st.sampled_from(["none", "pointwise", "outer"]), st.randoms())
def test_partitions_score_as_they_do_without_overlap(pair: Pair, unmatched, weighting, random) -> None:
    options: dict = {"metrics": SCORES, "unmatched": unmatched, "progress": False}
    if weighting != "none":
        options["weighting"] = weighting
        options["weight"] = {item: random.choice([1.0, 2.0, 3.5]) for item in pair.items}
    plain = fb.evaluate(pair.truth, pair.prediction, **options)
    overlapping = fb.evaluate(pair.truth, pair.prediction, overlapping=True, **options)
    same(plain, overlapping)
    without = {
        side: {k: v for k, v in figures.items() if k != "outcomes"} for side, figures in plain.summary.items()
    }
    assert overlapping.summary == without
    assert plain.coverage == overlapping.coverage
    if plain.bounds is not None:
        assert plain.bounds.precision_lower == pytest.approx(overlapping.bounds.precision_lower)
        assert plain.bounds.precision_upper == pytest.approx(overlapping.bounds.precision_upper)
    for side in ("true", "pred"):
        ours, theirs = (clusters_of(ev, side) for ev in (plain, overlapping))
        assert [row[:-1] for row in ours] == [row[:-1] for row in theirs]
        assert np.allclose([row[-1] for row in ours], [row[-1] for row in theirs], rtol=0, atol=1e-12)
    ours, theirs = (ev.slices(("true_size", "pred_size")) for ev in (plain, overlapping))
    assert ours.select(["true_size", "pred_size", "n_items"]).equals(
        theirs.select(["true_size", "pred_size", "n_items"])
    )


# Input


def test_rows_in_every_container(tmp_path: Path) -> None:
    truth, merged = table(TRUTH), table(MERGED)
    pq.write_table(truth, tmp_path / "t.parquet")
    pq.write_table(merged, tmp_path / "p.parquet")
    sets: dict = {}
    for item, cluster in zip(*TRUTH.values(), strict=True):
        sets.setdefault(item, set()).add(cluster)
    forms = [
        (truth, merged),
        (tmp_path / "t.parquet", tmp_path / "p.parquet"),
        (truth.to_pandas(), merged.to_pandas()),
        (pl.DataFrame(TRUTH), pl.DataFrame(MERGED)),
        (sets, dict(zip(*MERGED.values(), strict=True))),
        (fb.Clustering.from_clusters([["1", "2", "3"], ["1", "2", "4", "5"], ["6", "7"]]), merged),
        (truth.take([8, 3, 0, 1, 5, 2, 4, 7, 6]), merged.take([6, 5, 4, 3, 2, 1, 0])),
    ]
    for given_truth, given_prediction in forms:
        ev = fb.extended_bcubed(given_truth, given_prediction)
        assert (ev.precision, ev.recall) == (pytest.approx(P), pytest.approx(R))


@pytest.mark.parametrize("kind", ["arrow", "large", "pandas", "polars"])
def test_list_columns(kind: str) -> None:
    columns = {
        "item": list("1234567"),
        "cluster": [["grey", "black"]] * 2 + [["grey"]] + [["black"]] * 2 + [["white"]] * 2,
        "country": list("aabbccc"),
    }
    lists = pa.table(columns)
    if kind == "large":
        lists = lists.set_column(1, "cluster", lists["cluster"].cast(pa.large_list(pa.string())))
    if kind == "pandas":
        lists = pd.DataFrame(columns)
    if kind == "polars":
        lists = pl.DataFrame(columns)
    ev = fb.extended_bcubed(lists, table(MERGED), slices="country")
    assert (ev.precision, ev.recall) == (pytest.approx(P), pytest.approx(R))
    assert ev.sliced["country"]["recall"].to_pylist() == [pytest.approx(0.8), 1, 1]


def test_two_list_columns_of_one_table() -> None:
    both = pa.table({"id": [1, 2, 3], "t": [["a", "b"], ["a"], ["b"]], "p": [["x"], ["x"], ["x"]]})
    ev = fb.extended_bcubed("t", "p", table=both, item="id")
    # item 1 shares with 1, 2, 3: 2, 1, 1 true and 1 predicted clusters; items 2 and 3 lack each other
    assert ev.recall == pytest.approx(((1 / 2 + 1 + 1) / 3 + 1 + 1) / 3)
    assert ev.precision == pytest.approx((1 + 2 / 3 + 2 / 3) / 3)
    with pytest.raises(ColumnError, match="pass item="):
        fb.extended_bcubed("t", "p", table=both.drop_columns("id"))


def test_an_empty_list_is_a_null() -> None:
    lists = {"item": ["1", "2"], "cluster": [["a"], []]}
    with pytest.raises(NullError, match="1 of 2"):
        fb.extended_bcubed(pa.table(lists), pa.table(lists))
    counted = r"1 of 3 rows of the prediction have a null in 'cluster' \(items '2'\)"  # of two items
    with pytest.raises(NullError, match=counted):
        fb.extended_bcubed({"1": {"a"}, "2": {"a"}}, {"1": {"a", "b"}, "2": set()})
    ev = fb.extended_bcubed(pa.table(lists), pa.table(lists), nulls="drop")
    assert (ev.coverage.n_common, ev.coverage.n_null) == (1, 2)


def test_hierarchies() -> None:
    """Items of `left` and `right` are in `root` as well."""
    leaves = fb.Clustering.from_clusters({"left": [1, 2], "right": [3, 4]})
    truth = leaves.with_ancestors(["left", "right"], ["root", "root"])
    items, labels = (column.take(np.arange(8)).to_pylist() for column in (truth.items, truth.labels))
    assert sorted(zip(items, labels, strict=True)) == [
        (1, "left"), (1, "root"), (2, "left"), (2, "root"), (3, "right"), (3, "root"), (4, "right"), (4, "root"),
    ]  # fmt: skip
    ev = fb.extended_bcubed(truth, fb.Clustering.from_clusters([[1, 2, 3, 4]]))
    # an item shares 2, 2, 1, 1 true clusters with the four, and 1 predicted: recall (1/2 + 1/2 + 1 + 1) / 4
    assert (ev.precision, ev.recall) == (1, 0.75)


def test_ancestors_by_two_ways_count_once_and_a_cycle_raises() -> None:
    items = fb.Clustering.from_clusters({"a": [1], "b": [1, 2]})
    up = items.with_ancestors(["a", "b", "c"], ["c", "c", "d"])
    assert len(up) == 3 + 2 * 2  # both items are in c and in d
    with pytest.raises(OptionError, match="their own ancestors"):
        items.with_ancestors(["a", "c"], ["c", "a"])
    with pytest.raises(ColumnError, match="there are 1 children and 2 parents"):
        items.with_ancestors(["a"], ["c", "d"])
    with pytest.raises(NullError, match="1 of 2 children are null"):
        items.with_ancestors(["a", None], ["c", "d"])


def test_clusters_without_parents_have_no_ancestors() -> None:
    for known in ("x", "y"), (1, 2):
        items = fb.Clustering.from_clusters({known[0]: ["a", "b"], known[1]: ["c"]})
        for child, parent in ((known, [None, None]), ([], []), (np.array([]), np.array([]))):
            assert items.with_ancestors(child, parent).to_table() == items.to_table(), (child, parent)
        above = items.with_ancestors(known, [None, known[0]])
        assert above.labels.take(np.arange(4)).to_pylist() == [known[0], known[0], known[1], known[0]]


@pytest.mark.parametrize(("label", "parent"), [(0, 9), ("", "up")])
def test_items_without_label_have_no_ancestors(label, parent) -> None:
    found = fb.Clustering.from_labels([label, None], items=[1, 2]).with_ancestors([label], [parent])
    memberships = zip(*(c.take(np.arange(3)).to_pylist() for c in (found.items, found.labels)), strict=True)
    assert list(memberships) == [(1, label), (2, None), (1, parent)]


# Policies and errors


def test_repeated_rows() -> None:
    again = pa.concat_tables([table(TRUTH), table(TRUTH).slice(0, 2)])
    with pytest.raises(DuplicateItemError, match=r"2 of 11 rows .* '1', '2'"):
        fb.extended_bcubed(again, table(MERGED))
    ev = fb.extended_bcubed(again, table(MERGED), duplicates="drop")
    assert (ev.recall, ev.coverage.n_duplicates) == (pytest.approx(R), 2)


def test_noise_and_null_singletons() -> None:
    truth = {"item": [1, 1, 2, 3], "cluster": ["a", None, "a", "x"]}
    ev = fb.extended_bcubed(
        pa.table(truth),
        pa.table({"item": [1, 2, 3], "cluster": ["a", "a", "b"]}),
        nulls="singleton",
        noise="x",
    )
    # item 1 is in a and in a cluster of its own: of itself it shares two true clusters and one predicted
    assert ev.recall == pytest.approx((0.75 + 1 + 1) / 3)
    assert (ev.coverage.n_null, ev.coverage.n_noise) == (1, 1)
    assert sorted(map(str, ev.clusters("true")["cluster"].to_pylist())) == ["None", "None", "a"]


@pytest.mark.slow
def test_the_noise_label_names_no_cluster(tmp_path: Path) -> None:
    """Each item with it is alone, as in a listing of partitions; a page opens the clusters that have a name."""
    truth = pa.table({"item": list("abcdab"), "cluster": [1, 1, 2, -1, -1, 2]})
    prediction = pa.table({"item": list("abcd"), "cluster": [-1, -1, 2, -1]})
    ev = fb.evaluate(truth, prediction, overlapping=True, noise=-1)
    ev.save(tmp_path / "result")
    for each in (ev, fb.load(tmp_path / "result")):
        for side, names in (("true", [1, 2, None, None]), ("pred", [2, None, None, None])):
            assert sorted(each.clusters(side)["cluster"].to_pylist(), key=str) == names
        *_, found = parts(each.report().content, "Clusters")
        opened = [(row["name"], bool(parts(row["blocks"], "Members"))) for row in found["rows"]]
        assert opened == [(1, True), (2, True), (None, False)]


def test_one_weight_per_item() -> None:
    rows = {**TRUTH, "w": [1.0] * 8 + [2.0]}
    assert fb.extended_bcubed(table(rows), table(MERGED), weight="w").contingency.total_weight == 8
    with pytest.raises(DuplicateItemError, match="a different weight"):
        fb.extended_bcubed(table({**rows, "w": np.arange(1.0, 10.0)}), table(MERGED), weight="w")


def test_without_overlapping_it_says_so() -> None:
    with pytest.raises(OverlapError, match=r"2 of 7 items .* pass overlapping=True"):
        fb.evaluate(table(TRUTH), table(MERGED))
    with pytest.raises(OverlapError, match="pass overlapping=True"):
        fb.evaluate({"a": {1, 2}}, {"a": 1})


def test_scores_that_overlap_leaves_undefined() -> None:
    with pytest.raises(MetricError, match=r"jaccard_distance .* where clusters may overlap"):
        fb.evaluate(table(TRUTH), table(MERGED), overlapping=True, metrics="jaccard_distance")
    with pytest.raises(MetricError, match="overlapping=True"):
        fb.evaluate([1, 2], [1, 2], metrics="cice_bcubed_f1")
    ev = fb.evaluate(table(TRUTH), table(MERGED), overlapping=True, metrics="pointwise")
    assert "precision" in ev.overall
    assert "mcc" in ev.not_computed


def test_nothing_in_common() -> None:
    with pytest.raises(EmptyInputError):
        fb.extended_bcubed({"a": {1}}, {"b": {1}})


def test_options_of_cice() -> None:
    ev = fb.cice_bcubed(table(TRUTH), table(MERGED), match="pair", similarity="f1")
    assert (ev.definition["match"], ev.definition["similarity"]) == ("pair", "f1")
    with pytest.raises(OptionError, match="match must be one of"):
        fb.cice_bcubed(table(TRUTH), table(MERGED), match="best")


# Work


def covers(n: int, seed: int) -> tuple[pa.Table, pa.Table]:
    random = np.random.default_rng(seed)
    tables = []
    for _ in range(2):
        items = np.concatenate([np.arange(n), random.integers(0, n, n)])
        rows = np.unique(np.stack([items, random.integers(0, n // 20, 2 * n)]), axis=1)
        tables.append(pa.table({"item": rows[0], "cluster": rows[1]}))
    return tables[0], tables[1]


def test_too_much_work_is_refused_before_it_starts() -> None:
    with pytest.raises(
        TooMuchWorkError, match=r"max_pairs=1000 .*(true|predicted) cluster \d+: .*pass max_pairs"
    ):
        fb.extended_bcubed(*covers(2000, 0), max_pairs=1000)


def test_members_of_one_cluster_are_not_compared() -> None:
    """A cluster of 3,000 items costs no comparison, though every 300th is in a second one with nobody else."""
    n = 3_000
    base = np.zeros(n, np.int64)
    items = np.concatenate([np.arange(n), np.arange(0, n, 300)])
    labels = np.concatenate([base, 1 + np.arange(10)])
    ev = fb.extended_bcubed(
        pa.table({"item": items, "cluster": labels}), pa.table({"item": np.arange(n), "cluster": base})
    )
    assert ev.contingency.sides.visits.total == 0
    # each of the ten shares two true clusters with itself: recall (n - 1/2) / n; all others have 1
    assert ev.recall == pytest.approx(1 - 10 * 0.5 / n / n, abs=1e-15)


@pytest.mark.slow
def test_threads_do_not_change_a_bit() -> None:
    rows = covers(60_000, 1)
    first, *others = (
        fb.evaluate(*rows, overlapping=True, threads=k, metrics=SCORES, weight=None) for k in (1, 2, 4)
    )
    for other in others:
        assert dict(first.overall) == dict(other.overall)


@given(st.lists(st.integers(-5, 5)), st.sampled_from([1, 2**40]))
def test_numbers_follow_the_first_appearance(keys: list[int], step: int) -> None:
    with Pool(2) as pool:
        codes, firsts = number(np.array(keys, np.int64) * step, pool)
    distinct = list(dict.fromkeys(keys))
    assert codes.tolist() == [distinct.index(key) for key in keys]
    assert [keys[row] for row in firsts] == distinct


@given(st.lists(st.sets(st.integers(0, 6)), min_size=1))
def test_memberships(sets: list[set[int]]) -> None:
    rows = [
        (-1, 3),
        *((item, code) for item, codes in enumerate(sets) for code in sorted(codes, reverse=True)),
    ]
    items, clusters = np.array(rows, np.int64).T
    members = Memberships.from_rows(items, clusters, len(sets), 7)
    assert [members.of(k).tolist() for k in range(len(members))] == list(map(sorted, sets))
    codes, of_code = signatures(members, Pool(1))
    for one, code in zip(sets, codes, strict=True):
        assert (set(of_code.of(code)) if code >= 0 else set()) == one


# Results


def test_items_and_their_mates() -> None:
    ev = fb.extended_bcubed(table(TRUTH), table(MERGED))
    rows = {row["item"]: row for row in ev.items().to_pylist()}
    assert rows["1"]["true_cluster"] == ["grey", "black"]
    assert rows["3"]["precision"] == pytest.approx(3 / 5)
    assert (rows["3"]["true_mates"], rows["3"]["pred_mates"]) == (3, 5)
    one = ev.item("3")
    assert {name: members["n_items"] for name, members in one["members"].items()} == {
        "tp": 3, "fp": 2, "fn": 0, "tn": 2,
    }  # fmt: skip
    assert ev.subset(["1", "2"]).recall == pytest.approx(0.8)
    of_items = [item in ("1", "2") for item in ev.items()["item"].to_pylist()]  # a mask, in their order
    assert ev.subset(of_items).recall == pytest.approx(0.8)
    assert ev.slices({"both": ["1", "2"]})["recall"].to_pylist() == [pytest.approx(0.8)]


def test_clusters_have_the_means_of_their_items() -> None:
    ev = fb.extended_bcubed(table(TRUTH), table(MERGED))
    rows = {row["cluster"]: row for row in ev.clusters("true").to_pylist()}
    assert rows["grey"]["precision"] == pytest.approx((1 + 1 + 3 / 5) / 3)
    assert rows["black"]["precision"] == pytest.approx((1 + 1 + 4 / 5 + 4 / 5) / 4)
    assert {name: (row["n_items"], row["n_parts"], row["exact"]) for name, row in rows.items()} == {
        "grey": (3, 1, False), "black": (4, 1, False), "white": (2, 1, True),
    }  # fmt: skip


def test_repeated_clusters_are_exact_as_often_as_the_other_side_has_them(tmp_path: Path) -> None:
    """Of true {1, 2} twice and {3}, one {1, 2} and {3} are predicted; of predicted {6} three times, two are true."""
    truth = fb.Clustering.from_clusters([[1, 2], [1, 2], [3], [4, 5], [6], [6]])
    prediction = fb.Clustering.from_clusters([[1, 2], [3], [3, 4], [6], [6], [6], [5]])
    ev = fb.evaluate(
        truth, prediction, overlapping=True, metrics=["f1", "cluster_recall", "cluster_precision"]
    )
    for side, score, clusters in (("true", "cluster_recall", 6), ("pred", "cluster_precision", 7)):
        assert ev.overall[score] == 4 / clusters
        assert json.loads(ev.to_json())["summary"][side]["exact"] == ev.summary[side]["exact"] == 4
    for side, exact in (("true", [0, 2, 4, 5]), ("pred", [0, 1, 3, 4])):  # the last copies are left over
        found = ev.clusters(side)
        assert sorted(np.array(found["cluster"].to_pylist())[found["exact"].to_numpy()].tolist()) == exact
    for text in (repr(ev), ev._repr_html_()):
        assert "4 (66.7 %)" in text and "4 (57.1 %)" in text
    swapped = fb.extended_bcubed(prediction, truth)
    assert [swapped.summary[side]["exact"] for side in ("true", "pred")] == [4, 4]
    ev.save(tmp_path)
    assert fb.load(tmp_path).summary == ev.summary


@pytest.mark.parametrize(
    "options", [{}, {"unmatched": "outside"}, {"unmatched": "singleton"}, {"weighted": 1}]
)
def test_saved_and_loaded(tmp_path: Path, options: dict) -> None:
    truth = table({"item": [*list("1231245"), "8"], "cluster": list("ggbbbbbw"), "country": list("xyzxyzxy")})
    truth = truth.append_column("w", pa.array([1.0, 2.0, 3.0, 1.0, 2.0, 4.0, 5.0, 6.0]))
    weight = {str(k): k / 2 for k in range(1, 9)} if options.pop("weighted", 0) else None
    metrics = [*SCORES, "cice_bcubed_f1", "cice_bcubed_precision"]
    ev = fb.evaluate(
        truth,
        table(MERGED),
        overlapping=True,
        weight=weight,
        metrics=metrics,
        slices="country",
        duplicates="drop",
        **options,
    )
    ev.save(tmp_path)
    back = fb.load(tmp_path)
    assert back.overall == ev.overall
    assert back.definition == ev.definition
    for side in ("true", "pred"):
        assert back.clusters(side).equals(ev.clusters(side))
    assert back.items().equals(ev.items())
    assert back.slices("country").equals(ev.slices("country"))
    assert back.item("1") == ev.item("1")
    assert back.metric("cice_bcubed_recall") == pytest.approx(ev.metric("cice_bcubed_recall"))


@pytest.mark.parametrize("given", ["1e6", None, -1, float("nan"), True, [10]])
def test_max_pairs_is_a_number(given: object) -> None:
    sides = {1: {1}, 2: {2}}, {1: {1}, 2: {1}}
    for ask in (fb.evaluate, fb.contingency, fb.diff, lambda a, b, **how: fb.compare(a, {"b": b}, **how)):
        with pytest.raises(OptionError, match="max_pairs must be a number of pairs, 0 or more, not "):
            ask(*sides, overlapping=True, max_pairs=given)
        ask(*sides, overlapping=True, max_pairs=float("inf"))


def test_attributes_that_differ_between_the_rows_of_an_item(tmp_path: Path) -> None:
    columns = table(
        {"item": [1, 1, 2], "cluster": [1, 2, 1], "one": ["y", "y", None], "many": ["y", "x", "z"]}
    )
    ev = fb.evaluate(columns, {1: 1, 2: 1}, overlapping=True, slices="one", keep="items")
    assert ev.sliced["one"].select(["one", "n_items"]).to_pylist() == [
        {"one": "y", "n_items": 1},
        {"one": None, "n_items": 1},
    ]
    assert ev.items(columns="one")["one"].to_pylist() == ["y", None]
    said = r"'many' of the truth has several values for 1 of 2 items, .*\(first: 1\).* in attributes="
    for ask in (
        lambda: fb.evaluate(columns, {1: 1, 2: 1}, overlapping=True, slices="many"),
        lambda: ev.slices("many"),
        lambda: ev.items(columns="many"),
    ):
        with pytest.raises(ColumnError, match=said):
            ask()
    with pytest.warns(fb.EvaluationWarning, match=said):
        ev.save(tmp_path)
    with pytest.raises(ColumnError, match=said):
        fb.load(tmp_path).slices("many")
    by_item = {"item": [1, 2], "many": ["y", "z"]}
    ev = fb.evaluate(columns, {1: 1, 2: 1}, overlapping=True, attributes=by_item, slices="attributes.many")
    assert len(ev.sliced["attributes.many"]) == 2


@pytest.mark.parametrize("values", [[np.nan, np.nan, 1.0], [-0.0, 0.0, None], [[1], [1], [2]]])
def test_attributes_that_are_the_same_in_all_rows_of_an_item(values: list) -> None:
    columns = table({"item": [1, 1, 2], "cluster": [1, 2, 1], "one": values})
    assert "one" in fb.evaluate(columns, {1: 1, 2: 1}, overlapping=True).items(columns="one").column_names


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(tmp_path / name) for name in ("t.parquet", "p.parquet")]
    pq.write_table(table(TRUTH), paths[0])
    pq.write_table(table(MERGED), paths[1])
    assert main(["evaluate", *paths]) == 2
    assert "pass --overlapping" in capsys.readouterr().err
    assert main(["evaluate", *paths, "--overlapping", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["overall"]["precision"] == pytest.approx(P)
    assert found["definition"]["overlapping"] is True
    assert main(["evaluate", *paths, "--overlapping", "--metric", "cice_bcubed_f1", "--worst", "1"]) == 0
    assert "Clusters may overlap" in capsys.readouterr().out
    pq.write_table(table({"item": list("1234567"), "cluster": list("abccccc")}), paths[1])
    assert (
        main(["evaluate", *paths, "--overlapping", "--max-pairs", "0"]) == 2
    )  # 1 and 2 share two true clusters
    assert "pass --max-pairs" in capsys.readouterr().err


def test_a_score_that_overlap_leaves_undefined_is_not_advised() -> None:
    """The advice was to call .metric("pair_f1"), which raised."""
    ev = fb.evaluate({"a": {1, 2}, "b": {1}}, {"a": {"x"}, "b": {"x", "y"}}, overlapping=True)
    with pytest.raises(
        AttributeError, match="pair_f1 is not defined here: it is not defined where clusters may"
    ):
        _ = ev.pair_f1
    with pytest.raises(AttributeError, match=r"'jaccard_index'; \.metric\('jaccard_index'\) computes it$"):
        _ = fb.evaluate([1, 1], [1, 2]).jaccard_index


def test_an_item_names_its_clusters_and_says_of_what_its_scores_are() -> None:
    """b is with a twice in truth and once in the prediction: recall is (1/2 + 1/2) / 2, of two items found."""
    ev = fb.evaluate({"a": {1, 2}, "b": {1, 2}}, {"a": {"x"}, "b": {"x"}}, overlapping=True)
    text = repr(ev.item("b"))
    assert text.startswith("Item b: true clusters 1, 2, predicted cluster x, weight 1\n")
    told = "(means over the items below, by their shares of common clusters)"
    assert "recall 0.5" in text and told in " ".join(text.split())
    assert "means over" not in repr(fb.evaluate({"a": 1}, {"a": 1}).item("a"))


def test_exact_clusters_are_paired_one_to_one() -> None:
    """Two true clusters of the same items, one predicted one: it is one of them."""
    ev = fb.evaluate(
        {"a": {1, 2}, "b": {1, 2}}, {"a": {"x"}, "b": {"x"}},
        overlapping=True, metrics=["cluster_precision", "cluster_recall"],
    )  # fmt: skip
    assert dict(ev.overall) == {"cluster_precision": 1.0, "cluster_recall": 0.5}
    assert "one to one" in (fb.metrics.cluster_recall.__doc__ or "")


def test_files_that_do_not_fit_are_refused_before_they_are_read(tmp_path: Path) -> None:
    """Two files of 400,000 rows take 160 bytes a row, 320 to be saved, and what a row group takes while it is read."""
    n = 400_000
    paths = [tmp_path / "truth.parquet", tmp_path / "prediction.parquet"]
    for path in paths:
        pq.write_table(pa.table({"item": np.arange(n), "cluster": np.arange(n) // 3}), path)
    with pytest.raises(
        OptionError,
        match=r"where these need about 25\d MiB, but only 64 MiB are available\. Score all rows of a sample",
    ):
        fb.evaluate(*paths, overlapping=True, memory_limit="64MiB")
    with pytest.raises(OptionError, match=r"where these need about 13\d MiB, since .*; omit engine$"):
        fb.evaluate(*paths, overlapping=True, engine="disk")


@pytest.mark.slow
def test_files_that_fit_are_read(tmp_path: Path) -> None:
    n = 400_000
    pq.write_table(pa.table({"item": np.arange(n), "cluster": np.arange(n) // 3}), tmp_path / "rows.parquet")
    paths = [tmp_path / "rows.parquet"] * 2
    assert fb.evaluate(*paths, overlapping=True, memory_limit="300MiB").f1 == 1.0


def test_mates_of_an_item_that_outweighs_them() -> None:
    """All of the mean is b: it shares a predicted cluster with three others, and a true one with one of them."""
    truth = {"a": {0}, "b": {1, 2}, "c": {0, 2}, "d": {0}}
    prediction = {"a": {3}, "b": {1, 2, 3}, "c": {3}, "d": {3}}
    weight = {"a": 1.0, "b": 1e40, "c": 1.0, "d": 1.0}
    ev = fb.extended_bcubed(truth, prediction, weight=weight, metrics="elm")
    assert ev.overall["elm_precision"] == pytest.approx(1 / 3)
    assert ev.overall["elm_recall"] == pytest.approx(1.0)
