"""The steps of the Spark engine: DataFrames → one row per item → cells → margins → sums → scores (→ tables)."""

from __future__ import annotations

import math
from contextlib import ExitStack
from functools import partial
from typing import Any

from fastbcubed.cells.excerpts import UnreadCells
from fastbcubed.engines.request import Answer, Request
from fastbcubed.errors import EmptyInputError, SparkJobError, first_few
from fastbcubed.inputs.reading_notes import notes_of, readings_of
from fastbcubed.runtime.threads import Pool
from fastbcubed.spark import spark_evaluation
from fastbcubed.spark.aggregate import (
    Cells,
    Join,
    Question,
    Sums,
    explain_repeats,
    explain_unmatched,
    explain_unweighted,
    find_heavy,
    named_errors,
    sums_of_job,
)
from fastbcubed.spark.frames import FrameSide, Looked, Weighted, ids_of, look, open_sides, quoted
from fastbcubed.spark.spark_evaluation import Asked, Frames, SparkEvaluation, Stored, joined

#: The relative difference between sums of weights that another order of summation may cause.
WEIGHT_BOUND = 1e-6


def run(request: Request, pool: Pool) -> Answer:
    """Join the two sides, build the cells, and sum them on the executors."""
    sides = open_sides(request.given, request.policies)
    with ExitStack() as held, named_errors():
        slicing = spark_evaluation.find(request, sides)
        looked = look(sides, request.policies, _weight_table(slicing), outer=request.outer)
        weighted = request.given.weight is not None
        join = Join(sides, request.policies, weighted, slicing.carried, slicing.tables, slicing.parts)
        asked = Asked(request, weighted=weighted)
        heavy = find_heavy(sides, (looked[0].n_rows, looked[1].n_rows))
        plan = Cells(join, heavy)
        session = sides[0].frame.sparkSession
        stored = (
            Stored(session) if request.out is None else Stored(session, joined(request.out), request.keep)
        )
        rows = _kept(join.rows(), held) if stored.keep == "items" else join.rows()
        cells = plan.grouped(rows)
        cells = _kept(cells, held) if heavy else cells
        margins = plan.with_margins(cells)
        if stored.has_cells:
            margins = _kept(margins, held)
        cells = _streamed(plan, margins)

        about: dict[str, Any] = {"carried": join.extra}
        if asked.needs_total:
            cells = _kept(cells, held)
            counted = _summed(cells, asked.counting(**about), join, looked)
            about["total"] = counted.counts["n_items"], counted.floats["weight"]
        question = asked.question(slices=slicing.names, **about)
        sums = _summed(cells, question, join, looked)
        scored = spark_evaluation.scored(asked, sums, question, pool)
        _write(stored, join, question, asked, sums, margins, rows)
    coverage = spark_evaluation.coverage_of(sums, looked)
    means = spark_evaluation.means_of(sums)
    unread = UnreadCells(n_items=sums.counts["n_items"], **question.how, known_means=means)
    return Answer(
        "spark", unread, scored, coverage, (sides[0].name, sides[1].name), None,
        sliced=slicing.tables_of(sums, question, sums.floats["weight"]),
        summary=spark_evaluation.summary_of(sums),
        bounds=spark_evaluation.bounds_of(sums, question, coverage),
        notes=notes_of(side.example for side in sides),
        reading=readings_of(side.example for side in sides),
        change_if_alone=sums.floats["if alone"],
        kind=partial(SparkEvaluation.of, stored),
    )  # fmt: skip


def _weight_table(slicing: spark_evaluation.Slicing) -> Weighted | None:
    for table in slicing.tables:
        if table.what == "weight":
            (name,) = table.columns
            return Weighted(table.rows.frame, table.items, name, table.rows.where)
    return None


def _write(
    stored: Stored, join: Join, question: Question, asked: Asked, sums: Sums, margins: Any, rows: Any
) -> None:
    if not stored.has_cells:
        return
    total = sums.counts["n_items"], sums.floats["weight"]
    frames = Frames.of(join, question, asked.metrics, total, margins)
    stored.write("cells", frames.listed_cells())
    stored.write("true_clusters", frames.listed_clusters("t"))
    stored.write("pred_clusters", frames.listed_clusters("p"))
    if stored.keep == "items":
        stored.write("items", frames.listed_items(rows))


