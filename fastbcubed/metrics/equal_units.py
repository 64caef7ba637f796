"""Merging of equal units that consist of one cell each, so that one of them stands for all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed.cells.contingency import SIDES, Contingency, OneSided
from fastbcubed.runtime.key_codes import number
from fastbcubed.runtime.threads import Pool
from fastbcubed.types import Codes, Floats


class EqualUnits(NamedTuple):
    """The cells of a table with only one of each set of equal units, and how often each unit occurs."""

    table: Contingency  #: the kept cells, recoded; its totals are those of the whole table
    places: NDArray[np.int64]  #: the positions of its cells in the whole table
    in_whole: dict[str, Codes]  #: the codes of its clusters in the whole table, by side
    units: Codes  #: the unit of each of its cells
    times: Floats  #: the number of equal units that each unit stands for; shape (n_units,)


def merge_equal_units(table: Contingency, units: Codes, n_joined: int, pool: Pool) -> EqualUnits | None:
    """Keep one exact cluster of each size, among the units numbered `n_joined` or higher; None if items have weights.

    Clusters with items that only one side has are all kept. Shape of `units`: (n_cells,).
    """
    if table.weighted or table.overlapping:
        return None
    kept = units < n_joined
    for side in SIDES:
        if (alone := table.alone(side)) is not None:
            codes, size = table.codes(side)
            kept |= _mask(alone.codes, size)[codes]
    places, others = np.flatnonzero(kept), np.flatnonzero(~kept)
    places = places[np.argsort(units[places])]  # sums by unit read units in order
    sizes = number(np.ascontiguousarray(table.n[others], np.int64), pool)
    order = np.argsort(table.n[others[sizes.firsts]])
    times = np.ones(n_joined + np.count_nonzero(units[places] >= n_joined) + order.size)
    times[times.size - order.size :] = np.bincount(sizes.codes)[order]
    places = np.concatenate([places, others[sizes.firsts[order]]])
    own = units[places]
    own[own >= n_joined] = np.arange(n_joined, times.size)
    found, in_whole = _restrict(table, places)
    return EqualUnits(found, places, in_whole, own, times)


def _mask(codes: NDArray[np.integer], size: int) -> NDArray[np.bool_]:
    there = np.zeros(size, np.bool_)
    there[codes] = True
    return there


def _restrict(table: Contingency, places: NDArray[np.int64]) -> tuple[Contingency, dict[str, Codes]]:
    """Return a table of some cells and all one-sided items, recoded, and its clusters' codes in the whole table."""
    cells, pred = table.records(places)
    of_cells: dict[str, Codes] = {"true": cells["true"], "pred": pred}
    in_whole, one_sided = dict[str, Codes](), {}
    for side in SIDES:
        there = _mask(of_cells[side], table.n_codes[side])
        if (alone := table.alone(side)) is not None:
            there[alone.codes] = True
        in_whole[side], new = np.flatnonzero(there), np.cumsum(there) - 1
        of_cells[side] = new[of_cells[side]]
        if alone is not None:
            one_sided[side] = OneSided(new[alone.codes], alone.n, alone.mass)
    cells["true"] = of_cells["true"]
    found = Contingency(
        cells, lambda: of_cells["pred"], (in_whole["true"].size, in_whole["pred"].size),
        weighted=False, weighting=table.weighting, outside=table.outside, one_sided=one_sided,
    )  # fmt: skip
    for name in ("n_items", "total_weight", "n_true", "n_pred"):
        found.__dict__[name] = getattr(table, name)
    return found, in_whole
