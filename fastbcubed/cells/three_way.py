"""Joint cells: groups of items with equal clusters in all of three clusterings, a truth, a baseline and an experiment.

All sums are over cells of tables with two sides. Take the cells of truth and baseline as the clusters of one side, and
those of truth and experiment as the clusters of the other: their intersections are the joint cells. The rest of a
cluster of the first side was wrongly split off, the rest of one of the second was correctly merged.

    truth, baseline   --> cells --+
                                  +--> joint cells
    truth, experiment --> cells --+
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed.cells.build import cells_of_keys
from fastbcubed.cells.contingency import Contingency, ScoredRows
from fastbcubed.runtime.threads import Pool
from fastbcubed.types import Floats


class ItemSets(NamedTuple):
    """The parts of an item's clusters B (baseline), E (experiment) and I (truth), by weight.

    Shape (n_cells,) each, by joint cell. A part without items is exactly 0.
    """

    stable: Floats  #: in B and E, including the item itself
    split: Floats  #: in B but not in E
    merged: Floats  #: in E but not in B
    good_stable: Floats  #: in B, E and I
    bad_stable: Floats  #: in B and E but not in I
    good_split: Floats  #: in B but in neither E nor I
    bad_split: Floats  #: in B and I but not in E
    good_merge: Floats  #: in E and I but not in B
    bad_merge: Floats  #: in E but in neither B nor I
    baseline_lacks: Floats  #: in I but not in B
    experiment_lacks: Floats  #: in I but not in E

    @property
    def baseline(self) -> tuple[Floats, Floats, Floats]:
        """The tp, fp and fn of each item in the baseline."""
        return self.good_stable + self.bad_split, self.good_split + self.bad_stable, self.baseline_lacks

    @property
    def experiment(self) -> tuple[Floats, Floats, Floats]:
        """The tp, fp and fn of each item in the experiment."""
        return self.good_stable + self.good_merge, self.bad_merge + self.bad_stable, self.experiment_lacks


@dataclass(frozen=True, eq=False)
class Joint:
    """Joint cells, the parts of the clusters of their items, and one row of each."""

    #: the joint cells as a table with rows; its sides are the cells of truth and baseline, and of truth and experiment
    cells: Contingency
    sets: ItemSets
    row: NDArray[np.int64]  #: one row of each joint cell


def join(
    true_keys: NDArray[np.int64],
    baseline_keys: NDArray[np.int64],
    experiment_keys: NDArray[np.int64],
    weight: Floats | None,
    pool: Pool,
    *,
    weighting: str,
    change: tuple[Contingency, NDArray[np.int64]] | None = None,
    n_new: int = 0,
) -> Joint:
    """Build the joint cells of rows from the keys of their clusters.

    `change` holds the cells of baseline and experiment, and each row's cell in them, if known; it may include items
    that the truth lacks, which match no row. The last `n_new` rows are items that the baseline lacks, each with its
    own baseline key. They are in no joint cell, but are mates of the items that are.
    """
    n = true_keys.size - n_new
    before = cells_of_keys(true_keys, baseline_keys, weight, pool, weighting=weighting)
    after = cells_of_keys(true_keys, experiment_keys, weight, pool, weighting=weighting)
    if change is None:
        table = cells_of_keys(baseline_keys, experiment_keys, weight, pool, weighting=weighting)
        change = table, _cell(table)
    scored, absent = _cell(before), None
    if n_new:
        scored, absent = np.append(scored[:n], np.full(n_new, -1)), -1
    keys = scored, _cell(after)
    cells = cells_of_keys(*keys, weight, pool, weighting=weighting, outside=n_new > 0, absent=(absent, None))
    if n_new:
        cells.rows = ScoredRows.of(_cell(cells)[:n], None if weight is None else weight[:n])
    row = np.empty(cells.n_cells, np.int64)
    row[_cell(cells)] = np.arange(n)
    places = _cell(before)[row], _cell(after)[row], change[1][row]
    sets = _item_sets(cells, before, after, change[0], *places)
    return Joint(cells, sets, row)


def _cell(table: Contingency) -> NDArray[np.int64]:
    assert table.rows is not None
    return table.rows.cell


def _item_sets(
    cells: Contingency,
    before: Contingency,
    after: Contingency,
    change: Contingency,
    b: NDArray[np.int64],
    e: NDArray[np.int64],
    c: NDArray[np.int64],
) -> ItemSets:
    """Return the parts of clusters by joint cell; b, e and c are its cells in the three tables of two sides.

    Whether a difference is exactly 0 is decided by counts of items, not by the difference of two sums.
    """
    shared = cells.n.astype(np.int64)
    kept = change.n[c].astype(np.int64)
    split, merged = (np.ascontiguousarray(each[c]) for each in (change.fn, change.fp))
    stable, good_stable = np.ascontiguousarray(change.tp[c]), np.ascontiguousarray(cells.tp)
    bad_split, good_merge = np.ascontiguousarray(cells.fn), np.ascontiguousarray(cells.fp)
    n_split, n_merged = (change.mates(side)[c] - kept for side in ("true", "pred"))
    n_bad_split, n_good_merge = before.n[b] - shared, after.n[e] - shared
    return ItemSets(
        stable=stable,
        split=split,
        merged=merged,
        good_stable=good_stable,
        bad_stable=_rest(stable, good_stable, kept == shared),
        good_split=_rest(split, bad_split, n_split == n_bad_split),
        bad_split=bad_split,
        good_merge=good_merge,
        bad_merge=_rest(merged, good_merge, n_merged == n_good_merge),
        baseline_lacks=np.ascontiguousarray(before.fn[b]),
        experiment_lacks=np.ascontiguousarray(after.fn[e]),
    )


def _rest(whole: Floats, part: Floats, is_all: NDArray[np.bool_]) -> Floats:
    """Return the weight of a whole minus that of a part, 0 where `is_all` marks the part as the whole."""
    return np.where(is_all, 0.0, np.maximum(whole - part, 0.0))
