"""Links: whatever holds them, the same items and clusters; what is wrong with them is told, with counts."""

from __future__ import annotations

from collections.abc import Hashable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from both_engines import LIMIT
from containers import COLUMNS, TABLES
from effort import examples
from growth import growth
from hypothesis import given
from hypothesis import strategies as st
from naive_links import naive_components, naive_reached
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

import fastbcubed as fb
from fastbcubed import Clustering
from fastbcubed.errors import (
    ColumnError,
    EvaluationWarning,
    FastBCubedError,
    IdTypeError,
    LinkError,
    NullError,
    OptionError,
)
from fastbcubed.inputs import links as link_blocks
from fastbcubed.inputs import links as links_module
from fastbcubed.inputs.link_clusters import connect_at
from fastbcubed.inputs.link_columns import LinkRequest
from fastbcubed.inputs.links import Links
from fastbcubed.runtime.key_codes import LEAST, Numbering

#: Scores with ties, among them some that no binary fraction is.
SCORES = [0.1, 0.5, 0.7, 0.9, 1.0]
LINKS = st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9), st.sampled_from(SCORES)), max_size=30)


def read_links(table: Any, left: Any = None, right: Any = None, *, items: Any = None, **asked: Any) -> Links:
    return links_module.read_links(table, LinkRequest(left, right, **asked), items=items)


def ids(column: Any) -> list[Any]:
    found = column.take(np.arange(len(column))).to_pylist()
    return [tuple(each.values()) if isinstance(each, dict) else each for each in found]


def pairs(links: Links) -> list[tuple[Any, Any]]:
    known = ids(links.items)
    return [(known[a], known[b]) for a, b in zip(links.left.tolist(), links.right.tolist(), strict=True)]


def sets(clustering: Clustering) -> set[frozenset[Hashable]]:
    assert clustering.items is not None
    groups: dict[int, set[Hashable]] = {}
    for item, label in zip(ids(clustering.items), clustering.labels.keys().tolist(), strict=True):
        groups.setdefault(label, set()).add(item)
    return {frozenset(group) for group in groups.values()}


# -- The clusters ----------------------------------------------------------------------------------


@examples(60)
@given(LINKS, st.sampled_from([0.05, *SCORES, 0.6, 1.5]), st.booleans(), st.booleans())
def test_clusters_are_those_of_the_naive_twin(
    links: list[tuple[int, int, float]], threshold: float, ascending: bool, all_items: bool
) -> None:
    linked = dict.fromkeys(item for link in links for item in link[:2])
    items = range(-9, 12) if all_items else linked
    reached = naive_reached(links, threshold, ascending)
    expected = naive_components(reached, items)
    for kind in (int, str):
        given = [(kind(a), kind(b), score) for a, b, score in links]
        asked: Any = list(map(kind, items)) if all_items else None
        how = {"threshold": threshold, "ascending": ascending, "items": asked}
        if links and not reached:
            with pytest.warns(EvaluationWarning, match="No link of the links has a score of"):
                made = Clustering.from_links(given, **how)  # type: ignore[arg-type]
        else:
            made = Clustering.from_links(given, **how)  # type: ignore[arg-type]
        assert sets(made) == {frozenset(map(kind, group)) for group in expected}
        assert made.omits_singletons != all_items
        labels = made.labels.keys()
        firsts = np.unique(labels, return_index=True)[1]
        assert (np.diff(firsts) > 0).all()  # counted in the order of the items


@examples(30)
@given(LINKS, st.randoms())
def test_order_and_direction_of_links_change_no_cluster(links: Any, random: Any) -> None:
    changed = [(b, a, score) if random.random() < 0.5 else (a, b, score) for a, b, score in links]
    changed += [link for link in links if random.random() < 0.3]
    random.shuffle(changed)
    before, after = (Clustering.from_links([link[:2] for link in each]) for each in (links, changed))
    assert sets(before) == sets(after)


def test_many_links_as_scipy_connects_them() -> None:
    random = np.random.default_rng(3)
    n, m = 8_000, 10_000
    left, right = random.integers(0, n, m), random.integers(0, n, m)
    scores = random.integers(0, 50, m) / 50
    links = read_links({"left": left, "right": right, "score": scores}, scored=True, items=np.arange(n))
    thresholds = [0.9, 0.02, 0.5, 0.5, 2.0]
    for threshold, labels in zip(thresholds, connect_at(links, thresholds), strict=True):
        kept = scores >= threshold
        graph = coo_array((np.ones(kept.sum()), (left[kept], right[kept])), shape=(n, n))
        count, expected = connected_components(graph, directed=False)
        _, firsts, renumbered = np.unique(expected, return_index=True, return_inverse=True)
        assert labels.max() + 1 == count
        assert np.array_equal(labels, np.argsort(np.argsort(firsts))[renumbered])
    alone = Clustering.from_links({"left": left, "right": right, "score": scores}, threshold=0.9)
    assert len(sets(alone)) == len(set(alone.labels.keys().tolist()))


