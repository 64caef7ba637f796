"""Clusterings: every way to make one, the pair that evaluate() takes, and what they refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from containers import COLUMNS, TABLES, text
from hypothesis import given
from hypothesis import strategies as st

import fastbcubed as fb
from fastbcubed import Clustering
from fastbcubed.errors import (
    AlignmentError,
    ColumnError,
    EvaluationWarning,
    FileFormatError,
    IdTypeError,
    NullError,
    OptionError,
    OverlapError,
    WeightError,
)
from fastbcubed.inputs.pair import Given, Pair
from fastbcubed.inputs.pair import read_pair as read

IDS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 0]
DATA = Path(__file__).parents[2] / "shared" / "data"


def read_pair(truth: Any, prediction: Any, **how: Any) -> Pair:
    """Read two sides, given as to `evaluate`."""
    return read(Given(truth, prediction, **how))


def sets(clustering: Clustering) -> set[frozenset[Any]]:
    """Return the clusters as sets of items (or of positions)."""
    rows = np.arange(len(clustering))
    items = rows.tolist()
    if clustering.items is not None:
        items = list(map(str, clustering.items.take(rows).to_pylist()))
    members: dict[int, set[Any]] = {}
    for item, key in zip(items, clustering.labels.keys().tolist(), strict=True):
        members.setdefault(key, set()).add(item)
    return {frozenset(group) for group in members.values()}


# --- making one ---


@pytest.mark.parametrize("container", TABLES)
def test_the_same_clustering_from_every_table(container: str, tmp_path: Path) -> None:
    items, clusters = text(range(8)), [5, 5, 6, 7, 7, 7, -1, 5]
    made = Clustering.from_table(TABLES[container](items, clusters, tmp_path))
    assert sets(made) == sets(Clustering.from_labels(clusters, items=items))
    assert made.attributes is not None
    assert len(made.attributes.column("extra")) == len(made.attributes) == 8
    assert "extra" in made.attribute_names
    assert "item" not in made.attribute_names


@pytest.mark.parametrize("kind", COLUMNS)
def test_the_same_clustering_from_every_type(kind: str) -> None:
    """The same labels, and the same ids, whatever they are made of."""
    expected = sets(Clustering.from_labels(IDS))
    assert sets(Clustering.from_labels(COLUMNS[kind](IDS))) == expected
    made = Clustering.from_labels([0, 0, 1], items=COLUMNS[kind]([0, 1, 2]))
    assert sorted(map(len, sets(made))) == [1, 2]


def test_columns_are_found() -> None:
    def names(table: Any, **columns: Any) -> tuple[str, str]:
        made = Clustering.from_table(table, **columns)
        assert made.items is not None
        return made.items.name, made.labels.name

    row = {"item": [1], "cluster": [2], "id": [3], "entity": [4], "w": [5.0]}

    def table(*chosen: str) -> dict[str, Any]:
        return {name: row[name] for name in chosen}

    assert names(row, cluster="cluster") == ("item", "cluster")
    with pytest.raises(ColumnError, match=r'Say which: cluster="entity"; or cluster="cluster"\.'):
        names(row)
    assert names(table("id", "cluster")) == ("id", "cluster")
    assert names(table("entity", "item")) == ("item", "entity")
    assert names(table("entity", "id", "w"), cluster="entity", weight="w") == ("id", "entity")
    assert names(row, item=["id", "item"], cluster="entity") == ("id, item", "entity")
    for ambiguous in (("id", "entity"), ("item", "id", "entity"), ("item",), ("cluster",)):
        with pytest.raises(ColumnError, match=f"columns: {', '.join(ambiguous)}"):
            names(table(*ambiguous))
    with pytest.raises(ColumnError, match="no column 'name'"):
        names(row, item="name")
    for item in ("id", ["id", "item"], ["item", "id"]):
        with pytest.raises(ColumnError, match="item and cluster are the same column of the table: id"):
            names(row, item=item, cluster="id")
    with pytest.raises(OptionError, match="item names the same column twice: 'id', 'id'"):
        names(row, item=["id", "id"])
    for wrong in (5, None, [], ("id", "item"), [1], {"id"}):
        with pytest.raises(OptionError, match="item must be the name of a column, or a list of names"):
            names(row, item=wrong)
        with pytest.raises(OptionError, match="cluster must be the name"):
            names(row, cluster=wrong)
    with pytest.raises(ColumnError, match=r"in the table \(which has none\)"):
        names(pd.DataFrame())
    with pytest.raises(OptionError, match="weight must be the name of a column of the table, not list"):
        names(row, weight=[1.0])


def test_composite_ids() -> None:
    made = Clustering.from_table(
        {"source": ["a", "a", "b"], "id": [1, 2, 1], "cluster": [0, 0, 1]}, item=["source", "id"]
    )
    assert made.items is not None
    assert made.items.kind == "composite"
    assert made.items.take(np.array([2])).to_pylist() == [{"source": "b", "id": 1}]
    assert made.items.find(("a", 2)).tolist() == [1]
    assert made.attribute_names == ()
    assert len(set(made.items.keys().tolist())) == 3


def test_from_parquet(tmp_path: Path) -> None:
    path = TABLES["parquet"](["a", "b"], [1, 2], tmp_path)
    made = Clustering.from_parquet(path, weight="extra")
    assert made.weight is not None
    assert made.weight.tolist() == [0.0, 1.0]
    assert made.name == str(path)
    with pytest.raises(OptionError, match="a path"):
        Clustering.from_parquet(pa.table({"a": [1]}))
    with pytest.raises(FileFormatError):
        Clustering.from_parquet(tmp_path / "absent.parquet")


def test_from_dict() -> None:
    assert sets(Clustering.from_dict({"a": 1, "b": 1, "c": 2})) == {
        frozenset("ab"),
        frozenset("c"),
    }
    one = Clustering.from_dict({"a": {1}, "b": frozenset([1])})
    assert sets(one) == {frozenset("ab")}
    several = {"a": {"x", "y"}, "b": {"x"}, "c": {"y", "z"}}
    with pytest.raises(OverlapError, match=r"2 of 3 items .*'a', 'c'"):
        Clustering.from_dict(several)
    made = Clustering.from_dict(several, overlapping=True)
    assert sets(made) == {frozenset("ab"), frozenset("ac"), frozenset("c")}
    pairs = Clustering.from_dict({("a", 1): ("p", 2), ("b", 1): ("p", 2)})
    assert pairs.labels.kind == "composite"
    nothing = Clustering.from_dict({"a": set(), "b": {1}}).labels.null_rows
    assert nothing is not None
    assert nothing.tolist() == [True, False]
    assert len(Clustering.from_dict({})) == 0
    for wrong in ({"item": ["a"], "cluster": [1]}, {"a": {"b": 1}}):
        with pytest.raises(OptionError, match="Use sets"):
            Clustering.from_dict(wrong)
    for other in ([1], None, "a"):
        with pytest.raises(OptionError, match="a dict from item to cluster, not"):
            Clustering.from_dict(other)  # type: ignore[arg-type]
    with pytest.raises(IdTypeError, match="the items of the clustering mixes bytes and text"):
        Clustering.from_dict({"a": 1, b"a": 2})


def test_from_clusters() -> None:
    expected = {frozenset("ab"), frozenset("c")}
    for clusters in ([["a", "b"], ["c"]], [{"a", "b"}, set(), ("c",)], (c for c in ("ab", "c"))):
        if not isinstance(clusters, list):
            with pytest.raises(OptionError, match="a list of items"):
                Clustering.from_clusters(clusters)
            continue
        assert sets(Clustering.from_clusters(clusters)) == expected
    named = Clustering.from_clusters({"x": np.array(["a", "b"]), "y": ["c"]})
    assert sets(named) == expected
    assert named.labels.take(np.array([0, 2])).to_pylist() == ["x", "y"]
    assert len(Clustering.from_clusters([])) == 0
    with pytest.raises(OptionError, match="one is 5"):
        Clustering.from_clusters([5])  # type: ignore[list-item]
    for wrong in (5, None, "ab"):
        with pytest.raises(OptionError, match="from_clusters needs a list of clusters, each a list"):
            Clustering.from_clusters(wrong)  # type: ignore[arg-type]


def test_from_series() -> None:
    series = pd.Series([1, 1, 2], index=["a", "b", "c"])
    made = Clustering.from_series(series, weight=pd.Series([1.0, 2.0, 3.0], index=series.index))
    assert sets(made) == {frozenset("ab"), frozenset("c")}
    index = pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["source", None])
    items = Clustering.from_series(pd.Series([1, 1], index=index)).items
    assert items is not None
    assert items.names == ("source", "item_1")
    with pytest.raises(ColumnError, match="a different index"):
        Clustering.from_series(series, weight=pd.Series([1.0, 2.0, 3.0]))
    with pytest.raises(OptionError, match="from_table"):
        Clustering.from_series([1, 2])


def naive_components(pairs: list[tuple[int, int]], extra: list[int]) -> set[frozenset[str]]:
    groups = {item: {item} for pair in pairs for item in pair} | {item: {item} for item in extra}
    for a, b in pairs:
        if groups[a] is not groups[b]:
            groups[a] |= groups[b]
            for item in groups[b]:
                groups[item] = groups[a]
    return {frozenset(map(str, group)) for group in groups.values()}


@given(
    st.lists(st.tuples(st.integers(-20, 20), st.integers(-20, 20)), max_size=30),
    st.lists(st.integers(-30, 30), max_size=10),
)
def test_connected_components(pairs: list[tuple[int, int]], extra: list[int]) -> None:
    left, right = [a for a, _ in pairs], [b for _, b in pairs]
    expected = naive_components(pairs, extra)
    assert sets(Clustering.from_pairs(left, right, items=extra)) == expected
    named = Clustering.from_pairs(
        np.array([str(a) for a in left], dtype=object),
        pa.array([str(b) for b in right], pa.large_string()).dictionary_encode(),
        items=pl.Series([str(a) for a in extra], dtype=pl.String),
    )
    assert sets(named) == expected


@pytest.mark.slow
def test_components_in_order_of_items() -> None:
    made = Clustering.from_pairs([5, 7], [6, 5], items=[9, 7, 7])
    assert made.items is not None
    assert made.items.take(np.arange(4)).to_pylist() == [9, 7, 5, 6]
    assert made.labels.keys().tolist() == [0, 1, 1, 1]
    assert len(Clustering.from_pairs([], [])) == 0
    composite = Clustering.from_pairs([("a", 1)], [("b", 1)], items=[("a", 1), ("c", 1)])
    assert composite.labels.keys().tolist() == [0, 1, 0]
    long = np.arange(20_000)
    assert set(Clustering.from_pairs(long[:-1], long[1:], items=[]).labels.keys().tolist()) == {0}
    assert set(Clustering.from_pairs(long[:0:-1], long[-2::-1], items=[]).labels.keys().tolist()) == {0}


def test_pairs_that_are_refused() -> None:
    with pytest.raises(ColumnError, match="2 left and 1 right"):
        Clustering.from_pairs([1, 2], [1])
    with pytest.raises(NullError, match="left items"):
        Clustering.from_pairs(["a", None], ["b", "c"])
    with pytest.raises(IdTypeError, match="never match"):
        Clustering.from_pairs(["a"], [1])
    with pytest.raises(ColumnError, match="the left items of the clustering should be"):
        Clustering.from_pairs(None, None)


def test_null_items_raise() -> None:
    with pytest.raises(NullError, match=r"2 of 4 item ids .*first rows: 1, 2"):
        Clustering.from_labels([1, 2, 3, 4], items=["a", None, float("nan"), "d"])
    with pytest.raises(NullError, match="1 of 2"):
        Clustering.from_dict({None: 1, "a": 2})
    labels = Clustering.from_labels([1, None], items=["a", "b"]).labels
    assert labels.null_rows is not None


def test_lengths_differ() -> None:
    with pytest.raises(ColumnError, match="2 labels, 3 items"):
        Clustering.from_labels([1, 2], items=[1, 2, 3])
    with pytest.raises(ColumnError, match="2 labels, 1 weights"):
        Clustering.from_labels([1, 2], weight=[1])


def test_repr_tells_what_it_is() -> None:
    made = Clustering.from_table({"item": ["a"], "cluster": [1], "w": [1.0], "year": [2000]}, weight="w")
    assert repr(made).splitlines() == [
        "Clustering: the table, 1 rows",
        "  items   'item' (string)",
        "  labels  'cluster' (int64)",
        "  weight  given",
        "  other   w, year",
    ]
    assert "by position" in repr(Clustering.from_labels([1]))


# --- the pair ---


def table(**columns: Any) -> pa.Table:
    return pa.table(columns)


def test_pair_of_labels() -> None:
    pair = read_pair([1, 1, 2], pd.Series(["a", "b", "b"]), weight=[1, 2, 3])
    assert pair.first[0].items is pair.first[1].items is None
    assert pair.first[0].weight is not None
    assert pair.first[0].weight.tolist() == [1.0, 2.0, 3.0]
    assert pair.weight_table is pair.attribute_table is None
    assert (pair.first[0].name, pair.first[1].name) == ("the truth", "the prediction")
    with pytest.raises(AlignmentError, match="3 labels and the prediction 2"):
        read_pair([1, 1, 2], [1, 2])
    with pytest.raises(AlignmentError, match="truth is an array"):
        read_pair([1, 2], table(item=[1, 2], cluster=[1, 2]))
    with pytest.raises(AlignmentError, match="prediction is an array"):
        read_pair({"a": 1}, [1])
    with pytest.raises(WeightError, match="2 values for 3 rows"):
        read_pair([1, 1, 2], [1, 1, 2], weight=[1, 2])


def test_series_of_different_index() -> None:
    a, b = pd.Series([1, 2], index=["x", "y"]), pd.Series([1, 2], index=["y", "x"])
    with pytest.raises(AlignmentError, match="from_series"):
        read_pair(a, b)
    assert read_pair(a, a).first[0].items is None
    with pytest.raises(WeightError, match="index differs"):
        read_pair(a, a, weight=b)
    pair = read_pair(Clustering.from_series(a), Clustering.from_series(b), weight=b)
    assert pair.weight_table is not None
    assert pair.weight_table[0].take(np.arange(2)).to_pylist() == ["y", "x"]


def test_frames_are_not_labels() -> None:
    frame = pd.DataFrame({"a": [1, 2], "b": [1, 2], "c": [1, 2]})
    with pytest.raises(ColumnError, match="columns: a, b, c"):
        read_pair(frame, [1, 2])
    with pytest.raises(AlignmentError, match="the truth has item ids"):
        read_pair(pl.LazyFrame({"item": [1], "cluster": [1]}), [1])


def test_names_per_side() -> None:
    truth = table(id=[1, 2], person=[1, 1], source=["a", "b"], cluster=[7, 7])
    other = table(rec_id=[2, 1], person=[1, 1], source=["a", "b"], k=[3, 4], cluster=[8, 8])
    pair = read_pair(truth, other, item=("id", "rec_id"), cluster=("person", "k"))
    assert pair.first[0].items is not None
    assert pair.first[1].items is not None
    assert (pair.first[0].items.name, pair.first[1].items.name) == ("id", "rec_id")
    assert (pair.first[0].labels.name, pair.first[1].labels.name) == ("person", "k")
    pair = read_pair(truth, other, item=(["source", "id"], ["source", "rec_id"]))
    assert pair.first[1].items is not None
    assert pair.first[1].items.names == ("source", "rec_id")
    with pytest.raises(OptionError, match="a tuple of 3"):
        read_pair(truth, other, item=("id", "id", "id"))  # type: ignore[arg-type]


def test_one_table() -> None:
    rows = {"item": ["a", "b"], "t": [1, 2], "p": [1, None], "w": [1.0, 2.0], "year": [1, 2]}
    pair = read_pair("t", "p", table=rows, weight="w")
    assert pair.first[0].items is pair.first[1].items is not None
    assert pair.first[0].weight is not None
    assert pair.first[0].attributes is not None
    assert pair.first[0].attributes.column("year").to_pylist() == [1, 2]
    del rows["item"]
    pair = read_pair("t", ["p", "year"], table=rows)
    assert pair.first[0].items is None
    assert pair.first[1].labels.names == ("p", "year")
    pair = read_pair("t", "p", table=pd.DataFrame(rows))
    assert pair.first[1].labels.take(np.arange(2)).to_pylist() == [1, None]  # pandas has floats there
    with pytest.raises(ColumnError, match="no column 'q'"):
        read_pair("t", "q", table=rows)
    with pytest.raises(ColumnError, match="no column 'id'"):
        read_pair("t", "p", table=rows, item="id")
    with pytest.raises(OptionError, match="name of a column"):
        read_pair([1, 2], "p", table=rows)
    with pytest.raises(OptionError, match="one item column"):
        read_pair("t", "p", table=rows, item=("a", "b"))
    with pytest.raises(FileFormatError, match="table="):
        read_pair("t", "p")
    with pytest.raises(OptionError, match='cluster="t" has no effect'):
        read_pair("t", "p", table=rows, cluster="t")


def test_names_of_columns_need_a_table() -> None:
    labels, made = [1, 2], Clustering.from_table({"id": [1], "cluster": [1]}, item="id")
    for sides in ((labels, labels), ({"a": 1}, {"a": 1}), (made, made)):
        with pytest.raises(OptionError, match="cluster='k' names a column, but no table"):
            read_pair(*sides, cluster="k")
        with pytest.raises(OptionError, match="item='id' names a column, but no table"):
            read_pair(*sides, item="id")
    read_pair(made, table(id=[1], k=[1]), item="id", cluster="k")
    for option in ({"weight": table(id=[1], w=[1.0])}, {"attributes": table(id=[1], w=[1.0])}):
        read_pair(made, made, item="id", **option)  # there the name has a use


def test_weights_by_name() -> None:
    with_weight, without = table(item=[1], cluster=[1], w=[2.0]), table(item=[1], cluster=[1])
    for truth, other, expected in (
        (with_weight, without, (True, False)),
        (without, with_weight, (False, True)),
        (with_weight, with_weight, (True, True)),
    ):
        pair = read_pair(truth, other, weight="w")
        assert (pair.first[0].weight is not None, pair.first[1].weight is not None) == expected
        ready = read_pair(Clustering.from_table(truth), Clustering.from_table(other), weight="w")
        assert (ready.first[0].weight is not None, ready.first[1].weight is not None) == expected
    with pytest.raises(ColumnError, match="no weight column 'v'"):
        read_pair(with_weight, without, weight="v")
    with pytest.raises(ColumnError, match="no weight column 'w'"):
        read_pair([1], [1], weight="w")
    own = Clustering.from_labels([1], items=[1], weight=[5.0])
    assert read_pair(own, own).first[0].weight is own.weight
    replaced = read_pair(own, with_weight, weight="w")
    assert replaced.first[0].weight is None
    assert replaced.first[1].weight is not None


def test_weights_by_item() -> None:
    truth = {"a": 1, "b": 2}
    for weight in (
        {"b": 2.0, "a": 1},
        {"item": ["b", "a"], "weight": [2.0, 1.0]},
        table(item=["b", "a"], w=[2, 1]),
        pd.Series([2.0, 1.0], index=["b", "a"]),
    ):
        pair = read_pair(truth, truth, weight=weight)
        assert pair.first[0].weight is None
        assert pair.weight_table is not None
        items, values = pair.weight_table
        assert items.take(np.arange(2)).to_pylist() == ["b", "a"]
        assert values.tolist() == [2.0, 1.0]
    with pytest.raises(WeightError, match="matched by item"):
        read_pair(truth, truth, weight=[1.0, 2.0])
    with pytest.raises(WeightError, match=r"matched by item.* not int"):
        read_pair(truth, truth, weight=5)
    with pytest.raises(WeightError, match=r"a table .*no item ids"):
        read_pair([1], [1], weight=table(item=[1], weight=[1.0]))
    with pytest.raises(WeightError, match=r"a dict .*no item ids"):
        read_pair([1], [1], weight={0: 1.0})
    for wrong in ({"a": 1.0, "b": "x"}, {"a": {1}, "b": {2}}):
        with pytest.raises(WeightError, match="weight should be numbers"):
            read_pair(truth, truth, weight=wrong)
    for nulls in (
        {"a": 1.0, None: 1.0},
        table(item=["a", None], weight=[1.0, 1.0]),
        pd.Series([1.0, 1.0], index=["a", None]),
    ):
        with pytest.raises(NullError, match=r"1 of 2 item ids are null in .*weight.*first rows: 1"):
            read_pair(truth, truth, weight=nulls)
    with pytest.raises(WeightError, match="null"):
        read_pair(truth, truth, weight={"a": None, "b": 1.0})


def test_attributes() -> None:
    truth = table(id=["a", "b"], cluster=[1, 2])
    pair = read_pair(truth, truth, item="id", attributes=table(id=["b"], country=["DE"], year=[2000]))
    assert pair.attribute_table is not None
    items, rows = pair.attribute_table
    assert items.take(np.array([0])).to_pylist() == ["b"]
    assert rows.column("country").to_pylist() == ["DE"]
    with pytest.raises(ColumnError, match="no column 'id' in the attributes"):
        read_pair(truth, truth, item="id", attributes=table(item=["b"]))
    with pytest.raises(NullError, match="1 of 2 item ids are null in column 'id' of the attributes"):
        read_pair(truth, truth, item="id", attributes=table(id=["b", None], country=["DE", "FR"]))
    pair = read_pair([1, 2], [1, 2], attributes={"country": ["DE", "FR"]})
    assert pair.first[0].attributes is not None
    assert pair.first[0].attributes.column("country").to_pylist() == ["DE", "FR"]
    with pytest.raises(AlignmentError, match="1 rows of attributes and 2 labels"):
        read_pair([1, 2], [1, 2], attributes={"country": ["DE"]})
    with pytest.raises(ColumnError, match="attributes should be"):
        read_pair([1, 2], [1, 2], attributes=[1, 2])


def test_overlapping_dicts() -> None:
    several = {"a": {1, 2}, "b": {1}}
    with pytest.raises(OverlapError, match=r"the truth .*choose one for each"):
        read_pair(several, several)
    assert len(read_pair(several, several, overlapping=True).first[0]) == 3


def test_nothing_is_changed(tmp_path: Path) -> None:
    frame = pd.DataFrame({"item": ["a", "b"], "cluster": pd.Categorical([1, 2]), "w": [1.0, 2.0]})
    before = frame.copy(deep=True)
    labels = np.array([1, 2])
    pair = read_pair(frame, frame, weight="w")
    for side in pair.first:
        assert side.items is not None
        side.items.keys(), side.labels.keys()
    pd.testing.assert_frame_equal(frame, before)
    assert read_pair(labels, labels).first[0].labels.keys().base is not None
    assert labels.flags.writeable


def test_the_shipped_example(tmp_path: Path) -> None:
    """A pair of files, one partly covering the other."""
    folder = DATA / "patentsview"
    if not folder.is_dir():
        pq.write_table(table(item=["a"], cluster=["b"], year=[1]), tmp_path / "truth.parquet")
        pq.write_table(table(item=["a"], cluster=["b"]), tmp_path / "pred_20211230.parquet")
        folder = tmp_path
    pair = read_pair(folder / "truth.parquet", str(folder / "pred_20211230.parquet"))
    assert len(pair.first[0]) >= len(pair.first[1])
    assert "year" in pair.first[0].attribute_names


@pytest.mark.slow
def test_pairs_alone_omit_the_items_that_are_in_none() -> None:
    assert Clustering.from_pairs(["a"], ["b"]).omits_singletons
    for none in ([], ["a"], ["c"]):
        made = Clustering.from_pairs(["a"], ["b"], items=none)
        assert (len(made), made.omits_singletons) == (2 + (none == ["c"]), False)


def test_a_dict_of_the_items_of_each_cluster() -> None:
    """Scored as it stands it would be the transposed, as the keys agree."""
    truth, prediction = {1: {"a", "b"}, 2: {"c"}}, {1: {"a"}, 2: {"b", "c", "d"}}
    with pytest.raises(OptionError, match=r"2 and 2 keys.*3 are on both sides.*from_clusters"):
        fb.evaluate(truth, prediction, overlapping=True)
    with pytest.raises(OptionError, match="from_clusters"):
        fb.extended_bcubed(truth, prediction)
    clusters = [Clustering.from_clusters(side) for side in (truth, prediction)]
    with pytest.warns(EvaluationWarning):  # d is in the prediction alone
        ev = fb.evaluate(*clusters, overlapping=True)
    assert ev.precision == (1 + 1 / 2 + 1 / 2) / 3
    assert ev.recall == (1 / 2 + 1 / 2 + 1) / 3
    items = [Clustering.from_dict(side, overlapping=True) for side in (truth, prediction)]
    assert fb.evaluate(*items, overlapping=True).contingency.n_items == 2
    tags = {"x": {"a", "b"}, "y": {"b"}, "z": {"a"}}, {"x": {"a"}, "y": {"a", "b"}, "z": {"b"}}
    assert fb.evaluate(*tags, overlapping=True).contingency.n_items == 3
    mixed = {"x": {"a", "b"}, "y": "a", "z": "b"}  # with fewer labels than items, though more than sets
    assert fb.evaluate(mixed, mixed, overlapping=True).contingency.n_items == 3


@pytest.mark.parametrize(
    ("start", "stop", "said"),
    [
        (-1, 2, "start .* 0 or more, not -1"),
        ("a", 2, "start .*'a'"),
        (0, None, "stop .*None"),
        (2, 1, "stop .* 2 or more"),
    ],
)
def test_slices_of_rows(start: Any, stop: Any, said: str) -> None:
    rows = Clustering.from_labels([1, 1, 2], items=list("abc"))
    with pytest.raises(OptionError, match=said):
        rows.slice(start, stop)
    assert rows.slice(np.int64(1), 9).to_table().to_pydict() == {"item": ["b", "c"], "cluster": [1, 2]}


class HuggingFace:
    """What a data set of Hugging Face has: rows that are selected from an Arrow table, as Python objects or Arrow."""

    column_names = ("item", "cluster")

    def __init__(self, rows: pa.Table, format: str = "python") -> None:
        self.rows, self.format = rows, format

    def __len__(self) -> int:
        return self.rows.num_rows

    def with_format(self, format: str) -> HuggingFace:
        return HuggingFace(self.rows, format)

    def __getitem__(self, key: slice) -> Any:
        rows = self.rows.slice(*key.indices(len(self))[:2])
        return rows if self.format == "arrow" else rows.to_pydict()


class Splits(dict[str, Any]):
    """A dict of data sets, with methods of one."""

    with_format = column_names = HuggingFace.with_format


def test_data_sets_of_hugging_face() -> None:
    truth = HuggingFace(table(item=[1, 2, 3], cluster=["a", "a", "b"]))
    assert fb.evaluate(truth, {1: 7, 2: 7, 3: 7}).precision == pytest.approx((2 / 3 + 2 / 3 + 1 / 3) / 3)
    links = HuggingFace(table(left_id=[1], right_id=[2], score=[0.9]))
    assert fb.sweep({1: "a", 2: "a", 3: "b"}, links).best("f1").threshold == 0.9
    with pytest.raises(fb.errors.OptionError, match="a dict maps each item"):
        fb.evaluate(Splits(train=truth), {1: 7})
