"""Scoring in shards, where not all rows fit in memory: blocks → alignment → shards → cells → scores (→ rows)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fastbcubed.alignment.align import starts_of_runs
from fastbcubed.alignment.aligner import Aligner
from fastbcubed.alignment.block_keys import Retry
from fastbcubed.alignment.policies import Coverage, Policies
from fastbcubed.alignment.row_aligner import AlignedBlock, Choice
from fastbcubed.cells.counting import NoCells, Outcome, Question, count_cells, find_heavy
from fastbcubed.cells.row_blocks import RowBlocks
from fastbcubed.cells.shards import Layout, RowShards
from fastbcubed.cells.spread import Spread
from fastbcubed.clusterings.inputs import PerSide
from fastbcubed.clusterings.stretches import Pair, open_pair
from fastbcubed.errors import OptionError, PairingError
from fastbcubed.metrics import aggregation
from fastbcubed.metrics.metric import Metric
from fastbcubed.metrics.registry import resolve
from fastbcubed.results.cluster_names import NamesByKey
from fastbcubed.results.cluster_tables import ClusterRanges
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.row_questions import RowQuestions
from fastbcubed.results.scores import Scores
from fastbcubed.results.slicing import SliceKey
from fastbcubed.results.stored_items import StoredItems, StoredRows, StoredTable
from fastbcubed.runtime import buffers
from fastbcubed.runtime.pool import Pool
from fastbcubed.runtime.spill import Spill, readable, spill_directory
from fastbcubed.sources.blocks import BLOCK_ROWS

__all__ = ["evaluate_in_shards"]

#: Rows of a block for each byte of the limit: few enough that blocks are a small part of it.
BLOCK_SHARE = 1 << 10
ATTEMPTS = 8


def evaluate_in_shards(
    truth: Any,
    prediction: Any,
    policies: Policies,
    chosen: Any,
    *,
    item: PerSide,
    cluster: PerSide,
    weight: Any,
    table: Any,
    weighting: str,
    beta: float,
    attributes: Any,
    slices: Sequence[SliceKey],
    keep: str,
    out: Path | None,
    limit: int,
    spill_dir: Any,
    pool: Pool,
) -> Evaluation:
    """Score two clusterings with the disk engine.

    Parameters
    ----------
    truth, prediction, item, cluster, weight, table, weighting, beta, attributes, keep, spill_dir
        As for `evaluate`.
    policies : Policies
        What to do about unmatched items, nulls, duplicates and noise.
    chosen : list of str or Metric, or None
        The scores.
    slices : sequence
        What to slice by.
    out : Path or None
        Where the items go that are kept.
    limit : int
        Bytes of memory that may be used.
    pool : Pool
        The threads.
    """
    if weighting not in ("pointwise", "outer"):
        raise OptionError(f'weighting is "pointwise" or "outer", not {weighting!r}')
    pair = open_pair(
        truth, prediction, item=item, cluster=cluster, weight=weight, table=table, attributes=attributes,
        size=_block_rows(limit), spill_dir=spill_dir, every=bool(slices) or keep == "items",
    )  # fmt: skip
    how = How(
        pair, policies, chosen, weighting, beta, keep, RowQuestions.of(pair, slices, keep), table is not None,
        limit, out, spill_dir,
    )  # fmt: skip
    found = _answer(how, pool)
    if out is not None:  # what is written takes memory of its own
        buffers.release()
        pa.default_memory_pool().release_unused()
    outcome = found.outcome
    cells: Any = outcome.contingency if keep != "scores" else None
    if cells is None:
        n_items = outcome.summary["true"]["items"]
        cells = NoCells(n_items, found.weighted, weighting, policies.prediction == "outside")
    ranges = None
    if outcome.contingency is not None and outcome.keys is not None:
        ranges = ClusterRanges(
            outcome.contingency, outcome.keys, limit // 2, spill_directory(spill_dir), pool.threads
        )
    items = None
    if found.items is not None:
        cells.rows = StoredRows(found.items, weighted=found.weighted)
        items = StoredItems(found.items, how.of_rows.left_out)
    ev = Evaluation(
        cells,
        found.metrics,
        beta,
        found.coverage,
        policies,
        Scores(found.scores),
        items,
        found.names,
        not_computed=found.not_computed,
        names=dict(zip(("truth", "prediction"), pair.names, strict=True)),
        sliced=found.sliced,
        engine="disk",
        ranges=ranges,
    )
    ev.summary, ev.bounds = outcome.summary, outcome.bounds
    return ev


@dataclass(frozen=True)
class How:
    """What is to be evaluated, and how; see `evaluate_in_shards`."""

    pair: Pair
    policies: Policies
    chosen: Any
    weighting: str
    beta: float
    keep: str
    of_rows: RowQuestions
    null_is_absent: bool
    limit: int
    out: Path | None
    spill_dir: Any


@dataclass(frozen=True)
class _Answer:
    """What an evaluation is made of."""

    outcome: Outcome
    scores: dict[str, float]
    metrics: list[Metric]
    not_computed: dict[str, str]
    coverage: Coverage
    weighted: bool
    names: NamesByKey | None
    sliced: dict[str, pa.Table]
    items: StoredTable | None


def _answer(how: How, pool: Pool) -> _Answer:
    """Score two clusterings in blocks."""
    starts = starts_of_runs()
    choice = Choice(0, next(starts))
    for _ in range(ATTEMPTS):
        try:
            with Spill(how.spill_dir, named=how.spill_dir is not None) as spill:
                return _attempt(how, choice, spill, pool)
        except Retry as retry:
            choice = Choice(choice.seed + retry.seed, choice.start if retry.seed else next(starts))
    raise RuntimeError("keys collide whatever the hash function")  # cannot happen by chance


def _attempt(how: How, choice: Choice, spill: Spill, pool: Pool) -> _Answer:
    pair, policies, limit, of_rows = how.pair, how.policies, how.limit, how.of_rows
    outer, outside = how.weighting == "outer", policies.prediction == "outside"
    aligner = Aligner(
        pair, policies, choice, spill, limit, pool,
        outer=outer, null_is_absent=how.null_is_absent, carried=of_rows.carried,
    )  # fmt: skip
    weighted = aligner.weighted
    metrics, not_computed = resolve(
        how.chosen,
        weighted=weighted,
        weighting=how.weighting,
        outside=outside,
        cells_alone=True,
        beta=how.beta,
    )
    needed = aggregation.with_needs(metrics, how.beta)
    streamed = [m for m in needed if m.formula is not None and not m.uses_tn]
    whole = [m for m in needed if m.score is not None or m.uses_tn]
    layout = Layout.of(pair.n_rows, limit)
    expected = aligner.expected_spill + layout.expected_spill(pair.n_rows, 24 if weighted else 16)
    spill.require_free(expected)
    holds = how.keep != "scores" or bool(whole)
    pool.spilled = lambda: spill.written
    pool.announce(
        f"disk engine: {pair.n_rows:,} rows, {1 << layout.bits} shard{'s' * (layout.bits > 0)}, "
        f"limit {readable(limit)}; {spill.describe(expected)}{', besides the cells that are kept' * holds}",
        pair.n_rows,
    )
    blocks = RowBlocks(spill) if of_rows else None
    rows = _Rows(pair.n_rows, aligner, layout, spill, weighted, pool, blocks)
    with pool.wider() as readers:
        coverage = aligner.run(rows.take, readers)
    question = Question(
        streamed, how.weighting, outside,
        bounds=policies.prediction == "drop" and coverage.n_prediction_only > 0,
        keep=holds, named=how.keep != "scores", rows=of_rows.told,
        metrics_of_rows=aggregation.grouped(needed),
    )  # fmt: skip
    assert rows.shards is not None
    outcome = count_cells(rows.shards, question, pool)
    means = dict(outcome.means)
    if outcome.contingency is not None:
        by_tn = [m for m in whole if m.formula is not None]
        means |= aggregation.item_means([aggregation.item_sums(outcome.contingency, by_tn, pool)])
    try:
        scores = aggregation.finished(metrics, means, how.beta, outcome.contingency, pool)
    except PairingError as error:  # a family may do without the scores that take a pairing
        hopeless = [m.name for m in metrics if m.pairs_clusters]
        named = {how.chosen} if isinstance(how.chosen, str) else set(how.chosen or ())
        if set(hopeless) & named:
            raise
        metrics = [m for m in metrics if not m.pairs_clusters]
        not_computed += [(name, str(error)) for name in hopeless]
        scores = aggregation.finished(metrics, means, how.beta, outcome.contingency, pool)
    names = None
    if outcome.keys is not None:
        labels = [side.labels for side in aligner.firsts]
        names = NamesByKey(
            pair,
            labels,
            aligner.seeds,
            aligner.made_keys,
            outcome.keys,
            layout.bits,
            spill.directory,
            pool.threads,
        )
    sliced: dict[str, pa.Table] = {}
    items = None
    if blocks is not None and outcome.rows is not None:
        found = blocks.with_cells(outcome.rows, pool)
        kind = {"weighted": weighted, "weighting": how.weighting, "outside": outside}
        sliced, items = of_rows.answer(found, kind, metrics, how.beta, how.out, spill.directory)
        outcome.rows = None  # and the memory that goes with them
    return _Answer(outcome, scores, metrics, dict(not_computed), coverage, weighted, names, sliced, items)


def _block_rows(limit: int) -> int:
    """Return how many rows a block may have."""
    return min(BLOCK_ROWS, max(1 << 12, limit // BLOCK_SHARE))


class _Rows:
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
    ) -> None:
        self._n_rows, self._aligner, self._layout, self._blocks = n_rows, aligner, layout, blocks
        self._spill, self._weighted, self._pool = spill, weighted, pool
        self.shards: RowShards | None = None
        if not aligner.by_item:
            self._lay_out(*aligner.sample_of_keys())

    def _lay_out(self, true_keys: np.ndarray, pred_keys: np.ndarray) -> None:
        """Choose the clusters that are too large for one shard, from a sample of the keys of either side."""
        heavy = find_heavy(pred_keys)
        self._spread = Spread.of(
            heavy[heavy != self._aligner.absent_key], self._aligner.absent_key, self._layout.bits
        )
        absent = self._aligner.absent_key if self._aligner.may_lack else None
        self.shards = RowShards(
            self._n_rows, find_heavy(true_keys), absent, absent, weighted=self._weighted,
            layout=self._layout, spill=self._spill, spread=self._spread,
        )  # fmt: skip

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
