"""The memory engine: partitions live in one buffer, and cells are built where their rows stood.

    rows --by true key--> parts --build_cells--> cells --by pred key--> parts --close_cells--> cells

The parts and their order depend on the input alone, so the number of threads never changes a bit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fastbcubed.engines import buffers
from fastbcubed.engines.pool import Pool, blocks
from fastbcubed.kernels import cells as cell_kernels
from fastbcubed.kernels import partition

__all__ = ["Built", "Plan", "build", "locate", "offsets", "plan_parts"]

#: Rows of one part on average: its cells and their hash table then stay in a core's cache.
PART_ROWS = 30_000
MAX_BITS = 10
#: A true cluster with more than this share of the rows is set apart (see `find_heavy`).
HEAVY_SHARE = 1 / 256
SAMPLE = 1 << 14
#: Parts handled by one kernel call: few enough for progress, Ctrl-C and an even load.
PARTS_AT_ONCE = 4
#: From here on counts may pass 31 bits, and the wide records are used.
WIDE = 1 << 31
NO_KEYS = np.empty(0, np.int64)


def _records(code: str) -> dict[str, np.dtype]:
    """Return the record types with this integer type for counts and codes; see `Plan`."""
    same = [("true", "i8"), ("pred", "i8")]
    cell = [("cluster", code), ("n", code), ("pred", "i8")]
    pad = [("pad", "i8")] if code == "i8" else []
    tail = [("weight", "f8"), ("fn", "f8"), ("true", code), ("n", code)]
    return {
        "row": np.dtype([*same, *pad]),
        "cell": np.dtype(cell),
        "weighted row": np.dtype([*same, ("x", "f8"), *pad]),
        "weighted cell": np.dtype([*cell, ("x", "f8")]),
        "numbered row": np.dtype([*same, ("x", "i8")]),
        "arrived": np.dtype([("pred", "i8"), *tail]),
        "final": np.dtype([("fp", "f8"), *tail]),
    }


#: Workspace: the sum over a predicted cluster, `mass + rest`, and of its items that the truth lacks.
CLUSTER = np.dtype([("key", "i8"), ("mass", "f8"), ("rest", "f8"), ("only", "f8")])
NARROW_RECORDS = _records("i4")
WIDE_RECORDS = _records("i8")


@dataclass(frozen=True)
class Plan:
    """How the rows of one input are cut into parts; a function of the keys alone."""

    n_rows: int
    bits: int
    heavy: NDArray[np.int64]  #: mixed true keys set apart, sorted; the absent one is among them
    absent_true: NDArray[np.int64]  #: (0,) or (1,): mixed key for "not in the truth"
    absent_pred: NDArray[np.int64]  #: likewise for the prediction
    records: dict[str, np.dtype] = field(repr=False)

    @property
    def code(self) -> str:
        """The type of counts and codes."""
        return str(self.records["cell"]["n"].str)

    @property
    def n_parts(self) -> int:
        """Parts in all: by true key, and by pred key for the rows set apart."""
        return (1 << self.bits) * (2 if self.heavy.size else 1)

    def tasks(self) -> list[tuple[int, int]]:
        """Cut the parts into ranges, those set apart in ranges of their own."""
        regular = blocks(1 << self.bits, PARTS_AT_ONCE)
        if not self.heavy.size:
            return regular
        return regular + [(a + (1 << self.bits), b + (1 << self.bits)) for a, b in regular]

    def is_apart(self, part: int) -> bool:
        """Tell whether this part holds rows that were set apart."""
        return part >= 1 << self.bits


@dataclass(frozen=True, eq=False)
class Built:
    """Cells as the last stage leaves them: in the order of the parts of their pred key.

    Attributes
    ----------
    cells : ndarray of records like contingency.CELL, shape (n_cells,)
        One-sided cells are among them: the code of the side that lacks the item is -1.
    pred_in_part : ndarray of int, shape (n_cells,)
        Code of the predicted cluster within its part.
    bounds : ndarray of int64, shape (n_parts + 1,)
        Where each part begins.
    pred_base : ndarray of int64, shape (n_parts + 1,)
        Code of the first predicted cluster of each part; last, how many there are.
    n_true : int
        Codes of true clusters.
    has_one_sided : bool
        Whether a side lacks an item.
    """

    cells: np.ndarray
    pred_in_part: NDArray[np.integer]
    bounds: NDArray[np.int64]
    pred_base: NDArray[np.int64]
    n_true: int
    has_one_sided: bool


def plan_parts(
    true_keys: NDArray[np.int64],
    absent_true: int | None = None,
    absent_pred: int | None = None,
    *,
    wide: bool | None = None,
    part_rows: int = PART_ROWS,
) -> Plan:
    """Choose the number of parts, and the true clusters that are too large for one."""
    n = true_keys.size
    bits = min(max(0, (n - 1) // part_rows).bit_length(), MAX_BITS)
    heavy = find_heavy(true_keys) if bits else np.empty(0, np.int64)
    lacking = _mixed(absent_true)
    heavy = np.union1d(_mix_all(heavy), lacking)
    wide = n >= WIDE if wide is None else wide
    return Plan(n, bits, heavy, lacking, _mixed(absent_pred), WIDE_RECORDS if wide else NARROW_RECORDS)


def find_heavy(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the keys with a large share of the rows, judged by a sample spread over all of them.

    Rows of such a cluster are partitioned by their other key, or one part would hold them all.
    """
    rows = (np.arange(min(SAMPLE, keys.size), dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> (
        np.uint64(16)
    )
    found, counts = np.unique(keys[rows % np.uint64(keys.size)], return_counts=True)
    return found[counts > max(1, rows.size * HEAVY_SHARE)]


def _mix_all(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.array([partition.mix(np.int64(key)) for key in keys], np.int64)


def _mixed(key: int | None) -> NDArray[np.int64]:
    return _mix_all(np.array([] if key is None else [key], np.int64))


def _scatter_rows(
    plan: Plan,
    true_keys: NDArray[np.int64],
    pred_keys: NDArray[np.int64],
    payload: np.ndarray | None,
    dtype: np.dtype,
    pool: Pool,
) -> tuple[np.ndarray, NDArray[np.int64]]:
    """Bring the rows of each part together, in row order; return them and where each part begins."""
    home = np.array([partition.part_of(h, plan.bits) for h in plan.heavy], np.int64)
    heavy = plan.heavy[np.argsort(home, kind="stable")]
    first_heavy = np.searchsorted(np.sort(home), np.arange((1 << plan.bits) + 1))
    row_blocks = blocks(plan.n_rows, max(1 << 16, -(-plan.n_rows // 64)))
    starts, stops = zip(*row_blocks, strict=True)
    counts = np.zeros((len(row_blocks), plan.n_parts), np.int64)
    others = pred_keys if plan.heavy.size else None

    def count(start: int, stop: int, out: NDArray[np.int64]) -> None:
        partition.count_parts(true_keys, others, start, stop, plan.bits, heavy, first_heavy, out)

    pool.map(count, starts, stops, counts, stage="count rows by part")
    bounds, next_row = offsets(counts)
    rows = buffers.empty(plan.n_rows, dtype)

    def scatter(start: int, stop: int, to: NDArray[np.int64]) -> None:
        partition.scatter_pairs(
            true_keys, pred_keys, payload, start, stop, plan.bits, heavy, first_heavy, to, rows
        )

    pool.map(scatter, starts, stops, next_row, stage="partition rows")
    return rows, bounds


def offsets(counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Turn counts (blocks, parts) into where parts begin, and where each block writes in each part."""
    bounds = np.concatenate([[0], np.cumsum(counts.sum(axis=0))])
    return bounds, bounds[:-1] + np.cumsum(counts, axis=0) - counts


def _make_slots(rows: int) -> NDArray[np.int32]:
    """Make a hash table for parts of usual size; kernels grow their own where that is too small."""
    return np.empty(cell_kernels.table_size(min(rows, 2 * PART_ROWS)), np.int32)


class _CellSpace:
    """What one thread needs to find the cells of a part; reused from part to part.

    It is as long as the largest part, but memory is only touched as far as there are cells.
    """

    def __init__(self, rows: int, code: str, *, weighted: bool) -> None:
        self.head_slots = _make_slots(rows)
        self.other_slots = np.empty(1 << 13, np.int32)
        self.counts = np.empty(rows, code)
        self.heads = np.empty(rows, np.int32)
        self.codes = np.empty(rows, np.int32)
        self.sums = np.empty(rows, np.float64) if weighted else None
        self.errors = np.empty(rows, np.float64) if weighted else None


def build(
    plan: Plan,
    true_keys: NDArray[np.int64],
    pred_keys: NDArray[np.int64],
    weights: NDArray[np.float64] | None,
    pool: Pool,
    *,
    outer: bool = False,
    outside: bool = False,
) -> Built:
    """Build the cells of these rows.

    Parameters
    ----------
    plan : Plan
        From `plan_parts` of the same keys.
    true_keys, pred_keys : ndarray of int64, shape (n_rows,)
        Equal keys, equal cluster; the plan's absent keys stand for "not on this side".
    weights : ndarray of float64, shape (n_rows,), or None
        Valid weights, or None where every item counts 1.
    pool : Pool
        The threads.
    outer : bool
        Whether margins are counts, so that weights serve the mean alone.
    outside : bool
        Whether items that only the prediction has are false positives of their mates.
    """
    kind = "row" if weights is None else "weighted row"
    rows, bounds = _scatter_rows(plan, true_keys, pred_keys, weights, plan.records[kind], pool)
    arrived, cell_bounds, n_true = _build_by_true(
        plan, rows, bounds, pool, weighted=weights is not None, outer=outer
    )
    del rows
    return _close_by_pred(plan, arrived, cell_bounds, n_true, pool, outer=outer, outside=outside)


def _build_by_true(
    plan: Plan,
    rows: np.ndarray,
    bounds: NDArray[np.int64],
    pool: Pool,
    *,
    weighted: bool,
    outer: bool,
) -> tuple[np.ndarray, NDArray[np.int64], int]:
    """Turn the rows into cells where they stand, and send these to the parts of their pred key.

    Returns the cells, where each part of them begins, and the number of true codes.
    """
    own = rows.view(plan.records["weighted cell" if weighted else "cell"])
    flag = np.empty(0) if weighted else None  # kernels are compiled for one of the two
    tasks = plan.tasks()
    starts, stops = zip(*tasks, strict=True)
    most_rows = int(np.diff(bounds).max())
    n_cells = np.zeros(plan.n_parts, np.int64)
    n_clusters = np.zeros(plan.n_parts, np.int64)
    histogram = np.zeros((len(tasks), 1 << plan.bits), np.int64)

    def build_task(first: int, last: int, cells_by_part: NDArray[np.int64]) -> None:
        heavy = plan.heavy if plan.is_apart(first) else NO_KEYS
        with pool.workspace("build", lambda: _CellSpace(most_rows, plan.code, weighted=weighted)) as w:
            cell_kernels.build_cells(
                rows, own, bounds, first, last, plan.bits, heavy, w.head_slots, w.other_slots,
                w.counts, w.heads, w.codes, w.sums, w.errors, n_cells, n_clusters, cells_by_part,
            )  # fmt: skip

    pool.map(build_task, starts, stops, histogram, stage="build cells")
    regular = 1 << plan.bits
    base = np.concatenate([[0], np.cumsum(n_clusters[:regular])])
    n_true = int(base[-1]) + plan.heavy.size
    base = np.concatenate([base[:-1], np.full(plan.n_parts - regular, base[-1])])
    sums_apart = _sums_apart(plan, own, bounds, n_cells, flag, outer, pool)
    absent = int(np.searchsorted(plan.heavy, plan.absent_true[0])) if plan.absent_true.size else -1
    most = int(n_clusters.max())

    cell_bounds, next_cell = offsets(histogram)
    arrived = buffers.empty(int(cell_bounds[-1]), plan.records["arrived"])

    def scatter_task(first: int, last: int, to: NDArray[np.int64]) -> None:
        apart = plan.is_apart(first)
        with pool.workspace("margins", lambda: (np.empty(most), np.empty(most))) as space:
            cell_kernels.scatter_cells(
                own, bounds, first, last, plan.bits, flag, outer, apart, absent, plan.absent_pred,
                n_cells, n_clusters, base, *(sums_apart if apart else space), to, arrived,
            )  # fmt: skip

    pool.map(scatter_task, starts, stops, next_cell, stage="partition cells")
    return arrived, cell_bounds, n_true


def _close_by_pred(
    plan: Plan,
    arrived: np.ndarray,
    bounds: NDArray[np.int64],
    n_true: int,
    pool: Pool,
    *,
    outer: bool,
    outside: bool,
) -> Built:
    """Give the predicted clusters numbers, and give the cells their false positives, where they stand."""
    cells = arrived.view(plan.records["final"])
    pred_in_part = buffers.empty(arrived.size, plan.code)
    n_pred = np.zeros(1 << plan.bits, np.int64)
    most = int(np.diff(bounds).max())

    def close_task(first: int, last: int) -> None:
        with pool.workspace("close", lambda: (_make_slots(most), np.empty(most, CLUSTER))) as space:
            cell_kernels.close_cells(
                arrived, cells, pred_in_part, bounds, first, last, outer, outside,
                plan.absent_pred, *space, n_pred,
            )  # fmt: skip

    pool.map(close_task, *zip(*blocks(1 << plan.bits, PARTS_AT_ONCE), strict=True), stage="close cells")
    one_sided = bool(plan.absent_true.size or plan.absent_pred.size)
    base = np.concatenate([[0], np.cumsum(n_pred)])
    return Built(cells, pred_in_part, bounds, base, n_true, one_sided)


def _sums_apart(
    plan: Plan,
    cells: np.ndarray,
    bounds: NDArray[np.int64],
    n_cells: NDArray[np.int64],
    weighted: NDArray[np.float64] | None,
    outer: bool,
    pool: Pool,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Add up the clusters set apart over all parts that their cells were spread to."""
    size = plan.heavy.size
    if not size:
        return np.empty(0), np.empty(0)

    def add(part: int) -> NDArray[np.float64]:
        sums = np.zeros((2, size))
        cell_kernels.add_margins(cells, bounds[part], n_cells[part], weighted, outer, plan.absent_pred, *sums)
        return sums

    parts = range(1 << plan.bits, plan.n_parts)
    found = np.concatenate(pool.map(add, parts, stage="add up large clusters"))
    mass = np.array([math.fsum(column) for column in found.T])
    rest = np.array([math.fsum([*column, -total]) for column, total in zip(found.T, mass, strict=True)])
    return mass, rest


def locate(
    plan: Plan, true_keys: NDArray[np.int64], pred_keys: NDArray[np.int64], pool: Pool
) -> NDArray[np.int64]:
    """Return the cell of each row among `Built.cells`; it repeats `build` with row numbers.

    Parameters are those of `build`. Shape (n_rows,).
    """
    rows, bounds = _scatter_rows(
        plan, true_keys, pred_keys, np.arange(plan.n_rows), plan.records["numbered row"], pool
    )
    tasks = plan.tasks()
    starts, stops = zip(*tasks, strict=True)
    most_rows = int(np.diff(bounds).max())
    cell_of_row = np.empty(plan.n_rows, np.int64)
    n_cells = np.zeros(plan.n_parts, np.int64)
    histogram = np.zeros((len(tasks), 1 << plan.bits), np.int64)

    def locate_task(first: int, last: int, cells_by_part: NDArray[np.int64]) -> None:
        with pool.workspace("locate", lambda: _CellSpace(most_rows, plan.code, weighted=False)) as w:
            cell_kernels.locate_cells(
                rows, bounds, first, last, plan.bits, w.head_slots, w.other_slots, w.counts,
                w.heads, w.codes, cell_of_row, n_cells, cells_by_part,
            )  # fmt: skip

    def place_task(first: int, last: int, to: NDArray[np.int64]) -> None:
        cell_kernels.place_cells(rows, bounds, first, last, plan.bits, n_cells, to)

    def look_up(start: int, stop: int) -> None:
        cell_kernels.look_up_cells(rows, start, stop, cell_of_row)

    pool.map(locate_task, starts, stops, histogram, stage="locate cells")
    _, next_cell = offsets(histogram)
    pool.map(place_task, starts, stops, next_cell, stage="place cells")
    pool.map(look_up, *zip(*blocks(plan.n_rows), strict=True), stage="look up cells")
    return cell_of_row
