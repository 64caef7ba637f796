"""Outcomes of the clusters of a baseline: unchanged, split, merged or gone; and those that appeared."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.cells.contingency import Contingency
from fastbcubed.diff_runs.vocabulary import APPEARED, GONE, OUTCOMES, called_as_slices
from fastbcubed.errors import IdTypeError, MetricError, SliceError, arg, first_few
from fastbcubed.inputs.arrays import chunked, combined, from_numpy, from_texts, from_values, plain, table_of
from fastbcubed.inputs.id_columns import as_column
from fastbcubed.results.cluster_outcomes import marked
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.items import Items, without_noise
from fastbcubed.results.slices import (
    SliceKey,
    beside,
    bytes_of_values,
    elements,
    size_named,
    slice_codes,
    slice_name,
)
from fastbcubed.runtime.key_codes import number
from fastbcubed.runtime.threads import Pool, blocks

#: Outcomes of clusters, in the order of display.
BECAME = (*OUTCOMES["true"].values(), GONE, APPEARED)
#: Figures of each outcome.
FIGURES = {"n_clusters": pa.int64(), "n_items": pa.int64(), "weight": pa.float64(), "share": pa.float64()}
#: Outcomes of clusters whose items only one side has, by this side.
OF_ONE_SIDE = {"true": GONE, "pred": APPEARED}
#: Bytes for each row while changes are counted by slice, measured and rounded up.
ROW_BYTES = 100


def not_defined() -> MetricError:
    """Return the error for outcomes of overlapping clusters."""
    return MetricError(
        "the outcome of a cluster is not defined for overlapping clusters; pass partitions, without "
        f"{arg('overlapping', True)}"
    )


def _of_one_side(table: Contingency, side: str) -> dict[str, float]:
    """Count the clusters of a side without items of the other side, and their items; an unknown weight is NaN."""
    alone = table.alone(side)
    if alone is None:
        return {"n_clusters": 0, "n_items": 0, "weight": 0.0}
    scored = np.zeros(table.n_codes[side], np.bool_)
    codes = table.true if side == "true" else table.pred
    for start, stop in blocks(table.n_cells):
        scored[codes[start:stop]] = True
    there = ~scored[alone.codes]
    counted = np.zeros(scored.size, np.bool_)
    counted[alone.codes[there]] = True
    weight = math.nan if table.weighting == "outer" else math.fsum(alone.mass[there].tolist())
    n_items = int(alone.n[there].sum(dtype=np.int64))
    return {"n_clusters": int(np.count_nonzero(counted)), "n_items": n_items, "weight": weight}


def changes(ev: Evaluation) -> pa.Table:
    """Return a table of cluster outcomes, with the number of clusters and items for each outcome."""
    outcomes = ev._outcomes
    if outcomes is None:
        raise not_defined()
    rows = [row for row in outcomes.to_pylist() if row["side"] == "true"]
    rows += [_of_one_side(ev.contingency, side) for side in OF_ONE_SIDE]
    found, scored = ev.coverage, ev.contingency.total_weight
    only = found.n_truth_only and ev.policies.truth == "drop"
    before = scored + (found.weight_truth_only if only else 0.0)
    only = found.n_prediction_only and ev.policies.prediction in ("drop", "outside")
    after = scored + (found.weight_prediction_only if only else 0.0)
    for became, row in zip(BECAME, rows, strict=True):
        whole = after if became == APPEARED else before
        row |= {"became": became, "share": row["weight"] / whole if whole else None}
    return changes_of_rows(rows)


def changes_of_rows(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return the table of outcomes from its rows; unknown figures are null."""
    became = from_texts([row["became"] for row in rows])
    figures = {name: [row[name] for row in rows] for name in FIGURES}
    return pa.table(
        {"became": became} | {name: from_values(figures[name], kind) for name, kind in FIGURES.items()}
    )


# -- By slice --------------------------------------------------------------------------------------


