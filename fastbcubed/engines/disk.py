"""The disk engine, for rows that do not fit in memory: blocks → alignment → shards → cells → scores (→ rows)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from fastbcubed.align.align_runs import CommonRows, RowsOfRun, require_some
from fastbcubed.align.apply_policies import starts_of_runs
from fastbcubed.align.item_join import Aligner
from fastbcubed.align.row_blocks import AlignedBlock, Choice, Retry
from fastbcubed.cells.cell_parts import BACK_BYTES, KEPT_BYTES, CellParts, Question, RowBlocks
from fastbcubed.cells.contingency import SIDES
from fastbcubed.cells.dense import PairTable
from fastbcubed.cells.excerpts import UnreadCells
from fastbcubed.cells.partitioned import find_heavy_in_sample
from fastbcubed.cells.shards import Layout, RowShards, Spread
from fastbcubed.engines.memory import Answers
from fastbcubed.engines.request import Answer, Request
from fastbcubed.engines.scoring import Scorer, columns_of_slices, require_room
from fastbcubed.errors import EmptyInputError, Message, OptionError, WeightError, arg, naming
from fastbcubed.inputs.fingerprint import BlocksSeen
from fastbcubed.inputs.pair import Cut, Pair, open_pair, open_pairs
from fastbcubed.inputs.reading_notes import notes_of, readings_of
from fastbcubed.inputs.tables import BLOCK_ROWS
from fastbcubed.results.cluster_ranges import ClusterRanges
from fastbcubed.results.clusters import NamesByKey, label_bytes
from fastbcubed.results.figures import describe
from fastbcubed.results.items import TableItems
from fastbcubed.results.slice_sums import RowQuestions
from fastbcubed.results.stored_tables import StoredRows
from fastbcubed.results.table import Table
from fastbcubed.runtime import buffers
from fastbcubed.runtime.memory_budget import release
from fastbcubed.runtime.spill import Spill, readable, spill_directory
from fastbcubed.runtime.threads import Pool

T = TypeVar("T")

#: Number of bytes of the memory limit per row of a block, so that blocks are a small part of the limit.
BLOCK_SHARE = 1 << 10
#: Maximum number of threads for this size of blocks; with more threads, blocks are smaller.
USUAL_THREADS = 8
ATTEMPTS = 8


def run(request: Request, pool: Pool) -> Answer:
    """Open both sides in blocks, score them, and return the answer."""
    require_room(request)
    pair = open_pair(request.given, cut_for(request, pool.threads))
    answer = attempt(lambda choice: score(pair, request, choice, pool))
    if request.out is not None:  # frees memory for writing
        release()
    return answer


def cut_for(request: Request, threads: int) -> Cut:
    """Return how the inputs are to be read in blocks."""
    others = None if request.keep == "items" else columns_of_slices(request.slices)
    return Cut(block_rows(request.limit, threads), request.spill_dir, others)


def attempt(work: Callable[[Choice], T]) -> T:
    """Call `work` with one choice of hash function, and with the next choice if keys collide."""
    starts = starts_of_runs()
    choice = Choice(0, next(starts))
    for _ in range(ATTEMPTS):
        try:
            return work(choice)
        except Retry as retry:
            choice = Choice(choice.seed + retry.seed, choice.start if retry.seed else next(starts))
    raise RuntimeError("keys collide whatever the hash function")  # practically impossible by chance


def score(pair: Pair, request: Request, choice: Choice, pool: Pool, kept: RowsOfRun | None = None) -> Answer:
    """Align the blocks, shard their rows, build the cells shard by shard, and score them.

    `kept` are the rows of the truth to restrict to, if any. Raises Retry if keys collide.
    """
    questions = RowQuestions.of(pair, request.slices, request.keep)
    with Spill(request.spill_dir, named=request.spill_dir is not None) as spill:
        seen = None if request.out is None else BlocksSeen()  # fingerprints for the manifest
        aligner = Aligner(
            pair, request.policies, choice, spill, request.limit, pool,
            outer=request.outer, carried=questions.carried, kept=kept, seen=seen,
        )  # fmt: skip
        pa.default_memory_pool().release_unused()  # frees memory of the first read of the files
        scorer = Scorer(request, weighted=aligner.weighted, n_rows=pair.n_rows)
        question = Question(
            request.weighting, request.outside,
            keep=request.keep != "scores" or scorer.needs_all, named=request.keep != "scores",
            rows=questions.told, negatives=scorer.rows_need_negatives, own=scorer.own,
            narrows=request.narrows and not scorer.needs_all,
        )  # fmt: skip
        widest = max(label_bytes(side.labels) for side in aligner.firsts) if question.named else 0
        layout = Layout.of(pair.n_rows, request.limit, widest)
        announce(pair, aligner, layout, request.keep, question.keep, request.limit, spill, pool)

        blocks = RowBlocks(spill) if questions else None
        rows = ShardedRows(
            aligner, layout, spill, pool, blocks, request.limit,
            one_by_one=question.asks_each_row, weighs_pairs=question.own is not None,
        )  # fmt: skip
        with pool.wider() as readers:
            coverage = aligner.run(rows.take, readers)
        pa.default_memory_pool().release_unused()  # frees memory of reading
        pair = pair.without_joined()  # all rows have their weights and attributes, which are held as a whole
        parts = CellParts(rows.all_shards(), question, pool)
        scored, bounds = scorer.score_with_bounds(parts, coverage, pool)
        names = _names(pair, aligner, parts, layout, spill, pool)

        how = dict[str, Any](weighted=aligner.weighted, weighting=request.weighting, outside=request.outside)
        whole = None if parts.keys is None else parts.whole
        cells = whole or UnreadCells(n_items=parts.n_items, **how)
        sliced: dict[str, Table] = {}
        items = None
        if blocks is not None and parts.rows is not None:
            buffers.release()
            told = blocks.with_cells(parts.rows, pool)
            sliced, stored = questions.answer(
                told, how, scored.metrics, request.beta, request.out, spill, request.limit
            )
            if stored is not None:
                cells.rows = StoredRows(stored, weighted=aligner.weighted)
                items = TableItems(stored, questions.left_out)
        return Answer(
            "disk", cells, scored, coverage, pair.names, items, names,
            sliced=sliced,
            ranges=_ranges(parts, request, widest, pool),
            summary=describe(parts.sizes, parts.n_items, parts.n_exact),
            bounds=bounds,
            notes=notes_of(aligner.firsts) + aligner.attribute_notes() + _not_kept(parts, spill),
            reading=readings_of(aligner.firsts),
            pair=pair,
            contents=None if seen is None else seen.contents(),
            change_if_alone=parts.recall_if_alone,
            odd_labels={side: odd.rows() for side, odd in zip(SIDES, aligner.odd_labels, strict=True)},
        )  # fmt: skip


def announce(
    pair: Pair,
    aligner: Aligner,
    layout: Layout,
    keep: str | None,
    keeps_cells: bool,
    limit: int,
    spill: Spill,
    pool: Pool,
) -> None:
    """Announce the plan, and raise SpillError if the disk lacks room even for the rows.

    `keep` is None if the caller cannot choose it. The number of cells is known only after the first shard is built,
    and their room is checked then.
    """
    n_rows, row_bytes = pair.n_rows, 24 if aligner.weighted else 16
    rows_of_side = n_rows // len(pair.stretches)
    least = aligner.expected_spill + layout.spill_of_rows(rows_of_side, row_bytes)
    most = aligner.expected_spill + layout.spill_of_rows(n_rows, row_bytes) + layout.spill_of_cells(n_rows)
    by_keep = ""
    if keep is not None:
        kept = most + rows_of_side * KEPT_BYTES
        back = kept + rows_of_side * BACK_BYTES
        by_keep = (
            f"Depending on the number of cells, {arg('keep', 'scores')} takes {readable(least)} to {readable(most)}, "
            f"{arg('keep', 'cells')} up to {readable(kept)}, {arg('keep', 'items')} up to {readable(back)} plus the "
            "columns of attributes. "
        )
    spill.require_free(least, by_keep)
    pool.spilled = lambda: spill.written
    pool.announce(
        f"disk engine: {n_rows:,} rows, {1 << layout.bits} shard{'s' * (layout.bits > 0)}, limit {readable(limit)}; "
        f"{spill.describe(most)}{', besides the cells that are kept' * keeps_cells}",
        n_rows,
    )


def _not_kept(parts: CellParts, spill: Spill) -> list[dict[str, Any]]:
    """Return a note if cells were dropped because the disk had no room for them."""
    if not parts.without_room:
        return []
    message = (
        f"The cells were not kept because {spill.directory} lacks {readable(parts.without_room)} of space: "
        "scores are available, but clusters and standard errors are not. Name a larger disk with "
        f"{arg('spill_dir', ...)}, or pass {arg('keep', 'scores')} if scores are enough."
    )
    return [{"code": "cells-not-kept", "level": "note", "message": Message(message)}]


def _names(
    pair: Pair, aligner: Aligner, parts: CellParts, layout: Layout, spill: Spill, pool: Pool
) -> NamesByKey | None:
    """Return the names of the clusters; None if their keys were not kept."""
    if parts.keys is None:
        return None
    labels = [side.labels for side in aligner.firsts]
    return NamesByKey(
        pair, labels, aligner.seeds, aligner.made_keys, parts.keys, layout.bits, spill.directory, pool.threads
    )


def _ranges(parts: CellParts, request: Request, widest: int, pool: Pool) -> ClusterRanges | None:
    """Return the reader of clusters by range; None if the cells were not kept."""
    if parts.whole is None or parts.keys is None:
        return None
    directory = spill_directory(request.spill_dir)
    return ClusterRanges(parts.whole, parts.keys, request.limit // 2, directory, pool.threads, widest)


def block_rows(limit: int, threads: int) -> int:
    """Return the maximum number of rows in a block; each thread holds one block."""
    return min(BLOCK_ROWS, max(1 << 12, limit // BLOCK_SHARE * USUAL_THREADS // max(USUAL_THREADS, threads)))


class ShardedRows:
    """Stores aligned blocks in shards, which are laid out when the first block shows which clusters are large."""

    def __init__(
        self,
        aligner: Aligner,
        layout: Layout,
        spill: Spill,
        pool: Pool,
        blocks: RowBlocks | None,
        limit: int,
        *,
        one_by_one: bool = False,
        weighs_pairs: bool = False,
    ) -> None:
        """Lay out the shards as soon as possible; see `RowShards`. With `one_by_one`, rows are not preaggregated."""
        self._one_by_one, self._weighs_pairs = one_by_one, weighs_pairs
        self._aligner, self._layout, self._spill, self._blocks = aligner, layout, spill, blocks
        self._rows_at_once = min(aligner.pair.n_rows, block_rows(limit, pool.threads))
        self.shards: RowShards | None = None
        if not aligner.by_item:
            self._lay_out(*aligner.sample_of_keys())

    def _lay_out(self, true_keys: np.ndarray, pred_keys: np.ndarray) -> None:
        """Lay out the shards; samples of each side's keys show which clusters are too large for one shard."""
        heavy = find_heavy_in_sample(pred_keys)
        self._spread = Spread.of(
            heavy[heavy != self._aligner.absent_key], self._aligner.absent_key, self._layout.bits
        )
        absent = self._aligner.absent_key if self._aligner.may_lack else None
        table = PairTable.of_sample(self._rows_at_once, true_keys, pred_keys)
        pairs = None if self._one_by_one else table
        self.shards = RowShards(
            self._aligner.pair.n_rows, find_heavy_in_sample(true_keys), absent, weighted=self._aligner.weighted,
            layout=self._layout, spill=self._spill, spread=self._spread, pairs=pairs,
            weighs_pairs=self._weighs_pairs,
        )  # fmt: skip

    def all_shards(self) -> RowShards:
        """Return the shards after all blocks have been stored."""
        assert self.shards is not None
        return self.shards

    def take(self, block: AlignedBlock) -> None:
        """Store a block; the first block must be stored before others are passed."""
        if self.shards is None:
            step = max(1, block.true_keys.size >> 14)
            self._lay_out(block.true_keys[::step], block.pred_keys[::step])
        assert self.shards is not None
        if self._spread.is_taken(block.pred_keys):
            raise Retry(seed=False)
        keys, placed = (block.true_keys, block.pred_keys), self._blocks is not None
        places = self.shards.put(block.index, *keys, block.weight, placed=placed)
        if self._blocks is not None and places is not None and places.size:
            self._blocks.put(block, places)