@pytest.mark.parametrize("name", ["distance", "edit_distance", "dist", "dist_name"])
def test_distances_that_are_taken_for_similarities_warn(name: str) -> None:
    links = {"left": ["a", "b"], "right": ["b", "c"], name: [0.1, 0.9]}
    with pytest.warns(EvaluationWarning, match=f"'{name}' .* is named like a distance, .* ascending=True"):
        Clustering.from_links(links, score=name, threshold=0.5)
    Clustering.from_links(links, score=name, threshold=0.5, ascending=True)
    Clustering.from_links({**links, "distinct": [1, 2]}, score="distinct", threshold=1)
    with pytest.warns(EvaluationWarning, match="were joined, whatever their"):
        Clustering.from_links(links, score=name)


def test_hand_worked() -> None:
    """b–c is below the threshold, d is linked to itself alone, and e to nothing."""
    links = [("a", "b", 0.9), ("b", "a", 0.95), ("b", "c", 0.89), ("d", "d", 1.0)]
    made = Clustering.from_links(links, threshold=0.9, items=["e", "d", "c", "b", "a"])
    assert made.to_table().to_pydict() == {
        "item": ["e", "d", "c", "b", "a"],
        "cluster": [0, 1, 2, 3, 3],
    }
    assert sets(Clustering.from_links([("d", "d")])) == {frozenset("d")}
    assert len(Clustering.from_links([])) == 0
    assert len(Clustering.from_links([], items=["a", "b"], threshold=0.5)) == 2
    assert sets(Clustering.from_links(made.to_table().rename_columns(["x", "y"]).slice(0, 0))) == set()


def test_thresholds_between_and_at_ties() -> None:
    links = [(1, 2, 0.7), (3, 4, 0.7), (5, 6, 0.8)]
    for threshold, n in ((0.69, 3), (0.7, 3), (0.7000001, 5), (0.8, 5)):
        assert len(sets(Clustering.from_links(links, threshold=threshold))) == n
    for threshold, n in ((0.7, 4), (0.75, 4), (0.8, 3)):
        assert len(sets(Clustering.from_links(links, threshold=threshold, ascending=True))) == n


@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_a_threshold_is_rounded_as_the_scores_are(kind: Any) -> None:
    links = {"left": [1, 2], "right": [2, 3], "score": np.array([0.9, 1], kind)}
    assert len(sets(Clustering.from_links(links, threshold=0.9))) == 1
    assert len(sets(Clustering.from_links(links, threshold=0.91))) == 2
    assert len(sets(Clustering.from_links(links, threshold=1e300, ascending=True))) == 1


@pytest.mark.parametrize(
    "kind", [pa.decimal32(9, 6), pa.decimal64(18, 6), pa.decimal128(18, 6), pa.decimal256(40, 20)]
)
def test_decimal_scores_are_the_nearest_floats(kind: pa.DataType) -> None:
    scores = pa.array([Decimal("0.90"), Decimal("0.70"), Decimal("0.95")], kind)
    links = read_links({"left": ["a", "b", "c"], "right": ["b", "c", "d"], "score": scores}, scored=True)
    assert links.scores is not None
    assert links.scores.tolist() == [0.9, 0.7, 0.95]


def test_scores_in_tuples_are_numbers_of_any_type() -> None:
    for scores in ([Decimal("0.90"), Decimal("0.70")], [np.float32(0.5), 1], [2**53 + 2, 2**53]):
        links = read_links([("a", "b", scores[0]), ("b", "c", scores[1])], scored=True)
        assert links.scores is not None
        assert links.scores.tolist() == list(map(float, scores))


# -- What holds links ------------------------------------------------------------------------------


@pytest.mark.cases(20, 99)
@pytest.mark.parametrize("kind", COLUMNS)
def test_ids_of_every_type(kind: str) -> None:
    left, right = COLUMNS[kind]([1, 2, 5]), COLUMNS[kind]([2, 3, 5])
    made = Clustering.from_pairs(left, right)
    assert made.labels.keys().tolist() == [0, 0, 0, 1]
    assert made.items is not None
    again = Clustering.from_pairs(left, right, items=COLUMNS[kind]([7, 5, 2]))
    assert again.labels.keys().tolist() == [0, 1, 2, 2, 2]
    if "tuples" not in kind and "MultiIndex" not in kind:  # which are several columns of a table
        made = Clustering.from_links({"left": left, "right": right}, items=COLUMNS[kind]([5, 1, 2, 3, 4]))
        assert made.labels.keys().tolist() == [0, 1, 1, 1, 2]


