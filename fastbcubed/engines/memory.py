"""The memory engine: partitions live in one buffer, and cells are built where their rows stood.

    rows --by true key--> parts --build_cells--> cells --by pred key--> parts --close_cells--> cells

The parts and their order depend on the input alone, so the number of threads never changes a bit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fastbcubed.engines.pool import Pool, blocks, split
from fastbcubed.kernels import cells as cell_kernels
from fastbcubed.kernels import partition

__all__ = ["CELL", "Built", "Plan", "build", "locate", "plan_parts"]

#: Rows of one part on average: its cells and their hash table then stay in a core's cache.
PART_ROWS = 100_000
MAX_BITS = 10
#: A true cluster with more than this share of the rows is set apart (see `find_heavy`).
HEAVY_SHARE = 1 / 256
SAMPLE = 1 << 14
#: Kernel calls per stage, at most; enough for progress, Ctrl-C and an even load.
TASKS = 256
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


NARROW_RECORDS = _records("i4")
WIDE_RECORDS = _records("i8")
#: A finished cell: what its items share. The true positives are `weight`, or `n` with outer weights.
CELL = NARROW_RECORDS["final"]


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
    def n_parts(self) -> int:
        """Parts in all: by true key, and by pred key for the rows set apart."""
        return (1 << self.bits) * (2 if self.heavy.size else 1)

    def tasks(self) -> list[tuple[int, int]]:
        """Cut the parts into ranges, those set apart in ranges of their own."""
        regular = split(1 << self.bits, TASKS)
        if not self.heavy.size:
            return regular
        return regular + [(a + (1 << self.bits), b + (1 << self.bits)) for a, b in regular]

    def is_heavy(self, part: int) -> bool:
        """Tell whether this part holds rows that were set apart."""
        return part >= 1 << self.bits


@dataclass(frozen=True)
class Margin:
    """What the clusters of one side add up to, by code."""

    n: NDArray[np.integer]  #: scored items
    mass: NDArray[np.float64] | None  #: their weight, where that is not `n`
    only_n: NDArray[np.int64] | None  #: items that the other side lacks
    only_mass: NDArray[np.float64] | None


@dataclass(frozen=True)
class Built:
    """The finished cells and margins, in the order of the parts."""

    cells: np.ndarray  #: records like CELL; the code of the true cluster is in them
    pred: NDArray[np.integer]  #: code of the predicted cluster of each cell
    true_margin: Margin
    pred_margin: Margin
    kept: NDArray[np.bool_] | None = None  #: which cells `locate` has to skip


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
    return Plan(
        n, bits, heavy, lacking, _mixed(absent_pred), WIDE_RECORDS if wide else NARROW_RECORDS
    )


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
    flags = np.zeros(1 << plan.bits, np.bool_)
    for h in plan.heavy:
        flags[partition.part_of(h, plan.bits)] = True
    row_blocks = blocks(plan.n_rows, max(1 << 16, -(-plan.n_rows // 64)))
    starts, stops = zip(*row_blocks, strict=True)
    counts = np.zeros((len(row_blocks), plan.n_parts), np.int64)
    others = pred_keys if plan.heavy.size else None

    def count(start: int, stop: int, out: NDArray[np.int64]) -> None:
        partition.count_parts(true_keys, others, start, stop, plan.bits, plan.heavy, flags, out)

    pool.map(count, starts, stops, counts, stage="count rows by part")
    bounds, next_row = offsets(counts)
    rows = np.empty(plan.n_rows, dtype)

    def scatter(start: int, stop: int, to: NDArray[np.int64]) -> None:
        partition.scatter_pairs(
            true_keys, pred_keys, payload, start, stop, plan.bits, plan.heavy, flags, to, rows
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


class _Workspace:
    """What one thread needs for its parts, reused from task to task.

    It is as long as the largest part, but memory is only touched as far as there are cells. `slots`, `counts`, `errors`, `keys` serve one part; the others hold the margins of one task.
    """

    def __init__(self, rows: int, margins: int, code: str, *, weighted: bool, only: bool) -> None:
        self.slots = _make_slots(rows)
        self.counts = np.empty(rows, code)
        self.errors = np.empty(rows, np.float64) if weighted else None
        self.keys = np.empty(rows, np.int64)
        self.n = np.empty(margins, code)
        self.mass = np.empty(margins, np.float64)
        self.rest = np.empty(margins, np.float64)
        self.only_n = np.empty(margins, np.int64) if only else None
        self.only_mass = np.empty(margins, np.float64) if only else None

    def margins(self, done: int) -> _Margins:
        """Copy what one task has found."""
        only = None
        if self.only_n is not None and self.only_mass is not None:
            only = (self.only_n[:done].copy(), self.only_mass[:done].copy())
        return _Margins(self.n[:done].copy(), self.mass[:done].copy(), self.rest[:done].copy(), only)


@dataclass(frozen=True)
class _Margins:
    """Items and mass of the clusters of one task; the mass is `mass + rest`, both floats."""

    n: NDArray[np.integer]
    mass: NDArray[np.float64]
    rest: NDArray[np.float64]
    only: tuple[NDArray[np.int64], NDArray[np.float64]] | None


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

    Returns
    -------
    Built
        Cells in the order of the parts of their pred key; margins by code.
    """
    weighted = weights is not None
    kind = "weighted " if weighted else ""
    rows, bounds = _scatter_rows(
        plan, true_keys, pred_keys, weights, plan.records[kind + "row"], pool
    )
    own = rows.view(plan.records[kind + "cell"])
    tasks = plan.tasks()
    code = plan.records["cell"]["n"].str
    n_cells = np.zeros(plan.n_parts, np.int64)
    n_clusters = np.zeros(plan.n_parts, np.int64)
    histogram = np.zeros((len(tasks), 1 << plan.bits), np.int64)
    most_rows = int(np.diff(bounds).max()) + plan.heavy.size
    most_margins = max(int(bounds[last] - bounds[first]) for first, last in tasks)
    most_margins += plan.heavy.size * max(last - first for first, last in tasks)

    def make_workspace() -> _Workspace:
        only = bool(plan.absent_pred.size)
        return _Workspace(most_rows, most_margins, code, weighted=weighted, only=only)

    def build_task(first: int, last: int, cells_by_part: NDArray[np.int64]) -> _Margins:
        heavy = plan.heavy if plan.is_heavy(first) else NO_KEYS
        with pool.workspace("build", make_workspace) as w:
            done = cell_kernels.build_cells(
                rows, own, bounds, first, last, plan.bits, outer, heavy, plan.absent_pred,
                w.slots, w.counts, w.errors, w.keys,
                w.n, w.mass, w.rest, w.only_n, w.only_mass, n_cells, n_clusters, cells_by_part,
            )  # fmt: skip
            return w.margins(done)

    made = pool.map(build_task, *zip(*tasks, strict=True), histogram, stage="build cells")
    regular = [m for m, (first, _) in zip(made, tasks, strict=True) if not plan.is_heavy(first)]
    bases = list(np.cumsum([0, *(m.n.size for m in regular)]))
    true_margins = [*regular]
    absent = -1
    if plan.heavy.size:
        shared = _add_up(made[len(regular) :], plan.heavy.size)
        true_margins.append(shared)
        if plan.absent_true.size:
            absent = int(np.searchsorted(plan.heavy, plan.absent_true[0]))

    cell_bounds, next_cell = offsets(histogram)
    arrived = np.empty(int(cell_bounds[-1]), plan.records["arrived"])

    def scatter_task(index: int, first: int, last: int, to: NDArray[np.int64]) -> None:
        apart = plan.is_heavy(first)
        margins = shared if apart else regular[index]
        cell_kernels.scatter_cells(
            own, bounds, first, last, plan.bits, outer, bases[-1 if apart else index],
            plan.heavy.size if apart else 0, absent if apart else -1, n_cells, n_clusters,
            margins.mass, margins.rest if weighted else None, to, arrived,
        )  # fmt: skip

    pool.map(
        scatter_task, range(len(tasks)), *zip(*tasks, strict=True), next_cell, stage="partition cells"
    )
    del rows, own
    if absent >= 0:  # its items are not in the truth: they have their place on the pred side
        shared.n[absent] = 0
        shared.mass[absent] = 0.0

    cells = arrived.view(plan.records["final"])
    pred = np.empty(arrived.size, code)
    pred_tasks = split(1 << plan.bits, TASKS)
    most_cells = int(np.diff(cell_bounds).max())
    most_margins = max(int(cell_bounds[last] - cell_bounds[first]) for first, last in pred_tasks)

    def make_margins() -> _Workspace:
        only = bool(plan.absent_true.size)
        return _Workspace(most_cells, most_margins, code, weighted=False, only=only)

    def close_task(first: int, last: int) -> _Margins:
        with pool.workspace("close", make_margins) as w:
            done = cell_kernels.close_cells(
                arrived, cells, pred, cell_bounds, first, last, outer, outside, w.slots, w.keys,
                w.n, w.mass, w.rest, w.only_n, w.only_mass,
            )  # fmt: skip
            return w.margins(done)

    pred_margins = pool.map(close_task, *zip(*pred_tasks, strict=True), stage="close cells")
    base = 0
    for (first, last), margins in zip(pred_tasks, pred_margins, strict=True):
        pred[cell_bounds[first] : cell_bounds[last]] += base
        base += margins.n.size
    kept = None
    if absent >= 0:
        kept = cells["true"] >= 0
        cells, pred = cells[kept], pred[kept]
    keep_mass = weighted and not outer
    return Built(cells, pred, _join(true_margins, keep_mass), _join(pred_margins, keep_mass), kept)


