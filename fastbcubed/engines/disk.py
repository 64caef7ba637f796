"""The disk engine, where not all rows fit in memory: blocks → alignment → shards → cells → scores (→ rows)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from fastbcubed.alignment.align import starts_of_runs
from fastbcubed.alignment.aligner import Aligner
from fastbcubed.alignment.block_keys import Retry
from fastbcubed.alignment.common_rows import RowsOfRun
from fastbcubed.alignment.row_aligner import AlignedBlock, Choice
from fastbcubed.cells.cell_parts import CellParts, NoCells, Question
from fastbcubed.cells.condensing import PairTable
from fastbcubed.cells.planning import find_heavy_in_sample
from fastbcubed.cells.row_blocks import RowBlocks
from fastbcubed.cells.shards import Layout, RowShards
from fastbcubed.cells.spread import Spread
from fastbcubed.clusterings.content import BlocksSeen
from fastbcubed.clusterings.input_notes import notes_of
from fastbcubed.clusterings.stretches import Cut, Pair, open_pair
from fastbcubed.engines.request import Answer, Request
from fastbcubed.engines.room import require_room
from fastbcubed.engines.scoring import Scorer
from fastbcubed.results.items.held_rows import HeldRows
from fastbcubed.results.items.stored_items import StoredItems, StoredRows
from fastbcubed.results.listings.cluster_names import NamesByKey, label_bytes
from fastbcubed.results.listings.cluster_tables import ClusterRanges
from fastbcubed.results.listings.summary import describe
from fastbcubed.results.slices.row_questions import RowQuestions
from fastbcubed.runtime import buffers
from fastbcubed.runtime.pool import Pool
from fastbcubed.runtime.spill import Spill, readable, spill_directory
from fastbcubed.sources.blocks import BLOCK_ROWS

T = TypeVar("T")

#: Rows of a block for each byte of the limit: few enough that blocks are a small part of it.
BLOCK_SHARE = 1 << 10
#: The share of the limit that rows of large clusters may take which are held for a digest.
HELD_SHARE = 32
ATTEMPTS = 8


def run(request: Request, pool: Pool) -> Answer:
    """Open both sides in blocks, and score them."""
    require_room(request)
    pair = open_pair(request.given, cut_for(request))
    answer = attempt(lambda choice: score(pair, request, choice, pool))
    if request.out is not None:  # what is written takes memory of its own
        buffers.release()
        pa.default_memory_pool().release_unused()
    return answer


def cut_for(request: Request) -> Cut:
    """Return how to read what is given in blocks."""
    every_column = bool(request.slices) or request.keep == "items"
    return Cut(block_rows(request.limit), request.spill_dir, every_column)


def attempt(work: Callable[[Choice], T]) -> T:
    """Do the work with some hash function, and again with the next where keys turn out to collide."""
    starts = starts_of_runs()
    choice = Choice(0, next(starts))
    for _ in range(ATTEMPTS):
        try:
            return work(choice)
        except Retry as retry:
            choice = Choice(choice.seed + retry.seed, choice.start if retry.seed else next(starts))
    raise RuntimeError("keys collide whatever the hash function")  # cannot happen by chance


def score(pair: Pair, request: Request, choice: Choice, pool: Pool, kept: RowsOfRun | None = None) -> Answer:
    """Score two sides; `kept` says which rows of the truth count. Raises Retry if keys collide."""
    questions = RowQuestions.of(pair, request.slices, request.keep)
    with Spill(request.spill_dir, named=request.spill_dir is not None) as spill:
        return _score(pair, questions, request, choice, spill, pool, kept)


def _score(
    pair: Pair,
    questions: RowQuestions,
    request: Request,
    choice: Choice,
    spill: Spill,
    pool: Pool,
    kept: RowsOfRun | None,
) -> Answer:
    """Align the blocks, bring the rows to shards, build the cells of these part by part, and score them."""
    seen = None if request.out is None else BlocksSeen()  # for the manifest that is written
    aligner = Aligner(
        pair, request.policies, choice, spill, request.limit, pool,
        outer=request.outer, null_is_absent=request.null_is_absent, carried=questions.carried, kept=kept, seen=seen,
    )  # fmt: skip
    pa.default_memory_pool().release_unused()  # what the first look at the files took
    scorer = Scorer(request, weighted=aligner.weighted, n_rows=pair.n_rows)
    question = Question(
        request.weighting, request.outside,
        keep=request.keep != "scores" or scorer.needs_all, named=request.keep != "scores",
        rows=questions.told, negatives=scorer.rows_need_negatives, own=scorer.own,
    )  # fmt: skip
    widest = max(label_bytes(side.labels) for side in aligner.firsts) if question.named else 0
    layout = Layout.of(pair.n_rows, request.limit, widest)
    announce(pair, aligner, layout, question.keep, request.limit, spill, pool)

    blocks = RowBlocks(spill) if questions else None
    rows = ShardedRows(
        pair.n_rows, aligner, layout, spill, aligner.weighted, pool, blocks, request.limit,
        one_by_one=question.asks_each_row, weighs_pairs=question.own is not None,
    )  # fmt: skip
    with pool.wider() as readers:
        coverage = aligner.run(rows.take, readers)
    pa.default_memory_pool().release_unused()  # what reading took
    parts = CellParts(rows.all_shards(), question, pool)
    scored, bounds = scorer.score_with_bounds(parts, coverage, pool)
    names = _names(pair, aligner, parts, layout, spill, pool)

    how = {"weighted": aligner.weighted, "weighting": request.weighting, "outside": request.outside}
    cells: Any = parts.whole if question.named else NoCells(parts.n_items, **how)  # type: ignore[arg-type]
    sliced: dict[str, pa.Table] = {}
    items = None
    if blocks is not None and parts.rows is not None:
        buffers.release()
        told = blocks.with_cells(parts.rows, pool)
        held = None if request.out is None else HeldRows.of(parts.whole, request.limit // HELD_SHARE, pool)
        sliced, stored = questions.answer(
            told, how, scored.metrics, request.beta, request.out, spill, request.limit, held
        )
        if stored is not None:
            cells.rows = StoredRows(stored, weighted=aligner.weighted)
            items = StoredItems(stored, questions.left_out)
    return Answer(
        "disk", cells, scored, coverage, pair.names, items, names,
        sliced=sliced,
        ranges=_ranges(parts, request, widest, pool),
        summary=describe(parts.sizes, parts.n_items, dict.fromkeys(parts.sizes, parts.n_exact)),
        bounds=bounds,
        notes=notes_of(aligner.firsts),
        pair=pair,
        contents=None if seen is None else seen.contents(),
        change_if_alone=parts.recall_if_alone,
    )  # fmt: skip


def announce(
    pair: Pair, aligner: Aligner, layout: Layout, keeps_cells: bool, limit: int, spill: Spill, pool: Pool
) -> None:
    """Tell the plan, and raise if the disk has no room for it."""
    row_bytes = 24 if aligner.weighted else 16
    announce_spill(
        f"{pair.n_rows:,} rows, {1 << layout.bits} shard{'s' * (layout.bits > 0)}",
        pair.n_rows,
        aligner.expected_spill + layout.expected_spill(pair.n_rows, row_bytes),
        limit,
        spill,
        pool,
        beside=", besides the cells that are kept" * keeps_cells,
    )


def announce_spill(
    what: str, n_rows: int, expected: int, limit: int, spill: Spill, pool: Pool, beside: str = ""
) -> None:
    """Tell the plan of so many rows, and raise if the disk has no room for what is expected to be spilled."""
    spill.require_free(expected)
    pool.spilled = lambda: spill.written
    pool.announce(f"disk engine: {what}, limit {readable(limit)}; {spill.describe(expected)}{beside}", n_rows)


def _names(
    pair: Pair, aligner: Aligner, parts: CellParts, layout: Layout, spill: Spill, pool: Pool
) -> NamesByKey | None:
    """Return what names the clusters, if their keys were kept."""
    if parts.keys is None:
        return None
    labels = [side.labels for side in aligner.firsts]
    return NamesByKey(
        pair, labels, aligner.seeds, aligner.made_keys, parts.keys, layout.bits, spill.directory, pool.threads
    )


def _ranges(parts: CellParts, request: Request, widest: int, pool: Pool) -> ClusterRanges | None:
    """Return what works out the clusters range by range, if the cells were kept."""
    if parts.whole is None or parts.keys is None:
        return None
    directory = spill_directory(request.spill_dir)
    return ClusterRanges(parts.whole, parts.keys, request.limit // 2, directory, pool.threads, widest)


def block_rows(limit: int) -> int:
    """Return how many rows a block may have."""
    return min(BLOCK_ROWS, max(1 << 12, limit // BLOCK_SHARE))


class ShardedRows:
    """Takes aligned blocks into shards, which are laid out when the first block shows the large clusters."""

    def __init__(
        self,
        n_rows: int,
        aligner: Aligner,
        layout: Layout,
        spill: Spill,
        weighted: bool,
        pool: Pool,
        blocks: RowBlocks | None,
        limit: int,
        *,
        one_by_one: bool = False,
        weighs_pairs: bool = False,
    ) -> None:
        """Lay out the shards as soon as that can be; see `RowShards`. Rows may have to be stored `one_by_one`."""
        self._one_by_one, self._weighs_pairs = one_by_one, weighs_pairs
        self._n_rows, self._aligner, self._layout, self._blocks = n_rows, aligner, layout, blocks
        self._spill, self._weighted, self._pool = spill, weighted, pool
        self._rows_at_once = min(n_rows, block_rows(limit))
        self.shards: RowShards | None = None
        if not aligner.by_item:
            self._lay_out(*aligner.sample_of_keys())

    def _lay_out(self, true_keys: np.ndarray, pred_keys: np.ndarray) -> None:
        """Choose the clusters that are too large for one shard, from a sample of the keys of either side."""
        heavy = find_heavy_in_sample(pred_keys)
        self._spread = Spread.of(
            heavy[heavy != self._aligner.absent_key], self._aligner.absent_key, self._layout.bits
        )
        absent = self._aligner.absent_key if self._aligner.may_lack else None
        table = PairTable.of_sample(self._rows_at_once, true_keys, pred_keys)
        pairs = None if self._one_by_one else table
        self.shards = RowShards(
            self._n_rows, find_heavy_in_sample(true_keys), absent, weighted=self._weighted,
            layout=self._layout, spill=self._spill, spread=self._spread, pairs=pairs,
            weighs_pairs=self._weighs_pairs,
        )  # fmt: skip

    def all_shards(self) -> RowShards:
        """Return the shards, when all blocks have been taken."""
        assert self.shards is not None
        return self.shards

    def take(self, block: AlignedBlock) -> None:
        """Take a block; the first one comes alone."""
        if self.shards is None:
            step = max(1, block.true_keys.size >> 14)
            self._lay_out(block.true_keys[::step], block.pred_keys[::step])
        assert self.shards is not None
        if self._spread.is_taken(block.pred_keys):
            raise Retry(seed=False)
        places = self.shards.put(
            block.index, block.true_keys, block.pred_keys, block.weight, self._pool,
            placed=self._blocks is not None,
        )  # fmt: skip
        if self._blocks is not None and places is not None and places.size:
            self._blocks.put(block, places)
