"""Items that only the truth has, and are dropped: what recall would be if each were alone in the prediction.

With such items of mass t in it, a true cluster of scored mass a has a + t: its scored items, and those alone, find so
much less of it. All of this is known where the cells of a true cluster still stand together.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells.planning import Plan
from fastbcubed.cells.stages import Parts
from fastbcubed.runtime.pool import Pool

#: Sums of a true cluster: weight * mass and mass of its scored cells; items, weight, mass of those left out.
N_SUMS = 5


class IfAlone:
    """What the sum of recall over items would gain or lose if items that only the truth has were alone.

    Where weights count inside the confusion matrices, those of one true cluster that are left out are taken to weigh
    the same, since a cell does not tell their weights apart. If `outer`, weights serve the mean alone.
    """

    def __init__(self, *, outer: bool) -> None:
        self._outer = outer
        self._changes: list[float] = []
        self._heavy = np.zeros((N_SUMS, 0))

    def add(self, plan: Plan, parts: Parts, pool: Pool) -> None:
        """Add cells where they stand; parts that hold no heavy clusters have all cells of theirs."""
        if not plan.absent_pred.size:
            return
        absent, flag = plan.absent_pred[0], np.empty(0) if parts.weighted else None
        by_part = parts.bounds, parts.n_cells, parts.n_clusters
        most = int(parts.n_clusters.max())
        changes = np.zeros(plan.n_parts)

        def add_task(first: int, last: int) -> NDArray[np.float64] | None:
            if not plan.is_heavy(first):
                with pool.workspace(
                    "if alone", lambda: np.empty((N_SUMS, most)), lambda space: space.shape[1] >= most
                ) as space:
                    kernels.closing.change_by_part(
                        parts.cells, by_part, first, last, flag, self._outer, absent, space, changes
                    )
                return None
            sums = np.zeros((N_SUMS, plan.heavy.size))
            for part in range(first, last):
                kernels.closing.sum_if_alone(
                    parts.cells, parts.bounds[part], parts.n_cells[part], flag, self._outer, absent, sums
                )
            return sums

        of_heavy = pool.map(add_task, *zip(*plan.tasks(), strict=True), stage="add up what is left out")
        self._changes.append(math.fsum(changes))
        for sums in of_heavy:
            if sums is not None:
                sums[:, np.isin(plan.heavy, plan.absent_true)] = 0.0  # items that no side has
                self._heavy = sums if not self._heavy.size else self._heavy + sums

    def change(self) -> float:
        """Return the change of the sum, when all cells have been added."""
        heavy = kernels.closing.change_if_alone(self._heavy, self._heavy.shape[1])
        return math.fsum([*self._changes, heavy])


def change_by_cell(
    product: NDArray[np.float64],
    alone: NDArray[np.float64],
    mass: NDArray[np.float64],
    left: NDArray[np.float64],
) -> float:
    """Return the same from cells that know their margins, of any of the clusters that have items left out.

    By cell: `product` of weight and mass, 0 where it is left out itself; `alone`, its part of what those left out find;
    `mass` of the scored items of its true cluster, and of those `left` out. Shapes: (n_cells,).
    """
    before = np.divide(product, mass, out=np.zeros(mass.size), where=mass > 0)
    return math.fsum(((product + alone) / (mass + left) - before).tolist())
