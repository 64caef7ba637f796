"""Masks: one bool for each item that is listed, or for each of the truth's rows, and never for others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hostile import quietly, refused, table

import fastbcubed as fb
from fastbcubed.errors import SliceError

#: Item b is not in the prediction, so that it is not scored, or alone; d and e are in the prediction alone.
TRUTH, PREDICTION = table(list("abc"), [1, 1, 2]), table(list("dcae"), [7, 7, 8, 9])


def chosen(ev: fb.Evaluation, mask: Any) -> list[Any]:
    """Return the ids of the items in a subset, by way of a slice of the same name."""
    listed = ev.items()["item"].to_pylist()
    alone = {name: ev.slices({"one": [name]})["weight"][0].as_py() for name in listed}
    expected = ev.slices({"one": mask})["weight"][0].as_py()
    return [name for name in listed if alone[name] == expected]


@pytest.mark.cases(3)
@pytest.mark.parametrize(
    "make", [list, np.array, pa.array, pl.Series, pd.Series, lambda mask: pa.chunked_array([mask])]
)
@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_a_mask_in_the_order_of_the_listing(engine: str, make: Any, tmp_path: Any) -> None:
    """Any two items weigh otherwise, so that a weight says which item was chosen."""
    weight = {name: 2.0**k for k, name in enumerate("abcde")}
    options = {"unmatched": {"truth": "drop", "prediction": "singleton"}, "engine": engine, "keep": "items"}
    ev = quietly(TRUTH, PREDICTION, weight=weight, out=tmp_path, **options)
    for each in (ev, fb.load(tmp_path)):
        listed = each.items()["item"].to_pylist()
        assert sorted(listed) == ["a", "c", "d", "e"]
        for name in listed:
            assert chosen(each, make([other == name for other in listed])) == [name]


def test_a_mask_by_the_rows_of_the_truth() -> None:
    weight = {name: 2.0**k for k, name in enumerate("abcde")}
    ev = quietly(TRUTH, PREDICTION, weight=weight, unmatched={"truth": "drop", "prediction": "drop"})
    assert ev.items()["item"].to_pylist() == ["a", "c"]
    assert chosen(ev, [False, False, True]) == chosen(ev, [False, True]) == ["c"]
    assert chosen(ev, [True, True, False]) == ["a"]  # b is not scored


def test_a_mask_that_fits_nothing() -> None:
    """One of the prediction's rows is as long as the truth and what it lacks together, and means other items."""
    ev = quietly(TRUTH, table(list("dcabe"), [7, 7, 8, 8, 9]))
    for n in (1, 2, 4, 5):
        with refused(SliceError, f"mask of the subset has {n} values", "each of the 3 items"):
            ev.subset([True] * n)


def test_a_mask_that_fits_both_orders() -> None:
    """Rows of the truth are a, b, c, and what is listed are a, c, d: the same length, and other items."""
    options = {"unmatched": {"truth": "drop", "prediction": "singleton"}}
    ev = quietly(TRUTH, table(list("cad"), [7, 8, 7]), **options)
    assert ev.items()["item"].to_pylist() == ["a", "c", "d"]
    with refused(SliceError, "ambiguous", "list of items"):
        ev.subset([False, False, True])
    assert ev.subset([True, False, False]) == ev.subset(["a"])  # a either way
    with refused(SliceError, "ambiguous"):
        ev.slices({"VIP": [True, True, False]})


def test_a_mask_of_pandas_in_another_order() -> None:
    ev = fb.evaluate([1, 1, 2, 2], [1, 2, 2, 2])
    mask = pd.Series([True, False, False, True])
    assert ev.subset(mask) == ev.subset([0, 3])
    with refused(SliceError, "index", "to_numpy"):
        ev.subset(mask.iloc[[0, 1, 3, 2]])
