"""The memory engine: all rows at hand, and one part of cells."""

from __future__ import annotations

from typing import NamedTuple

from fastbcubed.alignment.align import align
from fastbcubed.alignment.policies import Coverage
from fastbcubed.cells.build import build_cells
from fastbcubed.cells.contingency import Contingency
from fastbcubed.clusterings.input_notes import notes_of
from fastbcubed.clusterings.stretches import Pair, open_pair
from fastbcubed.engines.request import Answer, Labels, Request
from fastbcubed.engines.scoring import OnePart, Scorer
from fastbcubed.overlap.overlapping import build_cover
from fastbcubed.results.items.cover_items import CoverItems
from fastbcubed.results.items.items import AlignedItems, AttributeTable
from fastbcubed.runtime.pool import Pool

#: Rows of both sides from which on a plan is told before the work.
LARGE = 20_000_000


def run(request: Request, pool: Pool) -> Answer:
    """Read both sides, align them, build the cells, and score these."""
    pair = open_pair(request.given)
    _announce(pair, pool)
    return answer(pair, build(pair, request, pool), request, pool)


def answer(pair: Pair, built: Built, request: Request, pool: Pool) -> Answer:
    """Score the cells of a pair, and return what is known of it."""
    scored = Scorer(request, weighted=built.cells.weighted).score(OnePart(built.cells), pool)
    table = pair.attribute_table
    attributes = None if table is None else AttributeTable(*table, built.items)
    return Answer(
        "memory", built.cells, scored, built.coverage, pair.names, built.items, built.labels, attributes,
        notes=notes_of(pair.first),
        pair=pair,
        change_if_alone=built.cells.recall_if_alone,
    )  # fmt: skip


class Built(NamedTuple):
    """The cells of both sides, the items behind them, and what names clusters where items cannot."""

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
            null_is_absent=request.null_is_absent,
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
        null_is_absent=request.null_is_absent,
        narrow=True,
    )
    cells = build_cells(rows, pool, weighting=request.weighting, outside=request.outside)
    return Built(rows.coverage, cells, AlignedItems(rows))


def _announce(pair: Pair, pool: Pool) -> None:
    n_rows = sum(map(len, pair.first))
    if n_rows > LARGE:
        pool.announce(f"memory engine: {n_rows:,} rows of both sides, {pool.threads} threads", n_rows)