def _streamed(plan: Cells, cells: Any) -> Any:
    """Return the columns of cells that kernels need."""
    join = plan.join
    there = [join.is_there(side).alias(f"{side}_there") for side in ("t", "p")]
    named = [*(name for name in ("kind", "again", "fault") if name in cells.columns), *plan.summed]
    named += [f"{margin}_{name}" for margin in "ablu" for name in plan.summed]
    named += ["head", *(f"c_{name}" for name in plan.summed)] if plan.sliced else []
    return cells.select(*there, *named, *plan.sliced)


def _kept(cells: Any, held: ExitStack) -> Any:
    """Return the cells, persisted by Spark in memory or on its disks until the evaluation ends."""
    cells = cells.persist()
    held.callback(cells.unpersist)
    return cells


def _summed(cells: Any, question: Question, join: Join, looked: list[Looked]) -> Sums:
    """Return the sums over all cells, or raise an error on faults found in the rows."""
    sums = sums_of_job(cells, question)
    n_rows = [side.n_rows for side in looked]
    lost = None if sums is None else _lost(sums, join, looked)
    if sums is None or lost or sums.counts["fault"]:
        explain_repeats(join, n_rows)
    if sums is None or lost:
        raise SparkJobError(
            f"{lost or 'all'} of the {sum(n_rows)} rows that were given are missing from the sums: the "
            "DataFrames return different rows each time they are read. Write them to a table first"
        )
    _require_weight(sums, join, looked)
    _require_common(sums, join, looked)
    explain_unmatched(join, [sums.counts["n_1"], sums.counts["n_2"]], n_rows)
    if sums.counts["n_unweighted"]:
        explain_unweighted(join, sum(sums.counts[f"n_{kind}"] for kind in range(3)))
    return sums


def _lost(sums: Sums, join: Join, looked: list[Looked]) -> int:
    """Return the number of input rows that the sums lack; negative if they have more."""
    nulls = sum(side.n_null for side in looked) if join.policies.nulls == "drop" else 0
    counts = sums.counts
    expected = sum(side.n_rows for side in looked) - nulls
    found = 2 * counts["n_0"] + counts["n_1"] + counts["n_2"]
    return min(0, expected - found) or max(0, expected - found - counts["again"])


def _require_weight(sums: Sums, join: Join, looked: list[Looked]) -> None:
    """Raise if the weights in the sums do not add up to those of the side that has them."""
    for kind, (side, own) in enumerate(zip(join.sides, looked, strict=True), 1):
        if side.weight is None or sums.counts["again"]:
            continue
        found = sums.floats["weight_0"] + sums.floats[f"weight_{kind}"]
        if not math.isclose(found, own.weight, rel_tol=WEIGHT_BOUND):
            raise SparkJobError(
                f"the weights of {side.name} add up to {own.weight}, but those of its items in the sums "
                f"add up to {found}: the DataFrames return different rows each time they are read. Write them to a "
                "table first"
            )
        return  # weights of the truth take precedence over those of the prediction


def _require_common(sums: Sums, join: Join, looked: list[Looked]) -> None:
    for side, own in zip(join.sides, looked, strict=True):
        if join.policies.nulls == "drop" and own.n_null == own.n_rows:
            raise EmptyInputError(
                f"all {own.n_rows} clusters of {side.name} are null, so there is nothing to score"
            )
    if not sums.counts["n_0"]:
        truth, prediction = join.sides
        examples = [first_few(_ids(side)) for side in join.sides]
        raise EmptyInputError(
            f"no item of {truth.name} is in {prediction.name}: {sums.counts['n_1']} items are only in the "
            f"first, and {sums.counts['n_2']} are only in the second ({examples[0]} against {examples[1]}). Check "
            "that both item columns write the same ids in the same way."
        )


def _ids(side: FrameSide) -> list[Any]:
    return ids_of(side.frame.select(*map(quoted, side.items)))[:3]
