"""Partitioning of rows into parts that fit a core's cache, and the records of parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.runtime import buffers
from fastbcubed.runtime.key_partitions import (
    PART_ROWS,
    offsets,
    part_bits,
    part_blocks,
    row_blocks,
    sampled_rows,
    slots_for,
)
from fastbcubed.runtime.threads import Pool, blocks

#: A true cluster with more than this share of the rows is heavy (see `find_heavy`).
HEAVY_SHARE = 1 / 256
#: From this number of rows on, counts may exceed 31 bits, and records with 64-bit counts and codes are used.
WIDE = 1 << 31
#: (skip, bits, lacking, absent): the destination of cells is given by `bits` bits of their predicted key after the
#: first `skip`. If `lacking`, cells with the key `absent` are spread evenly. A plain tuple, which Numba types quickly.
Targets = tuple[int, int, bool, int]


def _records(code: str, *, counted: bool = False) -> dict[str, np.dtype]:
    """Return the record types, with this integer type for counts and codes, by the names that `Plan` uses.

    Rows are as long as the cells that overwrite them; `counted` rows have a field for the number of rows they stand
    for.
    """
    same = [("true", "i8"), ("pred", "i8")]
    cell = [("cluster", code), ("n", code), ("pred", "i8")]
    x, pad = [("x", "f8")], [("pad", "i8")]
    more = [("n", "i8")] if counted else pad if code == "i8" else []
    short = pad if counted and code == "i4" else []
    tail = [("weight", "f8"), ("fn", "f8"), ("true", code), ("n", code)]
    return {
        "row": np.dtype([*same, *more]),
        "cell": np.dtype([*cell, *short]),
        "weighted row": np.dtype([*same, *x, *more]),
        "weighted cell": np.dtype([*cell, *x, *short]),
        "numbered row": np.dtype([*same, ("x", "i8")]),
        "arrived": np.dtype([("pred", "i8"), *tail]),
        "final": np.dtype([("fp", "f8"), *tail]),
    }


NARROW_RECORDS, COUNTED_RECORDS = _records("i4"), _records("i4", counted=True)
WIDE_RECORDS, WIDE_COUNTED_RECORDS = _records("i8"), _records("i8", counted=True)


@dataclass(frozen=True)
class Plan:
    """The partitioning of the rows of one input into parts; it depends on the keys only."""

    n_rows: int
    bits: int
    heavy: NDArray[
        np.int64
    ]  #: sorted mixed true keys of heavy clusters, including the key for "not in the truth"
    absent_true: NDArray[np.int64]  #: mixed key for "not in the truth", if any; shape (0,) or (1,)
    absent_pred: NDArray[np.int64]  #: mixed key for "not in the prediction", if any; shape (0,) or (1,)
    records: dict[str, np.dtype] = field(repr=False)
    counted: bool = False  #: whether a row has the number of rows that it stands for
    code: str = field(init=False, repr=False)  #: the integer type of counts and codes
    #: the number of parts: by true key and, for the rows of heavy clusters, by predicted key
    n_parts: int = field(init=False, repr=False)
    #: ranges of parts, one per task; no range has both regular parts and parts of heavy clusters
    tasks: list[tuple[int, int]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        n_regular, tasks = 1 << self.bits, part_blocks(1 << self.bits)
        if self.heavy.size:
            tasks = tasks + [(a + n_regular, b + n_regular) for a, b in tasks]
        object.__setattr__(self, "code", str(self.records["cell"]["n"].str))
        object.__setattr__(self, "n_parts", n_regular * (2 if self.heavy.size else 1))
        object.__setattr__(self, "tasks", tasks)

    @classmethod
    def of(
        cls,
        n_rows: int,
        bits: int,
        heavy: NDArray[np.int64],
        absent_true: int | None,
        absent_pred: int | None,
        *,
        wide: bool,
        counted: bool = False,
    ) -> Plan:
        """Create a plan from unmixed keys of heavy clusters and of "not on this side", if there are such rows."""
        no_true, no_pred = (
            NO_KEYS if key is None else mixed_keys([key]) for key in (absent_true, absent_pred)
        )
        if heavy.size or no_true.size:
            heavy = np.union1d(mixed_keys(heavy), no_true)
        records = [[NARROW_RECORDS, COUNTED_RECORDS], [WIDE_RECORDS, WIDE_COUNTED_RECORDS]][wide][counted]
        return cls(n_rows, bits, heavy, no_true, no_pred, records, counted)

    def row_type(self, weighted: bool) -> np.dtype:
        """Return the type of rows, with or without weights."""
        return self.records["weighted row" if weighted else "row"]

    def targets(self, skip: int, bits: int) -> Targets:
        """Return the destinations of cells by these bits of their predicted keys."""
        lacking = self.absent_pred.size > 0
        return skip, bits, lacking, int(self.absent_pred[0]) if lacking else 0

    def is_heavy(self, part: int) -> bool:
        """Return whether this part holds rows of heavy clusters."""
        return part >= 1 << self.bits


def plan_parts(
    true_keys: Sequence[NDArray[np.int64]],
    absent_true: int | None = None,
    absent_pred: int | None = None,
    *,
    wide: bool | None = None,
    stands_for: int | None = None,
    part_rows: int = PART_ROWS,
) -> Plan:
    """Choose the number of parts, and find the true clusters that are too large for one part.

    Keys may come in several blocks. If rows stand for several rows each, `stands_for` is the total of these.
    """
    n = sum(block.size for block in true_keys)
    bits = part_bits(n, part_rows)
    heavy = find_heavy(true_keys) if bits else np.empty(0, np.int64)
    wide = (stands_for or n) >= WIDE if wide is None else wide
    return Plan.of(n, bits, heavy, absent_true, absent_pred, wide=wide, counted=stands_for is not None)


def find_heavy(keys: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return the keys with a large share of the rows of all blocks, according to a sample.

    Rows with such a key are partitioned by their other key; otherwise one part would contain all of them.
    """
    if len(keys) == 1:
        return find_heavy_in_sample(keys[0][sampled_rows(keys[0].size)])
    ends = np.cumsum([block.size for block in keys])
    rows = np.sort(sampled_rows(int(ends[-1])))
    shares = np.split(rows, np.searchsorted(rows, ends[:-1]))
    chosen = [
        block[share - end] for block, share, end in zip(keys, shares, ends, strict=True)
    ]  # negative indices count from the end of a block
    return find_heavy_in_sample(np.concatenate(chosen))


