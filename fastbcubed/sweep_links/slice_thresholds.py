"""The best threshold of each slice, and what one threshold for all costs it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.errors import MetricError, OptionError, SliceError
from fastbcubed.inputs.arrays import from_numpy, from_texts, table_of
from fastbcubed.metrics.metric import Metric
from fastbcubed.results.slices import (
    SliceKey,
    beside,
    check_key,
    elements,
    size_named,
    slice_codes,
    subset_mask,
)
from fastbcubed.results.table import Table
from fastbcubed.runtime.threads import Pool
from fastbcubed.sweep_links.curve import Curve, Kept, best_point, family_of, is_higher_better, known_score
from fastbcubed.sweep_links.level_sums import SumsOnDemand
from fastbcubed.sweep_links.merge_tree import Subsets

#: Families of scores that slices have: means over items.
OF_ITEMS = ("bcubed", "elm")
#: Scores that are shown beside the one that is best.
BESIDE = ("precision", "recall")


def slice_thresholds(sweep: Any, key: SliceKey, score: str, where: str | Iterable[str] | None) -> Table:
    """Return the best threshold of each slice; see `Sweep.slices`."""
    name = known_score(sweep._curve, score)
    metrics = [metric for metric in sweep.metrics if family_of(metric) in OF_ITEMS]
    if name not in [metric.name for metric in metrics]:
        raise MetricError(
            f"slices have no {name}, which is of all items at once; name a score that items have"
        )
    common = sweep._n_used(sweep.best(name, where=where).threshold)
    subsets = Subsets(sweep._placed.rows)
    columns, members = _slices(sweep, check_key(key))
    found = [_of_slice(sweep, subsets, each, metrics, name, where, common) for each in members]
    figures = {column: pa.array([row[column] for row in found]) for column in found[0]}
    table = table_of(beside(columns, figures))
    costs = np.array([row["cost"] or 0.0 for row in found])
    return Table(table.take(from_numpy(np.argsort(-costs, kind="stable"))))


def _of_slice(
    sweep: Any,
    subsets: Subsets,
    members: NDArray[np.integer],
    metrics: list[Metric],
    name: str,
    where: str | Iterable[str] | None,
    common: int,
) -> dict[str, Any]:
    """Return the best threshold of one slice, its scores there, and with the threshold that is best for all."""
    rows, levels = subsets.take(members)
    none = -np.inf if sweep.tree.ascending else np.inf
    thresholds = np.concatenate([[none], sweep._level_thresholds[levels]])
    kept = Kept(SumsOnDemand(rows, Pool(1)), rows.total, sweep._curve.kept.beta)
    skipped = int(
        thresholds[:2].tolist() == [none, none]
    )  # no threshold leaves out a link whose score is infinite
    curve = Curve(thresholds[skipped:], kept.take(slice(skipped, None)), metrics)
    shared = float(curve.at(int(np.searchsorted(levels, common)) - skipped, name)[name])
    beside = [each for each in BESIDE if each in curve.names and each != name]
    found = {"n_items": rows.n_scored, "weight": rows.total}
    try:
        point, _, _ = best_point(curve, name, where)
    except OptionError:  # no threshold meets the conditions in this slice, or it has no such score
        return {
            **found,
            **dict.fromkeys(("threshold", name, *beside)),
            f"{name}_at_common": shared,
            "cost": None,
        }
    own = {each: float(value) for each, value in curve.at(point, name, *beside).items()}
    cost = own[name] - shared if is_higher_better(name) else shared - own[name]
    return {
        **found,
        "threshold": float(curve.thresholds[point]),
        **own,
        f"{name}_at_common": shared,
        "cost": cost,
    }


def _slices(sweep: Any, key: SliceKey) -> tuple[dict[str, Any], Iterator[NDArray[np.integer]]]:
    """Return the columns that name slices, and the places of the scored rows of each."""
    ev, placed = sweep.at_best, sweep._placed
    items = ev.kept_items()
    scored = np.ones(len(placed.rows), np.bool_) if placed.rows.scored is None else placed.rows.scored
    if isinstance(key, Mapping):
        masks = [subset_mask(which, items, ev.contingency, name) for name, which in key.items()]
        found = (np.flatnonzero(mask[placed.aligned] & scored) for mask in masks)
        return {"slice": from_texts(list(key))}, found
    sides, extra = items.attribute_sides(), () if ev.attributes is None else ev.attributes.names
    if any(size_named(each, sides, extra) == "pred_size" for each in elements(key)):
        raise SliceError(
            "pred_size differs from threshold to threshold, so that it makes no slices of a sweep"
        )
    cut = slice_codes(key, ev.contingency, items, ev.attributes)
    codes = np.where(scored, cut.codes[placed.aligned], -1)
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(cut.n_slices + 1))
    return dict(cut.values), (np.sort(order[bounds[k] : bounds[k + 1]]) for k in range(cut.n_slices))
