"""Outcomes of the clusters of a baseline (unchanged, split, merged, both, gone) and clusters that appeared."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.cells.contingency import Contingency
from fastbcubed.diff_runs.vocabulary import APPEARED, GONE, OUTCOMES, called_as_slices
from fastbcubed.errors import IdTypeError, MetricError, SliceError, arg, first_few
from fastbcubed.inputs import arrow_functions as pc
from fastbcubed.inputs.arrays import from_numpy, from_texts, table_of
from fastbcubed.inputs.columns import as_column
from fastbcubed.results.evaluation_scores import Estimated
from fastbcubed.results.items import Items
from fastbcubed.results.outcomes import marked
from fastbcubed.results.slices import SliceKey, beside, elements, size_named, slice_codes
from fastbcubed.runtime.codes import number
from fastbcubed.runtime.threads import Pool, blocks

#: Outcomes of clusters, in the order of display.
BECAME = (*OUTCOMES["true"].values(), GONE, APPEARED)
#: Figures of each.
FIGURES = {"n_clusters": pa.int64(), "n_items": pa.int64(), "weight": pa.float64(), "share": pa.float64()}
#: Clusters of which only one side has any item, by the side that has them.
OF_ONE_SIDE = {"true": GONE, "pred": APPEARED}


class OneSided(NamedTuple):
    """Clusters all of whose items the other side lacks: how many, their items, and their weight, NaN if not known."""

    n_clusters: int
    n_items: int
    weight: float


def not_defined() -> MetricError:
    """Return the error for changes of clusters where these may overlap."""
    return MetricError(
        "what became of clusters is not defined where clusters may overlap; pass partitions, without "
        f"{arg('overlapping', True)}"
    )


def of_one_side(table: Contingency, side: str) -> OneSided:
    """Count the clusters of a side of which the other side has no item."""
    alone = table.alone(side)
    if alone is None:
        return OneSided(0, 0, 0.0)
    scored = _with_scored_items(table, side)
    there = ~scored[alone.codes]
    codes = np.zeros(scored.size, np.bool_)
    codes[alone.codes[there]] = True
    weight = math.nan if table.weighting == "outer" else math.fsum(alone.mass[there].tolist())
    return OneSided(int(np.count_nonzero(codes)), int(alone.n[there].sum(dtype=np.int64)), weight)


def _with_scored_items(table: Contingency, side: str) -> NDArray[np.bool_]:
    """Return which clusters of a side have a scored item."""
    found = np.zeros(table.n_codes[side], np.bool_)
    codes = table.true if side == "true" else table.pred
    for start, stop in blocks(table.n_cells):
        found[codes[start:stop]] = True
    return found


def changes(ev: Estimated) -> pa.Table:
    """Return the outcomes of the clusters: how many clusters and items each has."""
    outcomes = ev._outcomes
    if outcomes is None:
        raise not_defined()
    found = ev.coverage
    rows = outcomes.filter(pc.equal(outcomes["side"], "true"))
    gone, appeared = (of_one_side(ev.contingency, side) for side in OF_ONE_SIDE)
    columns = {
        name: [*rows[name].to_pylist(), getattr(gone, name), getattr(appeared, name)]
        for name in ("n_clusters", "n_items", "weight")
    }
    scored = ev.contingency.total_weight
    of_baseline = scored + (found.weight_truth_only if found.n_truth_only and _drops(ev, "truth") else 0.0)
    of_experiment = scored
    if found.n_prediction_only and ev.policies.prediction in ("drop", "outside"):
        of_experiment += found.weight_prediction_only
    wholes = [of_baseline] * (len(BECAME) - 1) + [of_experiment]
    columns["share"] = [
        w / whole if whole else math.nan for w, whole in zip(columns["weight"], wholes, strict=True)
    ]
    return pa.table(
        {"became": from_texts(list(BECAME))}
        | {name: pa.array(columns[name], kind, from_pandas=True) for name, kind in FIGURES.items()}
    )


def _drops(ev: Estimated, side: str) -> bool:
    return str(getattr(ev.policies, side)) == "drop"


# -- By slice --------------------------------------------------------------------------------------


def changes_by(ev: Estimated, key: SliceKey) -> pa.Table:
    """Return the outcomes of the clusters with items in a slice, and the number of these items."""
    if ev.contingency.overlapping:
        raise not_defined()
    if isinstance(key, Mapping):
        raise SliceError(
            f"changes are listed by an attribute or by bins, not by subsets ({first_few(list(key))})"
        )
    items, rows = ev.kept_items(), ev._rows()
    fate, cluster, n_clusters = _fates(ev, items)
    by_size = any(map(size_named, elements(key)))
    counted = rows.cell >= 0 if by_size else fate >= 0
    cut = slice_codes(key, ev.contingency, items, ev.attributes, counted)
    n = len(BECAME)
    group = np.where((cut.codes >= 0) & counted, cut.codes * n + fate, -1)
    here = np.flatnonzero(group >= 0)
    n_groups = cut.n_slices * n
    columns: dict[str, NDArray[Any]] = {"n_items": np.bincount(group[here], minlength=n_groups)}
    with Pool() as pool:
        _, first = number(group[here] * n_clusters + cluster[here], pool)
    columns["n_clusters"] = np.bincount(group[here][first], minlength=n_groups)
    weight = np.bincount(group[here], rows.weight[here], n_groups)
    of_slice = weight.reshape(-1, n).sum(axis=1)
    share = weight.reshape(-1, n) / np.where(of_slice > 0, of_slice, np.nan)[:, None]
    columns |= {"weight": weight, "share": share.reshape(-1)}
    there = np.flatnonzero(columns["n_items"] > 0)
    names = {called_as_slices(k): v.take(from_numpy(there // n)) for k, v in cut.values.items()}
    became = pa.DictionaryArray.from_arrays(from_numpy((there % n).astype(np.int8)), from_texts(list(BECAME)))
    return table_of(beside(names, {"became": became, **{name: columns[name][there] for name in FIGURES}}))


def _fates(ev: Estimated, items: Items) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Return, by row, the outcome of its cluster (position in BECAME) and the cluster's code; and the number of codes.

    Rows of clusters that both sides have items of go by the outcome of the baseline's; -1 for a row that one side
    lacks of such a cluster.
    """
    table, cell = ev.contingency, ev._rows().cell
    scored = np.flatnonzero(cell >= 0)
    fate, cluster = np.full(cell.size, -1), np.zeros(cell.size, np.int64)
    cluster[scored] = table.true[cell[scored]]
    fate[scored] = (marked(table, "true") >> 1)[cluster[scored]]
    n_clusters = table.n_codes["true"]
    for side, became in OF_ONE_SIDE.items():
        rows, codes, n = _clusters_of_one_side(ev, items, side)
        fate[rows], cluster[rows] = BECAME.index(became), n_clusters + codes
        n_clusters += n
    return fate, cluster, n_clusters


