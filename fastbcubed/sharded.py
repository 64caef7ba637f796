"""Scoring in shards, where not all rows fit in memory: blocks → alignment → shards → cells → scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fastbcubed import aggregation
from fastbcubed.alignment import starts_of_runs
from fastbcubed.block_keys import Retry
from fastbcubed.engines.disk import Layout, RowShards
from fastbcubed.engines.pool import Pool
from fastbcubed.engines.spill import Spill
from fastbcubed.errors import OptionError
from fastbcubed.evaluation import Evaluation
from fastbcubed.inputs import PerSide
from fastbcubed.metrics.metric import Metric
from fastbcubed.metrics.registry import resolve
from fastbcubed.ondisk import AlignedBlock, NoCells, Outcome, Question, count_cells, find_heavy
from fastbcubed.pairs import Pair, open_pair
from fastbcubed.policies import Coverage, Policies
from fastbcubed.scores import Scores
from fastbcubed.sources.blocks import BLOCK_ROWS
from fastbcubed.streaming import Aligner, Choice

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
    keep: bool,
    limit: int,
    spill_dir: Any,
    pool: Pool,
) -> Evaluation:
    """Score two clusterings with the disk engine.

    Parameters
    ----------
    truth, prediction, item, cluster, weight, table, weighting, beta, spill_dir
        As for `evaluate`.
    policies : Policies
        What to do about unmatched items, nulls, duplicates and noise.
    chosen : list of str or Metric, or None
        The scores.
    keep : bool
        Whether to keep the cells.
    limit : int
        Bytes of memory that may be used.
    pool : Pool
        The threads.
    """
    if weighting not in ("pointwise", "outer"):
        raise OptionError(f'weighting is "pointwise" or "outer", not {weighting!r}')
    pair = open_pair(
        truth, prediction, item=item, cluster=cluster, weight=weight, table=table, size=_block_rows(limit),
        spill_dir=spill_dir,
    )  # fmt: skip
    found = _answer(
        pair, policies, chosen, weighting=weighting, beta=beta, keep=keep, null_is_absent=table is not None,
        limit=limit, spill_dir=spill_dir, pool=pool,
    )  # fmt: skip
    outcome = found.outcome
    cells: Any = outcome.contingency if keep else None
    if cells is None:
        n_items = outcome.summary["true"]["items"]
        cells = NoCells(n_items, found.weighted, weighting, policies.prediction == "outside")
    ev = Evaluation(
        cells,
        found.metrics,
        beta,
        found.coverage,
        policies,
        Scores(found.scores),
        None,
        not_computed=found.not_computed,
        names=dict(zip(("truth", "prediction"), pair.names, strict=True)),
        engine="disk",
    )
    ev.summary, ev.bounds = outcome.summary, outcome.bounds
    return ev


@dataclass(frozen=True)
class _Answer:
    """What an evaluation is made of."""

    outcome: Outcome
    scores: dict[str, float]
    metrics: list[Metric]
    not_computed: dict[str, str]
    coverage: Coverage
    weighted: bool


def _answer(
    pair: Pair,
    policies: Policies,
    chosen: Any,
    *,
    weighting: str,
    beta: float,
    keep: bool,
    null_is_absent: bool,
    limit: int,
    spill_dir: Any,
    pool: Pool,
) -> _Answer:
    """Score two clusterings in blocks.

    Parameters
    ----------
    pair : Pair
        The two sides.
    policies : Policies
        What to do about unmatched items, nulls, duplicates and noise.
    chosen : list of str or Metric, or None
        The scores.
    weighting, beta
        As for `evaluate`.
    keep : bool
        Whether to keep the cells.
    null_is_absent : bool
        Whether a null cluster says "not on that side".
    limit : int
        Bytes of memory that may be used.
    spill_dir : path or None
        Where to spill.
    pool : Pool
        The threads.
    """
    starts = starts_of_runs()
    choice = Choice(0, next(starts))
    for _ in range(ATTEMPTS):
        try:
            with Spill(spill_dir, named=spill_dir is not None) as spill:
                return _attempt(
                    pair, policies, chosen, choice, spill, weighting=weighting, beta=beta, keep=keep,
                    null_is_absent=null_is_absent, limit=limit, pool=pool,
                )  # fmt: skip
        except Retry as retry:
            choice = Choice(choice.seed + retry.seed, choice.start if retry.seed else next(starts))
    raise RuntimeError("keys collide whatever the hash function")  # cannot happen by chance


def _attempt(
    pair: Pair,
    policies: Policies,
    chosen: Any,
    choice: Choice,
    spill: Spill,
    *,
    weighting: str,
    beta: float,
    keep: bool,
    null_is_absent: bool,
    limit: int,
    pool: Pool,
) -> _Answer:
    outer, outside = weighting == "outer", policies.prediction == "outside"
    aligner = Aligner(pair, policies, choice, spill, limit, pool, outer=outer, null_is_absent=null_is_absent)
    weighted = aligner.weighted
    metrics, not_computed = resolve(
        chosen, weighted=weighted, weighting=weighting, outside=outside, beta=beta
    )
    needed = aggregation.with_needs(metrics, beta)
    streamed = [m for m in needed if m.formula is not None and not m.uses_tn]
    whole = [m for m in needed if m.score is not None or m.uses_tn]
    layout = Layout.of(pair.n_rows, limit)
    spill.require_free(aligner.expected_spill + layout.expected_spill(pair.n_rows, 24 if weighted else 16))
    rows = _Rows(pair.n_rows, aligner, layout, spill, weighted, pool)
    coverage = aligner.run(rows.take)
    question = Question(
        streamed, weighting, outside,
        bounds=policies.prediction == "drop" and coverage.n_prediction_only > 0,
        keep=keep or bool(whole),
    )  # fmt: skip
    assert rows.shards is not None
    outcome = count_cells(rows.shards, question, pool)
    means = dict(outcome.means)
    if outcome.contingency is not None:
        by_tn = [m for m in whole if m.formula is not None]
        means |= aggregation.item_means([aggregation.item_sums(outcome.contingency, by_tn, pool)])
    scores = aggregation.finished(metrics, means, beta, outcome.contingency, pool)
    return _Answer(outcome, scores, metrics, dict(not_computed), coverage, weighted)


def _block_rows(limit: int) -> int:
    """Return how many rows a block may have."""
    return min(BLOCK_ROWS, max(1 << 12, limit // BLOCK_SHARE))


class _Rows:
    """Takes aligned blocks into shards, which are laid out when the first block shows the large clusters."""

    def __init__(
        self, n_rows: int, aligner: Aligner, layout: Layout, spill: Spill, weighted: bool, pool: Pool
    ) -> None:
        self._n_rows, self._aligner, self._layout = n_rows, aligner, layout
        self._spill, self._weighted, self._pool = spill, weighted, pool
        self.shards: RowShards | None = None
        if not aligner.by_item:
            self._lay_out(aligner.sample_of_true_keys())

    def _lay_out(self, sample: list[np.ndarray]) -> None:
        absent = self._aligner.absent_key if self._aligner.may_lack else None
        self.shards = RowShards(
            self._n_rows, find_heavy(sample), absent, absent, weighted=self._weighted,
            layout=self._layout, spill=self._spill,
        )  # fmt: skip

    def take(self, block: AlignedBlock) -> None:
        """Take a block; the first one comes alone."""
        if self.shards is None:
            self._lay_out([block.true_keys[:: max(1, block.true_keys.size >> 14)]])
        assert self.shards is not None
        self.shards.put(block.index, block.true_keys, block.pred_keys, block.weight, self._pool)
