"""Cells with items of one side alone, told from the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed.cells.records import SIDES
from fastbcubed.runtime import buffers

if TYPE_CHECKING:
    from fastbcubed.cells.stages import Built


class OneSided(NamedTuple):
    """Items that only one side has, by cluster of that side: code, items, weight (items if outer)."""

    codes: NDArray[np.integer]
    n: NDArray[np.integer]
    mass: NDArray[np.float64]


class SetAside(NamedTuple):
    """Cells with items of both sides, and the others by the side that has them."""

    cells: np.ndarray  #: the former
    pred: Callable[[], NDArray[np.integer]]  #: returns the codes of their predicted clusters
    one_sided: Mapping[str, OneSided]  #: the latter
    kept: NDArray[np.bool_] | None  #: which of the cells built are among the former; None where all are
    bounds: NDArray[np.int64]  #: where the parts of the former begin


def set_aside(built: Built, *, outer: bool) -> SetAside:
    """Tell the cells with items of one side alone from the others."""

    def codes(kept: Any = slice(None)) -> NDArray[np.integer]:
        pred = buffers.empty(built.pred_in_part.size, built.pred_in_part.dtype)
        base = built.pred_base.astype(pred.dtype)
        for first, start, stop in zip(base, built.bounds, built.bounds[1:], strict=False):
            np.add(built.pred_in_part[start:stop], first, out=pred[start:stop])
        if built.has_one_sided:
            pred[built.pred_in_part < 0] = -1
        return np.asarray(pred[kept])

    cells, everything = built.cells, SetAside(built.cells, codes, {}, None, built.bounds)
    if not built.has_one_sided:
        return everything
    there = {"true": cells["true"] >= 0, "pred": built.pred_in_part >= 0}
    kept = there["true"] & there["pred"]
    if kept.all():
        return everything
    every = {"true": cells["true"], "pred": codes()}
    mass = cells["n"].astype(np.float64) if outer else cells["weight"]
    one_sided = {}
    for side, other in (SIDES, SIDES[::-1]):
        alone = there[side] & ~there[other]
        if alone.any():
            one_sided[side] = OneSided(every[side][alone], cells["n"][alone], mass[alone])
    bounds = np.append(0, np.cumsum(kept))[built.bounds]
    return SetAside(cells[kept], lambda: codes(kept), one_sided, kept, bounds)
