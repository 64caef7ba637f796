"""Outcomes of clusters (exact, split, merged, both), found in several passes over the cells if memory is limited."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells.contingency import SIDES, Contingency
from fastbcubed.errors import MetricError, NotKeptError, OptionError, arg, quoted
from fastbcubed.inputs.arrays import from_numpy, from_texts
from fastbcubed.metrics.bcubed import LOSSES
from fastbcubed.runtime.arguments import is_one_of
from fastbcubed.runtime.threads import Pool, blocks


def ranges_of_clusters(
    table: Contingency, dtype: type, most: int | None = None
) -> Iterator[tuple[tuple[int, ...], list[NDArray[Any]]]]:
    """Yield, for each pass over the cells, the first cluster code of each side, and zeros for the clusters of the pass.

    `most` limits the number of clusters of both sides per pass; without it, a single pass has all.
    """
    sizes = [table.n_codes[side] for side in SIDES]
    n_passes = 1 if most is None else max(1, -(-sum(sizes) // max(1, most)))
    for k in range(n_passes):
        firsts, ends = (tuple(at * size // n_passes for size in sizes) for at in (k, k + 1))
        yield firsts, [np.zeros(end - first, dtype) for first, end in zip(firsts, ends, strict=True)]


#: The outcomes on each side: the other side has the same cluster; the items are in several clusters there; the items
#: are in one cluster with further items; both. A predicted cluster with items outside the truth is always mixed.
OUTCOMES = {
    "true": ("exact", "split", "merged", "split and merged"),
    "pred": ("exact", "fragment", "union", "mixed"),
}
SCHEMA = pa.schema(
    {"side": pa.string(), "outcome": pa.string()}
    | dict.fromkeys(("n_clusters", "n_items"), pa.int64())
    | dict.fromkeys(("weight", *LOSSES), pa.float64())
)


def require_defined(table: Contingency) -> None:
    """Raise MetricError if clusters may overlap, where outcomes are not defined."""
    if table.overlapping:
        raise MetricError(
            "outcomes of clusters are not defined for overlapping clusters; pass partitions, without "
            f"{arg('overlapping', True)}"
        )


def require_outcomes(table: Contingency, found: pa.Table | None) -> pa.Table:
    """Return the outcomes of the clusters, or raise an error that says why there are none."""
    require_defined(table)
    if found is None:
        raise NotKeptError(
            f"the cells were not kept; evaluate with {arg('keep', 'cells')} to know the outcomes of clusters"
        )
    return found


def outcomes_of(table: Contingency, limit: int | None) -> pa.Table | None:
    """Return the table of `count_outcomes`, found within a memory limit; None if it is unknown or undefined."""
    if table.overlapping or not table.has_cells:
        return None
    with Pool() as pool:
        return count_outcomes(table, pool, None if limit is None else limit // 2)


def outcome_code(side: str, outcome: str) -> int:
    """Return the position of an outcome among those of its side."""
    if not is_one_of(outcome, OUTCOMES[side]):
        known = ", ".join(map(repr, OUTCOMES[side]))
        kind = "true" if side == "true" else "predicted"
        raise OptionError(f"the outcome of a {kind} cluster must be one of {known}, not {quoted(outcome)}")
    return OUTCOMES[side].index(outcome)


def marked(table: Contingency, side: str, marks: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
    """Return marks of a side's clusters by code, added to `marks` of other cells; see `mark_clusters`."""
    marks = np.zeros(table.n_codes[side], np.uint8) if marks is None else marks
    none = np.zeros(0, np.uint8)
    of_sides = (marks, none) if side == "true" else (none, marks)
    kernels.clusters.mark_clusters(table.cells, table.pred, 0, table.n_cells, (0, 0), *of_sides)
    return mixed(marks, 0, with_unlabelled(table)) if side == "pred" else marks


def with_unlabelled(table: Contingency) -> NDArray[np.integer]:
    """Return the sorted codes of predicted clusters with items outside the truth, if these count."""
    alone = table.alone("pred") if table.outside else None
    # sorted and filtered, as files list all clusters
    return np.empty(0, np.int64) if alone is None else np.sort(alone.codes[alone.n > 0])


def mixed(marks: NDArray[np.uint8], first: int, codes: NDArray[np.integer]) -> NDArray[np.uint8]:
    """Mark clusters that have further items, given by code, as mixed: no true cluster is known to be whole in them.

    `marks` are changed and returned; they are marks or outcomes of the clusters from code `first`.
    """
    start, stop = np.searchsorted(codes, (first, first + marks.size))
    own = codes[start:stop] - first
    marks[own] |= marks[own] >> 1  # the bit "with others" is next to the bit "in parts"
    return marks


def named(columns: Mapping[str, Any], side: str, without: NDArray[np.bool_] | None = None) -> dict[str, Any]:
    """Return columns of clusters with outcomes by name, if any; null for the clusters marked in `without`."""
    if "outcome" not in columns:
        return dict(columns)
    names = from_texts(list(OUTCOMES[side]))
    codes = from_numpy(columns["outcome"].view(np.int8), without)
    return {**columns, "outcome": pa.DictionaryArray.from_arrays(codes, names)}


def count_outcomes(table: Contingency, pool: Pool, most: int | None = None) -> pa.Table:
    """Return the number of clusters and items, the weight and the losses, by side and outcome.

    `most` limits the number of clusters marked at a time (one byte each); the cells are read as often as needed.
    """
    n_clusters, n_items = np.zeros((2, 4), np.int64), np.zeros(8, np.int64)
    unlabelled = with_unlabelled(table)
    runs = list[NDArray[np.float64]]()
    for firsts, marks in ranges_of_clusters(table, np.uint8, most):
        for start, stop in blocks(table.n_cells):
            n_clusters[:, 0] += kernels.clusters.mark_clusters(
                table.cells, table.pred, start, stop, firsts, *marks
            )
        mixed(marks[1], firsts[1], unlabelled)
        for own, counts in zip(marks, n_clusters, strict=True):
            kernels.clusters.count_marks(own, counts)
        for counts, sums in table.map(partial(_add_up, table, firsts, marks), pool, stage="add up outcomes"):
            n_items += counts
            runs.append(sums)
    columns = np.concatenate(runs).reshape(-1, 24).T.tolist()
    weight, *lost = np.array(list(map(math.fsum, columns))).reshape(3, 8)
    figures = n_clusters.reshape(-1), n_items, weight, *(each / table.total_weight for each in lost)
    sides, outcomes = zip(*((side, outcome) for side in SIDES for outcome in OUTCOMES[side]), strict=True)
    return pa.Table.from_arrays(
        [from_texts(sides), from_texts(outcomes), *map(from_numpy, figures)], schema=SCHEMA
    )


def _add_up(
    table: Contingency, firsts: tuple[int, ...], marks: list[NDArray[np.uint8]], start: int, stop: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the number of items by outcome for a range of cells, and sums by run of cells; see `add_by_outcome`."""
    from fastbcubed.metrics import compiled

    n_items, sums = np.zeros(8, np.int64), np.zeros((-(-(stop - start) // kernels.partition.RUN), 3, 8))
    outer = table.weighting == "outer"
    compiled.add_by_outcome(table.cells, table.pred, start, stop, outer, firsts, *marks, n_items, sums)
    return n_items, sums


def by_side(table: pa.Table) -> dict[str, dict[str, int]]:
    """Return the number of clusters of each outcome, by side, from the table of `count_outcomes`."""
    found: dict[str, dict[str, int]] = {side: {} for side in SIDES}
    for row in table.to_pylist():
        found[row["side"]][row["outcome"]] = row["n_clusters"]
    return found