def _add_up(made: list[_Margins], n_heavy: int) -> _Margins:
    """Add the margins of the clusters that were set apart over all parts they were spread to."""
    n = np.concatenate([m.n for m in made]).reshape(-1, n_heavy)
    mass = np.concatenate([m.mass for m in made]).reshape(-1, n_heavy)
    rest = np.concatenate([m.rest for m in made]).reshape(-1, n_heavy)
    total = np.array([math.fsum(column) for column in np.vstack([mass, rest]).T])
    left = np.array(
        [math.fsum([*column, -whole]) for column, whole in zip(np.vstack([mass, rest]).T, total, strict=True)]
    )
    only = None
    if made[0].only is not None:
        only = (
            np.concatenate([m.only[0] for m in made if m.only]).reshape(-1, n_heavy).sum(axis=0),
            np.concatenate([m.only[1] for m in made if m.only]).reshape(-1, n_heavy).sum(axis=0),
        )
    return _Margins(n.sum(axis=0, dtype=n.dtype), total, left, only)


def _join(parts: list[_Margins], keep_mass: bool) -> Margin:
    """Put the margins of all tasks one behind the other; the mass only where it is not `n`."""
    n = np.concatenate([m.n for m in parts])
    mass = np.concatenate([m.mass for m in parts]) if keep_mass else None
    only = [m.only for m in parts if m.only is not None]
    if not only:
        return Margin(n, mass, None, None)
    return Margin(n, mass, *(np.concatenate(columns) for columns in zip(*only, strict=True)))