@pytest.mark.cases(15)
@pytest.mark.parametrize("container", TABLES)
@pytest.mark.parametrize("block", [1, 3, 1 << 20])
def test_tables_of_every_kind(container: str, block: int, tmp_path: Path, monkeypatch: Any) -> None:
    for module in (links_module, link_blocks):
        monkeypatch.setattr(module, "BLOCK_ROWS", block)
    left, right = ["a", "b", "a", "e", "f", "d"], ["b", "c", "c", "e", "g", "d"]
    table = TABLES[container](left, right, tmp_path)
    made = Clustering.from_links(table, "item", "cluster", score="extra", threshold=0)
    assert made.items is not None
    assert ids(made.items) == ["a", "b", "c", "e", "f", "g", "d"]
    assert made.labels.keys().tolist() == [0, 0, 0, 1, 2, 2, 3]
    numbers = TABLES[container]([1, 2, 3, 1], [2, 3, 4, 4], _folder(tmp_path))
    assert read_links(numbers, "item", "cluster").left.tolist() == [0, 1, 2, 0]


def _folder(path: Path) -> Path:
    (path / "numbers").mkdir()
    return path / "numbers"


def test_the_items_of_a_table(tmp_path: Path) -> None:
    links = {"unique_id_l": [1, 2], "unique_id_r": [2, 3], "match_weight": [3.0, 1.0]}
    for items in (
        {"unique_id": [4, 3, 2, 1], "name": list("abcd")},
        pd.DataFrame({"item": [4, 3, 2, 1], "year": 0}),
        pl.DataFrame({"anything": [4, 3, 2, 1]}),
        pd.Series([4, 3, 2, 1]),
        TABLES["parquet"]([4, 3, 2, 1], [0, 0, 0, 0], tmp_path),
        Clustering.from_labels([0, 0, 0, 0], items=[4, 3, 2, 1]),
        [4, 3, 2, 1, 4],
    ):
        made = Clustering.from_links(links, score="match_weight", threshold=2, items=items)
        assert (made.labels.keys().tolist(), made.omits_singletons) == ([0, 1, 2, 2], False)
    named = {"key": [4, 3, 2, 1], "other": [0, 0, 0, 0]}
    assert len(Clustering.from_links(links, items=named, item="key")) == 4
    with pytest.raises(ColumnError, match=r"no column 'item' in the items of the links.*with item="):
        Clustering.from_links(links, items=named)
    with pytest.raises(OptionError, match="no item ids"):
        Clustering.from_links(links, items=Clustering.from_labels([0, 1]))


def test_pairs_in_other_containers() -> None:
    scored = [("a", "b", 0.5), ("b", "c", 0.75)]
    # as dedupe scores pairs
    dedupe = np.array([((1, 2), 0.5), ((2, 3), 0.75)], dtype=[("pairs", "i8", 2), ("score", "f4")])
    index = pd.MultiIndex.from_tuples([(1, 2), (2, 3)], names=["rec_id_1", "rec_id_2"])  # recordlinkage
    for links in (
        scored,
        tuple(scored),
        set(scored),
        iter(scored),
        [list(link) for link in scored],
        [((a, b), score) for a, b, score in scored],
        np.array(scored, dtype=object),
    ):
        found = read_links(links, scored=True)
        assert (pairs(found), found.scores.tolist()) == ([("a", "b"), ("b", "c")], [0.5, 0.75])  # type: ignore[union-attr]
    for links in (
        dedupe,
        np.array([[1, 2, 0.5], [2, 3, 0.75]]),
        pd.Series([0.5, 0.75], index=index),
        pd.DataFrame({"score": [0.5, 0.75]}, index=index),
    ):
        found = read_links(links, scored=True)
        assert (pairs(found), found.scores.tolist()) == ([(1, 2), (2, 3)], [0.5, 0.75])  # type: ignore[union-attr]
    assert pairs(read_links(index)) == pairs(read_links(np.array([[1, 2], [2, 3]]))) == [(1, 2), (2, 3)]
    composite = read_links([(("x", 1), ("y", 1)), (("y", 1), ("x", 1))])
    assert pairs(composite) == [(("x", 1), ("y", 1)), (("y", 1), ("x", 1))]