def _clusters_of_one_side(
    ev: Estimated, items: Items, side: str
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Return the rows of clusters of a side of which the other side has no item, codes of these, and how many."""
    cell, none = ev._rows().cell, np.empty(0, np.int64)
    if ev.contingency.alone(side) is None:
        return none, none, 0
    labels = as_column(items.labels(side), f"{side}_cluster")
    keys = labels.keys()
    there = np.ones(cell.size, np.bool_) if labels.null_rows is None else ~labels.null_rows
    rows = np.flatnonzero((cell < 0) & there)
    lonely = np.zeros(cell.size, np.bool_)
    if ev.policies.noise is not None:
        with suppress(IdTypeError):  # then it is a label of the other side alone
            lonely[labels.find(ev.policies.noise)] = True
    rows = rows[lonely[rows] | ~np.isin(keys[rows], keys[(cell >= 0) & there & ~lonely])]
    with Pool() as pool:
        codes, first = number(keys[rows], pool)
    alone = lonely[rows]
    codes = np.where(alone, first.size + np.cumsum(alone), codes)
    return rows, codes, first.size + int(np.count_nonzero(alone)) + 1


def listed_of_one_side(ev: Estimated, side: str) -> pa.Table:
    """Return the clusters of a side of which the other side has no item: cluster, n_items, weight."""
    items = ev.kept_items()
    rows, codes, _ = _clusters_of_one_side(ev, items, side)
    with Pool() as pool:
        codes, first = number(codes, pool)
    weight = np.bincount(codes, ev._rows().weight[rows], first.size)
    figures = {"n_items": np.bincount(codes, minlength=first.size).astype(np.int64), "weight": weight}
    return table_of({"cluster": items.labels(side, rows[first]), **figures})