def find_heavy_in_sample(sample: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the keys that have a large share of a representative sample of rows."""
    return frequent_keys(sample, max(1, sample.size * HEAVY_SHARE))[0]


def frequent_keys(sample: NDArray[np.int64], most: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the keys that occur more than `most` times in a sample, ascending, and their counts."""
    groups = (sample.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(52)  # 4,096 groups of keys
    sizes = np.bincount(groups.view(np.int64))
    if sizes.max(initial=0) <= most:
        return NO_KEYS, NO_KEYS
    candidates = sample[sizes[groups] > most]  # leaves few keys to sort
    found, counts = np.unique(candidates, return_counts=True)
    return found[counts > most], counts[counts > most]


def mixed_keys(keys: Iterable[int]) -> NDArray[np.int64]:
    """Return keys mixed as kernels mix them; too slow for many keys."""
    return np.array([kernels.partition.mix(np.int64(key)) for key in keys], np.int64)


NO_KEYS = np.empty(0, np.int64)
#: True keys, predicted keys, payload (field `x`) and number of rows each row stands for; the last two may be None.
Piece = tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray | None]
Block = tuple[Piece, int, int]
#: Workspace for a predicted cluster: the sum over its items, `mass + rest`, and over its prediction-only items.
CLUSTER = np.dtype([("key", "i8"), ("mass", "f8"), ("rest", "f8"), ("only", "f8")])


def partition_rows(
    plan: Plan, pieces: Sequence[Piece], dtype: np.dtype, pool: Pool, *, mixed: bool = False
) -> tuple[np.ndarray, NDArray[np.int64]]:
    """Sort rows stably by part; return them and where each part begins.

    Keys may be `mixed` already. Shapes: the arrays of each of the `pieces` (n_in_piece,).
    """
    heavy = HeavyKeys.of(plan.heavy)
    tasks = _in_blocks(pieces)
    counts = np.zeros((len(tasks), plan.n_parts), np.int64)

    def count(task: list[Block], out: NDArray[np.int64]) -> None:
        for (true, pred, _, _), start, stop in task:
            others = pred if plan.heavy.size else None
            kernels.partition.count_parts(true, others, start, stop, mixed, 0, plan.bits, *heavy, out)

    if plan.n_parts == 1:  # small inputs have one part, so rows need not be counted by part
        counts[:, 0] = [sum(stop - start for _, start, stop in task) for task in tasks]
    else:
        pool.map(count, tasks, counts, stage="count rows by part")
    bounds, next_row = offsets(counts)
    rows = buffers.empty(plan.n_rows, dtype)

    def scatter(task: list[Block], to: NDArray[np.int64]) -> None:
        for piece, start, stop in task:
            kernels.partition.scatter_pairs(
                piece[:2], *piece[2:], start, stop, mixed, 0, plan.bits, *heavy, to, rows
            )

    pool.map(scatter, tasks, next_row, stage="partition rows")
    return rows, bounds


def _in_blocks(pieces: Sequence[Piece]) -> list[list[Block]]:
    """Return the tasks of `partition_rows`: blocks of a single piece, or at most about 64 lists of adjacent pieces."""
    if len(pieces) == 1:
        return [[(pieces[0], start, stop)] for start, stop in row_blocks(pieces[0][0].size)]
    whole = [(piece, 0, piece[0].size) for piece in pieces]
    return [whole[a:b] for a, b in blocks(len(whole), -(-len(whole) // 64))]


class HeavyKeys(NamedTuple):
    """Mixed keys of heavy clusters in a collision-free table, where one lookup finds whether a key is heavy."""

    #: the keys by slot, a power of two of slots; an empty slot holds a key whose own slot is another
    slots: NDArray[np.int64]
    shift: int  #: the first of the bits that give a key's slot

    @classmethod
    def of(cls, heavy: NDArray[np.int64]) -> HeavyKeys:
        """Find the smallest collision-free table for these keys, indexed by some of their bits."""
        for bits in range(heavy.size.bit_length(), 64 if heavy.size else 0):
            for shift in range(0, 64 - bits, 4):
                places = (heavy >> shift) & ((1 << bits) - 1)
                if np.unique(places).size == heavy.size:
                    slots = ~(np.arange(1 << bits) << shift)
                    slots[places] = heavy
                    return cls(slots, shift)
        return cls(NO_KEYS, 0)


def _cell_space(rows: int, code: str, *, weighted: bool, counted: bool) -> tuple[Any, ...]:
    """Return the workspace of one thread for finding the cells of a part, reused from part to part.

    It consists of two hash tables; of arrays by cell for counts, heads, codes, sums and rounding errors, as long as
    the largest part but touched only for existing cells; and of a flag, by whose type kernels are compiled for rows
    that stand for several rows, or for one.
    """
    counts, heads, codes = (np.empty(rows, kind) for kind in (code, np.int32, np.int32))
    sums = (np.empty(rows), np.empty(rows)) if weighted else (None, None)
    flag = np.empty(0) if counted else None
    return slots_for(rows), np.empty(1 << 13, np.int32), counts, heads, codes, *sums, flag


@dataclass(frozen=True, eq=False)
class Built:
    """Cells after the last stage, sorted by the part of their predicted key."""

    #: records of all cells; the code of a side that lacks the items is -1; shape (n_cells,)
    cells: np.ndarray
    pred_in_part: NDArray[np.integer]  #: code of the predicted cluster within its part; shape (n_cells,)
    bounds: NDArray[np.int64]  #: where each part begins; shape (n_parts + 1,)
    #: code of the first predicted cluster of each part, then the number of codes; shape (n_parts + 1,)
    pred_base: NDArray[np.int64]
    n_true: int  #: number of codes of true clusters
    has_one_sided: bool  #: whether a side lacks any item
    #: the mixed key of each predicted cluster by code, if requested; shape (n_pred,)
    keys: NDArray[np.int64] | None = None
    #: the same of true clusters, if the cells were built at once; shape (n_true,)
    true_keys: NDArray[np.int64] | None = None
    #: the spread cluster that each predicted cluster is a part of, -1 for none; shape (n_pred,)
    heavy: NDArray[np.int64] | None = None
    #: change in the sum of recall if truth-only items were singletons; see `IfAlone`
    recall_if_alone: float = 0.0


class Parts(NamedTuple):
    """Cells that have overwritten their rows, part by part."""

    cells: np.ndarray  #: the cells of a part stand at its front
    bounds: NDArray[np.int64]  #: where each part begins; shape (n_parts + 1,)
    #: the number of cells and of true clusters of each part; shape (n_parts,)
    n_cells: NDArray[np.int64]
    n_clusters: NDArray[np.int64]
    targets: Targets  #: the destination of cells
    histogram: NDArray[
        np.int64
    ]  #: number of cells from each task to each destination; shape (n_tasks, 2**bits)
    weighted: bool  #: whether cells have a field `x`
    #: the mixed keys of true clusters that are not heavy, part by part, if requested
    keys: NDArray[np.int64] | None = None


def build_parts(
    plan: Plan,
    rows: np.ndarray,
    bounds: NDArray[np.int64],
    pool: Pool,
    *,
    weighted: bool,
    skip: int,
    bits: int,
    with_keys: bool = False,
) -> Parts:
    """Turn the rows of each part into cells in place; `skip` and `bits` are those of `Targets`."""
    own = rows.view(plan.records["weighted cell" if weighted else "cell"])
    tasks = plan.tasks
    starts, stops = zip(*tasks, strict=True)
    most_rows = int(np.diff(bounds).max())
    n_cells = np.zeros(plan.n_parts, np.int64)
    n_clusters = np.zeros(plan.n_parts, np.int64)
    histogram = np.zeros((len(tasks), 1 << bits), np.int64)
    targets = plan.targets(skip, bits)

    def build_task(first: int, last: int, cells_by_part: NDArray[np.int64]) -> NDArray[np.int64]:
        heavy = plan.heavy if plan.is_heavy(first) else NO_KEYS
        keys = _keys_of(bounds, first, last) if with_keys and not heavy.size else NO_KEYS
        with pool.workspace(
            ("build", plan.code, weighted, plan.counted),
            lambda: _cell_space(most_rows, plan.code, weighted=weighted, counted=plan.counted),
            lambda space: space[3].size >= most_rows,
        ) as space:
            kernels.cells.build_cells(
                rows, own, bounds, first, last, targets, heavy, space, n_cells, n_clusters,
                cells_by_part, keys,
            )  # fmt: skip
        return _concatenated([keys[: n_clusters[first:last].sum()]])

    keys = pool.map(build_task, starts, stops, histogram, stage="build cells")
    true_keys = _concatenated(keys) if with_keys else None
    return Parts(own, bounds, n_cells, n_clusters, targets, histogram, weighted, true_keys)


def _keys_of(bounds: NDArray[np.int64], first: int, last: int) -> NDArray[np.int64]:
    """Return room for the keys of the clusters of these parts; only the pages of the keys are touched."""
    room: NDArray[np.int64] = buffers.empty(int(bounds[last] - bounds[first]), np.int64)
    return room


def _concatenated(keys: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    found: NDArray[np.int64] = buffers.empty(sum(each.size for each in keys), np.int64)
    return np.concatenate(keys, out=found)


def send_cells(
    plan: Plan,
    parts: Parts,
    base: NDArray[np.int64],
    sums: NDArray[np.float64] | None,
    pool: Pool,
    *,
    outer: bool,
    empty: Callable[[int, np.dtype], np.ndarray] = buffers.empty,
) -> tuple[np.ndarray, NDArray[np.int64]]:
    """Copy the cells to the destinations given by their predicted keys; return them and where each destination begins.

    `base` is the code of the first true cluster of each part, `sums` are those of the heavy clusters, from
    `add_heavy_sums`. If `outer`, margins are counts. `empty` allocates the array of cells. Shapes: `base` (n_parts,),
    `sums` (2, n_heavy).
    """
    flag = np.empty(0) if parts.weighted else None  # kernels are compiled for each of the two types
    absent = int(np.searchsorted(plan.heavy, plan.absent_true[0])) if plan.absent_true.size else -1
    most = int(parts.n_clusters.max())
    bounds, next_cell = offsets(parts.histogram)
    arrived = empty(int(bounds[-1]), plan.records["arrived"])
    by_part = parts.bounds, parts.n_cells, parts.n_clusters, base

    def scatter_task(first: int, last: int, to: NDArray[np.int64]) -> None:
        heavy = plan.is_heavy(first) and sums is not None
        with pool.workspace(
            "margins", lambda: np.empty((2, most)), lambda space: space.shape[1] >= most
        ) as space:
            mass, rest = sums if heavy and sums is not None else space
            kernels.cells.scatter_cells(
                parts.cells, by_part, first, last, parts.targets, flag, outer, heavy, absent,
                (mass, rest), to, arrived,
            )  # fmt: skip

    pool.map(scatter_task, *zip(*plan.tasks, strict=True), next_cell, stage="partition cells")
    return arrived, bounds


def partition_cells(
    plan: Plan, arrived: np.ndarray, pool: Pool, places: NDArray[np.int64] | None = None
) -> tuple[np.ndarray, NDArray[np.int64]]:
    """Sort cells stably by the part of their predicted key; return them and where each part begins.

    `places`, if given, receives the new position of each cell. Shape (n_arrived,).
    """
    starts, stops = zip(*row_blocks(arrived.size), strict=True)
    counts = np.zeros((len(starts), 1 << plan.bits), np.int64)
    out = buffers.empty(arrived.size, arrived.dtype)
    targets = plan.targets(0, plan.bits)

    def count(start: int, stop: int, by_part: NDArray[np.int64]) -> None:
        kernels.cells.count_arrived(arrived, start, stop, targets, by_part)

    pool.map(count, starts, stops, counts, stage="count cells by part")
    bounds, next_cell = offsets(counts)

    def scatter(start: int, stop: int, to: NDArray[np.int64]) -> None:
        kernels.cells.scatter_arrived(arrived, start, stop, targets, to, out, places)

    pool.map(scatter, starts, stops, next_cell, stage="partition cells")
    return out, bounds


def close_parts(
    plan: Plan,
    arrived: np.ndarray,
    bounds: NDArray[np.int64],
    n_true: int,
    pool: Pool,
    *,
    outer: bool,
    outside: bool,
    with_keys: bool = False,
) -> Built:
    """Assign numbers to the predicted clusters of each part, and add false positives to the cells in place."""
    cells = arrived.view(plan.records["final"])
    pred_in_part = buffers.empty(arrived.size, plan.code)
    n_parts = bounds.size - 1
    n_pred = np.zeros(n_parts, np.int64)
    most = int(np.diff(bounds).max())

    def close_task(first: int, last: int) -> NDArray[np.int64]:
        keys = _keys_of(bounds, first, last) if with_keys else NO_KEYS
        with pool.workspace(
            "close", lambda: (slots_for(most), np.empty(most, CLUSTER)), lambda space: space[1].size >= most
        ) as space:
            kernels.cells.close_cells(
                arrived, cells, pred_in_part, bounds, first, last, outer, outside,
                plan.absent_pred, space, n_pred, keys,
            )  # fmt: skip
        return _concatenated([keys[: n_pred[first:last].sum()]])

    keys = pool.map(close_task, *zip(*part_blocks(n_parts), strict=True), stage="close cells")
    one_sided = bool(plan.absent_true.size or plan.absent_pred.size)
    base = np.concatenate([[0], np.cumsum(n_pred)])
    return Built(
        cells, pred_in_part, bounds, base, n_true, one_sided,
        _concatenated(keys) if with_keys else None,
    )  # fmt: skip


def locate_rows(
    plan: Plan,
    rows: np.ndarray,
    bounds: NDArray[np.int64],
    pool: Pool,
    *,
    skip: int,
    bits: int,
    first: bool = False,
) -> NDArray[np.int64]:
    """Return the position of each row's cell after `send_cells`, by repeating `build_parts` with row numbers.

    With `first`, return the first row of each cell instead. The field `x` of `rows` (true, pred, x) is the row
    number; the rows are overwritten. Shapes: `bounds` (n_parts + 1,), result (n_rows,) or (n_cells,).
    """
    starts, stops = zip(*plan.tasks, strict=True)
    most_rows = int(np.diff(bounds).max())
    cell_of_row = buffers.empty(0 if first else plan.n_rows, np.dtype(np.int64))
    n_cells = np.zeros(plan.n_parts, np.int64)
    histogram = np.zeros((len(starts), 1 << bits), np.int64)
    targets = plan.targets(skip, bits)

    def locate_task(first_part: int, last: int, cells_by_part: NDArray[np.int64]) -> None:
        with pool.workspace(
            "locate",
            lambda: _cell_space(most_rows, plan.code, weighted=False, counted=False),
            lambda space: space[3].size >= most_rows,
        ) as space:
            if first:
                kernels.cells.find_first_rows(
                    rows, bounds, first_part, last, targets, space, n_cells, cells_by_part
                )
            else:
                kernels.cells.locate_cells(
                    rows, bounds, first_part, last, targets, space, cell_of_row, n_cells, cells_by_part
                )

    def place_task(first_part: int, last: int, to: NDArray[np.int64]) -> None:
        if first:
            kernels.cells.place_first_rows(rows, bounds, first_part, last, targets, n_cells, to, first_rows)
        else:
            kernels.cells.place_cells(rows, bounds, first_part, last, targets, n_cells, to)

    def look_up(start: int, stop: int) -> None:
        kernels.cells.look_up_cells(rows, start, stop, cell_of_row)

    pool.map(locate_task, starts, stops, histogram, stage="locate cells")
    first_rows = buffers.empty(int(n_cells.sum()) if first else 0, np.dtype(np.int64))
    _, next_cell = offsets(histogram)
    pool.map(place_task, starts, stops, next_cell, stage="place cells")
    if first:
        return first_rows
    pool.map(look_up, *zip(*blocks(plan.n_rows), strict=True), stage="look up cells")
    return cell_of_row


def heavy_sums(plan: Plan, parts: Parts, pool: Pool, *, outer: bool) -> NDArray[np.float64]:
    """Return the sums (sum, rest) of the heavy clusters over each of their parts. Shape: (2 n_parts, n_heavy)."""
    flag = np.empty(0) if parts.weighted else None

    def add(part: int) -> NDArray[np.float64]:
        sums = np.zeros((2, plan.heavy.size))
        kernels.cells.add_margins(
            parts.cells, parts.bounds[part], parts.n_cells[part], flag, outer, parts.targets, *sums
        )
        return sums

    return np.concatenate(pool.map(add, range(1 << plan.bits, plan.n_parts), stage="add up large clusters"))


def add_heavy_sums(sums: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the totals (sum, rest) of heavy clusters over the results of `heavy_sums`. Shape: (2, n_heavy)."""
    columns = np.concatenate(sums).T
    mass = [math.fsum(column) for column in columns]
    rest = [math.fsum([*column, -total]) for column, total in zip(columns, mass, strict=True)]
    return np.array([mass, rest])


#: Number of sums of a true cluster: weight * mass and mass of its scored cells; items, weight and mass left out.
N_SUMS = 5


class IfAlone:
    """The change in the sum of recall over items if truth-only items were singletons in the prediction.

    If weights count inside the confusion matrices, the truth-only items of one true cluster are assumed to have equal
    weights, since a cell holds only their sum. If `outer`, weights affect the mean only.
    """

    def __init__(self, *, outer: bool) -> None:
        self._outer = outer
        self._changes: list[float] = []
        self._heavy = np.zeros((N_SUMS, 0))

    def add(self, plan: Plan, parts: Parts, pool: Pool) -> None:
        """Add cells; in parts without heavy clusters, all cells of each true cluster are present."""
        if not plan.absent_pred.size:  # there are no truth-only items
            return
        absent, flag = plan.absent_pred[0], np.empty(0) if parts.weighted else None
        by_part = parts.bounds, parts.n_cells, parts.n_clusters
        most = int(parts.n_clusters.max())
        changes = np.zeros(plan.n_parts)

        def add_task(first: int, last: int) -> NDArray[np.float64] | None:
            if not plan.is_heavy(first):
                with pool.workspace(
                    "if alone", lambda: np.empty((N_SUMS, most)), lambda space: space.shape[1] >= most
                ) as space:
                    kernels.cells.change_by_part(
                        parts.cells, by_part, first, last, flag, self._outer, absent, space, changes
                    )
                return None
            sums = np.zeros((N_SUMS, plan.heavy.size))
            for part in range(first, last):
                kernels.cells.sum_if_alone(
                    parts.cells, parts.bounds[part], parts.n_cells[part], flag, self._outer, absent, sums
                )
            return sums

        of_heavy = pool.map(add_task, *zip(*plan.tasks, strict=True), stage="add up unmatched items")
        self._changes.append(math.fsum(changes))
        for sums in of_heavy:
            if sums is not None:
                sums[:, np.isin(plan.heavy, plan.absent_true)] = 0.0  # skips items on neither side
                self._heavy = sums if not self._heavy.size else self._heavy + sums

    def change(self) -> float:
        """Return the change after all cells have been added."""
        if not self._changes:
            return 0.0
        heavy = kernels.cells.change_if_alone(self._heavy, self._heavy.shape[1])
        return math.fsum([*self._changes, heavy])


def change_by_cell(
    product: NDArray[np.float64],
    alone: NDArray[np.float64],
    mass: NDArray[np.float64],
    left: NDArray[np.float64],
) -> float:
    """Return the change of `IfAlone` from cells with margins, including clusters without truth-only items.

    By cell: `product` of weight and mass, 0 for truth-only items; `alone`, its share of the products of truth-only
    items; `mass` of the scored items of its true cluster, and of those `left` out. Shapes: (n_cells,).
    """
    before = np.divide(product, mass, out=np.zeros(mass.size), where=mass > 0)
    return math.fsum(((product + alone) / (mass + left) - before).tolist())