@pytest.mark.parametrize(
    ("columns", "left", "score", "items"),
    [
        ("left right", "left", None, "item"),
        ("left right score", "left", "score", "item"),
        ("LEFT Right Score", "LEFT", "Score", "item"),
        ("unique_id_l unique_id_r match_weight match_probability", "unique_id_l", "match_probability", "unique_id"),
        ("id_l id_r match_weight gamma", "id_l", "match_weight", "id"),
        ("match_probability id_l id_r unique_id_l unique_id_r name_l name_r", "unique_id_l", "match_probability",
         "unique_id"),
        ("left_id right_id name_left name_right similarity", "left_id", "similarity", "id"),
        ("leftId rightId", "leftId", None, "Id"),
        ("id1 id2 weight", "id1", "weight", "id"),
        ("rec_id_1 rec_id_2 anything", "rec_id_1", "anything", "rec_id"),
        ("ltable_id rtable_id predicted probability", "ltable_id", "probability", "id"),
        ("z_zid z_z_zid z_score z_prediction", "z_zid", "z_score", "z_zid"),
        ("source target", "source", None, "item"),
        ("film_a film_b p", "film_a", "p", "film"),
        ("one other", "one", None, "item"),
        ("one other score", "one", "score", "item"),
    ],
)  # fmt: skip
def test_columns_of_known_tools(columns: str, left: str, score: str | None, items: str) -> None:
    table = {name: [0, 1] for name in columns.split()}
    found = read_links(table, scored=score is not None, verdict=False, sources=False).columns
    assert (found.left, found.score, found.items) == ([left], score, [items])
    assert found.right == [columns.split()[columns.split().index(left) + 1]]


def test_source_columns_make_a_composite_id() -> None:
    table = {
        "match_probability": [0.9, 0.8],
        "source_dataset_l": ["a", "a"],
        "unique_id_l": [1, 2],
        "source_dataset_r": ["b", "a"],
        "unique_id_r": [1, 1],
    }
    made = Clustering.from_links(table, threshold=0.85)
    assert made.to_table().to_pydict() == {
        "source_dataset": ["a", "b", "a"],
        "unique_id": [1, 1, 2],
        "cluster": [0, 0, 1],
    }
    note = fb.evaluate(made, made).warnings[-1]
    assert note["message"].endswith(
        "as Splink writes them: left = source_dataset_l + unique_id_l, right = source_dataset_r + unique_id_r."
    )
    columns = ["unique_id_l", "source_dataset_l"], ["unique_id_r", "source_dataset_r"]
    named = Clustering.from_links(
        table, *columns, items=pd.DataFrame({"source_dataset": list("aabc"), "unique_id": [1, 2, 1, 1]})
    )
    assert (named.items.names, named.labels.keys().tolist()) == (
        ("unique_id", "source_dataset"),
        [0, 0, 0, 1],
    )  # type: ignore[union-attr]
    named = Clustering.from_links(table, ["unique_id_l"], ["unique_id_r"])
    assert named.to_table().column_names == ["unique_id", "cluster"]
    assert Clustering.from_table(made.to_table()).items.names == ("source_dataset", "unique_id")  # type: ignore[union-attr]


def test_links_are_no_clustering() -> None:
    with pytest.raises(
        ColumnError, match=r"A table with id_l and id_r looks like a table of links.*from_links"
    ):
        fb.evaluate(TRUTH, pd.DataFrame({"id_l": [1, 2], "id_r": [2, 3], "score": [0.5, 0.25]}))


@pytest.mark.parametrize("shape", [(), (3,), (3, 4), (2, 1)])
def test_arrays_that_hold_no_links(shape: tuple[int, ...]) -> None:
    with pytest.raises(FastBCubedError, match=r"table of links|its shape is"):
        read_links(np.zeros(shape, np.int64))


# -- What is wrong with links ----------------------------------------------------------------------


TABLE = {"a": [1, 2], "b": [2, 3], "c": [3, 4], "d": [0.5, 0.6]}


