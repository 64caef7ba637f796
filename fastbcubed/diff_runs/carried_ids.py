"""Which clusters of an experiment keep the ids of a baseline, found among the clusters that changed."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells.contingency import SIDES, Contingency
from fastbcubed.diff_runs.cluster_changes import plain_labels
from fastbcubed.diff_runs.heaviest_matching import Matched, Rivals, largest_first, match_first
from fastbcubed.errors import EmptyInputError, MetricError, NotKeptError, arg
from fastbcubed.inputs.arrays import from_numpy, is_null, to_numpy
from fastbcubed.inputs.id_order import AT_ONCE, WordOf, same_ids, words_of
from fastbcubed.render.number_formats import count, counted, label
from fastbcubed.results.clusters import BESIDE, bytes_of_label
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.notices import NOTE
from fastbcubed.runtime import buffers
from fastbcubed.runtime.memory_budget import release, require_within
from fastbcubed.runtime.spill import Spill, Spool
from fastbcubed.runtime.threads import blocks
from fastbcubed.types import Codes

#: The events of a cluster's id, in the order of display.
EVENTS = ("kept", "merged", "split", "new")
KEPT, MERGED, SPLIT, NEW = range(4)
#: Steps after which a component is matched greedily: about ten seconds, and fewer if no ids were requested.
LIMIT, QUICK = 2_000_000_000, 5_000_000
#: Bits of the total weight as a whole number, with which sums are exact, so that rounding cannot break ties.
BITS = 46
#: Bytes per cell of a cluster that changed, while it is matched.
CELL_BYTES = 300
#: The fewest bytes of cells that are matched at once, and the most batches of cells.
LEAST, MOST = 16 << 20, 1 << 14
TOO_TANGLED = "ids-partly-greedy"


class IdStability(NamedTuple):
    """Shares of the weight of common items that keep their id; clusters of both sides must have labels."""

    as_named: float  #: share whose clusters have the same label on both sides
    best: float  #: share that keeps its id if ids are carried over by the heaviest matching


def labels_are_numbers(ev: Evaluation, side: str) -> bool:
    """Return whether the labels of a side's clusters are numbers, which are taken from the keys of the clusters."""
    return bool(getattr(ev.kept.labels, "are_numbers", lambda side: False)(side))


class ClusterLabels:
    """The labels of a side's clusters by code: numbers are taken from the keys of the clusters, others are held."""

    def __init__(self, ev: Evaluation, side: str) -> None:
        self._ev, self._side = ev, side
        self.are_numbers = labels_are_numbers(ev, side)
        self._held = None if self.are_numbers else _held(ev, side)
        #: whether clusters may have no label
        self.may_lack = bool(
            ev.kept.labels.made or ev.policies.noise is not None  # type: ignore[union-attr]
            if self._held is None
            else self._held.null_count
        )
        self.type: pa.DataType = self.of(np.empty(0, np.int64)).type

    def of(self, codes: NDArray[Any]) -> pa.Array:
        """Return the labels of clusters; null for clusters that a policy made."""
        if self._held is None:
            return self._ev.kept.cluster_labels(self._side, codes)
        return self._held.take(from_numpy(codes))

    def whole(self) -> pa.Array:
        """Return the labels of all clusters."""
        return (
            self.of(np.arange(self._ev.contingency.n_codes[self._side])) if self.are_numbers else self._held
        )

    def words_of_codes(self) -> Callable[[Codes], list[WordOf]]:
        """Return a function from codes of clusters to words that sort like the labels of these clusters."""
        if self._held is None:
            return lambda codes: words_of(self.of(codes))
        words = words_of(self._held)

        def of_these(word: WordOf, codes: Codes) -> WordOf:
            return lambda rows: word(codes[rows])

        return lambda codes: [of_these(word, codes) for word in words]


def _held(ev: Evaluation, side: str) -> pa.Array:
    """Return the labels of a side's clusters by code; null for codes that no cluster has."""
    table, alone = ev.contingency, ev.contingency.alone(side)
    if table.is_complete:
        return plain_labels(ev.kept.cluster_labels(side, np.arange(table.n_codes[side])))
    used = scored_clusters(table, side)
    if alone is not None:
        used[alone.codes] = True
    found = plain_labels(ev.kept.cluster_labels(side, np.flatnonzero(used)))
    return found if used.all() else or_null(found, np.where(used, np.cumsum(used) - 1, -1))


