"""Outcomes of clusters: exact, split, merged, both; found in passes over the cells, each for a range of clusters."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from fastbcubed.results.clusters import ClusterRanges


def ranges_of_clusters(
    table: Contingency, dtype: type, most: int | None = None
) -> Iterator[tuple[tuple[int, ...], list[NDArray[Any]]]]:
    """Yield, for each pass, the first cluster of each side by code, and zeros for it and those that come after it.

    `most` is for how many clusters of both sides there may be zeros at once; for all when absent.
    """
    sizes = [table.n_codes[side] for side in SIDES]
    n_passes = 1 if most is None else max(1, -(-sum(sizes) // max(1, most)))
    for k in range(n_passes):
        firsts, ends = (tuple(at * size // n_passes for size in sizes) for at in (k, k + 1))
        yield firsts, [np.zeros(end - first, dtype) for first, end in zip(firsts, ends, strict=True)]


#: The outcomes of each side: the same cluster is on the other side; its items are in several clusters there; they
#: are in one cluster, together with others; both. A predicted cluster with items outside the truth is mixed, too.
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
    """Raise MetricError where clusters may overlap."""
    if table.overlapping:
        raise MetricError(
            "outcomes of clusters are not defined for overlapping clusters; pass partitions, without "
            f"{arg('overlapping', True)}"
        )


def require_outcomes(table: Contingency, found: pa.Table | None) -> pa.Table:
    """Return the outcomes of the clusters, or raise why there are none."""
    require_defined(table)
    if found is None:
        raise NotKeptError(
            f"the cells were not kept; evaluate with {arg('keep', 'cells')} to know the outcomes of clusters"
        )
    return found


def outcomes_of(table: Contingency, ranges: ClusterRanges | None) -> pa.Table | None:
    """Return the table of `count_outcomes`; None where unknown or undefined."""
    if table.overlapping or not table.has_cells:
        return None
    with Pool() as pool:
        return count_outcomes(table, pool, None if ranges is None else ranges.limit // 2)


def outcome_code(side: str, outcome: str) -> int:
    """Return the place of an outcome among those of a side."""
    if not is_one_of(outcome, OUTCOMES[side]):
        known = ", ".join(map(repr, OUTCOMES[side]))
        kind = "true" if side == "true" else "predicted"
        raise OptionError(f"the outcome of a {kind} cluster must be one of {known}, not {quoted(outcome)}")
    return OUTCOMES[side].index(outcome)


def marked(table: Contingency, side: str, marks: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
    """Mark the clusters of a side by code, on top of the `marks` that other cells have left; see `mark_clusters`."""
    marks = np.zeros(table.n_codes[side], np.uint8) if marks is None else marks
    none = np.zeros(0, np.uint8)
    of_sides = (marks, none) if side == "true" else (none, marks)
    kernels.clusters.mark_clusters(table.cells, table.pred, 0, table.n_cells, (0, 0), *of_sides)
    return mixed(marks, 0, with_unlabelled(table)) if side == "pred" else marks


def with_unlabelled(table: Contingency) -> NDArray[np.integer]:
    """Return the predicted clusters by code, ascending, that hold items which the truth lacks, where these count."""
    alone = table.alone("pred") if table.outside else None
    return (
        np.empty(0, np.int64) if alone is None else np.sort(alone.codes[alone.n > 0])
    )  # files list all clusters


def mixed(marks: NDArray[np.uint8], first: int, codes: NDArray[np.integer]) -> NDArray[np.uint8]:
    """Mix clusters that are with others, those of these codes: no true cluster of such others is known to be whole.

    The marks, or outcomes, of clusters from a first code on are changed, and returned.
    """
    start, stop = np.searchsorted(codes, (first, first + marks.size))
    own = codes[start:stop] - first
    marks[own] |= marks[own] >> 1  # "with others" is the bit above "in parts"
    return marks


def named(columns: Mapping[str, Any], side: str, without: NDArray[np.bool_] | None = None) -> dict[str, Any]:
    """Return columns of clusters in which outcomes go by name, if there are any; null for those `without` one."""
    if "outcome" not in columns:
        return dict(columns)
    names = from_texts(list(OUTCOMES[side]))
    codes = from_numpy(columns["outcome"].view(np.int8), without)
    return {**columns, "outcome": pa.DictionaryArray.from_arrays(codes, names)}


def count_outcomes(table: Contingency, pool: Pool, most: int | None = None) -> pa.Table:
    """Return clusters, items, weight and losses by side and outcome.

    `most` is how many clusters may be marked at once, a byte each; the cells are passed through as often as needed.
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
    """Return the items of each outcome in a range of cells, and sums by run; see `add_by_outcome`."""
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
