"""The memory engine for several runs: aligned with one truth together, each with cells of its own.

The codes of true clusters are the same in the cells of all runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed.alignment.policies import Coverage
from fastbcubed.alignment.together import Together, align_together
from fastbcubed.cells.build import build_cells
from fastbcubed.cells.planning import WIDE, Plan, find_heavy
from fastbcubed.cells.true_rows import TrueRows
from fastbcubed.clusterings.stretches import Pair
from fastbcubed.engines import memory
from fastbcubed.engines.request import Answer, Request
from fastbcubed.results.items.items import AlignedItems
from fastbcubed.runtime.parts import PART_ROWS, part_bits
from fastbcubed.runtime.pool import Pool


class Answers(NamedTuple):
    """What the engine answers of each run on the items that all score, and how far each goes beyond these."""

    runs: list[Answer]
    n_scored: list[int]
    coverage: list[Coverage]
    #: keys of the true clusters of each run by code, the same in all runs; None where their codes are the same
    true_keys: list[NDArray[np.int64]] | None = None
    #: scores a run on all items that it has by itself, while the pool is open: a request, the number of the run
    alone: Callable[[Request, int], Answer] | None = None


def run(pairs: Sequence[Pair], names: Sequence[str], request: Request, pool: Pool) -> Answers:
    """Align the runs, build their cells, and score these; all but its prediction is as in the request."""
    found = align_together(
        [pair.first for pair in pairs],
        names,
        request.policies,
        pool,
        weight_table=pairs[0].weight_table,
        outer=request.outer,
        null_is_absent=request.null_is_absent,
    )
    plans = _plans(found)
    truth = _shared_truth(found, plans, pool)
    answers = []
    for pair, rows, plan in zip(pairs, found.runs, plans, strict=True):
        cells = build_cells(
            rows, pool, weighting=request.weighting, outside=request.outside, plan=plan, truth=truth
        )
        built = memory.Built(rows.coverage, cells, AlignedItems(rows))
        answers.append(memory.answer(pair, built, request, pool))

    def alone(request: Request, k: int) -> Answer:
        return memory.answer(pairs[k], memory.build(pairs[k], request, pool), request, pool)

    return Answers(answers, found.n_scored, found.coverage, alone=alone)


def _shared_truth(found: Together, plans: list[Plan], pool: Pool) -> TrueRows | None:
    """Return the rows of the truth in their parts, if all runs have the same, and no cluster is heavy."""
    if len(found.runs) == 1 or any(plan.n_rows > found.n_common or plan.heavy.size for plan in plans):
        return None
    return TrueRows.of(plans[0], found.runs[0].true_keys, found.runs[0].weight, pool)


def _plans(found: Together) -> list[Plan]:
    """Return plans of the runs that give a true cluster the same code in all of them.

    Its code depends on the part that it falls into, on the clusters that are heavy, and on the rows with true keys.
    """
    n_rows = max(len(rows) for rows in found.runs)
    bits = part_bits(n_rows, PART_ROWS)
    true_keys = found.runs[0].true_keys[: found.n_common]
    heavy = find_heavy([true_keys])[: None if bits else 0]
    absent = next((rows.absent_true for rows in found.runs if rows.absent_true is not None), None)
    return [Plan.of(len(rows), bits, heavy, absent, None, wide=n_rows >= WIDE) for rows in found.runs]
