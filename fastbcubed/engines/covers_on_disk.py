"""The disk engine where clusters may overlap: blocks → items with their clusters, in shards → covers → scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import fsum
from typing import Any

import numpy as np
import pyarrow as pa

from fastbcubed.alignment.aligner import Aligner
from fastbcubed.alignment.row_aligner import Choice
from fastbcubed.cells.cell_parts import NoCells
from fastbcubed.clusterings.input_notes import notes_of
from fastbcubed.clusterings.stretches import Pair, open_pair
from fastbcubed.engines.disk import announce_spill, attempt, cut_for
from fastbcubed.engines.request import Answer, Request
from fastbcubed.engines.room import require_room, scores_of_whole_covers
from fastbcubed.engines.scoring import Scorer
from fastbcubed.errors import OptionError
from fastbcubed.overlap.cover_shards import CoverShards, How
from fastbcubed.overlap.covers import Cover
from fastbcubed.overlap.gathered_rows import gather_rows
from fastbcubed.results.listings.summary import describe
from fastbcubed.results.slices.row_questions import RowQuestions
from fastbcubed.results.slices.slice_sums import require_slices_fit
from fastbcubed.results.slices.slicing import as_subset
from fastbcubed.runtime.pool import Pool
from fastbcubed.runtime.spill import Spill

#: Bytes that are spilled for a membership, about, if few items are in several clusters.
MEMBERSHIP = 120


def unserved(request: Request) -> str | None:
    """Return what is asked for that cannot be had where not all cells are held; None if all can."""
    if request.keep == "items" or (request.out is not None and request.keep != "scores"):
        return (
            'the disk engine keeps neither cells nor items of overlapping clusterings; pass keep="scores", or '
            'engine="memory"'
        )
    subsets = (each for key in request.slices if isinstance(key, Mapping) for each in key.items())
    for name, which in subsets:
        if as_subset(which, repr(name))[0] is not None:
            return (
                f"{name!r} is a mask of items by position, which the disk engine does not know where clusters overlap; "
                'pass a list of items, or engine="memory"'
            )
    return None


def serves(request: Request) -> bool:
    """Tell whether all that is asked for can be had, every score included."""
    return unserved(request) is None and not scores_of_whole_covers(request.resolve()[0])


def run(request: Request, pool: Pool) -> Answer:
    """Open both sides in blocks, and score them."""
    if (reason := unserved(request)) is not None:
        raise OptionError(reason)
    require_room(request)
    pair = open_pair(request.given, cut_for(request))
    return attempt(lambda choice: score(pair, request, choice, pool))


def score(pair: Pair, request: Request, choice: Choice, pool: Pool) -> Answer:
    """Score two sides. Raises Retry if keys collide."""
    questions = RowQuestions.of(pair, request.slices, request.keep)
    with Spill(request.spill_dir, named=request.spill_dir is not None) as spill:
        return _score(pair, questions, request, choice, spill, pool)


def _score(
    pair: Pair, questions: RowQuestions, request: Request, choice: Choice, spill: Spill, pool: Pool
) -> Answer:
    """Bring the rows of each item together, shard by shard, make covers of the shards, and score these."""
    aligner = Aligner(
        pair, request.policies, choice, spill, request.limit, pool,
        outer=request.outer, null_is_absent=request.null_is_absent, carried=questions.carried, gather=gather_rows,
    )  # fmt: skip
    scorer = Scorer(request, weighted=aligner.weighted, n_rows=pair.n_rows)
    by_own_weight = aligner.weighted and not request.outer and scorer.takes_items
    how = How(
        aligner.weighted, request.weighting, request.policies,
        asks_rows=bool(questions) or by_own_weight, max_pairs=request.max_pairs,
    )  # fmt: skip
    expected = max(0, aligner.expected_spill + MEMBERSHIP * pair.n_rows - request.limit // 4)
    announce_spill(f"{pair.n_rows:,} memberships", pair.n_rows, expected, request.limit, spill, pool)
    shards = CoverShards(how, request.limit, spill)
    with pool.wider() as readers:
        coverage = aligner.run(shards.take, readers)
    pa.default_memory_pool().release_unused()  # what reading took
    parts = Covers(shards, questions, scorer, request, spill, pool)
    scored, bounds = scorer.score_with_bounds(parts, coverage, pool)
    sizes = {side: counts.histogram() for side, counts in shards.sizes.items()}
    cells: Any = NoCells(shards.n_items, how.weighted, how.weighting, how.outside, overlapping=True)
    return Answer(
        "disk", cells, scored, coverage, pair.names, None,
        sliced=parts.sliced(),
        summary=describe(sizes, shards.n_items, shards.n_exact),
        bounds=bounds,
        notes=notes_of(aligner.firsts),
        pair=pair,
    )  # fmt: skip


class Covers:
    """The covers of all shards, whose items are added to slices on their way to the scorer."""

    whole = None
    of_items = ()

    def __init__(
        self,
        shards: CoverShards,
        questions: RowQuestions,
        scorer: Scorer,
        request: Request,
        spill: Spill,
        pool: Pool,
    ) -> None:
        self._shards, self._pool, self._limit = shards, pool, request.limit
        self._sums = questions.sums(scorer.metrics, request.beta, spill)
        self._weights: list[float] = []

    def __iter__(self) -> Iterator[Cover]:
        for cover, rows in self._shards.covers(self._pool):
            if rows is not None:
                for each in self._sums.values():
                    each.add_block(rows, cover)
                require_slices_fit(self._sums, self._limit)
            if cover is not None:
                self._weights.append(float(np.sum(cover.weight)))
                yield cover

    def sliced(self) -> dict[str, pa.Table]:
        """Return the slices by name, when all covers have passed."""
        return {name: each.result(fsum(self._weights)) for name, each in self._sums.items()}
