"""Cells that are built in parts: mean scores by cell, the way back from cells to rows, and blocks of rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.align.row_blocks import AlignedBlock
from fastbcubed.align.stash import Stash
from fastbcubed.cells import partitioned
from fastbcubed.cells.contingency import (
    CELL,
    SIDES,
    Contingency,
    OneSided,
    ScoredRows,
    SetAside,
    TrueNegatives,
    add_products,
    set_aside,
)
from fastbcubed.cells.partitioned import mixed_keys
from fastbcubed.cells.shards import CellShards, HeavySums, RowShards, pred_codes
from fastbcubed.errors import EmptyInputError, arg
from fastbcubed.inputs.arrays import from_numpy, to_numpy
from fastbcubed.runtime import buffers
from fastbcubed.runtime.key_partitions import MAX_BITS
from fastbcubed.runtime.spill import Packed, Pages, Spill, Spool
from fastbcubed.runtime.threads import Pool, blocks

if TYPE_CHECKING:
    from fastbcubed.cells.partitioned import Built

#: Minimum number of cells in a bucket.
LEAST = 1 << 16


class CellMeans:
    """Collects mean scores of cells, added in any order, by cell number; `memory` bounds the queue and one bucket."""

    def __init__(self, names: Sequence[str], n_cells: int, memory: int, spill: Spill) -> None:
        self._kind = np.dtype([(name, "f8") for name in names])
        waiting = np.dtype([("cell", "i8"), *self._kind.descr])
        self._n_cells, self._directory = n_cells, spill.directory
        self._width = max(LEAST, memory // waiting.itemsize)
        self._waiting = Spool(waiting, -(-n_cells // self._width), spill, memory)
        self._pages, self._n_batches = Pages(), 0

    def add(self, number: NDArray[np.int64], weight: np.ndarray, sums: Iterable[np.ndarray]) -> None:
        """Add cells with these numbers, -1 for unscored cells.

        `weight` and, for each score, the sum of weight * score are records (mass, rest). Shapes: (n,) each.
        """
        scored = np.flatnonzero(number >= 0)
        home = number[scored] // self._width
        order = scored[np.argsort(home.astype(np.int32), kind="stable")]
        out = self._pages.empty(order.size, self._waiting.dtype)
        out["cell"] = number[order]
        whole = _rounded(weight, order)
        for name, own in zip(self._kind.names or (), sums, strict=True):
            out[name] = _rounded(own, order) / whole
        bounds = np.cumsum(np.bincount(home, minlength=self._waiting.n_shards))
        self._waiting.put(self._n_batches, self._pages, np.append(0, bounds))
        self._n_batches += 1

    def finish(self) -> dict[str, NDArray[np.float64]]:
        """Return the mean of each score by name, mapped from a file. Shapes: (n_cells,)."""
        packed = Packed(self._kind, self._directory)
        for shard in range(self._waiting.n_shards):
            first = shard * self._width
            found = self._waiting.read(shard)
            here = np.empty(min(self._width, self._n_cells - first), self._kind)
            for name in self._kind.names or ():
                here[name][found["cell"] - first] = found[name]
            packed.append(here)
        means = packed.finish()
        return {name: means[name] for name in self._kind.names or ()}


def _rounded(sums: np.ndarray, chosen: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.asarray(sums["mass"][chosen] + sums["rest"][chosen], np.float64)


#: Number of rows whose scores are computed at once, small enough to stay in a core's cache.
ROWS_AT_ONCE = 1 << 15
#: Minimum number of cells whose rows are summed by one task.
CELLS_AT_ONCE = 1 << 16
#: Sum over the rows of a cell, `mass + rest`, where `rest` is the rounding error.
SUM = np.dtype([("mass", "f8"), ("rest", "f8")])


class WeighedItems(NamedTuple):
    """Items of consecutive rows of a shard; unscored items have weight zero. Shapes: (n_items,) each."""

    weight: NDArray[np.float64]
    others: NDArray[np.float64]  #: weight of the other items in the item's cell
    #: the item's false positives and negatives, which are those of its cell
    fp: NDArray[np.float64]
    fn: NDArray[np.float64]


class ItemScores(Protocol):
    """Scores for which each item leaves out its own weight."""

    @property
    def names(self) -> Sequence[str]:
        """The names of the scores."""

    def of(self, items: WeighedItems) -> list[NDArray[np.float64]]:
        """Return the scores of items, each of shape (n_items,)."""

    def sums(self, items: WeighedItems, scores: Sequence[NDArray[np.float64]]) -> Mapping[str, float]:
        """Return the contributions of these items to sums over all items, by name."""


class OwnWeights:
    """Sums over rows, weighted by the rows' own weights, over all shards of rows; and by cell if `means` are given."""

    def __init__(self, scores: ItemScores, means: CellMeans | None) -> None:
        self._scores, self._means = scores, means
        self.sums: list[Mapping[str, float]] = []  #: contribution of each block of rows to sums over items
        self._together: list[float] = []

    @property
    def names(self) -> Sequence[str]:
        """The names of the scores."""
        return self._scores.names

    @property
    def pair_weight(self) -> float:
        """The sum, over all pairs of items of one cell, of the product of their weights."""
        return math.fsum(self._together) / 2

    def add(
        self,
        place: NDArray[np.int64],
        weight: NDArray[np.float64],
        cells: np.ndarray,
        closed: np.ndarray | None,
        pool: Pool,
    ) -> np.ndarray:
        """Add the rows of a shard; `place` is the position of each row's cell in `cells` and `closed`.

        If `closed` is None, `cells` are closed already, and the place of an unscored row is negative. Returns the
        weights of the cells, records like SUM. Shapes: `place`, `weight` (n_rows,); `cells`, `closed`, result
        (n_cells,).
        """
        sums = _add_by_cell(place, weight, cells.size, pool)
        of_cells = (cells, None) if closed is None else (closed, closed["cell"])
        names = () if self._means is None else self._scores.names
        by_row = [buffers.empty(place.size, weight.dtype) for _ in names]

        def score(start: int, stop: int) -> tuple[Mapping[str, float], float]:
            with pool.workspace("weigh items", lambda: np.empty((4, ROWS_AT_ONCE))) as out:
                kernels.cells.weigh_items(place, weight, sums, cells, *of_cells, start, stop, out)
                items = WeighedItems(*out[:, : stop - start])
                together = add_products(items.weight, items.others)
                scores = self._scores.of(items)
                for own, values in zip(by_row, scores, strict=False):
                    np.multiply(items.weight, values, out=own[start:stop])
                return self._scores.sums(items, scores), together

        tasks = zip(*blocks(place.size, ROWS_AT_ONCE), strict=True)
        for found, together in pool.map(score, *tasks, stage="score items"):
            self.sums.append(found)
            self._together.append(together)
        if self._means is not None and closed is not None:
            by_cell = (_add_by_cell(place, own, cells.size, pool) for own in by_row)
            self._means.add(closed["cell"], sums, by_cell)
        return sums


