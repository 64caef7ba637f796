"""Warnings of the shape of either side: perfect by construction, a giant, scores that stand on little."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from fastbcubed.cells.cell_parts import NoCells
from fastbcubed.errors import OptionError
from fastbcubed.results.slices.slicing import name_columns
from fastbcubed.results.text.wording import count, label, percent
from fastbcubed.results.warnings.notices import FEW_ITEMS, NOTE, WARNING, Notice
from fastbcubed.results.warnings.plain_shape import is_sampled, n_mixed
from fastbcubed.sources.arrays import to_numpy

#: A cluster with a tenth of all items decides the score, since its items are scored by what it mixes.
GIANT = 0.1
#: A giant that mixes fewer true clusters than these may be one of them and little else.
MANY_MIXED = 10
#: With fewer units than these, what is known of means of independent units does not hold.
FEW_UNITS = 30
#: A unit with more than a tenth of all items moves the score by itself.
HEAVY_UNIT = 0.1
#: Up to so many cells, all are looked at: units are found in a few milliseconds; of clusters that overlap, in ten times
#: as long.
FEW_CELLS, FEW_OVERLAPPING = 200_000, 20_000
#: The mean over fewer items than these moves by several hundredths with each of them.
SMALL_SLICE = 30
#: Small slices that a message names.
SHOWN = 3


def all_singleton_truth(ev: Any) -> Iterator[Notice]:
    """Warn if every item is alone in the truth, which a wrong column often brings about."""
    n_items = ev.coverage.n_scored(ev.policies)
    if n_items >= FEW_ITEMS and ev._shape["true"].largest == 1:
        yield Notice(
            WARNING,
            f"Each of the {count(n_items)} items is alone in the truth, so that recall is 1 whatever the "
            "prediction is. Check that the truth's column of clusters is one, and not a column of ids.",
            {"n_items": n_items},
        )


def pure_by_construction(ev: Any) -> Iterator[Notice]:
    """Note that precision or recall is 1 since a side has one cluster, or one for each item."""
    if ev.contingency.overlapping or ev.coverage.n_scored(ev.policies) < FEW_ITEMS:
        return
    true, pred = ev._shape["true"], ev._shape["pred"]
    found = (
        ("precision", pred.largest == 1, "every item is alone in the prediction"),
        ("recall", pred.clusters == 1, "the prediction is one cluster"),
        ("precision", true.clusters == 1, "the truth is one cluster"),
    )
    for name, so, why in found:
        if so and (name not in ev.overall or ev.overall[name] == 1):
            other = "recall" if name == "precision" else "precision"
            message = f"{name} is 1 by construction: {why}. Look at {other} alone."
            yield Notice(NOTE, message[0].upper() + message[1:], {"score": name})


def giant_cluster(ev: Any) -> Iterator[Notice]:
    """Warn if one predicted cluster holds a large share of all items, and mixes many true clusters."""
    n_items, largest = ev.coverage.n_scored(ev.policies), ev._shape["pred"].largest
    share = largest / n_items
    if n_items < FEW_ITEMS or share < GIANT or ev._shape["pred"].clusters == 1:
        return
    mixed = _mixed_by_giant(ev)
    if mixed >= MANY_MIXED:
        yield Notice(
            WARNING,
            f"One predicted cluster has {count(largest)} items, {percent(share)} of all, of at least "
            f"{count(mixed)} true clusters. A few wrong links, or a value that stands for none, join that many: "
            "look at the worst predicted cluster first.",
            {"n_items": largest, "share": share, "n_true_clusters": mixed},
        )


def _mixed_by_giant(ev: Any) -> int:
    """Return how many true clusters the largest predicted one has items of; at least so many where it is not known."""
    table = ev.contingency
    if table.overlapping or isinstance(table, NoCells):
        return -(-ev._shape["pred"].largest // ev._shape["true"].largest)
    if is_sampled(ev) and table.n_cells > FEW_CELLS:
        return n_mixed(ev)
    return int(np.count_nonzero(table.pred == np.argmax(table.pred_n)))


def few_units(ev: Any) -> Iterator[Notice]:
    """Note that the scores stand on few independent units, or that one has a large share of the weight."""
    most, share = _units(ev, ev.coverage.n_scored(ev.policies))
    if most >= FEW_UNITS and share <= HEAVY_UNIT:
        return
    if most < FEW_UNITS:
        number = f"{most:.1f}".removesuffix(".0") if most < 10 else count(int(most))
        support = "group supports" if number == "1" else "groups support"
        message = f"Only about {number} independent {support} these scores"
    else:
        message = f"One group of items, linked on either side, has {percent(share)} of the weight"
    message += "; expect other values on similar data."
    yield Notice(NOTE, message, {"n_units_at_most": most, "largest_share": share})


def _units(ev: Any, n_items: int) -> tuple[float, float]:
    """Return how many equal units there are at most, and the share of the largest at least.

    Items that clusters of either side join are one unit, so there are no more units than clusters of a side, and none
    is smaller than its largest cluster; exact where cells are few.
    """
    few = FEW_OVERLAPPING if ev.contingency.overlapping else FEW_CELLS
    if not isinstance(ev.contingency, NoCells) and ev.contingency.n_cells <= few:
        with suppress(OptionError):  # the memory limit has no room
            return ev.units.effective, ev.units.largest_share
    sides = ev._shape.values()
    return min(side.clusters for side in sides), max(side.largest for side in sides) / n_items


def slices_without_scores(ev: Any) -> Iterator[Notice]:
    """Warn if there are slices, and no score that they could have."""
    if not ev.sliced or any(not metric.overall_only for metric in ev.metrics):
        return
    names = [metric.name for metric in ev.metrics]
    are = "is" if len(names) == 1 else "are"
    message = (
        f"The slices have no score: {', '.join(names)} {are} of all items at once. Name a mean over items, too, "
        "such as f1."
    )
    yield Notice(WARNING, message, {"scores": names})


def small_slices(ev: Any) -> Iterator[Notice]:
    """Note which slices have very few items, slicing by slicing."""
    if ev.coverage.n_scored(ev.policies) < SMALL_SLICE:  # as are all slices of them
        return
    for by, table in ev.sliced.items():
        n_items = to_numpy(table["n_items"])
        small = np.flatnonzero(n_items < SMALL_SLICE)
        if not small.size:
            continue
        first = table.select(name_columns(table.column_names)).take(small[:SHOWN]).to_pylist()
        named = [", ".join(label(value) for value in row.values()) for row in first]
        more = ", …" if small.size > SHOWN else ""
        have = f"slice{'s' if n_items.size > 1 else ''} {'has' if small.size == 1 else 'have'}"
        message = (
            f"By {label(by)}, {count(small.size)} of {count(n_items.size)} {have} fewer than {SMALL_SLICE} items "
            f"({'; '.join(named)}{more}): a single item moves such a score by hundredths."
        )
        yield Notice(NOTE, message, {"by": by, "n_slices": int(small.size), "slices": named})
