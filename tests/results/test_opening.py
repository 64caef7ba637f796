"""Clusters that are opened: figures, parts and members against raw rows, in both engines and loaded."""

from __future__ import annotations

import json
import pickle
import warnings
from pathlib import Path
from typing import Any

import naive_opening
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from both_engines import SETTINGS, both
from hostile import refused
from hypothesis import given
from hypothesis import strategies as st
from naive import evaluate as naive_evaluate
from strategies import POLICIES, pairs, weights

import fastbcubed as fb
from fastbcubed.errors import ColumnError, IdTypeError, NotKeptError, OptionError, SliceError
from fastbcubed.results.stored_tables import StoredTable

ALL = 10**6
TRUTH = {"a": 1, "b": 1, "c": 1, "d": 2, "e": 2, "f": 3}
PREDICTION = {"a": "x", "b": "x", "c": "y", "d": "x", "e": "x", "g": "x"}
NAMES = {"a": "Ann", "b": "Ann", "c": "Ann", "d": "Ann", "e": "Bob", "f": None, "g": "Ann"}


def people(**options: Any) -> fb.Evaluation:
    """Evaluate a small clustering whose items have names and years."""
    attributes = pa.table(
        {"item": list(NAMES), "name": list(NAMES.values()), "year": [1990, 1990, 1990, 1990, 1991, 1, 2]}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fb.evaluate(TRUTH, PREDICTION, attributes=attributes, **options)


def assert_opens(ev: fb.Evaluation, twin: Any, side: str, label: Any) -> None:
    """A cluster and its tables are as the twin has them."""
    other = "pred" if side == "true" else "true"
    found, wanted = ev.cluster(side, label, members=ALL), naive_opening.open_cluster(twin, side, label)
    for name in ("n_items", "weight", "n_parts", "precision_loss", "recall_loss"):
        assert found[name] == pytest.approx(wanted[name], rel=1e-12, abs=1e-12), name
    assert found["outcome"] == naive_opening.outcome(twin, side, label)
    assert len(found["parts"]) == len(wanted["parts"]) == len(found.parts)
    for part, expected in zip(found["parts"], wanted["parts"], strict=True):
        assert part[f"{other}_cluster"] == expected["cluster"]
        assert [member["item"] for member in part["members"]] == expected["members"]
        for name in ("n_items", "n_items_of_cluster", "weight", "precision_loss", "recall_loss"):
            assert part[name] == pytest.approx(expected[name], rel=1e-12, abs=1e-12), name
    assert sorted(m["item"] for m in found["one_sided"]["members"]) == wanted["one_sided"]
    assert found["one_sided"]["n_items"] == len(wanted["one_sided"])
    table = found.table
    members = [e for part in wanted["parts"] for e in part["members"]]
    assert table.filter(table["scored"])["item"].to_pylist() == members
    assert len(table) == len(members) + len(wanted["one_sided"])
    assert found.parts.column_names[0] == f"{other}_cluster"


@pytest.mark.cases(1)
@SETTINGS
@given(pairs(max_size=12), st.sampled_from(POLICIES), st.sampled_from(["pointwise", "outer"]), st.data())
def test_every_cluster_opens_as_its_raw_rows(many_shards, tmp_path_factory, pair, policy, weighting, data):
    weight = data.draw(weights(len(pair.items), zeros=weighting == "outer"))
    given_weights = None if weight is None else dict(zip(pair.items, weight, strict=True))
    try:
        twin = naive_evaluate(*pair, given_weights, unmatched=policy, weighting=weighting)
    except ValueError:  # all scored items may weigh 0
        return
    tables = [pa.table({"item": _array(list(side)), "cluster": _array(list(side.values()))}) for side in pair]
    options = {"unmatched": policy, "weighting": weighting, "weight": given_weights}
    on_disk, in_memory = both(*tables, keep="items", **options)
    path = tmp_path_factory.mktemp("saved")
    in_memory.save(path)
    for ev in (in_memory, on_disk, fb.load(path)):
        for side, labels in zip(("true", "pred"), pair, strict=True):
            for label in set(labels.values()):
                assert_opens(ev, twin, side, label)


def _array(values: list[Any]) -> pa.Array:
    unsigned = any(isinstance(value, int) and value >= 2**63 for value in values)
    return pa.array(values, pa.uint64() if unsigned else None)


def test_it_reads_as_a_table_with_what_differs_marked() -> None:
    assert repr(people().cluster("pred", "x", columns=("name", "year"))).splitlines() == [
        "Predicted cluster x: 4 items of 2 true clusters, mixed",
        "precision loss 0.40000, recall loss 0.13333",
        "",
        "true cluster  items   item  name  year",
        "1             2 of 3  a     Ann   1990",
        "                      b     Ann   1990",
        "2             2 of 2  d     Ann   1990",
        "                      e     Bob*  1991*",
        "(none)        1       g     Ann   2*",
        "",
        "* differs from the most common value of the members shown",
        "1 item not in the truth: left out (drop)",
    ]


def test_members_beyond_those_asked_for_are_counted() -> None:
    lines = repr(people().cluster("prediction", "x", columns=(), members=1)).splitlines()
    assert lines[3:6] == [
        "true cluster  items   item",
        "1             2 of 3  a",
        "                      … 1 more",
    ]
    assert lines[6:8] == ["… 1 more      2", "(none)        1       … 1 more"]
    assert people().cluster("pred", "x", members=0)["parts"] == []


def test_items_of_outside_cost_precision_and_are_told() -> None:
    found = people(unmatched="outside").cluster("pred", "x")
    assert found["one_sided"]["policy"] == "outside"
    assert found["precision_loss"] == pytest.approx(4 * (3 / 5) / 6)  # f is alone, and is scored, too
    assert "1 item not in the truth: false positives (outside)" in repr(found)


def test_items_that_are_not_scored_may_have_no_weight() -> None:
    weight = {item: 1.0 + (item == "b") for item in TRUTH}
    found = people(weight=weight).cluster("pred", "x")
    assert [member["item"] for member in found["parts"][0]["members"]] == ["b", "a"]  # heaviest first
    assert found["one_sided"]["members"][0] == {
        "item": "g",
        "weight": None,
        "attributes": {"name": "Ann", "year": 2},
    }
    assert found.table["weight"].null_count == 1 and "(none)        1       g" in repr(found)


def test_a_cluster_of_nothing_scored_opens() -> None:
    found = people().cluster("true", 3)
    assert (found["n_items"], found["n_parts"], found["outcome"]) == (0, 0, None)
    assert repr(found).splitlines()[0] == "True cluster 3: none of its items is scored"
    assert found.table["item"].to_pylist() == ["f"]


def test_it_is_a_dict_to_programs() -> None:
    found = people(weight=dict.fromkeys(NAMES, 2.0)).cluster("pred", "x")
    assert json.loads(json.dumps(found))["parts"][1]["members"][0]["item"] == "d"
    assert "weight 8" in repr(found) and "weight" in repr(found).splitlines()[3]
    again = pickle.loads(pickle.dumps(found))
    assert again == found and repr(again) == repr(found) and again.table == found.table
    assert "Bob*" in found._repr_html_()


def covers() -> fb.Evaluation:
    truth = {k: {k // 3, 20 + k // 4} for k in range(30)}
    prediction = {k: {k // 4, 20 + k // 5, 40 + k % 3} for k in range(2, 33)}
    return fb.evaluate(truth, prediction, overlapping=True, unmatched={"prediction": "outside"})


@pytest.mark.parametrize(
    "make", [people, lambda: people(unmatched="outside"), lambda: people(unmatched="singleton"), covers]
)
def test_figures_are_those_of_the_listing(make: Any) -> None:
    ev = make()
    for side in ("true", "pred"):
        for row in ev.clusters(side).to_pylist():
            if row["cluster"] is not None:
                found = ev.cluster(side, row["cluster"], members=0)
                for name in ("n_items", "weight", "n_parts", "outcome", "precision_loss", "recall_loss"):
                    assert found.get(name) == pytest.approx(row.get(name), abs=1e-15), name


def test_composite_ids_are_tuples() -> None:
    columns = {"source": ["A", "A", "B"], "no": [1, 2, 1], "set": ["u", "u", "v"], "group": [1, 2, 2]}
    options = {"item": ["source", "no"], "cluster": ["set", "group"]}
    ev = fb.evaluate(pa.table(columns), pa.table(columns), **options)
    found = ev.cluster("true", ("u", 2))
    assert "True cluster u, 2: 1 item" in repr(found) and "A, 2" in repr(found)
    assert ev.cluster("true", {"set": "u", "group": 2}) == found
    assert len(ev.items(pred_cluster=("u", np.int64(2)))) == 1


@pytest.mark.slow
def test_overlapping_clusters_open_by_sets_of_the_other_side(tmp_path: Path) -> None:
    truth = {"a": {1, 2}, "b": {1, 2}, "c": {1}, "d": {2}}
    prediction = {"a": {"x"}, "b": {"x"}, "c": {"x", "y"}, "d": {"y"}, "e": {"x"}}
    ev = fb.evaluate(truth, prediction, overlapping=True, unmatched={"prediction": "outside"})
    found = ev.cluster("pred", "x")
    assert [(part["true_cluster"], part["n_items"]) for part in found["parts"]] == [([1, 2], 2), ([1], 1)]
    assert "outcome" not in found and found["n_parts"] == 2
    assert [member["item"] for member in found["one_sided"]["members"]] == ["e"]
    assert "1 + 2" in repr(found) and "3 items of 2 true clusters, in 2 combinations" in repr(found)
    ev.save(tmp_path)
    assert fb.load(tmp_path).cluster("pred", "x") == found
    assert fb.load(tmp_path).items(pred_cluster="y")["item"].to_pylist() == ["c", "d"]


@pytest.mark.parametrize(
    ("question", "error", "said"),
    [
        (lambda ev: ev.cluster("pred", "z"), SliceError, "no predicted cluster 'z'"),
        (lambda ev: ev.cluster("pred", "xx"), SliceError, "Did you mean 'x'"),
        (lambda ev: ev.cluster("true", 7), SliceError, "The first ones are 1, 2, 3"),
        (lambda ev: ev.cluster("true", "x"), IdTypeError, "'x' cannot be in"),
        (lambda ev: ev.cluster("left", "x"), SliceError, "'left'"),
        (lambda ev: ev.cluster("pred", "x", members=-1), OptionError, "members"),
        (lambda ev: ev.cluster("pred", "x", columns="nam"), ColumnError, "no attribute 'nam'"),
        (lambda ev: ev.items("nam"), ColumnError, "no attribute 'nam'"),
        (lambda ev: ev.items(true_cluster=9), SliceError, "no true cluster 9"),
    ],
)
def test_what_is_not_there_is_refused(question: Any, error: Any, said: str) -> None:
    with refused(error, said):
        question(people())


def test_a_label_of_the_other_side_is_told() -> None:
    ev = fb.evaluate({"a": "u", "b": "v"}, {"a": "x", "b": "y"})
    with refused(SliceError, 'It is a predicted cluster: open it as "pred"'):
        ev.cluster("true", "y")


def test_the_noise_label_names_no_cluster() -> None:
    ev = fb.evaluate([0, 0, -1, -1], [0, 0, 0, 1], noise=-1)
    with refused(SliceError, "-1 is the noise label", "2 items"):
        ev.cluster("true", -1)
    assert ev.cluster("pred", 0)["parts"][1]["true_cluster"] is None
    assert "(alone by policy)" in repr(ev.cluster("pred", 0))


def test_items_have_to_be_kept(tmp_path: Path) -> None:
    people().save(tmp_path, keep="cells")
    with pytest.raises(NotKeptError, match='keep="items"'):
        fb.load(tmp_path).cluster("pred", "x")


def test_items_have_attributes_and_are_those_of_a_cluster() -> None:
    ev = people(metrics=["precision", "recall"])
    found = ev.items(["name", "year"], true_cluster=1, pred_cluster="x", order_by="weight")
    assert found.column_names[:5] == ["item", "true_cluster", "pred_cluster", "name", "year"]
    assert found.select(["item", "name"]).to_pylist() == [
        {"item": "a", "name": "Ann"},
        {"item": "b", "name": "Ann"},
    ]
    assert found["precision"].to_pylist() == [0.5, 0.5]
    assert ev.items("name").drop_columns(["name"]) == ev.items()


def test_an_attribute_whose_name_is_taken_is_told_apart() -> None:
    ev = fb.evaluate([0, 0], [0, 1], attributes={"precision": ["low", "high"]}, metrics=["precision"])
    assert ev.items("precision")["attribute.precision"].to_pylist() == ["low", "high"]
    assert "attribute.scored" not in ev.cluster("pred", 0).table.column_names


# Cells


@pytest.mark.cases(1)
@SETTINGS
@given(pairs(max_size=12), st.sampled_from(POLICIES), st.data())
def test_cells_have_labels_and_losses(many_shards, tmp_path_factory, pair, policy, data):
    weight = data.draw(weights(len(pair.items)))
    given_weights = None if weight is None else dict(zip(pair.items, weight, strict=True))
    twin = naive_evaluate(*pair, given_weights, unmatched=policy)
    wanted: dict[Any, dict[str, Any]] = {}
    for label in set(twin.true.values()):
        for part in naive_opening.open_cluster(twin, "true", label)["parts"]:
            true = None if isinstance(label, naive_opening.Alone) else label
            one = part["members"][0]
            key = (true, part["cluster"], None if None not in (true, part["cluster"]) else one)
            wanted[key] = part
    tables = [pa.table({"item": _array(list(s)), "cluster": _array(list(s.values()))}) for s in pair]
    on_disk, in_memory = both(*tables, unmatched=policy, weight=given_weights)
    path = tmp_path_factory.mktemp("saved")
    in_memory.save(path, keep="cells")
    names = ("n_items", "weight", "precision_loss", "recall_loss")
    for ev in (in_memory, on_disk, fb.load(path)):
        found = ev.cells()
        expected = sorted([p[name] for name in names] for p in wanted.values())
        got = sorted([row[name] for name in names] for row in found.to_pylist())
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)
        for row in found.to_pylist():
            key = (row["true_cluster"], row["pred_cluster"], None)
            if None not in key[:2]:
                assert row["n_items"] == wanted[key]["n_items"]
        loss = [row["precision_loss"] + row["recall_loss"] for row in found.to_pylist()]
        assert loss == sorted(loss, reverse=True)
        assert sum(row["precision_loss"] for row in found.to_pylist()) == pytest.approx(ev.over_merge_rate)
        assert ev.cells(limit=2).to_pylist() == found.to_pylist()[:2]


def test_cells_of_overlapping_clusters_have_lists_of_them(tmp_path: Path) -> None:
    ev = fb.evaluate({"a": {1, 2}, "b": {1}}, {"a": {"x"}, "b": {"x", "y"}}, overlapping=True)
    ev.save(tmp_path, keep="cells")
    for each in (ev, fb.load(tmp_path), pickle.loads(pickle.dumps(ev))):
        found = [(row["true_cluster"], row["pred_cluster"]) for row in each.cells().to_pylist()]
        assert sorted(found) == [([1], ["x", "y"]), ([1, 2], ["x"])]


def test_cells_have_to_be_kept(tmp_path: Path) -> None:
    people().save(tmp_path, keep="scores")
    with pytest.raises(NotKeptError, match='keep="cells"'):
        fb.load(tmp_path).cells()


def test_rows_of_a_file_are_read_with_the_parts_that_have_them(tmp_path: Path) -> None:
    texts = [f"t{k}" if k % 4 else None for k in range(11)]
    table = pa.table(
        {"n": range(11), "text": pa.array(texts).dictionary_encode(), "list": [[k] for k in range(11)]}
    )
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=3)
    stored = StoredTable(tmp_path / "rows.parquet")
    rows = np.array([7, 0, -1, 10, 7, 6])
    for name in table.column_names:
        values = table[name].to_pylist()
        found = stored.take([name], rows)[name]
        assert found.to_pylist() == [None if row < 0 else values[row] for row in rows.tolist()]
        assert stored.take([name], rows[:0])[name].to_pylist() == []
        assert stored.take([name], rows[:0])[name].type == found.type


@pytest.mark.slow
def test_a_large_cluster_opens_the_same_in_both_engines() -> None:
    rng = np.random.default_rng(0)
    n = 5000
    columns = {"item": [f"r{k:05d}" for k in rng.permutation(n)], "name": rng.integers(0, 9, n).astype(str)}
    truth = pa.table({**columns, "cluster": rng.integers(0, 400, n)})
    prediction = pa.table({"item": truth["item"].take(rng.permutation(n)), "cluster": rng.integers(0, 3, n)})
    on_disk, in_memory = both(truth, prediction, keep="items", metrics=["f1"])
    for label in (0, 1, 2):
        assert repr(on_disk.cluster("pred", label)) == repr(in_memory.cluster("pred", label))
        assert on_disk.cluster("pred", label).table == in_memory.cluster("pred", label).table
        assert on_disk.cluster("pred", label).parts == in_memory.cluster("pred", label).parts