def weigh_rows(table: Contingency, scores: ItemScores, pool: Pool) -> OwnWeights:
    """Return the sums over a table's rows, weighted by the rows' own weights."""
    rows = table.rows
    assert rows is not None
    own = OwnWeights(scores, None)
    own.add(rows.cell, rows.weight, table.cells, None, pool)
    return own


def _add_by_cell(
    place: NDArray[np.int64], values: NDArray[np.float64], n_cells: int, pool: Pool
) -> np.ndarray:
    """Sum values of rows by cell, in row order; every task reads all rows, and sums those of its range of cells."""
    sums = buffers.empty(n_cells, SUM)
    sums.view(np.float64)[:] = 0.0
    tasks = blocks(n_cells, max(CELLS_AT_ONCE, -(-n_cells // pool.threads)))

    def add(first: int, last: int) -> None:
        kernels.cells.add_by_cell(place, values, first, last, sums)

    pool.map(add, *zip(*tasks, strict=True), stage="add up weights")
    return sums


#: Data passed back to a row for scores by row: the number of its cell (-1 if it is not scored), the cell's confusion
#: matrix, and the powers of two that the sizes of its clusters reach.
MATRIX_OF_ROW = np.dtype(
    [("cell", "i8"), ("weight", "f8"), ("fp", "f8"), ("fn", "f8"), ("tn", "f8"), ("n", "i8"),
     ("true_power", "i4"), ("pred_power", "i4")]
)  # fmt: skip
#: MATRIX_OF_ROW and, for scores that leave out an item's own weight, the weight of the other items in its cell.
MATRIX_OF_OTHERS = np.dtype([*MATRIX_OF_ROW.descr, ("others", "f8")])
NO_WEIGHTS = np.empty(0)
#: Data of a closed cell passed back to the shard of its rows; only the cell number if rows need no more.
CLOSED = np.dtype([("cell", "i8"), ("fp", "f8"), ("pred_power", "i8")])


class WayBack:
    """Maps the rows of each block to their cells, and sums their scores by their own weights.

    `rows` are already built into cells and still stored; `cells` are about to be closed. `told` is "matrix" if rows
    need all fields of MATRIX_OF_ROW, "cell" if they need the cell only, or None. `weighed` states whether sums
    weighted by the rows' own weights are needed.
    """

    def __init__(self, rows: RowShards, cells: CellShards, told: str | None, *, weighed: bool) -> None:
        self._rows, self._cells, self._told = rows, cells, told
        self._memory = rows.layout.cells_kept // 8
        self._whole = told == "matrix" or weighed
        self._number = np.dtype([("cell", rows.plan.code)])
        #: type of the data passed back from closed cells
        self.closed_type = CLOSED if self._whole else self._number
        self._closed = Spool(self.closed_type, len(cells.cells.indexes), rows.spill, self._memory)
        self._pages = Pages()

    def take(self, shard: int, closed: np.ndarray, places: NDArray[np.int64], pool: Pool) -> None:
        """Store the data of the cells closed by a shard of predicted clusters.

        The number of an unscored cell in `closed` is -1; `places` is the position in `closed` of each cell that
        arrived. Shapes: `closed`, `places` (n_arrived,).
        """
        back = self._pages.empty(closed.size, self.closed_type)
        self._map(partial(kernels.cells.gather_records, closed, places, back), closed.size, pool)
        self._closed.put(shard, self._pages, _bounds(self._cells.cells.segments(shard)))

    def run(
        self,
        own: OwnWeights | None,
        heavy_sizes: NDArray[np.int64],
        tn: NDArray[np.float64] | None,
        pool: Pool,
    ) -> None:
        """Pass the cells back to all rows, shard by shard; `own`, if given, sums over the rows.

        `heavy_sizes` are the numbers of scored items of the heavy true clusters, whose codes come first; `tn` are the
        true negatives of the cells, if needed. Shapes: `heavy_sizes` (n_heavy,), `tn` (n_cells,).
        """
        others = own is not None and bool(own.names)
        matrix = MATRIX_OF_OTHERS if others else MATRIX_OF_ROW
        told, kind = self._told, matrix if self._told == "matrix" else self._number
        self._found = Spool(kind, len(self._rows.rows.indexes), self._rows.spill, self._memory)
        buffers.release()  # frees buffers of other sizes
        batches = self._cells.cells.indexes
        todo = [shard for _, shard in batches]
        k = -1  # `enumerate` would keep the rows in memory until the next ones arrive
        for shard, raw in self._rows.rows.read_ahead(todo, pool, "back to rows"):
            k += 1
            assert shard == todo[k]
            weight = NO_WEIGHTS if own is None else np.ascontiguousarray(raw["x"])
            at = self._locate(raw, pool)
            del raw
            closed = self._closed.read(k)
            left = self._cells.cells
            cells = left.read_batch(batches[k]) if self._whole else np.empty(0, left.dtype)
            sums = None if own is None else own.add(at, weight, cells, closed, pool)
            if told is None:
                continue
            found = self._pages.empty(at.size, kind)
            if told == "cell":
                self._map(partial(kernels.cells.tell_cells, at, closed, found), at.size, pool)
            else:
                first, sizes = _scored_sizes(cells, closed) if batches[k][0] else (0, heavy_sizes)
                tell = partial(kernels.cells.tell_matrices, at, cells, closed, first, sizes, tn, found)
                self._map(tell, at.size, pool)
                if others:
                    tell = partial(kernels.cells.tell_others, at, weight, sums, cells, found)
                    self._map(tell, at.size, pool)
            self._found.put(shard, self._pages, _bounds(self._rows.rows.segments(shard)))
        for spool in (self._rows.rows, self._cells.cells, self._closed):
            spool.clear()

    @staticmethod
    def _map(function: Callable[[int, int], None], n: int, pool: Pool) -> None:
        pool.map(function, *zip(*blocks(n), strict=True), stage="back to rows")

    @property
    def n_blocks(self) -> int:
        """The number of blocks of rows."""
        return self._found.n_shards

    def block(self, k: int, places: NDArray[np.int32]) -> np.ndarray:
        """Return the data passed back to the rows of a block, whose positions in their shard are `places` (n_rows,)."""
        return self._found.read(k)[places]

    def _locate(self, raw: np.ndarray, pool: Pool) -> NDArray[np.int64]:
        """Return the position of each row's cell in the batch of cells that left the shard of its rows."""
        numbered = self._rows.plan.records["numbered row"]
        plan, rows, bounds = self._rows.in_parts(raw, np.arange(raw.size), numbered, pool)
        return partitioned.locate_rows(plan, rows, bounds, pool, skip=MAX_BITS, bits=self._rows.layout.bits)


def _scored_sizes(cells: np.ndarray, closed: np.ndarray) -> tuple[int, NDArray[np.int64]]:
    """Return the first true cluster of a shard with whole true clusters, and the number of scored items of each."""
    true = cells["true"]
    first = int(true.min())
    sizes = np.zeros(int(true.max()) - first + 1, np.int64)
    kernels.cells.count_scored(cells, closed, first, sizes)
    return first, sizes


def _bounds(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.append(0, np.cumsum(sizes))


class Question(NamedTuple):
    """The settings of an evaluation that decide which sums over the cells are computed."""

    weighting: str  #: how weights count
    #: whether prediction-only items are false positives for the items they are clustered with
    outside: bool
    keep: bool  #: whether to keep the cells
    named: bool  #: whether to keep the keys of the clusters as well
    rows: str | None = None  #: data needed by row: "cell", or "matrix" for the confusion matrix as well
    negatives: bool = False  #: whether these matrices need true negatives
    #: scores that need the own weight of each item; may be empty if only pairs are needed
    own: ItemScores | None = None
    narrows: bool = False  #: whether cells may be dropped if the disk has no room for them

    @property
    def asks_rows(self) -> bool:
        """Whether the rows are needed again after their cells are closed."""
        return self.rows is not None or self.own is not None

    @property
    def asks_each_row(self) -> bool:
        """Whether each row is then needed individually, so that one row may not stand for several."""
        return self.own is not None and bool(self.own.names)


class ClusterKeys(NamedTuple):
    """The mixed key of each cluster by code, mapped from files.

    The first `n_heavy` true and `n_spread` predicted clusters have cells in any part. `parts` is the start of each
    part of the cells, which has all cells of its other predicted clusters.
    """

    true: NDArray[np.int64]
    pred: NDArray[np.int64]
    n_heavy: int
    n_spread: int
    parts: NDArray[np.int64]


class CellParts:
    """The cells of sharded rows, yielded shard by shard; afterwards, attributes hold the totals."""

    def __init__(self, shards: RowShards, question: Question, pool: Pool) -> None:
        self._shards, self._question, self._pool = shards, question, pool
        self.n_items = self._n_cells = self.n_exact = 0
        self.sizes: dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}
        self.whole: Contingency | None = None
        self.keys: ClusterKeys | None = None
        self.rows: WayBack | None = None
        self.of_items: list[Mapping[str, float]] = []  #: sums over blocks of items, by their own weights
        self.recall_if_alone = 0.0
        self.without_room = 0  #: size in bytes of the cells that were dropped because the disk had no room

    def __iter__(self) -> Iterator[Contingency]:
        """Yield the scored cells of each shard that has any; margins include the items of all shards."""
        shards, question, pool = self._shards, self._question, self._pool
        outer, asked = question.weighting == "outer", question.asks_rows
        kept = _Kept(shards, question) if question.keep else None
        keys = {} if kept is None else kept.keys
        cells = shards.cells(pool, outer=outer, again=asked, keys=keys.get("true"))
        if kept is not None and not self._has_room(kept, int(cells.cells.sizes().sum())):
            kept, keys = None, {}
        back = None
        if asked:
            back = WayBack(shards, cells, question.rows, weighed=question.own is not None)
        closed = cells.close(pool, outer=outer, outside=question.outside, placed=asked, with_keys=bool(keys))
        for shard, built, places in pool.ahead(closed):
            apart = set_aside(built, outer=outer)
            first = self._n_cells
            one_sided = cells.heavy_preds.one_sided(apart.one_sided, built.heavy)
            table = self._table(apart._replace(one_sided=one_sided), built.n_true, int(built.pred_base[-1]))
            if table is not None:
                yield table
            if back is not None and places is not None:
                closed_cells = _closed(back.closed_type, built, apart, table, first, cells.heavy_preds)
                back.take(shard, closed_cells, places, pool)
            if kept is not None:
                kept.add(apart, built)
        if not self.n_items:
            raise EmptyInputError("there is no item to score: no item is on both sides")
        self.sizes = {"true": cells.true_sizes.histogram(), "pred": cells.pred_sizes.histogram()}
        self.n_exact = cells.n_exact
        self.recall_if_alone = cells.alone.change()
        if kept is not None:
            self.whole, self.keys = kept.finish(cells.n_true), kept.finished_keys()
            self.whole.__dict__["n_exact"] = self.n_exact  # counting again would read all cells
        if back is not None:
            self._go_back(back, cells.heavy_sizes)

    def _has_room(self, kept: _Kept, n_cells: int) -> bool:
        """Return whether the disk has room for this many cells; raise SpillError if not, unless they may be dropped."""
        needed, spill = n_cells * kept.cell_bytes, self._shards.spill
        if spill.has_room(needed):
            return True
        if self._question.narrows:
            self.without_room = needed
            return False
        spill.require_free(needed, f"{arg('keep', 'scores')} keeps no cells and needs no further memory. ")
        return False

    def _go_back(self, back: WayBack, heavy_sizes: NDArray[np.int64]) -> None:
        """Pass the closed cells back to the rows, and sum the rows' scores by their own weights."""
        shards, question, whole = self._shards, self._question, self.whole
        own = means = None
        if question.own is not None:
            if question.named and question.own.names:
                memory = shards.layout.cells_kept // 8
                means = CellMeans(question.own.names, self._n_cells, memory, shards.spill)
            own = OwnWeights(question.own, means)
        tn = _true_negatives(whole, shards) if question.negatives and whole is not None else None
        back.run(own, heavy_sizes, tn, self._pool)
        self.rows = back if question.rows else None
        if own is not None:
            self.of_items = own.sums
        if own is not None and whole is not None:
            whole.pair_weight = own.pair_weight + shards.pair_weight_within
            whole.known_scores = {} if means is None else means.finish()

    def _table(self, apart: SetAside, n_true: int, n_pred: int) -> Contingency | None:
        """Return the scored cells of a shard, and add them to the totals; None if there are none."""
        if not apart.cells.size:
            return None
        table = Contingency(
            apart.cells,
            apart.pred,
            (n_true, n_pred),
            weighted=self._shards.weighted,
            weighting=self._question.weighting,
            outside=self._question.outside,
            one_sided=apart.one_sided,
        )
        self.n_items += table.n_items
        self._n_cells += table.n_cells
        return table


def _closed(
    kind: np.dtype,
    built: Built,
    apart: SetAside,
    table: Contingency | None,
    first: int,
    heavy: HeavySums,
) -> np.ndarray:
    """Return the data of a shard's closed cells that is passed back to rows; unscored cells have the number -1."""
    closed = np.empty(built.cells.size, kind)
    closed["cell"] = -1
    scored = slice(None) if apart.kept is None else apart.kept
    if table is not None:
        closed["cell"][scored] = first + np.arange(table.n_cells)
    if kind != CLOSED:
        return closed
    closed["fp"], closed["pred_power"] = built.cells["fp"], 0
    if table is not None:
        mates = table.mates("pred")
        if built.heavy is not None:
            cluster = built.heavy[table.pred]
            whole = heavy.scored + heavy.strangers * table.outside
            mates = np.where(cluster < 0, mates, np.append(whole, 0)[cluster])
        closed["pred_power"][scored] = np.frexp(mates.astype(np.float64))[1] - 1
    return closed


def _true_negatives(contingency: Contingency, shards: RowShards) -> NDArray[np.float64]:
    """Return the true negatives of all cells, mapped from a file."""
    find = TrueNegatives(contingency)
    packed = Packed(np.dtype(np.float64), shards.spill.directory)
    for start, stop in blocks(contingency.n_cells):
        packed.append(find(start, stop))
    return packed.finish()


#: Bytes of a kept cell, including the keys of its clusters, assuming that it is their only cell.
KEPT_BYTES = 52
#: Bytes of a row to which its cell is passed back, not counting its columns.
BACK_BYTES = MATRIX_OF_ROW.itemsize + CLOSED.itemsize + 12


class _Kept:
    """The cells of all shards in order, written to files that a contingency can map."""

    def __init__(self, shards: RowShards, question: Question) -> None:
        directory, records = shards.spill.directory, shards.plan.records
        self._cells = Packed(records["final"], directory)
        self._pred = Packed(np.dtype(shards.plan.code), directory)
        self._one_sided: dict[str, list[OneSided]] = {}
        self._n_pred = self._n_spread = int(shards.spread.keys.size)
        self._bounds = [np.zeros(1, np.int64)]
        self._n_heavy = int(shards.plan.heavy.size)
        sides = SIDES if question.named else ()
        self.keys = {side: Packed(np.dtype(np.int64), directory) for side in sides}
        if sides:
            self.keys["pred"].append(mixed_keys(shards.spread.keys))
        self._weighted = shards.weighted
        self._question = question
        #: bytes of a cell that is the only one of its clusters, not counting the key of its true cluster
        self.cell_bytes = records["final"].itemsize + np.dtype(shards.plan.code).itemsize + 8 * bool(sides)

    def add(self, apart: SetAside, built: Built) -> None:
        """Add the cells of a shard, in which the codes of predicted clusters begin at 0."""
        n_pred, keys, codes = int(built.pred_base[-1]), built.keys, None
        if built.heavy is not None and keys is not None:
            codes, keys = pred_codes(built.heavy, self._n_pred), keys[built.heavy < 0]
            n_pred = keys.size

        def of_all(pred: NDArray[np.integer]) -> NDArray[np.integer]:
            return pred + self._n_pred if codes is None else codes[pred]

        self._cells.append(apart.cells)
        self._pred.append(of_all(apart.pred()))
        for side, alone in apart.one_sided.items():
            found = alone._replace(codes=of_all(alone.codes)) if side == "pred" else alone
            self._one_sided.setdefault(side, []).append(found)
        self._n_pred += n_pred
        self._bounds.append(self._bounds[-1][-1] + apart.bounds[1:])
        if "pred" in self.keys and keys is not None:
            self.keys["pred"].append(keys)

    def finish(self, n_true: int) -> Contingency:
        """Return the contingency of all cells added."""
        pred = self._pred.finish()
        one_sided = {
            side: OneSided(*(np.concatenate(column) for column in zip(*found, strict=True)))
            for side, found in self._one_sided.items()
        }
        return Contingency(
            self._cells.finish(),
            lambda: pred,
            (n_true, self._n_pred),
            weighted=self._weighted,
            weighting=self._question.weighting,
            outside=self._question.outside,
            one_sided=one_sided,
            parts=None if self._n_spread else np.concatenate(self._bounds),
        )

    def finished_keys(self) -> ClusterKeys | None:
        """Return the keys of the clusters, if requested."""
        if not self.keys:
            return None
        true, pred = (self.keys[side].finish() for side in SIDES)
        return ClusterKeys(true, pred, self._n_heavy, self._n_spread, np.concatenate(self._bounds))


#: Columns of a stored block in addition to those of the rows.
PLACE, WEIGHT = "place of row", "weight of row"


class RowBlock:
    """A block of rows, with the data of their cells."""

    def __init__(self, table: pa.Table, found: np.ndarray) -> None:
        self.found = found
        self.weight = to_numpy(table[WEIGHT].combine_chunks()) if WEIGHT in table.column_names else None
        self.columns = table.drop_columns([name for name in (PLACE, WEIGHT) if name in table.column_names])
        self.scored: NDArray[np.bool_] = found["cell"] >= 0

    def cells(self, **how: Any) -> Contingency:
        """Return a copy of its cell for each scored row; the sizes of clusters are rounded down to powers of two."""
        own = self.found[self.scored]
        cells = np.zeros(own.size, CELL)
        for name in ("weight", "fp", "fn", "n"):
            cells[name] = own[name]
        number = np.where(self.scored, np.cumsum(self.scored) - 1, -1)
        rows = ScoredRows(lambda: number, self.weight, number.size)
        if self.found.dtype == MATRIX_OF_OTHERS:
            rows.others = np.ascontiguousarray(self.found["others"])
        return Contingency(
            cells, lambda: np.zeros(own.size, np.int64), (1, 1), rows=rows, tn=np.ascontiguousarray(own["tn"]),
            mates=lambda side: np.left_shift(np.int64(1), own[f"{side}_power"].astype(np.int64)), **how,
        )  # fmt: skip


class RowBlocks:
    """The blocks of rows of an evaluation, stored on disk while their cells are built."""

    def __init__(self, spill: Spill) -> None:
        self._stash = Stash(spill)

    def put(self, block: AlignedBlock, places: NDArray[np.int32]) -> None:
        """Store a block, and the position of each of its rows in its shard."""
        place = from_numpy(places)
        table = pa.table({PLACE: place})  # the only column if no others are requested
        if block.columns is not None:
            table = block.columns.append_column(PLACE, place)
        if block.weight is not None:
            table = table.append_column(WEIGHT, from_numpy(block.weight))
        self._stash.put(block.index, table)

    def with_cells(self, back: WayBack, pool: Pool) -> Iterator[RowBlock]:
        """Yield the blocks in order, with the data of their rows' cells."""

        def read(k: int) -> RowBlock:
            table = self._stash.read_batch(k)
            return RowBlock(table, back.block(k, to_numpy(table[PLACE].combine_chunks())))

        yield from pool.stream(read, [(k,) for k in range(back.n_blocks)], stage="score rows")