def locate(
    plan: Plan,
    true_keys: NDArray[np.int64],
    pred_keys: NDArray[np.int64],
    kept: NDArray[np.bool_] | None,
    pool: Pool,
) -> NDArray[np.int64]:
    """Return the cell of each row, -1 where a side lacks the item; it repeats `build` with row numbers.

    Parameters are those of `build`, and `Built.kept`. Shape (n_rows,).
    """
    rows, bounds = _scatter_rows(
        plan, true_keys, pred_keys, np.arange(plan.n_rows), plan.records["numbered row"], pool
    )
    tasks = plan.tasks()
    code = plan.records["cell"]["n"].str
    most_rows = int(np.diff(bounds).max())
    cell_of_row = np.empty(plan.n_rows, np.int64)
    n_cells = np.zeros(plan.n_parts, np.int64)
    histogram = np.zeros((len(tasks), 1 << plan.bits), np.int64)

    def make_workspace() -> tuple[np.ndarray, ...]:
        empty = (np.empty(most_rows, kind) for kind in (code, np.int32, np.int64))
        return _make_slots(most_rows), *empty

    def locate_task(first: int, last: int, cells_by_part: NDArray[np.int64]) -> None:
        with pool.workspace("locate", make_workspace) as workspace:
            cell_kernels.locate_cells(
                rows, bounds, first, last, plan.bits, plan.absent_pred, *workspace,
                cell_of_row, n_cells, cells_by_part,
            )  # fmt: skip

    def place_task(first: int, last: int, to: NDArray[np.int64]) -> None:
        cell_kernels.place_cells(rows, bounds, first, last, plan.bits, n_cells, to)

    number = np.empty(0, np.int64) if kept is None else np.where(kept, np.cumsum(kept) - 1, -1)

    def look_up(start: int, stop: int) -> None:
        cell_kernels.look_up_cells(rows, start, stop, number, kept is not None, cell_of_row)

    pool.map(locate_task, *zip(*tasks, strict=True), histogram, stage="locate cells")
    _, next_cell = offsets(histogram)
    pool.map(place_task, *zip(*tasks, strict=True), next_cell, stage="place cells")
    pool.map(look_up, *zip(*blocks(plan.n_rows), strict=True), stage="look up cells")
    return cell_of_row