def changes_by(ev: Evaluation, key: SliceKey) -> pa.Table:
    """Return the table of outcomes by slice, with the number of its items and of the clusters that have them."""
    if ev.contingency.overlapping:
        raise not_defined()
    if isinstance(key, Mapping):
        raise SliceError(
            f"changes can be listed by an attribute or by bins, not by subsets ({first_few(list(key))})"
        )
    items, rows = ev.kept_items(), ev.kept.rows
    if ev.kept.memory_limit is not None:
        of_row = ROW_BYTES + 3 * bytes_of_values(key, items, ev.attributes)
        ev.kept.require_room(of_row, f"changes by {slice_name(key)!r}")
    fate, cluster, n_clusters = _fates(ev, items)
    by_size = any(map(size_named, elements(key)))
    counted = rows.cell >= 0 if by_size else fate >= 0
    cut = slice_codes(key, ev.contingency, items, ev.attributes, counted)
    n = len(BECAME)
    counted &= cut.codes >= 0
    n_groups, group = cut.n_slices * n, cut.codes[counted] * n + fate[counted]
    columns: dict[str, NDArray[Any]] = {"n_items": np.bincount(group, minlength=n_groups)}
    weight = np.bincount(group, rows.weight[counted], n_groups)
    with Pool() as pool:
        _, first = number(group * n_clusters + cluster[counted], pool)
    columns["n_clusters"] = np.bincount(group[first], minlength=n_groups)
    of_slice = weight.reshape(-1, n).sum(axis=1)
    share = weight.reshape(-1, n) / np.where(of_slice > 0, of_slice, np.nan)[:, None]
    columns |= {"weight": weight, "share": share.reshape(-1)}
    there = np.flatnonzero(columns["n_items"] > 0)
    names = {called_as_slices(k): v.take(from_numpy(there // n)) for k, v in cut.values.items()}
    became = pa.DictionaryArray.from_arrays(from_numpy((there % n).astype(np.int8)), from_texts(list(BECAME)))
    return table_of(beside(names, {"became": became, **{name: columns[name][there] for name in FIGURES}}))


def _fates(ev: Evaluation, items: Items) -> tuple[NDArray[np.int8], NDArray[np.int64], int]:
    """Return by row the outcome of its cluster (position in BECAME) and a code of the cluster, and the number of codes.

    A row that both sides have gets the outcome of its baseline cluster. A row that only one side has gets "gone" or
    "appeared" if all items of its cluster are on that side; otherwise, the outcome is -1.
    """
    table, cell = ev.contingency, ev.kept.rows.cell
    scored = np.flatnonzero(cell >= 0)
    fate, cluster = np.full(cell.size, -1, np.int8), np.zeros(cell.size, np.int64)
    cluster[scored] = table.true[cell[scored]]
    fate[scored] = (marked(table, "true") >> 1)[cluster[scored]]
    n_clusters = table.n_codes["true"]
    for side, became in OF_ONE_SIDE.items():
        rows, codes, first = clusters_of_one_side(ev, items, side)
        fate[rows], cluster[rows] = BECAME.index(became), n_clusters + codes
        n_clusters += first.size
    return fate, cluster, n_clusters


def clusters_of_one_side(
    ev: Evaluation, items: Items, side: str
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows of a side's clusters without items of the other side, their clusters' codes, and first rows.

    First rows are positions in the returned rows, by cluster.
    """
    cell, none = ev.kept.rows.cell, np.empty(0, np.int64)
    if ev.contingency.alone(side) is None:
        return none, none, none
    labels = as_column(items.labels(side), f"{side}_cluster")
    keys = labels.keys()
    there = np.ones(cell.size, np.bool_) if labels.null_rows is None else ~labels.null_rows
    rows = np.flatnonzero((cell < 0) & there)
    lonely = np.zeros(cell.size, np.bool_)
    if (noise := ev.policies.noise_of(side)) is not None:
        with suppress(IdTypeError):  # the noise label may have the type of the other side's labels
            lonely[labels.find(noise)] = True
    rows = rows[lonely[rows] | ~np.isin(keys[rows], keys[(cell >= 0) & there & ~lonely])]
    with Pool() as pool:
        codes, first = number(keys[rows], pool)
        if (alone := lonely[rows]).any():
            codes, first = number(np.where(alone, first.size + np.cumsum(alone), codes), pool)
    return rows, codes, first


def labels_of_one_side(ev: Evaluation, side: str) -> pa.Array:
    """Return the labels of a side's clusters without items of the other side; noise is omitted."""
    items = ev.kept_items()
    rows, _, first = clusters_of_one_side(ev, items, side)
    labels = without_noise(items.labels(side, rows[first]), ev.policies, side)
    return plain_labels(labels).drop_null()


def plain_labels(labels: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return labels or ids as one array, without chunks or dictionary encoding."""
    return combined(plain(chunked(labels)))
