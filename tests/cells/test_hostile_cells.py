"""Cells of any kind given to `Contingency.from_cells`: a table that can be scored, or an error that says why not."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest

from fastbcubed import Contingency, FastBCubedError
from fastbcubed.metrics.registry import resolve
from fastbcubed.metrics.sums import overall

GIVEN: dict[str, Any] = {"true": [0, 0, 1], "pred": [0, 1, 1], "n": [2, 1, 3]}
WEIGHTS: dict[str, Any] = {"weight": [2.0, 1.5, 4.0], "weight_squares": [2.0, 2.25, 6.0]}
ODD: tuple[Any, ...] = (
    None, 5, "abc", [], [0], [0, 1], [0, 1, 2, 3], [[0, 1, 2]], [[0], [1], [2]], [0, [1], 2], ["a", "b", "c"],
    [0, 1, None], [0.5, 1.0, 2.0], [0.0, 1.0, float("nan")], [0, 1, float("inf")], [-1, 0, 1], [0, 0, -(1 << 63)],
    [0, 1, 1 << 31], [0, 1, (1 << 63) - 1], [0, 1, 1 << 63], [0, 1, (1 << 64) - 1], [0, 1, 1 << 64], [0, 1, 1 << 70],
    [True, False, True], [1e300, 1e300, 1e300], [1e308, 1e308, 1e308], [1e-300, 1.0, 1e300], [0, 0, 0], [1j, 2j, 3j],
    {"a": 1}, object(), b"abc", np.array([0, 1, 2], "datetime64[s]"), np.ma.masked_array([0, 1, 2], [0, 1, 0]),
    np.array([0, 1, 2], np.uint64), np.array([0, 1, 2], np.int8), np.array([0, 1, 2], ">i8"), np.arange(6)[::2],
    np.array(3), np.array([1 << 63, 1, 1], np.uint64), np.array([(1 << 64) - 1, 1, 1], np.uint64),
    range(3), iter([0, 1, 2]),
)  # fmt: skip


def scored(**given: Any) -> Contingency | None:
    """Return a table after asking it for scores, or None if it was refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        try:
            table = Contingency.from_cells(**given)
        except FastBCubedError as error:
            assert str(error)
            return None
    metrics, _ = resolve(["precision", "recall", "f1", "purity", "homogeneity"], weighted=table.weighted)
    found = overall(table, metrics)
    assert all(-1e-9 <= value <= 1 + 1e-9 for value in found.values()), found
    assert table.n_items == table.true_n.sum() == table.pred_n.sum() > 0
    return table


@pytest.mark.parametrize("name", [*GIVEN, *WEIGHTS])
@pytest.mark.parametrize("k", range(len(ODD)))
def test_each_argument_takes_anything(name: str, k: int) -> None:
    scored(**{**GIVEN, **(WEIGHTS if name in WEIGHTS else {}), name: ODD[k]})


def test_pairs_of_arguments_take_anything() -> None:
    for (a, b), k in itertools.product(
        itertools.combinations([*GIVEN, *WEIGHTS], 2), range(0, len(ODD) - 1, 3)
    ):
        scored(**{**GIVEN, **WEIGHTS, a: ODD[k], b: ODD[(7 * k) % (len(ODD) - 1)]})


@pytest.mark.parametrize("weighting", ["pointwise", "outer", None, 1, "Outer", ["outer"]])
def test_weighting(weighting: Any) -> None:
    table = scored(**GIVEN, **WEIGHTS, weighting=weighting)
    assert (table is None) == (weighting not in ("pointwise", "outer"))


def test_what_is_right_passes() -> None:
    for kind in (np.int8, np.int32, np.uint64, ">i8"):
        table = scored(**{name: np.array(values, kind) for name, values in GIVEN.items()})
        assert table is not None and table.n_items == 6
    assert scored(**{**GIVEN, "n": [1 << 61, 1 << 61, 1]}) is not None
    assert scored(**{**GIVEN, "n": [1 << 62, 1 << 62, 1]}) is None