def run_several(requests: Sequence[Request], names: Sequence[str], pool: Pool, *, common: bool) -> Answers:
    """Score several runs; if `common`, each on the items that all of them score.

    All runs share one hash function, so that a true cluster has the same key in all of them.
    """
    for request in requests:
        require_room(request)
    pairs = open_pairs([request.given for request in requests], names, cut_for(requests[0], pool.threads))

    def alone(request: Request, k: int) -> Answer:
        return attempt(lambda choice: score(pairs[k], request, choice, pool))

    if common and len(pairs) > 1:
        found = attempt(lambda choice: _on_common_rows(pairs, requests, names, choice, pool))
        return found._replace(alone=alone)
    return _answers(attempt(lambda choice: _one_by_one(pairs, requests, names, choice, pool)), None)


def _one_by_one(
    pairs: Sequence[Pair], requests: Sequence[Request], names: Sequence[str], choice: Choice, pool: Pool
) -> list[Answer]:
    found = []
    for pair, request, name in zip(pairs, requests, names, strict=True):
        with naming(name, *pair.names):
            found.append(score(pair, request, choice, pool))
    return found


def _answers(answers: list[Answer], kept: list[RowsOfRun] | None) -> Answers:
    coverage = [answer.coverage for answer in answers]
    n_scored = [answer.cells.n_items for answer in answers]
    if kept is not None:
        coverage = [own.coverage for own in kept if own.coverage is not None]
        n_scored = [own.n_scored for own in kept]
    keys = [answer.ranges.keys.true for answer in answers if answer.ranges is not None]
    return Answers(answers, n_scored, coverage, keys)