@pytest.mark.parametrize(
    ("table", "options", "error", "message"),
    [
        (TABLE, {}, ColumnError, r"no columns left and right in the links \(columns: a, b, c, d\).*left= and right="),
        (TABLE, {"left": "a"}, OptionError, "right= is missing"),
        (TABLE, {"left": "a", "right": "a"}, ColumnError, "are the same column of the links: a"),
        (TABLE, {"left": "a", "right": ["b", "c"]}, OptionError, "name 1 and 2 columns"),
        (TABLE, {"left": "a", "right": "z"}, ColumnError, r"no column 'z' in the links \(columns: a, b, c, d\)"),
        (TABLE, {"left": "a", "right": "b", "score": "a"}, ColumnError, "is also an item column: a"),
        (TABLE, {"left": "a", "right": "b", "score": 1}, OptionError, "score must be the name of a column, not int"),
        (TABLE, {"left": "a", "right": "b", "scored": True}, ColumnError, "no column of scores.*with score="),
        ({"id_l": [1], "id_r": [2], "key_1": [1], "key_2": [2]}, {}, ColumnError,
         r'in 2 pairs of columns.*Say which: left="id_l" and right="id_r"; or left="key_1" and right="key_2"'),
        ({"unique_id_l": [1], "unique_id_r": [2]}, {"left": "unique_idl", "right": "unique_id_r"}, ColumnError,
         'Did you mean left="unique_id_l"'),
        ({"left": [1], "right": ["a"]}, {}, IdTypeError, r"never match: int64 in column 'left'.*'right'"),
        ({"left": [1], "right": [2]}, {"items": ["a"]}, IdTypeError, "never match"),
        ({"left": [1.5], "right": [2]}, {}, IdTypeError, "not whole numbers"),
        ({"left": [1], "right": [2], "score": ["high"]}, {"scored": True}, LinkError, "should be numbers.*string"),
        ([(1, 2, "0.9")], {"scored": True}, LinkError, "the scores of the links should be numbers.*string"),
        ([(1, 2, True)], {"scored": True}, ColumnError, 'verdict="verdict"'),
        ([(1, 2, 10**30)], {"scored": True}, LinkError, "the scores of the links should be numbers.*Give each"),
        ([(1, 2, 2**53 + 3), (2, 3, 0.5)], {"scored": True}, LinkError, "the scores of the links.*Give each"),
        ([(1, 2), (3,)], {}, ColumnError, r"1 of 2 are not \(first: \(3,\)\)"),
        ([(1, 2), (3, 4, 0.5)], {}, ColumnError, "1 of 2 are not"),
        ([(1, 2), "ab"], {}, ColumnError, "1 of 2 are not"),
        ([(1, 2), ("a", "b")], {}, IdTypeError, "left items of the links"),
        (5, {}, ColumnError, "a table of links, or a list of pairs, not int"),
        ("no_such_file.parquet", {}, FastBCubedError, "no_such_file"),
    ],
)  # fmt: skip
def test_links_that_cannot_be_read(table: Any, options: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        read_links(table, **options)


@pytest.mark.parametrize("block", [1, 2, 1 << 20])
def test_faults_are_counted(block: int, tmp_path: Path, monkeypatch: Any) -> None:
    for module in (links_module, link_blocks):
        monkeypatch.setattr(module, "BLOCK_ROWS", block)
    table = pa.table(
        {"left": ["a", "b", None, "d"], "right": ["b", None, None, "e"], "score": [0.5, 0.5, 1, 1]}
    )
    pq.write_table(table, tmp_path / "links.parquet", row_group_size=2)
    for links in (table, tmp_path / "links.parquet"):
        with pytest.raises(
            NullError, match=r"of 4 item ids are null in column '(left|right)' .*first rows: [12]"
        ):
            read_links(links)
    scores = [(1, 2, 0.5), (2, 3, None), (2, 4, float("nan")), (4, 5, 1.0)]
    with pytest.raises(LinkError, match=r"2 of 4 scores .* null or NaN \(first rows: 1, 2\)"):
        read_links(scores, scored=True)
    with pytest.raises(
        LinkError, match=r"2 items .* the 2 items given .*first: 4, 5\). They occur in 2 of 3"
    ):
        read_links([(1, 2), (2, 4), (4, 5)], items=[1, 2])
    with pytest.raises(NullError, match=r"1 of 2 item ids are null in the items of the links"):
        read_links([(1, 2)], items=[1, None])
    with pytest.raises(NullError, match="the items of the clustering"):
        Clustering.from_pairs([1], [2], items=[1, None])


@pytest.mark.parametrize("block", [1, 1 << 20])
def test_integers_that_floats_round_are_no_scores(block: int, tmp_path: Path, monkeypatch: Any) -> None:
    """2**53 + 1 is 2**53 as a float, and 2**53 + 2 is one."""
    for module in (links_module, link_blocks):
        monkeypatch.setattr(module, "BLOCK_ROWS", block)
    scores = [2**53, 2**53 + 1, 2**53 + 2, 2**53 + 3]
    table = pa.table({"left": [1, 2, 3, 4], "right": [2, 3, 4, 5], "score": scores})
    pq.write_table(table, tmp_path / "links.parquet", row_group_size=2)
    csv.write_csv(table, tmp_path / "links.csv")
    decimals = table.set_column(2, "score", pa.array(scores, pa.decimal128(20)))
    tuples = list(zip(*table.to_pydict().values(), strict=True))
    numpy = [(left, right, np.int64(score)) for left, right, score in tuples]
    for links in (table, decimals, tmp_path / "links.parquet", tmp_path / "links.csv", tuples, numpy):
        with pytest.raises(LinkError, match=r"2 of 4 scores of .* beyond 2\*\*53, .* \(first rows: 1, 3\)"):
            Clustering.from_links(links, threshold=2**53 + 2)
    exact = Clustering.from_links(table.take([0, 2]), threshold=2**53 + 2)
    assert exact.labels.keys().tolist() == [0, 1, 2, 2]
    with pytest.raises(OptionError, match=r"threshold is 9007199254740993, .* rounded to 9007199254740992"):
        Clustering.from_links([(1, 2, 2.0**53)], threshold=2**53 + 1)
    (tmp_path / "links.csv").write_text("left,right,score\n1,2,1.2345678901234567e+20\n2,3,inf\n")
    assert Clustering.from_links(tmp_path / "links.csv", threshold=1e20).labels.keys().tolist() == [0, 0, 0]


def test_text_where_scores_should_be(tmp_path: Path) -> None:
    file = tmp_path / "links.csv"
    file.write_text("id_l,id_r,score\na,b,0.9\nb,c,1e-2\nd,e,\n")
    with pytest.raises(LinkError, match=r"1 of 3 scores.*first rows: 2"):
        Clustering.from_links(file, threshold=0.5)
    file.write_text("id_l,id_r,score\na,b,0.9\nb,c,1e-2\nd,e,high\n")
    with pytest.raises(LinkError, match=r"1 of 3 values are not \(first: 'high' in rows 2\)"):
        Clustering.from_links(file, threshold=0.5)
    assert len(Clustering.from_links(file)) == 5
    file.write_text("id_l,id_r,score\n1,2,.9\n2,3,1e-2\n")
    assert Clustering.from_links(file, threshold=0.5).labels.keys().tolist() == [0, 0, 1]


def test_scores_that_are_no_probabilities_are_told() -> None:
    table = {"unique_id_l": [1, 2, 3], "unique_id_r": [2, 3, 4], "match_probability": [0.5, 3.5, -1.0]}
    with pytest.warns(
        EvaluationWarning, match=r"2 of 3 scores in column 'match_probability'.*first: 3.5, -1.0"
    ) as told:
        assert len(sets(Clustering.from_links(table, threshold=0.5))) == 2
    assert told[0].filename == __file__
    Clustering.from_links({**table, "match_probability": [0.5, 0.0, 1.0]}, threshold=0.5)
    with pytest.warns(EvaluationWarning, match="All 3 links .* ranges from -1 to 3.5: 1 cluster"):
        Clustering.from_links(table, score=None)


@pytest.mark.parametrize("threshold", ["0.9", True, float("nan"), [0.9]])
def test_thresholds_that_are_none(threshold: Any) -> None:
    with pytest.raises(OptionError, match="threshold must be"):
        Clustering.from_links([(1, 2, 0.5)], threshold=threshold)


def test_infinite_scores_are_scores() -> None:
    links = [(1, 2, float("inf")), (3, 4, float("-inf"))]
    assert len(sets(Clustering.from_links(links, threshold=1e300))) == 3
    assert len(sets(Clustering.from_links(links, threshold=float("inf")))) == 3


# -- Codes -----------------------------------------------------------------------------------------


@examples(40)
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 2)), max_size=200), max_size=6),
    st.booleans(),
)
def test_numbers_do_not_depend_on_blocks(blocks: list[list[tuple[int, int]]], proved: bool) -> None:
    """Keys that collide are told apart by their proofs."""
    numbering, known = Numbering(), dict[Any, int]()
    for block in blocks:
        keys = np.array([key * 2**32 for key, _ in block], np.int64)
        proofs = np.array([proof for _, proof in block], np.uint64) if proved else None
        codes, firsts = numbering.add(keys, proofs)
        names = [pair if proved else pair[0] for pair in block]
        new = [k for k, name in enumerate(names) if name not in known and name not in names[:k]]
        expected = [known.setdefault(name, len(known)) for name in names]
        assert (codes.tolist(), firsts.tolist()) == (expected, new)
    assert numbering.n == len(known)


