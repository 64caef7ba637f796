"""Standard errors of precision, recall and what is made of them, at every threshold.

The units are the connected components of the truth and the clusters of the weakest threshold. They are the same at all
thresholds, and every cluster at any of them is within one. What a unit loses changes only where its clusters do, so
that squares and products of the losses are kept up as the losses are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.linkage.merge_effects import Effects
from fastbcubed.linkage.tree_rows import Counts, Floats, TreeRows
from fastbcubed.metrics.metric import Metric
from fastbcubed.uncertainty.standard_errors import slopes, standard_error

#: A sum whose terms cancel down to less than this share of them is 0, but for rounding.
CANCELLED = 2.0**-46
#: How scores that errors are made of move with what is lost.
SIGNS = {"precision": ("over", -1.0), "recall": ("under", -1.0), "over_merge_rate": ("over", 1.0),
         "under_merge_rate": ("under", 1.0)}  # fmt: skip


@dataclass(frozen=True, eq=False)
class UnitErrors:
    """Covariances of what is lost of precision and recall, by point, as shares of the weight of all items."""

    n_units: int
    of: Mapping[tuple[str, str], Floats]
    sizes: Mapping[tuple[str, str], Floats]  #: what their terms add up to, all taken as positive

    def error(self, metric: Metric, means: Mapping[str, Any], beta: float) -> Floats | None:
        """Return the standard error of a score at every point; None for one that is not made of these."""
        name = metric.alias_of or metric.name
        moved = [(name, 1.0)] if name in SIGNS else []
        if not moved and metric.slopes is not None and all(need.name in SIGNS for need in metric.needs):
            moved = slopes(metric, means, beta)
        if not moved:
            return None
        terms = [(SIGNS[each][0], SIGNS[each][1] * slope) for each, slope in moved]
        pairs = [(min((a, b), (b, a)), x * y) for a, x in terms for b, y in terms]
        squares = sum(factor * self.of[pair] for pair, factor in pairs)
        sizes = sum(np.abs(factor) * self.sizes[pair] for pair, factor in pairs)
        return np.asarray(standard_error(np.where(squares > CANCELLED * sizes, squares, 0.0), self.n_units))


def unit_errors(rows: TreeRows, effects: Effects, over: Floats, under: Floats) -> UnitErrors:
    """Work out the covariances; `over` and `under` are the losses of all items by point, over their weight."""
    unit_of_place, n_units = units_of_places(rows)
    units, sums = np.zeros((n_units, 3)), np.zeros((rows.n_levels + 1, 10))
    counted = unit_of_place >= 0 if rows.scored is None else (unit_of_place >= 0) & rows.scored
    weight = np.ones(len(rows)) if rows.weights is None else rows.weights
    lost = weight * (1.0 - weight / rows.true_masses[rows.codes])
    for column, values in ((0, weight), (2, lost)):
        units[:, column] = np.bincount(unit_of_place[counted], values[counted], n_units) / rows.total
    w, _, y = units.T
    sums[0, 4], sums[0, 6] = float(y @ y), float(y @ w)
    squares = float(w @ w)
    joined = np.flatnonzero(rows.levels < rows.n_levels)
    places = joined[np.argsort(rows.levels[joined], kind="stable")]
    kernels.merge_effects.follow_units(
        places, rows.levels, unit_of_place, effects.over / rows.total, effects.under / rows.total, units, sums
    )
    sums = sums[-over.size :]  # the point of no link may be left out
    pp, pw, rr, rw, pr = (sums[:, 2 * k] + sums[:, 2 * k + 1] for k in range(5))
    terms = {
        ("over", "over"): (pp + over * over * squares, 2 * over * pw),
        ("under", "under"): (rr + under * under * squares, 2 * under * rw),
        ("over", "under"): (pr + over * under * squares, under * pw + over * rw),
    }
    found = {pair: plus - minus for pair, (plus, minus) in terms.items()}
    sizes = {pair: plus + minus for pair, (plus, minus) in terms.items()}
    return UnitErrors(int(np.count_nonzero(w > 0)), found, sizes)


def units_of_places(rows: TreeRows) -> tuple[Counts, int]:
    """Return the unit of each place, -1 in clusters without true clusters; and how many units there are."""
    ends = np.flatnonzero(rows.levels == rows.n_levels) + 1
    known = rows.codes >= 0
    offsets = np.concatenate([[0], np.cumsum(known)])[np.concatenate([[0], ends])]
    parents = np.arange(rows.true_sizes.size)
    nodes = np.full(ends.size, -1)
    kernels.components.join_sets(offsets, rows.codes[known], 0, nodes, parents)
    n_units = int(kernels.components.number_components(parents))
    unit_of_cluster: NDArray[np.int64] = np.where(nodes < 0, -1, parents[nodes])
    return np.repeat(unit_of_cluster, np.diff(np.concatenate([[0], ends]))), n_units