def _on_common_rows(
    pairs: Sequence[Pair], requests: Sequence[Request], names: Sequence[str], choice: Choice, pool: Pool
) -> Answers:
    """Score the runs on their common items, smaller runs first; a run narrowed by a later one is scored again."""
    n_truth = sum(stretch.n_rows for stretch in pairs[0].stretches[0])
    rows, kept, found = CommonRows(n_truth), dict[int, RowsOfRun](), dict[int, Answer]()
    order = sorted(range(len(pairs)), key=lambda k: pairs[k].n_rows)
    for k in (*order, *order):
        if k in kept and kept[k].n_kept == rows.n_kept:
            continue
        found.pop(k, None)
        own = kept[k] = rows.next_run()
        try:
            with naming(names[k], *pairs[k].names):
                found[k] = score(pairs[k], requests[k], choice, pool, own)
        except EmptyInputError:
            if own.coverage is None or own.n_kept:
                raise
        rows.narrow(own)
        _require_known(own, names[k])
        require_some(own.n_kept, [names[i] for i in sorted(kept)], [kept[i].n_scored for i in sorted(kept)])
    in_order = [kept[k] for k in range(len(pairs))]
    _require_same_weights(in_order, names)
    for k, request in enumerate(requests):
        found[k] = replace(found[k], complete=not kept[k].n_left_out)
        if kept[k].n_left_out and request.counts_mentions(weighted=found[k].cells.weighted):
            with naming(names[k], *pairs[k].names):
                mentions = score(pairs[k], replace(request, of_mentions=True, slices=[]), choice, pool)
            found[k] = found[k].with_mentions(mentions, request)
    return _answers([found[k] for k in range(len(pairs))], in_order)


def _require_known(run: RowsOfRun, name: str) -> None:
    """Raise OptionError if a run scores items that the truth lacks, since other runs are not checked for them."""
    if run.n_further:
        items = f"{run.n_further:,} item{'s' if run.n_further > 1 else ''}"
        raise OptionError(
            f"{name!r} has {items} that the truth lacks and that would be scored. The disk engine does not "
            f"check which of these all runs share: pass {arg('engine', 'memory')}, "
            f"{arg('unmatched', {'prediction': 'drop'})} or {arg('align', 'each')}"
        )


def _require_same_weights(runs: Sequence[RowsOfRun], names: Sequence[str]) -> None:
    """Raise WeightError if an item's weight differs between runs, e.g. because only the predictions have weights."""
    for run, name in zip(runs[1:], names[1:], strict=True):
        if run.weights != runs[0].weights:
            raise WeightError(
                f"items have different weights in the runs {names[0]!r} and {name!r}. An item must have the "
                f"same weight in all runs: put weights into the truth, or pass {arg('weight', ...)} a table "
                "with the columns item and weight"
            )