def or_null(values: pa.Array, at: NDArray[np.int64]) -> pa.Array:
    """Return the values at these positions, null for position -1."""
    return values.take(from_numpy(at, at < 0))


def code_type(table: Contingency) -> np.dtype:
    """Return the type of the codes of all clusters of both sides."""
    return np.dtype(np.int32 if sum(table.n_codes.values()) < 2**31 else np.int64)


def scored_clusters(table: Contingency, side: str) -> NDArray[np.bool_]:
    """Return the mask of a side's clusters that have a cell."""
    scored = np.zeros(table.n_codes[side], np.bool_)
    for _, *codes in table.codes_in_blocks():
        scored[codes[SIDES.index(side)]] = True
    return scored


@dataclass(frozen=True, eq=False)
class Carried:
    """The labels of clusters by side, and the clusters that keep ids."""

    labels: dict[str, ClusterLabels]
    there: dict[str, NDArray[np.bool_]]  #: whether a cluster has a label and a cell; empty if all have
    keeps: Codes  #: by new cluster: the old cluster whose id it keeps, or -1
    heir: Codes  #: by old cluster whose id no cluster keeps: the new cluster with most of its weight; else -1
    events: NDArray[np.int8]  #: by new cluster: position in EVENTS
    n_greedy: int
    cells_of_greedy: int

    def codes(self, side: str) -> Iterator[NDArray[np.int64]]:
        """Yield the codes of the clusters of a side that have a label and a cell."""
        there, n = self.there[side], (self.heir if side == "true" else self.keeps).size
        for start, stop in blocks(n):
            yield start + np.flatnonzero(there[start:stop]) if there.size else np.arange(start, stop)

    def notes(self) -> list[dict[str, Any]]:
        """Return a note if some ids were carried over greedily."""
        if not self.n_greedy:
            return []
        message = (
            f"Ids of {counted(self.n_greedy, 'group')} of clusters, connected by "
            f"{count(self.cells_of_greedy)} cells, were carried over greedily, heaviest cell first, because "
            "the search for the best matching took too long. A better matching might keep the ids of "
            "slightly more of the weight."
        )
        figures = {"n_components": self.n_greedy, "n_cells": self.cells_of_greedy}
        return [{"code": TOO_TANGLED, "level": NOTE, "message": message, **figures}]


def carry(ev: Evaluation, limit: int = LIMIT) -> Carried:
    """Match clusters of both sides one to one, such that the matched cells have the greatest total weight.

    Ties are broken by the share of the cell in both clusters, then by old id, then by new label.
    """
    table = ev.contingency
    if not table.has_cells:
        raise NotKeptError(
            f"the cells were not kept; call fastbcubed.diff with {arg('keep', 'cells')} to carry ids"
        )
    if table.overlapping:
        raise MetricError(
            "ids cannot be carried over between overlapping clusters; pass partitions, without "
            f"{arg('overlapping', True)}"
        )
    budget = _Budget(ev)
    labels = {side: ClusterLabels(ev, side) for side in SIDES}
    there = {side: _there(table, side, labels[side]) for side in SIDES}
    (n_old, n_new), code = table.n_codes.values(), code_type(table)
    keeps = np.full(n_new, -1, code)
    with Spill(budget.directory, named=True) as spill:
        changed = _changed(table, tuple(there.values()), keeps, budget.n_batches, spill)
        budget.require_batch(int(changed.sizes().max(initial=0)))
        heir, events = np.full(n_old, -1, code), np.full(n_new, NEW, np.int8)
        events[keeps >= 0] = KEPT
        carried, found = Carried(labels, there, keeps, heir, events, 0, 0), list[Matched]()
        numbers = buffers.empty(max(n_old, n_new), code)
        numbers.fill(-1)
        words = [labels[side].words_of_codes() for side in SIDES]
        for batch in range(changed.n_shards):
            cells = changed.read(batch)
            if batch == changed.n_shards - 1:
                changed.clear()
            found.append(_match(cells, numbers, words, carried, limit))
    if (events == NEW).all():
        raise EmptyInputError("no item has a cluster id on both sides, so no id can be carried over")
    return replace(
        carried,
        n_greedy=sum(each.n_greedy for each in found),
        cells_of_greedy=sum(each.cells_of_greedy for each in found),
    )


