"""The best threshold of each slice, and the score that the slice loses at the common threshold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.errors import MetricError, OptionError, SliceError
from fastbcubed.inputs.arrays import from_numpy, from_texts, table_of
from fastbcubed.metrics.metric import Metric
from fastbcubed.metrics.registry import METRICS
from fastbcubed.results.slices import (
    SliceKey,
    beside,
    check_key,
    elements,
    size_named,
    slice_codes,
    subset_mask,
)
from fastbcubed.results.standard_errors import standard_error
from fastbcubed.results.table import Table
from fastbcubed.runtime.threads import Pool
from fastbcubed.sweep_links.curve import Curve, Kept, best_point, family_of, known_score
from fastbcubed.sweep_links.level_sums import SumsOnDemand
from fastbcubed.sweep_links.merge_tree import Subset, Subsets
from fastbcubed.sweep_links.unit_sums import UnitSums

#: Families of the scores that slices have: means over items.
OF_ITEMS = ("bcubed", "elm")
#: Scores that are shown in addition to the optimised one.
BESIDE = ("precision", "recall")


def slice_thresholds(
    sweep: Any, key: SliceKey, score: str, where: str | Iterable[str] | None, units: UnitSums | None
) -> Table:
    """Return the best threshold of each slice, with standard errors if units are given; see `Sweep.slices`."""
    name = known_score(sweep._curve, score)
    metrics = [metric for metric in sweep.metrics if family_of(metric) in OF_ITEMS]
    if name not in [metric.name for metric in metrics]:
        raise MetricError(
            f"slices have no {name}, which is not a mean over items; name one that is, such as f1"
        )
    common = sweep._n_used(sweep.best(name, where=where).threshold)
    subsets = Subsets(sweep._placed.rows)
    columns, members = _slices(sweep, check_key(key))
    found = [_of_slice(sweep, subsets.take(each), metrics, name, where, common, units) for each in members]
    figures = {column: pa.array([row[column] for row in found]) for column in found[0]}
    table = table_of(beside(columns, figures))
    costs = np.array([row["cost"] or 0.0 for row in found])
    return Table(table.take(from_numpy(np.argsort(-costs, kind="stable"))))


def _of_slice(
    sweep: Any,
    subset: Subset,
    metrics: list[Metric],
    name: str,
    where: str | Iterable[str] | None,
    common: int,
    units: UnitSums | None,
) -> dict[str, Any]:
    """Return the row of a slice: its best threshold, its scores there, and its score at the common threshold."""
    rows, levels = subset.rows, subset.levels
    none = -np.inf if sweep.tree.ascending else np.inf
    thresholds = np.concatenate([[none], sweep._level_thresholds[levels]])
    kept = Kept(SumsOnDemand(rows, Pool(1)), rows.total, sweep._curve.kept.beta)
    skipped = int(
        thresholds[:2].tolist() == [none, none]
    )  # no threshold leaves out a link whose score is infinite
    curve = Curve(thresholds[skipped:], kept.take(slice(skipped, None)), metrics)
    at_common = int(np.searchsorted(levels, common)) - skipped
    shared = float(curve.at(at_common, name)[name])
    names = [name, *(each for each in BESIDE if each in curve.names and each != name)]
    threshold, cost, point = None, None, None
    own: dict[str, float | None] = dict.fromkeys(names)
    with suppress(OptionError):  # no threshold meets the conditions in this slice, or it has no such score
        point = best_point(curve, name, where).point
        at_best = {each: float(value) for each, value in curve.at(point, *names).items()}
        higher = METRICS[name].best == "higher"
        cost = at_best[name] - shared if higher else shared - at_best[name]
        threshold, own = float(curve.thresholds[point]), {**at_best}
    # each figure: its value, its score, and its point, or the two points between which it is a difference
    figures: dict[str, tuple[float | None, str, tuple[int | None, ...]]] = {
        **{each: (own[each], each, (point,)) for each in names},
        f"{name}_at_common": (shared, name, (at_common,)),
        "cost": (cost, name, (point, at_common)),
    }
    in_slice = None if units is None else units.of_subset(subset, curve)
    found: dict[str, Any] = {"n_items": rows.n_scored, "weight": rows.total}
    if in_slice is not None:
        found["n_units"] = in_slice.n_units
    found["threshold"] = threshold
    for column, (value, score, points) in figures.items():
        found[column] = value
        if in_slice is not None:
            found[f"{column}_se"] = _error(in_slice, curve.metric(score), value, *points)
    return found


def _error(units: UnitSums, metric: Metric, value: float | None, *points: int | None) -> float | None:
    """Return the standard error of a score at a point, or of its difference between two points.

    None if the value is unknown, or if a point is beyond those with standard errors.
    """
    known = [point for point in points if point is not None and point < len(units.curve)]
    if value is None or len(known) < len(points) or not units.n_units:
        return None
    moved = [units.moved(metric, point) for point in known]
    return float(standard_error(np.sum((moved[0] - sum(moved[1:])) ** 2), units.n_units, value))


def _slices(sweep: Any, key: SliceKey) -> tuple[dict[str, Any], Iterator[NDArray[np.integer]]]:
    """Return the columns that name the slices, and the places of each slice's scored rows."""
    ev, placed = sweep.at_best, sweep._placed
    items = ev.kept_items()
    scored = np.ones(len(placed.rows), np.bool_) if placed.rows.scored is None else placed.rows.scored
    if isinstance(key, Mapping):
        masks = [subset_mask(which, items, ev.contingency, name) for name, which in key.items()]
        found = (np.flatnonzero(mask[placed.aligned] & scored) for mask in masks)
        return {"slice": from_texts(list(key))}, found
    sides, extra = items.attribute_sides(), () if ev.attributes is None else ev.attributes.names
    if any(size_named(each, sides, extra) == "pred_size" for each in elements(key)):
        raise SliceError("pred_size changes with the threshold, so it cannot define slices of a sweep")
    cut = slice_codes(key, ev.contingency, items, ev.attributes)
    codes = np.where(scored, cut.codes[placed.aligned], -1)
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(cut.n_slices + 1))
    return dict(cut.values), (np.sort(order[bounds[k] : bounds[k + 1]]) for k in range(cut.n_slices))