def test_numbers_of_more_keys_than_there_was_room_for() -> None:
    numbering, keys = Numbering(), np.random.default_rng(0).permutation(20 * LEAST)
    for start in range(0, keys.size, 1000):
        assert numbering.add(keys[start : start + 1000])[0][0] == start
    codes, firsts = numbering.add(keys)
    assert np.array_equal(codes, np.arange(keys.size))
    assert not firsts.size
    assert numbering.add(keys[:2], np.array([0, 1], np.uint64))[0].tolist() == [0, keys.size]


def test_integers_beyond_63_bits() -> None:
    """2**64 - 1 and -1 have the same bits."""
    high = np.array([2**64 - 1, 2**63], np.uint64)
    with pytest.raises(ColumnError, match="several types: int64, uint64"):
        read_links({"left": np.array([-1, -(2**63)]), "right": high})
    assert len(read_links({"left": high, "right": high[::-1]}).items) == 2


@pytest.mark.process
@pytest.mark.slow
def test_links_in_files_take_little_memory(tmp_path: Path) -> None:
    """Of each link 16 bytes are held, and 8 more while blocks are put together; ids, keys and rows would take 80."""
    n, path = 1 << 23, tmp_path / "links.parquet"
    numbers = np.arange(n) % 300_000
    table = pa.table({"left": numbers * 2**20, "right": (numbers // 3) * 2**20, "score": numbers % 7 / 7})
    pq.write_table(table, path, row_group_size=1 << 18)
    call = f"fb.Clustering.from_links({str(path)!r}, threshold=0.5)"
    warm = "fb.Clustering.from_links([(1, 2, 0.5)], threshold=0.5)"
    assert growth(warm, call) < 24 * n / 2**20 + 192


# -- Scores ----------------------------------------------------------------------------------------

TRUTH = {item: item // 2 for item in range(10)}


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_items_without_a_link_are_alone(engine: Any) -> None:
    """Of 10 items in pairs, 2 pairs are found: the other 6 items are alone, with a recall of 1/2."""
    made = Clustering.from_links([(0, 1), (2, 3)])
    how = {"engine": engine, "memory_limit": LIMIT if engine == "disk" else None}
    ev = fb.evaluate(TRUTH, made, **how)
    assert (ev.precision, ev.recall) == (1.0, (4 + 6 / 2) / 10)
    assert ev.definition["unmatched"] == {"truth": "singleton", "prediction": "drop"}
    notes = {found["code"]: found for found in ev.warnings}
    assert notes["unlinked-alone"]["n_items"] == 6
    assert "6 items that only the truth has are each a singleton" in notes["unlinked-alone"]["message"]
    assert notes["made-of-links"]["message"] == "The prediction is built from 2 links."
    same = fb.evaluate(TRUTH, Clustering.from_pairs([0, 2], [1, 3]), **how)
    assert same.overall == ev.overall
    ev = fb.evaluate(TRUTH, made, unmatched={"prediction": "singleton"}, **how)
    assert ev.definition["unmatched"] == {"truth": "singleton", "prediction": "singleton"}


def test_what_is_asked_for_goes_before_what_links_say() -> None:
    made = Clustering.from_links([(0, 1), (2, 3)])
    for unmatched in ("drop", {"truth": "drop"}):
        ev = fb.evaluate(TRUTH, made, unmatched=unmatched)
        assert ev.recall == 1
        assert "unlinked-alone" not in [found["code"] for found in ev.warnings]
    with pytest.raises(FastBCubedError):
        fb.evaluate(TRUTH, made, unmatched="raise")
    complete = Clustering.from_links([(0, 1), (2, 3)], items=[0, 1, 2, 3, 4])
    assert fb.evaluate(TRUTH, complete).definition["unmatched"]["truth"] == "drop"
    assert fb.contingency(TRUTH, made).n_items == 10
    assert fb.contingency(TRUTH, made, unmatched="drop").n_items == 4


def test_a_truth_of_links() -> None:
    ev = fb.evaluate(Clustering.from_links([(0, 1), (2, 3)]), {item: 0 for item in range(4)})
    assert (ev.precision, ev.recall) == (0.5, 1.0)
    assert ev.warnings[-1]["message"] == "The truth is built from 2 links."
    assert ev.definition["unmatched"] == {"truth": "drop", "prediction": "drop"}


def test_notes_say_which_links_connect(tmp_path: Path) -> None:
    links = {"id1": [0, 2, 4], "id2": [1, 3, 5], "score": [0.9, 0.8, 0.45]}

    def note(**options: Any) -> dict[str, Any]:
        ev = fb.evaluate(TRUTH, Clustering.from_links(links, **options))
        (found,) = [found for found in ev.warnings if found["code"] == "made-of-links"]
        return found

    assert note(threshold=0.5)["message"] == (
        "The prediction is built from 2 of 3 links, those with a score of 0.5 or more. Their columns are read as "
        "follows: left = id1, right = id2."
    )
    assert note(threshold=0.5, ascending=True)["message"].startswith(
        "The prediction is built from 1 of 3 links, those with a score of 0.5 or less."
    )
    assert "3 links, whatever their score: no threshold was given." in note()["message"]
    named = note(left="id1", right="id2", threshold=0.1)
    assert named["message"] == "The prediction is built from 3 links, those with a score of 0.1 or more."
    assert {name: named[name] for name in ("n_links", "n_connecting", "score", "threshold")} == {
        "n_links": 3, "n_connecting": 3, "score": "score", "threshold": 0.1,
    }  # fmt: skip
    fb.evaluate(TRUTH, Clustering.from_links(links), out=tmp_path / "out")
    assert {"unlinked-alone", "made-of-links"} <= {w["code"] for w in fb.load(tmp_path / "out").warnings}


def test_weak_links_that_join_are_warned_of() -> None:
    """Of three links, one has the score 0.1; all join, so that 4 items are one cluster."""
    probable = {"unique_id_l": [0, 1, 2], "unique_id_r": [1, 2, 3], "match_probability": [0.9, 0.1, 0.8]}
    with pytest.warns(
        EvaluationWarning, match=r"All 3 links .* from 0.1 to 0.9: 1 cluster, .* 4 items. Pass thresh"
    ):
        made = Clustering.from_links(probable)
    for sides in ((TRUTH, made), (made, TRUTH)):
        with pytest.warns(EvaluationWarning, match="All 3 links"):
            notes = fb.evaluate(*sides).warnings
        (found,) = [each for each in notes if each["code"] == "all-links-joined"]
        assert (found["level"], found["least"], found["most"]) == ("warning", 0.1, 0.9)
    weights = {"id1": [0, 1], "id2": [1, 2], "match_weight": [5.0, -3.0]}
    with pytest.warns(EvaluationWarning, match="match_weight, which ranges from -3 to 5"):
        Clustering.from_links(weights)
    for strong in (weights | {"match_weight": [5.0, 2.0]}, weights | {"match_weight": [0.9, None]}, probable):
        limit = {"threshold": 0.05} if strong is probable else {}
        Clustering.from_links(strong, **limit)


@pytest.mark.parametrize(
    ("threshold", "how", "message"),
    [
        (
            90,
            {},
            r"No link .* 90 or more: .* Every item is a singleton. For scores up to 1, write 90 % as 0.9",
        ),
        (-5, {}, "All links .* -5 or more: .* All are joined"),
        (
            90,
            {"ascending": True},
            "All links .* 90 or less: .* All are joined. For scores up to 1, write 90 % as 0.9",
        ),
    ],
)
def test_thresholds_beyond_probabilities_are_warned_of(threshold: float, how: Any, message: str) -> None:
    links = {"id1": [0, 1], "id2": [1, 2], "score": [0.9, 0.8]}
    with pytest.warns(EvaluationWarning, match=message):
        made = Clustering.from_links(links, threshold=threshold, **how)
    with pytest.warns(EvaluationWarning, match=message):
        assert "threshold-out-of-range" in [each["code"] for each in fb.evaluate(TRUTH, made).warnings]
    with pytest.warns(EvaluationWarning, match=message):
        fb.sweep(TRUTH, links, thresholds=[0.85, threshold], **how)


def test_tables_of_clusterings() -> None:
    assert Clustering.from_labels([3, 4]).to_table().to_pydict() == {"cluster": [3, 4]}
    assert Clustering.from_labels([3], items=[("a", 1)]).to_table().column_names == [
        "item_0",
        "item_1",
        "cluster",
    ]
    made = Clustering.from_table({"id": ["a", "b"], "group": [1, None]}, item="id", cluster="group")
    assert made.to_table().to_pydict() == {"id": ["a", "b"], "group": [1, None]}


def test_either_end_may_say_that_its_bytes_are_uuids() -> None:
    names = [b"a" * 16, b"b" * 16, b"c" * 16]
    bare = pa.array(names, pa.binary(16))
    for ends in ((bare[:2].cast(pa.uuid()), bare[1:]), (bare[:2], bare[1:].cast(pa.uuid()))):
        table = Clustering.from_links(pa.table(ends, ["left", "right"])).to_table()
        assert (sorted(table["item"].to_pylist()), set(table["cluster"].to_pylist())) == (names, {0})


@pytest.mark.parametrize("kind", [list, set, frozenset, tuple])
def test_a_map_to_duplicates_is_to_be_read_as_links(kind: type) -> None:
    found = {"a": kind(["b"]), "b": kind(["a", "c"]), "c": kind([]), "d": kind([])}
    with pytest.raises(OptionError, match=r"'a' maps to other items of the dict \(such as 'b'\).*from_links"):
        fb.Clustering.from_dict(found)
    with pytest.raises(OptionError, match="from_links"):
        fb.evaluate({"a": 1, "b": 1, "c": 1, "d": 2}, found)
    links = [(item, other) for item, others in found.items() for other in others]
    assert fb.Clustering.from_links(links, items=list(found)).labels.keys().tolist() == [0, 0, 0, 1]
    # sets of clusters that are called by one of their items are no such map
    assert len(fb.Clustering.from_dict({"a": {"a"}, "b": {"a"}, "c": {"c"}})) == 3
