"""Composite ids whose parts have names: both sides may have them in any order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastbcubed as fb
from fastbcubed import Clustering
from fastbcubed.errors import AlignmentError

#: Ids such that most are those of items of other clusters if their parts are swapped.
IDS = [(1, 2), (1, 3), (2, 1), (3, 1), (5, 5)]
TRUE, PRED = list("xxxyy"), list("pppqr")  # recall: (1 + 1 + 1 + 1/2 + 1/2) / 5
NAMES = ["source", "id"]

Make = Callable[[list[Any], list[str] | None, bool], Clustering]


def of_index(labels: list[Any], names: list[Any] | None, swapped: bool) -> Clustering:
    """Return a clustering whose ids are a MultiIndex, with the parts of all swapped if need be."""
    ids = [(b, a) if swapped else (a, b) for a, b in IDS]
    return Clustering.from_series(pd.Series(labels, index=pd.MultiIndex.from_tuples(ids, names=names)))


def of_struct(labels: list[Any], names: list[str] | None, swapped: bool) -> Clustering:
    parts = [pa.array(part) for part in zip(*IDS, strict=True)][:: -1 if swapped else 1]
    return Clustering.from_labels(labels, items=pa.StructArray.from_arrays(parts, names=names))


def of_table(labels: list[Any], names: list[str] | None, swapped: bool) -> Clustering:
    assert names is not None
    return Clustering.from_table(table(labels, names, swapped), item=names)


def table(labels: list[Any], names: list[str], swapped: bool = False) -> pa.Table:
    parts = [list(part) for part in zip(*IDS, strict=True)][:: -1 if swapped else 1]
    return pa.table([*map(pa.array, parts), pa.array(labels)], names=[*names, "cluster"])


@pytest.mark.cases(4, 99)
@pytest.mark.parametrize("of_truth", [of_index, of_struct, of_table])
@pytest.mark.parametrize("of_prediction", [of_index, of_struct, of_table])
def test_parts_go_by_name_in_whatever_order(of_truth: Make, of_prediction: Make) -> None:
    truth = of_truth(TRUE, NAMES, False)
    ev = fb.evaluate(truth, of_prediction(PRED, NAMES[::-1], True))
    expected = fb.evaluate(TRUE, PRED)
    assert ev.overall == expected.overall and ev.recall == 0.8
    assert ev.item((3, 1))["pred_cluster"] == "q"
    ev = fb.evaluate(
        truth.slice(1, 5), of_prediction(PRED, NAMES[::-1], True).slice(0, 2), unmatched="singleton"
    )
    assert ev.items()["item"].to_pylist()[-1] == {"source": 1, "id": 2}  # which only the prediction has


def test_parts_go_by_name_in_files(tmp_path: Path) -> None:
    pq.write_table(table(PRED, NAMES[::-1], True), tmp_path / "file.parquet")
    expected = fb.evaluate(TRUE, PRED).overall
    for engine in ("memory", "disk"):
        how = {"item": NAMES[::-1], "engine": engine, "memory_limit": "300MB" if engine == "disk" else None}
        assert fb.evaluate(of_index(TRUE, NAMES, False), tmp_path / "file.parquet", **how).overall == expected
        found = fb.evaluate(tmp_path / "file.parquet", of_index(TRUE, NAMES, False), **how)
        assert found.precision == expected["recall"]


def test_what_is_joined_goes_by_name() -> None:
    truth, prediction = of_index(TRUE, NAMES, False), of_index(PRED, NAMES[::-1], True)
    index = pd.MultiIndex.from_tuples([(b, a) for a, b in IDS], names=NAMES[::-1])
    weight = pd.Series([16.0, 8.0, 4.0, 2.0, 1.0], index=index)
    expected = fb.evaluate(TRUE, PRED, weight=[16.0, 8.0, 4.0, 2.0, 1.0])
    assert fb.evaluate(truth, prediction, weight=weight).overall == pytest.approx(expected.overall)
    colours = table(list("rggbb"), NAMES[::-1], True).rename_columns([*NAMES[::-1], "colour"])
    ev = fb.evaluate(truth, prediction, attributes=colours, item=NAMES[::-1])
    assert ev.slices("colour")["recall"].to_pylist() == [0.5, 1.0, 1.0]  # b, g and r
    assert ev.subset(index[3:]).recall == 0.5
    cmp = fb.compare(truth, {"old": of_index(PRED, NAMES, False), "new": prediction})
    assert cmp["old"].overall == cmp["new"].overall
    old, new = of_index(PRED, NAMES, False), of_index(TRUE, NAMES, False)
    judged = [fb.diff(old, new, truth=each).iq for each in (truth, of_index(TRUE, NAMES[::-1], True))]
    assert judged[0] == judged[1]
    sample = Clustering.from_series(
        pd.Series([*TRUE[:3], None, "y"], index=pd.MultiIndex.from_tuples(IDS, names=NAMES))
    )
    found = [fb.estimate(sample, each, metrics="pair_f1", nulls="drop").pair_f1 for each in (prediction, old)]
    assert found[0] == found[1]


def test_pairs_go_by_name() -> None:
    left = pd.MultiIndex.from_tuples([(1, 2)], names=NAMES)
    right = pd.MultiIndex.from_tuples([(1, 2)], names=NAMES[::-1])
    made = Clustering.from_pairs(left, right, items=pd.MultiIndex.from_tuples([(2, 1)], names=NAMES[::-1]))
    assert made.items is not None
    assert made.items.take([0, 1]).to_pylist() == [{"id": 2, "source": 1}, {"id": 1, "source": 2}]
    assert made.to_table()["cluster"].to_pylist() == [0, 0]


@pytest.mark.parametrize("of_truth", [of_index, of_table])
@pytest.mark.parametrize("names", [["src", "nr"], ["source", "nr"], ["id", None], ["id", "id"]])
def test_other_names_are_refused(of_truth: Make, names: list[Any]) -> None:
    told = (
        r"names in .* \('source', 'id'\) and in .* \('.*', '.*'\), so .* \.rename_axis\(\['source', 'id'\]\)"
    )
    with pytest.raises(AlignmentError, match=told):
        fb.evaluate(of_truth(TRUE, NAMES, False), of_index(PRED, names, False))
    other = pd.Series([1.0] * 5, index=pd.MultiIndex.from_tuples(IDS, names=names))
    with pytest.raises(AlignmentError, match="the items of weight"):
        fb.evaluate(*[of_truth(TRUE, NAMES, False)] * 2, weight=other)
    with pytest.raises(AlignmentError, match="the requested items"):
        fb.evaluate(*[of_truth(TRUE, NAMES, False)] * 2).subset(other.index)


def test_parts_without_names_and_listed_columns_go_by_position() -> None:
    expected = fb.evaluate(TRUE, PRED).overall
    truth = of_index(TRUE, NAMES, False)
    for names in (None, ["source", None], [None, "id"]):
        assert fb.evaluate(truth, of_index(PRED, names, False)).overall == expected
        assert fb.evaluate(of_index(PRED, names, False), truth).precision == expected["recall"]
    assert fb.evaluate(truth, Clustering.from_labels(PRED, items=IDS)).overall == expected
    assert fb.evaluate(truth, dict(zip(IDS, PRED, strict=True))).overall == expected
    own = of_table(TRUE, NAMES, False), of_table(PRED, ["src", "nr"], False)
    assert fb.evaluate(*own).overall == expected
    swapped = table(TRUE, NAMES), table(PRED, NAMES[::-1])  # whose columns have the wrong names
    assert fb.evaluate(*swapped, item=(NAMES, NAMES[::-1])).overall == expected
    assert fb.diff(*own).overall == fb.diff(TRUE, PRED).overall
    one = Clustering.from_pairs(
        pd.MultiIndex.from_tuples([(1, 2)], names=["a_l", "b_l"]), [(2, 1)], items=IDS
    )
    assert fb.evaluate(truth, one).recall == (2 / 3 + 1 / 3 + 2 / 3 + 1 / 2 + 1 / 2) / 5


def test_a_truth_beside_a_diff() -> None:
    one = ["a"] * 5
    expected = fb.diff(one, PRED, truth=TRUE).overall
    old, new = table(one, NAMES), table(PRED, ["src", "nr"])
    swapped = table(TRUE, NAMES[::-1])  # whose columns have the wrong names
    assert fb.diff(old, new, truth=swapped, item=(NAMES, ["src", "nr"], NAMES[::-1])).overall == expected
    sides = of_table(one, NAMES, False), of_table(PRED, ["src", "nr"], False)
    for truth in (
        of_table(TRUE, ["a", "b"], False),
        of_table(TRUE, NAMES[::-1], True),
        of_index(TRUE, None, False),
    ):
        assert fb.diff(*sides, truth=truth).overall == expected
    with pytest.raises(
        AlignmentError, match=r"\('source', 'id'\) .* baseline and experiment|baseline and experiment"
    ):
        fb.diff(*sides, truth=of_index(TRUE, ["a", "b"], False))
