"""Slices on a page: scores with intervals by an attribute, by several crossed, and by the size of a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fastbcubed.cells.contingency import Contingency
from fastbcubed.errors import ColumnError, NotKeptError, SliceError
from fastbcubed.metrics.losses import LOSSES
from fastbcubed.results.by_slice import BySlice
from fastbcubed.results.estimates import ALWAYS, FEW
from fastbcubed.results.listings.listing import LOSS, listed
from fastbcubed.results.slices.bins import element_of
from fastbcubed.results.slices.slicing import OURS, SliceKey, name_columns, size_names, slice_name
from fastbcubed.sources.arrays import table_of
from fastbcubed.uncertainty.intervals import interval

#: Scores that are drawn, as far as they were computed; the first scores if none of them was.
DRAWN = ("precision", "recall", "f1")
#: Slicings on a page, slices of one in its chart, and in its table.
SLICINGS, CHARTED, LISTED = 12, 20, 100
LEVEL = 0.95


def slices_content(ev: BySlice, by: tuple[SliceKey, ...]) -> dict[str, Any]:
    """Return the slicings that were asked for when evaluating, and those asked for now."""
    keys: dict[str, SliceKey | None] = dict.fromkeys(ev.sliced)
    keys |= {slice_name(key): key for key in by}
    shown = list(keys.items())[:SLICINGS]
    return {
        "n": len(keys),
        "rows": [slicing_content(ev, name if key is None else key) for name, key in shown],
    }


def slicing_content(ev: BySlice, key: SliceKey) -> dict[str, Any]:
    """Return one slicing: its slices with scores, losses and intervals; those that cost most if they are many."""
    name = slice_name(key)
    table = _with_errors(ev, key) if _has_errors(ev) else None
    if table is None:
        table = ev.sliced[name] if name in ev.sliced else ev.slices(key)
    names = name_columns(table.column_names)
    n, numeric = table.num_rows, len(names) == 1 and _is_number(table[names[0]].type)
    if n > CHARTED:
        table = listed(table, ev.metrics, LOSS, LISTED)
    scores = drawn_scores(ev)
    rows = [_row(row, names, ev, scores) for row in table.to_pylist()]
    return {
        "by": name, "names": names, "scores": scores, "n": n, "ordered": n <= CHARTED, "numeric": numeric,
        "overall": {score: ev.overall[score] for score in scores}, "rows": rows,
    }  # fmt: skip


def by_size_content(ev: BySlice) -> dict[str, Any]:
    """Return precision by the size of the predicted cluster, and recall by that of the true one.

    Raises
    ------
    NotKeptError
        If neither items nor cells were kept.
    """
    found = {}
    for key, score in (("pred_size", "precision"), ("true_size", "recall")):
        if score not in ev.overall:
            continue
        if ev.has_items and _has_errors(ev):
            table = ev.slices(OURS + key, errors=True).rename_columns({OURS + key: key})
        elif isinstance(ev.contingency, Contingency) and not ev.contingency.overlapping:
            table = _by_size_of_clusters(ev, key, score)
        else:
            continue
        rows = [_row(row, [key], ev, [score]) for row in table.to_pylist()]
        found[key] = {
            "by": key, "names": [key], "scores": [score], "n": len(rows), "ordered": True, "numeric": True,
            "overall": {score: ev.overall[score]}, "rows": sorted(rows, key=_smallest),
        }  # fmt: skip
    return found


def drawn_scores(ev: BySlice) -> list[str]:
    """Return the scores of slices that are drawn."""
    known = [m.name for m in ev.metrics if not m.overall_only and m.name in ev.overall]
    return [score for score in DRAWN if score in known] or known[:3]


def _smallest(row: Mapping[str, Any]) -> int:
    """Return the smallest size of a slice by size, such as 4 of "4-7"."""
    return int(row["slice"][0].partition("-")[0])


def _has_errors(ev: BySlice) -> bool:
    """Tell whether standard errors of slices are soon worked out."""
    cells = ev.contingency
    return ev.has_items and not ev.in_files and isinstance(cells, Contingency) and cells.n_cells <= ALWAYS


def _with_errors(ev: BySlice, key: SliceKey) -> Any:
    """Return slices with standard errors; None for subsets by name, of which only the figures are there."""
    if not (isinstance(key, str) and key in ev.sliced):
        return ev.slices(key, errors=True)
    try:
        return ev.slices(key_of(name_columns(ev.sliced[key].column_names)), errors=True)
    except (NotKeptError, ColumnError, SliceError):
        return None


def key_of(names: Sequence[str]) -> SliceKey:
    """Return what slices by attributes of these names, or by bins of them, such as ``year:10``."""
    found = tuple(element_of(name.removeprefix("attribute.")) for name in names)
    return found[0] if len(found) == 1 else found


def _by_size_of_clusters(ev: BySlice, key: str, score: str) -> Any:
    """Return slices by size with one score, which is known by its loss; no rows are needed."""
    found = ev.size_classes(key.removesuffix("_size"))
    n = found.smallest.size
    lost = {name: getattr(found, name)[:n] for name in LOSSES}
    weight, total = found.weight[:n], ev.contingency.total_weight
    with np.errstate(invalid="ignore"):  # of sizes that no cluster has
        value = 1 - lost[f"{score}_loss"] * total / weight
    columns = {key: size_names(found.smallest), "n_items": found.n_items[:n], "weight": weight}
    table = table_of({**columns, **lost, score: value})
    return table.filter(table["n_items"].to_numpy() > 0)


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_temporal(kind))


def _row(row: Mapping[str, Any], names: list[str], ev: BySlice, scores: list[str]) -> dict[str, Any]:
    """Return one slice: what names it, its figures, its scores with intervals, and whether it is small."""
    n_units = row.get("n_units")
    few = (row["n_items"] if n_units is None else n_units) < FEW
    found = {
        "slice": [row[name] for name in names],
        **{k: row.get(k) for k in ("n_items", "weight", "n_units", "precision_loss", "recall_loss")},
        "few": few,
    }
    known = {metric.name: metric for metric in ev.metrics}
    for score in scores:
        value, error = row.get(score), row.get(f"{score}_se")
        found[score] = value
        if value is not None and error is not None and n_units is not None and n_units > 1 and error > 0:
            metric = known[score]
            low, high = interval(value, error, n_units=n_units, level=LEVEL, low=metric.low, high=metric.high)
            found |= {f"{score}_se": error, f"{score}_low": low, f"{score}_high": high}
    return found
