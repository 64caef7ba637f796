"""The memory engine: all rows in memory, and all cells in one part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed.align.policies import Coverage
from fastbcubed.align.row_blocks import number_type
from fastbcubed.align.rows import align
from fastbcubed.cells.build import TrueRows, build_cells
from fastbcubed.cells.contingency import SIDES, Contingency
from fastbcubed.cells.partitioned import WIDE, Plan, find_heavy
from fastbcubed.engines.request import Answer, Labels, Request
from fastbcubed.engines.scoring import OnePart, Scorer
from fastbcubed.inputs.pair import Pair, open_pair
from fastbcubed.inputs.reading_notes import notes_of, readings_of
from fastbcubed.overlap.cover import build_cover
from fastbcubed.results.clusters import NumbersByKey
from fastbcubed.results.items import AlignedItems, AttributeTable, CoverItems
from fastbcubed.runtime.key_partitions import PART_ROWS, part_bits
from fastbcubed.runtime.threads import Pool

if TYPE_CHECKING:
    from fastbcubed.align.align_runs import Together

#: Number of rows of both sides from which a plan is announced before the work.
LARGE = 20_000_000


def run(request: Request, pool: Pool) -> Answer:
    """Read both sides, align them, build and score the cells, and return the answer."""
    pair = open_pair(request.given)
    n_rows = sum(map(len, pair.first))
    if n_rows > LARGE:
        pool.announce(f"memory engine: {n_rows:,} rows of both sides, {pool.threads} threads", n_rows)
    return answer(pair, build(pair, request, pool), request, pool)


def answer(pair: Pair, built: Built, request: Request, pool: Pool) -> Answer:
    """Score the cells of a pair, and return the answer."""
    scored = Scorer(request, weighted=built.cells.weighted).score(OnePart(built.cells), pool)
    table = pair.attribute_table
    attributes = None if table is None else AttributeTable(*table, built.items)
    return Answer(
        "memory", built.cells, scored, built.coverage, pair.names, built.items, built.labels, attributes,
        notes=notes_of(pair.first) + ([] if attributes is None else attributes.notes()),
        reading=readings_of(pair.first),
        pair=pair,
        change_if_alone=built.cells.recall_if_alone,
    )  # fmt: skip


class Built(NamedTuple):
    """The cells of both sides, the items in them, and the labels of clusters if the items do not have them."""

    coverage: Coverage
    cells: Contingency
    items: AlignedItems
    labels: Labels | None = None


def build(pair: Pair, request: Request, pool: Pool) -> Built:
    """Align the two sides and build their cells."""
    if request.given.overlapping:
        covered = build_cover(
            pair,
            request.policies,
            pool,
            weighting=request.weighting,
            max_pairs=request.max_pairs,
        )
        items = CoverItems(covered)
        return Built(covered.coverage, covered.cover, items, items.cluster_labels)
    rows = align(
        *pair.first,
        request.policies,
        pool,
        weight_table=pair.weight_table,
        outer=request.outer,
        narrow=True,
    )
    kinds = [number_type(side.labels) for side in (rows.truth, rows.prediction)]
    cells = build_cells(
        rows, pool, weighting=request.weighting, outside=request.outside,
        with_keys=request.names_clusters and None not in kinds,
    )  # fmt: skip
    labels = None
    if cells.cluster_keys is not None:
        labels = NumbersByKey(dict(zip(SIDES, kinds, strict=True)), cells.cluster_keys, rows.made_keys)
    return Built(rows.coverage, cells, AlignedItems(rows), labels)


class Answers(NamedTuple):
    """The answer of each run on the common items, and the number of items and the coverage of each run alone."""

    runs: list[Answer]
    n_scored: list[int]
    coverage: list[Coverage]
    #: keys of each run's true clusters by code, comparable between runs; None if the codes are comparable
    true_keys: list[NDArray[np.int64]] | None = None
    #: function of a request and the number of a run that scores the run on all of its items, while the pool is open
    alone: Callable[[Request, int], Answer] | None = None


def run_several(pairs: Sequence[Pair], names: Sequence[str], request: Request, pool: Pool) -> Answers:
    """Align the runs, build their cells and score them; `request` applies to all of them."""
    from fastbcubed.align.align_runs import align_together

    found = align_together(
        [pair.first for pair in pairs],
        names,
        request.policies,
        pool,
        weight_table=pairs[0].weight_table,
        outer=request.outer,
    )
    plans = _plans(found)
    truth = _shared_truth(found, plans, pool)
    answers = []
    for pair, rows, plan, complete in zip(pairs, found.runs, plans, found.complete, strict=True):
        cells = build_cells(
            rows, pool, weighting=request.weighting, outside=request.outside, plan=plan, truth=truth
        )
        built = Built(rows.coverage, cells, AlignedItems(rows))
        apart = not complete and request.counts_mentions(weighted=cells.weighted)
        found_here = replace(request, of_mentions=False) if apart else request
        common = replace(answer(pair, built, found_here, pool), complete=complete)
        if apart:
            own = answer(pair, build(pair, request, pool), replace(request, of_mentions=True), pool)
            common = common.with_mentions(own, request)
        answers.append(common)

    def alone(request: Request, k: int) -> Answer:
        return answer(pairs[k], build(pairs[k], request, pool), request, pool)

    return Answers(answers, found.n_scored, found.coverage, alone=alone)


def _shared_truth(found: Together, plans: list[Plan], pool: Pool) -> TrueRows | None:
    """Return the truth's rows sorted by part; None unless all runs have the same rows and no cluster is heavy."""
    if len(found.runs) == 1 or any(plan.n_rows > found.n_common or plan.heavy.size for plan in plans):
        return None
    return TrueRows.of(plans[0], found.runs[0].true_keys, found.runs[0].weight, pool)


def _plans(found: Together) -> list[Plan]:
    """Return plans of the runs by which a true cluster has the same code in all of them.

    The code depends on the part, the heavy clusters, and the rows that have true keys.
    """
    n_rows = max(len(rows) for rows in found.runs)
    bits = part_bits(n_rows, PART_ROWS)
    true_keys = found.runs[0].true_keys[: found.n_common]
    heavy = find_heavy([true_keys])[: None if bits else 0]
    absent = next((rows.absent_true for rows in found.runs if rows.absent_true is not None), None)
    return [Plan.of(len(rows), bits, heavy, absent, None, wide=n_rows >= WIDE) for rows in found.runs]
