"""The memory that requests to a sweep need, checked against what the memory limit leaves."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from fastbcubed.errors import arg
from fastbcubed.metrics.metric import Metric
from fastbcubed.runtime.threads import blocks
from fastbcubed.sweep_links import unit_sums
from fastbcubed.sweep_links.curve import POINTS_AT_ONCE, family_of
from fastbcubed.sweep_links.merge_tree import TreeRows

__all__ = [
    "curve_in_parts",
    "require_clusters",
    "require_effects",
    "require_slices",
    "require_stages",
    "require_units",
]

#: Bytes while sums by unit are computed: per row, per event (a unit and a level), and more per row with weights.
A_ROW, AN_EVENT, A_WEIGHT = 60, 80, 105
#: Bytes per event of the sums of a family, and of each further family that waits.
OF_FAMILY, WAITING = {"bcubed": 30, "elm": 30, "pairs": 95, "entropy": 55}, 30
#: Bytes per event that stay allocated: its unit, level and row.
HELD = 20
#: Bytes per row while effects of merges and sums of a slice are computed, and of the standard errors of a slice.
TO_EFFECT, TO_SLICE, TO_ERRORS = 128, 160, 100
#: Bytes per item while stages are computed, for clusters at thresholds, for each threshold, and for its evaluation.
TO_STAGE, TO_CLUSTER, A_COLUMN, TO_EVALUATE = 64, 16, 8, 150


def of_units(rows: TreeRows, families: Collection[str]) -> int:
    """Return the bytes of the sums by unit of these families at every threshold."""
    events = int(np.count_nonzero(rows.levels < rows.n_levels))
    largest = max((OF_FAMILY[each] for each in families), default=0)
    waiting = WAITING * max(0, len(families) - 1)
    return (A_ROW + of_weights(rows)) * len(rows) + (AN_EVENT + largest + waiting) * events


def of_weights(rows: TreeRows) -> int:
    """Return the additional bytes per row if rows have weights, otherwise 0."""
    return 0 if rows.weights is None else A_WEIGHT


def families_of(sweep: Any, names: Iterable[str]) -> set[str]:
    """Return the families of sums behind these scores; those of all scores if a name, such as a cost, is unknown."""
    metrics: dict[str, Metric] = {metric.name: metric for metric in sweep.metrics}
    names = list(names)
    found = [metrics[name] for name in names] if metrics.keys() >= set(names) else metrics.values()
    return {family for metric in found if (family := family_of(metric)) is not None}


def require_units(sweep: Any, names: Collection[str], what: str) -> None:
    """Raise OptionError if the sums by unit behind these scores exceed the memory limit."""
    if sweep._allowance.limit is not None:
        rows, families = sweep._placed.rows, families_of(sweep, names)
        way = "" if len(families) == 1 else f", or sweep fewer scores, such as {arg('metrics', 'f1')}"
        if "_units" in sweep.__dict__:
            known = sweep._units._known.keys()
            families |= {name for name, sums in unit_sums.OF_FAMILY.items() if not known.isdisjoint(sums)}
        needed = of_units(rows, families) + _held(sweep, "_effects")
        sweep._allowance.require(needed, f"{what} of {len(rows):,} items", way)


def require_effects(sweep: Any) -> None:
    """Raise OptionError if the effects of merges exceed the memory limit."""
    rows = sweep._placed.rows
    needed = len(rows) * (TO_EFFECT + of_weights(rows)) + _held(sweep, "_units")
    sweep._allowance.require(needed, f"the merges of {len(rows):,} items")


def require_stages(sweep: Any) -> None:
    """Raise OptionError if the stages of recall exceed the memory limit."""
    n = sweep.tree.n_items
    sweep._allowance.require(TO_STAGE * n + _held(sweep), f"the stages of {n:,} items")


def require_clusters(sweep: Any, n_columns: int = 1, *, scored: bool = False) -> None:
    """Raise OptionError if the clusters at `n_columns` thresholds, or their scores, exceed the memory limit."""
    n = sweep.tree.n_items
    needed = n * (TO_CLUSTER + A_COLUMN * n_columns + scored * TO_EVALUATE)
    sweep._allowance.require(needed + _held(sweep), f"the clusters of {n:,} items")


def require_slices(sweep: Any, *, errors: bool) -> None:
    """Raise OptionError if the sums of a slice, which may have all rows, exceed the memory limit."""
    if sweep._allowance.limit is not None:
        rows = sweep._placed.rows
        needed = len(rows) * (TO_SLICE + of_weights(rows) * 4 // 3)
        if errors:
            needed = max(needed, of_units(rows, ["bcubed", "elm"])) + TO_ERRORS * len(rows)
        sweep._allowance.require(needed + _held(sweep), f"the slices of {len(rows):,} items")


def _held(sweep: Any, *names: str) -> int:
    """Return the bytes of the results of earlier requests that a sweep holds: of these parts, or of all."""
    held = 0
    for name in names or ("_effects", "_units"):
        if name in sweep.__dict__:
            events = HELD * len(sweep._placed.rows) if name == "_units" else 0
            arrays = sweep._units._known.values() if events else [vars(sweep._effects).values()]
            held += events + sum(array.nbytes for each in arrays for array in each)
    return held


def curve_in_parts(sweep: Any) -> Iterator[pa.Table]:
    """Yield the whole curve as tables of consecutive points."""
    for start, stop in blocks(len(sweep._curve), POINTS_AT_ONCE):
        yield pa.table(sweep._curve.columns(np.arange(start, stop)))
