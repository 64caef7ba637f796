"""Cells for the disk engine, which does not hold the rows: rows in shards → cells, part by part → back to rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed.cells.cell_means import CellMeans
from fastbcubed.cells.confusion import TrueNegatives
from fastbcubed.cells.contingency import Contingency
from fastbcubed.cells.one_sided import OneSided, SetAside, set_aside
from fastbcubed.cells.own_weights import ItemScores, OwnWeights
from fastbcubed.cells.planning import mixed_keys
from fastbcubed.cells.records import SIDES
from fastbcubed.cells.returning import CLOSED, WayBack
from fastbcubed.cells.scored_rows import ScoredRows
from fastbcubed.cells.shards import RowShards
from fastbcubed.cells.spread import HeavySums, pred_codes
from fastbcubed.errors import EmptyInputError, NotKeptError
from fastbcubed.runtime.pool import Pool, blocks
from fastbcubed.runtime.spool import Packed

if TYPE_CHECKING:
    from fastbcubed.cells.stages import Built


class Question(NamedTuple):
    """What is asked of the cells, besides their parts."""

    weighting: str  #: how weights count
    #: whether items that only the prediction has are false positives for the items they are clustered with
    outside: bool
    keep: bool  #: whether to keep the cells
    named: bool  #: whether to keep the keys of the clusters, too
    rows: str | None = None  #: what is asked for row by row: the cell, or its confusion matrix, too
    negatives: bool = False  #: whether these matrices need their true negatives
    #: scores that take items with their own weights; may be none, for pairs alone
    own: ItemScores | None = None

    @property
    def asks_rows(self) -> bool:
        """Whether rows are needed again once their cells are closed."""
        return self.rows is not None or self.own is not None

    @property
    def asks_each_row(self) -> bool:
        """Whether one row may not stand for several then."""
        return self.own is not None and bool(self.own.names)


class ClusterKeys(NamedTuple):
    """The mixed key of each cluster by code, mapped from files; the first ones of a side have cells in any part.

    `parts` says where parts of the cells begin that have all the other predicted clusters to themselves.
    """

    true: NDArray[np.int64]
    pred: NDArray[np.int64]
    n_heavy: int
    n_spread: int
    parts: NDArray[np.int64]


@dataclass(frozen=True)
class NoCells:
    """What stands for the cells of an evaluation that did not keep them."""

    n_items: int  #: scored items
    #: as those of a contingency
    weighted: bool
    weighting: str
    outside: bool
    overlapping: bool = False
    known_scores: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    rows: ScoredRows | None = None
    known: Mapping[str, float] = field(default_factory=dict)  #: scores that warnings take, asked for or not

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotKeptError(f"the cells were not kept; evaluate with {to_keep('cells', self)}")


def to_keep(what: str, table: Any) -> str:
    """Return what to pass so that cells, or items, are kept where those of a table were not."""
    how = f'keep="{what}"'
    if not table.overlapping:
        return how
    return (
        f'{how} and engine="memory", as the disk engine keeps neither cells nor items where clusters overlap'
    )


class CellParts:
    """The cells of rows that are in shards: part by part, and then what all of them come to."""

    def __init__(self, shards: RowShards, question: Question, pool: Pool) -> None:
        self._shards, self._question, self._pool = shards, question, pool
        self.n_items = self._n_cells = self.n_exact = 0
        self.sizes: dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}
        self.whole: Contingency | None = None
        self.keys: ClusterKeys | None = None
        self.rows: WayBack | None = None
        self.of_items: list[Mapping[str, float]] = []  #: what blocks of items come to by their own weights
        self.recall_if_alone = 0.0

    def __iter__(self) -> Iterator[Contingency]:
        """Yield the scored cells of each shard that has any; they know their mates in all shards."""
        shards, question, pool = self._shards, self._question, self._pool
        outer, asked = question.weighting == "outer", question.asks_rows
        kept = _Kept(shards, question) if question.keep else None
        keys = {} if kept is None else kept.keys
        cells = shards.cells(pool, outer=outer, again=asked, keys=keys.get("true"))
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
        if back is not None:
            self._go_back(back, cells.heavy_sizes)

    def _go_back(self, back: WayBack, heavy_sizes: NDArray[np.int64]) -> None:
        """Tell the rows what became of their cells, and add up what they come to by their own weights."""
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
        """Return the cells of a shard, and count them; None if none of them is scored."""
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
    """Return what goes back of the cells that a shard has closed; those that are scored have numbers."""
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


class _Kept:
    """Cells of all shards one after the other, in files that a contingency can map."""

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

    def add(self, apart: SetAside, built: Built) -> None:
        """Take the cells of a shard, in which codes of predicted clusters begin at 0."""
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
        """Return the contingency."""
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
        """Return the keys of the clusters, if they were asked for."""
        if not self.keys:
            return None
        true, pred = (self.keys[side].finish() for side in SIDES)
        return ClusterKeys(true, pred, self._n_heavy, self._n_spread, np.concatenate(self._bounds))
