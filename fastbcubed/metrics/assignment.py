"""The best one-to-one pairing of true and predicted clusters, among the cells of a contingency.

A cell that is a whole cluster on both sides is paired at once; only the others are searched. A search
stays within the connected component of its cells, so that its cost is that of the tangled parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.errors import PairingError
from fastbcubed.metrics.metric import Floats

if TYPE_CHECKING:
    from fastbcubed.cells.contingency import Contingency
    from fastbcubed.runtime.pool import Pool

#: Looks at a cell after which the search gives up: one or two minutes. Clusterings that resemble each
#: other take a few looks at each cell; unrelated ones of more than 1e5 clusters may take too many.
LIMIT = 10_000_000_000
#: Looks between two chances to hear Ctrl-C.
PATIENCE = 100_000_000

Codes = NDArray[np.int64]


class Pairing(NamedTuple):
    """The gain of the best pairing, and that of all cells together."""

    best: float
    every: float


def pair_clusters(contingency: Contingency, gain: Callable[[int, int], Floats], pool: Pool) -> Pairing:
    """Pair true and predicted clusters, each at most once, so that the sum of gains is the largest.

    `gain` returns what each of a range of cells is worth, 0 or more. Raise PairingError if the search takes
    more than `LIMIT` looks at a cell.
    """
    pred = contingency.pred

    def take(start: int, stop: int) -> tuple[float, Codes, Codes, Floats]:
        gains = gain(start, stop)
        cells = contingency.cells[start:stop]
        rivals = ((cells["fp"] != 0) | (cells["fn"] != 0)) & (gains > 0)
        pair = cells["true"][rivals], pred[start:stop][rivals]
        return float(gains[~rivals].sum()), *(codes.astype(np.int64) for codes in pair), gains[rivals]

    parts = contingency.map(take, pool, "pair clusters")
    alone, true, predicted, gains = zip(*parts, strict=True)
    sure, rest = math.fsum(alone), np.concatenate(gains)
    sizes = contingency.codes("true")[1], contingency.codes("pred")[1]
    found = best_pairs(np.concatenate(predicted), np.concatenate(true), rest, *sizes[::-1])
    return Pairing(sure + float(found.sum()), sure + float(rest.sum()))


def best_pairs(rows: Codes, columns: Codes, gains: Floats, n_rows: int, n_columns: int) -> Floats:
    """Return the gains of the pairs, each row and column in at most one, whose sum is the largest.

    Shapes: `rows`, `columns` and `gains` (n_cells,), codes of the two sides, none of them together twice, and
    what pairing them is worth, more than 0 -> (n_pairs,). Raise PairingError after `LIMIT` looks at a cell.

    >>> rows, columns = np.array([0, 0, 1]), np.array([0, 1, 0])
    >>> best_pairs(rows, columns, np.array([3.0, 2.0, 2.0]), 2, 2).tolist()  # 2 + 2 beats 3
    [2.0, 2.0]
    """
    if not gains.size:
        return gains
    rows, columns = rows.copy(), columns.copy()
    n_rows = kernels.numbering.number_codes(rows, np.full(n_rows, -1, np.int32))
    n_columns = kernels.numbering.number_codes(columns, np.full(n_columns, -1, np.int32))
    starts = np.zeros(n_rows + 1, np.int64)
    edges = np.empty(gains.size, np.int32), np.empty(gains.size)
    kernels.assignment.group_edges(rows, columns, gains, starts, *edges)
    prices = np.maximum.reduceat(edges[1], starts[:-1]), np.zeros(n_columns)
    pairs = np.full(n_rows, -1), np.full(n_columns, -1)
    came_by, came_from, seen = (np.empty(n_columns, np.int64) for _ in range(3))
    heap = np.empty(gains.size), np.empty(gains.size, np.int32)
    space = np.full(n_columns, np.inf), came_by, came_from, seen, *heap
    done, looks = 0, 0
    while done < n_rows:
        if looks > LIMIT:
            raise PairingError(_too_tangled(rows, columns, n_rows, n_columns))
        done, more = kernels.assignment.pair_rows(done, (starts, *edges), prices, pairs, space, PATIENCE)
        looks += more
    return edges[1][pairs[0][pairs[0] >= 0]]


def _too_tangled(rows: Codes, columns: Codes, n_rows: int, n_columns: int) -> str:
    """Say how large the largest connected component is."""
    component = np.arange(n_rows + n_columns)
    count = kernels.components.find_components(rows, columns + n_rows, component)
    cells = np.bincount(component[rows], minlength=count)
    largest = int(cells.argmax())
    pred, true = (int(np.count_nonzero(side == largest)) for side in np.split(component, [n_rows]))
    return (
        f"the best one-to-one pairing of clusters takes too long: {true} true and {pred} predicted clusters "
        f"hang together through {cells[largest]} cells, and the search gave up after {LIMIT:.0e} looks at a "
        "cell. Leave out matching_accuracy, ceaf_m and ceaf_e; no other score takes that search"
    )