def matching_bytes(ev: Evaluation) -> tuple[int, int]:
    """Return the bytes that are held for clusters, and for the cells of those that changed if matched all at once."""
    table = ev.contingency
    of_cluster = 2 * code_type(table).itemsize + 1 + bytes_of_label(ev.kept)
    return sum(table.n_codes.values()) * of_cluster, (table.n_cells - table.n_exact) * CELL_BYTES


class _Budget:
    """The memory for cells that changed: all are matched at once, or as many as fit within the limit."""

    def __init__(self, ev: Evaluation) -> None:
        kept = ev.kept
        self.directory = None if kept.ranges is None else kept.ranges.directory
        self._limit = kept.memory_limit
        of_clusters, self._cells = matching_bytes(ev)
        self._held = of_clusters - BESIDE
        self.n_batches = 1
        if self._limit is None:
            return
        self._require(self._cells if kept.ranges is None else min(self._cells, LEAST))
        release()
        self._room = self._limit - self._held
        if self._cells > self._room:  # batches of whole components differ in size
            self.n_batches = min(2 * self._cells // self._room + 1, MOST)

    def require_batch(self, n_cells: int) -> None:
        """Raise OptionError if `n_cells` cells, the largest batch, exceed the limit."""
        if self._limit is not None and n_cells * CELL_BYTES > self._room:
            self._require(self._cells)

    def _require(self, n_bytes: int) -> None:
        require_within(self._limit, self._held + n_bytes, "stable ids", "cells and clusters")


def _there(table: Contingency, side: str, labels: ClusterLabels) -> NDArray[np.bool_]:
    """Return the mask of a side's clusters that have a label and a cell; empty if all have."""
    if table.is_complete and not labels.may_lack:
        return np.empty(0, np.bool_)
    there = np.ones(table.n_codes[side], np.bool_) if table.is_complete else scored_clusters(table, side)
    if labels.may_lack:
        for start, stop in blocks(there.size):
            there[start:stop] &= ~is_null(labels.of(np.arange(start, stop)))
    return np.empty(0, np.bool_) if there.all() else there


def _changed(
    table: Contingency, labelled: tuple[NDArray[np.bool_], ...], keeps: Codes, n_batches: int, spill: Spill
) -> Spool:
    """Write identical clusters to `keeps`; return the cells of the others, in batches of whole components."""
    kind = np.dtype([("gain", "f8"), ("share", "f8"), ("row", keeps.dtype), ("column", keeps.dtype)])
    # Whole numbers make sums exact, so the order of the items cannot break a tie; the unit is a power of two.
    unit = math.ldexp(1.0, math.frexp(table.total_weight * (1 + 2**-20))[1] - BITS)
    pred, n_old, outer = table.codes("pred")[0], table.n_codes["true"], table.weighting == "outer"
    in_one = n_batches == 1
    if not in_one:
        spill.require_free(2 * kind.itemsize * (table.n_cells - table.n_exact))
    found = Spool(kind, 1, spill, sys.maxsize if in_one else 0)
    parents = np.arange(0 if in_one else n_old + keeps.size, dtype=keeps.dtype)
    for start, stop in blocks(table.n_cells):
        with found.pages() as pages:
            rivals = pages.empty(stop - start, kind)
            n = kernels.components.find_rivals(
                table.cells[start:stop], pred[start:stop], labelled, unit, outer, keeps, rivals
            )
            if not in_one:
                rows, columns = (np.ascontiguousarray(rivals[name][:n]) for name in ("row", "column"))
                kernels.components.join_pairs(rows, columns + n_old, parents)
            found.put(start, pages, np.array([0, n]))
    if in_one:
        return found
    batches = Spool(kind, n_batches, spill, 0)
    for index in found.indexes:
        cells = found.read_batch(index)
        batch = np.empty(cells.size, np.int16)
        kernels.components.assign_components(np.ascontiguousarray(cells["row"]), parents, n_batches, batch)
        bounds = np.append(0, np.cumsum(np.bincount(batch, minlength=n_batches)))
        with batches.pages() as pages:
            order = np.argsort(batch, kind="stable")
            np.take(cells, order, out=pages.empty(cells.size, kind), mode="clip")
            batches.put(index, pages, bounds)
    return batches


def _match(
    cells: np.ndarray,
    numbers: Codes,
    words: Sequence[Callable[[Codes], list[WordOf]]],
    carried: Carried,
    limit: int,
) -> Matched:
    """Match the clusters of whole components, given their cells, and write who keeps an id, heirs and events.

    `numbers` is workspace by code, -1 before and afterwards.
    """
    rows, old, of_row = _ranked(cells["row"], numbers)
    columns, new, of_column = _ranked(cells["column"], numbers)
    rivals = Rivals(
        rows, columns, np.ascontiguousarray(cells["gain"]), of_row, of_column,
        [largest_first(np.ascontiguousarray(cells["share"]))], words[0](old), words[1](new),
    )  # fmt: skip
    del cells
    carried.events[new] = SPLIT
    found = match_first(rivals, limit)
    own, matched = rows[found.cells], columns[found.cells]
    carried.keeps[new[matched]] = old[own]
    carried.events[new[matched]] = KEPT
    left = np.ones(old.size, np.bool_)
    left[own] = False
    largest = rivals.first_of_rows(np.flatnonzero(left[rows]))
    heirs = new[columns[largest]]
    carried.heir[old[rows[largest]]] = heirs
    carried.events[heirs] |= MERGED
    return found


def _ranked(codes: Codes, numbers: Codes) -> tuple[Codes, Codes, NDArray[np.int32]]:
    """Return the rank of each code in order of first appearance, and for each rank its code and number of cells."""
    ranks, used, sizes = codes.copy(), buffers.empty(codes.size, codes.dtype), np.zeros(codes.size, np.int32)
    n = kernels.hashing.rank_codes(ranks, numbers, used, sizes)
    return ranks, used[:n], sizes[:n]


def stability(ev: Evaluation, carried: Carried) -> IdStability:
    """Return the shares of the weight of clusters with a label that keep their id."""
    table, same = ev.contingency, _same(*carried.labels.values())
    true, pred, masks = table.true, table.pred, carried.there.values()
    sums = [
        kernels.components.weigh_kept(
            table.cells, pred, a, same(np.ascontiguousarray(true[a:b]), pred[a:b]), carried.keeps, *masks
        )
        for a, b in blocks(table.n_cells, AT_ONCE)
    ]
    as_named, best, total = (math.fsum(each) for each in zip(*sums, strict=True))
    return IdStability(as_named / total, best / total)


def _same(old: ClusterLabels, new: ClusterLabels) -> Callable[[Codes, Codes], NDArray[np.bool_]]:
    """Return a function from codes of old and of new clusters to the mask of pairs whose labels are the same id."""
    if old.are_numbers and new.are_numbers:

        def same(rows: Codes, columns: Codes) -> NDArray[np.bool_]:
            one, other = to_numpy(old.of(rows)), to_numpy(new.of(columns))
            equal: NDArray[np.bool_] = one.astype(np.uint64) == other.astype(np.uint64)
            return equal & ((one < 0) == (other < 0))

        return same
    whole = old.whole(), new.whole()
    if old.type != new.type or pa.types.is_nested(old.type):
        whole = as_texts(whole[0]), as_texts(whole[1])
    return same_ids(*whole)


def as_texts(labels: pa.Array) -> pa.Array:
    """Return labels as strings, so that 1 and "1" are the same id."""
    if (
        pa.types.is_integer(labels.type)
        or pa.types.is_string(labels.type)
        or pa.types.is_large_string(labels.type)
    ):
        return labels.cast(pa.large_string())
    return pa.array(
        [None if value is None else label(value) for value in labels.to_pylist()], pa.large_string()
    )
