"""Scores of all cells in one pass: each run has the weights and the scores of its cells, whatever its length."""

import math

import numpy as np
import pytest

from fastbcubed.cells.partitioned import NARROW_RECORDS
from fastbcubed.kernels.partition import PIECE, RUN
from fastbcubed.metrics import bcubed, compiled

FORMULAS = (bcubed.precision, bcubed.recall, bcubed.jaccard_index)


@pytest.mark.parametrize("outer", [False, True])
@pytest.mark.parametrize("n", [1, PIECE - 1, PIECE, PIECE + 1, RUN - 1, RUN, RUN + 1, 2 * RUN + PIECE + 7])
def test_each_run_has_the_scores_of_its_cells(n: int, outer: bool) -> None:
    rng, first = np.random.default_rng(n), 3
    cells = np.zeros(first + n, NARROW_RECORDS["final"])
    for field in ("weight", "fp", "fn"):
        cells[field] = rng.uniform(0.5, 2.0, cells.size)
    cells["n"] = rng.integers(1, 9, cells.size)
    positions = np.array([compiled.POSITIONS[id(formula)] for formula in FORMULAS], np.int64)
    found = np.full((-(-n // RUN), 4), np.nan)
    compiled.sum_scores(cells, first, cells.size, outer, positions, found)
    for k, sums in enumerate(found):
        own = cells[first + k * RUN :][:RUN]
        tp = own["n"] if outer else own["weight"]
        matrices = list(zip(tp.tolist(), own["fp"].tolist(), own["fn"].tolist(), strict=True))
        scores = [
            [1.0] * own.size,
            [tp / (tp + fp) for tp, fp, _ in matrices],
            [tp / (tp + fn) for tp, _, fn in matrices],
            [tp / (tp + fp + fn) for tp, fp, fn in matrices],
        ]
        exact = [math.fsum(w * x for w, x in zip(own["weight"], each, strict=True)) for each in scores]
        np.testing.assert_allclose(sums, exact, rtol=1e-13)
