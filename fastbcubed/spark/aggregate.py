"""Cells, and sums over them, aggregated on Spark."""

from __future__ import annotations

import math
import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed import errors
from fastbcubed.align.data_errors import (
    Overlap,
    RepeatedRows,
    RepeatedTableRows,
    Reweighted,
    Unmatched,
    Unweighted,
)
from fastbcubed.align.policies import Policies
from fastbcubed.cells.contingency import CELL, Contingency, ScoredRows, add_products
from fastbcubed.cells.partitioned import change_by_cell
from fastbcubed.errors import FastBCubedError, SparkJobError
from fastbcubed.inputs.file_formats import in_blocks
from fastbcubed.inputs.layouts import sources_hint
from fastbcubed.metrics import aggregation
from fastbcubed.metrics.fast_sums import count_part, ordered_pairs, weigh_part
from fastbcubed.metrics.metric import Metric
from fastbcubed.results.figures import bound_sums
from fastbcubed.results.slice_sums import Part, SliceSums
from fastbcubed.results.slices import Element
from fastbcubed.runtime.threads import Pool
from fastbcubed.spark.frames import FrameRows, FrameSide, any_null, functions, ids_of, is_noise, quoted
from fastbcubed.types import Counts, Floats, Sizes


@dataclass(frozen=True)
class Question:
    """The sums to compute from streamed cells; sent to the executors."""

    weighted: bool
    outer: bool
    outside: bool
    bounded: bool = False  #: whether to bound the precision, because prediction-only items were dropped
    metrics: list[Metric] = field(default_factory=list)  #: scores that are means over items
    #: scores that are means over clusters, with the side of the clusters
    by_cluster: list[tuple[str, Metric]] = field(default_factory=list)
    pairs: bool = False
    entropies: bool = False
    #: for each slicing: attributes by name, under their internal names
    slices: list[dict[str, Element]] = field(default_factory=list)
    grouped: list[Metric] = field(default_factory=list)  #: the scores of slices
    beta: float = 1.0
    carried: list[str] = field(default_factory=list)  #: attribute columns that divide the cells into parts
    total: tuple[int, float] | None = None  #: number and weight of the scored items, if known

    @property
    def how(self) -> dict[str, Any]:
        """The arguments that describe the cells to a contingency."""
        weighting = "outer" if self.outer else "pointwise"
        return {"weighted": self.weighted, "weighting": weighting, "outside": self.outside}


class Margins:
    """The columns of cells: their own values, and the sums over their clusters; see `Cells.with_margins`."""

    def __init__(self, columns: dict[str, NDArray[Any]], question: Question) -> None:
        self._columns, self._question = columns, question

    def __getattr__(self, name: str) -> NDArray[Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._columns[name]

    def get(self, name: str) -> NDArray[Any]:
        """Return a column; zeros if it is missing because policies leave nothing to count."""
        return self._columns.get(name, np.zeros(1, np.int64))

    @property
    def kinds(self) -> NDArray[Any]:
        """The kind of each cell's items (COMMON, TRUTH_ONLY, …), from a column or else from its clusters."""
        if "kind" in self._columns:
            return self._columns["kind"]
        return np.where(self.t_there, np.where(self.p_there, 0, 1), np.where(self.p_there, 2, 3))

    def take(self, rows: NDArray[Any]) -> Margins:
        """Return these rows of all columns."""
        return Margins({name: each[rows] for name, each in self._columns.items()}, self._question)

    def n(self, prefix: str = "") -> Counts:
        """Return the number of items of each cell, or with a prefix, of a cluster; see `Cells.with_margins`."""
        return self._columns[f"{prefix}_n" if prefix else "n"]

    def weight(self, prefix: str = "") -> Floats:
        """Return the weight of the items that `n` counts; their number if there are no weights."""
        if not self._question.weighted:
            return self.n(prefix).astype(np.float64)
        return self._columns[f"{prefix}_w" if prefix else "w"]

    def mass(self, prefix: str = "") -> Floats:
        """Return the mass inside confusion matrices: weights, or numbers if weights affect the mean only."""
        return self.n(prefix).astype(np.float64) if self._question.outer else self.weight(prefix)

    @property
    def whole(self) -> str:
        """The prefix of the columns of whole cells, which differ from those of the parts if there are slices."""
        return "c" if self._question.carried else ""


def streamed_cells(found: Margins, question: Question) -> Contingency:
    """Return scored cells with their margins; if slices divide cells, each row is a part of a cell."""
    n, mass = found.n(found.whole), found.mass(found.whole)
    sizes, masses = (
        {"true": found.n("a"), "pred": found.n("b")},
        {"true": found.mass("a"), "pred": found.mass("b")},
    )
    if question.outside:
        sizes["pred"], masses["pred"] = sizes["pred"] + found.n("u"), masses["pred"] + found.mass("u")
    cells = np.zeros(n.size, CELL)
    cells["n"], cells["weight"] = n, found.weight(found.whole)
    cells["fp"] = _beside(mass, masses["pred"], n, sizes["pred"])
    cells["fn"] = _beside(mass, masses["true"], n, sizes["true"])
    tn = None
    if question.total is not None and not question.outside:
        left = question.total[0] - (sizes["true"] + sizes["pred"] - n)
        tn = left.astype(np.float64)
        if question.weighted and not question.outer:
            tn = np.maximum(0.0, (question.total[1] - (cells["weight"] + cells["fp"])) - cells["fn"])
            tn[left == 0] = 0.0  # exactly, if there are none
    part_n = found.n()
    return Contingency(
        cells, lambda: np.zeros(n.size, np.int64), (1, 1), **question.how,
        rows=ScoredRows(lambda: np.arange(n.size), found.weight(), n.size, lambda: part_n),
        tn=tn, mates=sizes.__getitem__, unlabelled=lambda: (found.n("u"), found.mass("u")),
    )  # fmt: skip


def _beside(mass: Floats, whole: Floats, n: Counts, n_whole: Counts) -> Floats:
    """Return the mass of a cluster outside a cell; exactly zero if they have the same number of items."""
    return np.where(n == n_whole, 0.0, np.maximum(whole - mass, 0.0))


def columns_of(table: pa.Table, question: Question) -> dict[str, NDArray[Any]]:
    """Return the columns of a batch as arrays, except for the attributes that divide cells."""
    names = [name for name in table.column_names if name not in question.carried]
    return {name: table[name].combine_chunks().to_numpy(zero_copy_only=False) for name in names}


#: Cells processed at once: Spark's batches are small compared with the cost of a kernel call.
AT_ONCE = 1 << 17
#: The schema of the rows in which tasks return their sums.
PAYLOAD = "payload binary"
#: Prefix of the names of sums over items of weight * score.
MEAN = "mean of "
#: Cluster sizes below this are counted in an array by size.
USUAL = 1 << 16


@dataclass
class Sums:
    """Sums over the cells of a batch, of a task, or of all tasks; they can be added."""

    counts: dict[str, int] = field(default_factory=dict)
    floats: dict[str, float] = field(default_factory=dict)
    #: by side: cluster sizes, and the number of items in clusters of each size
    sizes: dict[str, Sizes] = field(default_factory=dict)
    slices: list[Part] = field(default_factory=list)  #: sums by slice, in the order of `Question.slices`


def add_up(question: Question) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that reduces the batches of a task to one row with their sums, as bytes."""

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = [sums_of(table, question) for table in in_blocks(batches, AT_ONCE)]
        if found:
            payload = pickle.dumps(added(found, question))
            yield pa.RecordBatch.from_arrays([pa.array([payload], pa.binary())], ["payload"])

    return task


def added(parts: list[Sums], question: Question) -> Sums:
    """Return the total of several sums."""
    slices = []
    for k, names in enumerate(question.slices):
        sums = SliceSums(names, question.grouped, question.beta, None)
        own = [part.slices[k] for part in parts if part.slices]
        for each in own:
            sums.add(each)
        slices += [sums.in_one()] if own else []
    return Sums(
        {name: sum(part.counts[name] for part in parts) for name in parts[0].counts},
        {
            name: math.fsum(part.floats.get(name, 0.0) for part in parts)
            for name in dict.fromkeys(name for part in parts for name in part.floats)
        },
        {side: _sizes_added([part.sizes[side] for part in parts if part.sizes]) for side in ("true", "pred")},
        slices,
    )


def sums_of(table: pa.Table, question: Question) -> Sums:
    """Return the sums over the cells of a batch."""
    found = Margins(columns_of(table, question), question)
    counts, floats = _coverage(found, question)
    scored = found.t_there & found.p_there
    sums = Sums(counts, floats)
    floats["if alone"] = _if_alone(found, scored)
    counts["n_exact"] = counts["n_items"] = 0
    if not scored.any():
        return sums
    parts = found.take(scored)
    cells = streamed_cells(parts, question)
    if question.slices:
        carried = table.select(question.carried).filter(pa.array(scored))
        carried = carried.rename_columns([f"attributes.{name}" for name in question.carried])
        sums.slices = [
            SliceSums(names, question.grouped, question.beta, None).of_rows(carried, cells)
            for names in question.slices
        ]
    if question.carried:
        parts = parts.take(parts.head)
        if not parts.n().size:
            return sums
        cells = streamed_cells(parts, question)
    counts["n_exact"], counts["n_items"] = cells.n_exact, cells.n_items
    floats["weight"] = float(math.fsum(cells.weight.tolist()))
    sums.sizes = {"true": sizes_of(parts.n("a"), cells.n), "pred": sizes_of(parts.n("b"), cells.n)}
    with Pool(1) as pool:
        _add_scores(sums, parts, cells, question, pool)
    return sums


def _coverage(found: Margins, question: Question) -> tuple[dict[str, int], dict[str, float]]:
    """Return counts (items by `kind`, repeats, faults, items without a required weight) and weights by `kind`."""
    n, kind = found.n(), found.kinds
    counts = {f"n_{k}": int(n[kind == k].sum()) for k in range(NEITHER)}
    counts |= {name: int(found.get(name).sum()) for name in ("again", "fault")}
    weight = found.weight()
    floats = {f"weight_{k}": float(weight[kind == k].sum()) for k in range(COMMON, NEITHER)}
    needed = found.t_there & found.p_there
    if question.outside:
        needed = needed | (kind == PREDICTION_ONLY)
    counts["n_unweighted"] = int(n[needed & np.isnan(weight)].sum())
    return counts, floats


def _if_alone(found: Margins, scored: NDArray[np.bool_]) -> float:
    """Return the gain in the sum of recall if truth-only items were singletons in the prediction."""
    heads = scored & found.head if found.whole else scored
    left = found.t_there & ~found.p_there
    touched = (heads | left) & (found.n("l") > 0)
    if not touched.any():
        return 0.0
    some = found.take(touched)
    own = np.where(left[touched], some.n() / some.n("l"), 0.0)
    product = np.where(left[touched], 0.0, some.weight(some.whole) * some.mass(some.whole))
    alone = some.weight("l") * (some.mass("l") / some.n("l"))
    return change_by_cell(product, own * alone, some.mass("a"), some.mass("l"))


def _add_scores(sums: Sums, found: Margins, cells: Contingency, question: Question, pool: Pool) -> None:
    floats = sums.floats
    for name, value in aggregation.item_sums(cells, question.metrics, pool).items():
        floats[f"{MEAN}{name}"] = value
    if question.bounded:
        floats |= {f"bound {k}": float(value) for k, value in enumerate(bound_sums(cells))}
    if question.pairs:
        pairs = ordered_pairs(cells, pool)
        sums.counts |= dict(zip(("pairs tp", "pairs fp", "pairs fn"), pairs, strict=True))
    if question.entropies and not question.weighted:
        losses, _ = count_part(cells, pool)
        floats |= {f"loss {k}": value for k, value in enumerate(losses)}
    elif question.entropies and question.total is not None:
        values, _ = weigh_part(cells, question.total[1], (-1.0, -1.0), pool)
        floats |= {f"entropy {k}": value for k, value in enumerate(values)}
    for side, metric in question.by_cluster:
        prefix = "a" if side == "true" else "b"
        whole = found.weight(prefix)
        weighs = whole > 0
        shares = np.divide(cells.weight, whole, out=np.zeros(whole.size), where=weighs)
        floats[f"cluster {side} {metric.name}"] = add_products(shares, aggregation.cell_scores(cells, metric))
        floats[f"clusters {side}"] = add_products(weighs / found.n(prefix), cells.n.astype(np.float64))


def sizes_of(sizes: NDArray[np.int64], n: NDArray[np.integer]) -> Sizes:
    """Return the distinct cluster sizes, ascending, and the number of items in clusters of each size."""
    if sizes.max(initial=0) < USUAL:
        items = np.bincount(sizes, n).astype(np.int64)
        known = np.flatnonzero(items)
        return known, items[known]
    known, places = np.unique(sizes, return_inverse=True)
    items = np.zeros(known.size, np.int64)
    np.add.at(items, places, n)
    return known, items


def _sizes_added(parts: list[Sizes]) -> Sizes:
    if not parts:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    sizes, items = (np.concatenate(column) for column in zip(*parts, strict=True))
    return sizes_of(sizes, items)


#: The error in the last line of a Python traceback from an executor.
RAISED = re.compile(r"^(?:fastbcubed\.errors\.)?(\w+): (.*)$", re.MULTILINE)
#: Characters of Spark's message that an error shows.
SHOWN = 300


def sums_of_job(cells: Any, question: Question) -> Sums | None:
    """Run the kernels on the executors over all cells, and return the sums; None if there are no cells."""
    with named_errors():
        rows = cells.mapInArrow(add_up(question), PAYLOAD).collect()
    parts = [pickle.loads(row["payload"]) for row in rows]
    return added(parts, question) if parts else None


@contextmanager
def named_errors() -> Iterator[None]:
    """Convert Spark failures to errors of this library, without Java's stack trace."""
    try:
        yield
    except FastBCubedError:
        raise
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark", "py4j", "grpc")):
            raise
        raise _named(str(error)) from None


def _named(text: str) -> FastBCubedError:
    """Return the Python error reported in the text of a Spark error, or an error with Spark's message."""
    start = text.find("Traceback (most recent call last)")
    if start < 0:
        return SparkJobError(f"Spark failed: {_first_lines(text)}")
    raised = RAISED.search(text, start)
    name, message = ("an error", _first_lines(text[start:])) if raised is None else raised.groups()
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, FastBCubedError):
        return kind(message)
    if name == "ModuleNotFoundError" and "fastbcubed" in message:
        message += ". Install fastbcubed on the executors as well"
    return SparkJobError(f"a kernel failed on an executor: {name}: {message}")


def _first_lines(text: str) -> str:
    lines = [
        line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("at ")
    ]
    return " ".join(lines)[:SHOWN]


#: Values of `kind`: which sides have an item with a label; NEITHER if its labels are null.
COMMON, TRUTH_ONLY, PREDICTION_ONLY, NEITHER = range(4)
#: Prefixes of the two sides' columns: labels are t0, t1, … and p0, p1, …; item ids are i0, i1, …
TRUE, PRED = "t", "p"


@dataclass(frozen=True)
class JoinedTable:
    """A table of weights or attributes to be joined by item."""

    rows: FrameRows
    items: tuple[str, ...]
    columns: Mapping[str, str]  #: internal names of columns, by their original names
    what: str  #: name of the table, for messages
    one: str  #: name of a value, for messages


@dataclass(frozen=True)
class Join:
    """The join of both sides: their columns, the tables to join, the carried columns, and the policies."""

    sides: tuple[FrameSide, FrameSide]
    policies: Policies
    weighted: bool
    carried: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {})  #: attributes by side, by new name
    tables: tuple[JoinedTable, ...] = ()
    parts: Mapping[str, str] = field(default_factory=dict)  #: parts of ids to slice by, by new name

    @property
    def items(self) -> list[str]:
        """The columns of item ids."""
        return [f"i{k}" for k in range(len(self.sides[0].items))]

    def labels(self, side: str) -> list[str]:
        """Return the columns of the labels of a side."""
        return [f"{side}{k}" for k in range(len(self.sides[side == PRED].clusters))]

    @property
    def makes_own(self) -> bool:
        """Whether policies may make singletons, whose keys are item ids in the columns `t_own` and `p_own`."""
        return self.policies.may_leave_alone

    def keys(self, side: str) -> list[str]:
        """Return the columns that identify the clusters of a side."""
        return [*self.labels(side), *([f"{side}_own"] if self.makes_own else [])]

    def is_there(self, side: str) -> Any:
        """Return the condition that a row or cell has a cluster of this side, after policies."""
        return reduce(or_, (functions().col(name).isNotNull() for name in self.keys(side)))

    def rows(self) -> Any:
        """Return a row for each item: ids, keys of clusters, `w`, `kind`, `again`, `fault`, and carried columns."""
        sql = functions()
        truth, prediction = (_one_row_each(self, which, prefix) for which, prefix in enumerate((TRUE, PRED)))
        both = truth.join(prediction, self.items, "full")
        for table in self.tables:
            both = both.join(_of_table(table, self.items), self.items, "left")
        here = {side: sql.col(f"{side}_rows").isNotNull() for side in (TRUE, PRED)}
        null = {side: any_null(self.labels(side)) for side in (TRUE, PRED)}
        noise = {side: self._noise(side) for side in (TRUE, PRED)}
        absent, alone = {}, {}
        for side in (TRUE, PRED):
            absent[side] = ~here[side] | null[side] if self.policies.nulls == "drop" else ~here[side]
            alone[side] = here[side] & (
                null[side] | noise[side] if self.policies.nulls == "singleton" else noise[side]
            )
        kind = (
            sql.when(absent[TRUE] & absent[PRED], NEITHER)
            .when(absent[PRED], TRUTH_ONLY)
            .when(absent[TRUE], PREDICTION_ONLY)
            .otherwise(COMMON)
        )
        for name, part in self.parts.items():
            both = both.withColumn(name, sql.col(f"i{self.sides[0].items.index(part)}"))
        return both.withColumn("kind", kind).select(
            *self.items, *self._keys(absent, alone), *self._weight(), "kind",
            *_repeats(self.policies), *_fault(self.policies, self.tables), *self.extra,
        )  # fmt: skip

    @property
    def extra(self) -> list[str]:
        """The carried columns, under their internal names."""
        found = [*self.parts, *(name for side in self.carried for name in side.values())]
        return found + [name for table in self.tables for name in table.columns.values() if name != "w_table"]

    def _noise(self, side: str) -> Any:
        noise = self.policies.noise_of(side)
        if noise is None:
            return functions().lit(False)
        kinds = self.sides[side == PRED].example.labels.kinds
        return is_noise(tuple(self.labels(side)), noise, kinds)

    def _keys(self, absent: Mapping[str, Any], alone: Mapping[str, Any]) -> list[Any]:
        """Return the columns of both sides that identify clusters: labels, and item ids for singletons by policy."""
        sql, policies = functions(), self.policies
        own = sql.col("i0") if len(self.items) == 1 else sql.struct(*self.items)
        made = {TRUE: PREDICTION_ONLY if policies.prediction == "singleton" else None}
        made[PRED] = TRUTH_ONLY if policies.truth == "singleton" else None
        found = []
        for side in (TRUE, PRED):
            by_policy = sql.lit(False) if made[side] is None else sql.col("kind") == made[side]
            single = alone[side] | by_policy
            shared = ~absent[side] & ~single
            found += [sql.when(shared, sql.col(name)).alias(name) for name in self.labels(side)]
            if self.makes_own:
                found.append(sql.when(single, own).alias(f"{side}_own"))
        return found

    def _weight(self) -> list[Any]:
        """Return the column of weights: the first known weight of each row, NaN if there is none."""
        if not self.weighted:
            return []
        sql = functions()
        known = [sql.col("w_table")] if any("w_table" in t.columns.values() for t in self.tables) else []
        known += [
            sql.col(f"{p}_w") for p, s in zip((TRUE, PRED), self.sides, strict=True) if s.weight and not known
        ]
        return [sql.coalesce(*known, sql.lit(float("nan"))).alias("w")]


def _standard(side: FrameSide, prefix: str) -> list[Any]:
    """Return the ids and labels of a side as columns under their internal names, with 64-bit integers."""
    found = []
    for column, names, letter in (
        (side.example.items, side.items, "i"),
        (side.example.labels, side.clusters, prefix),
    ):
        assert column is not None
        for k, (name, kind) in enumerate(zip(names, column.kinds, strict=True)):
            found.append(quoted(name).cast({"integer": "bigint"}.get(kind, kind)).alias(f"{letter}{k}"))
    return found


def _one_row_each(join: Join, which: int, prefix: str) -> Any:
    """Return a side with one row for each item, and the item's number of rows as `t_rows` or `p_rows`.

    If rows must not repeat, items with several rows are left out, which the final counts of rows reveal.
    """
    side = join.sides[which]
    own = [quoted(name).alias(new) for name, new in join.carried[which].items()]
    if side.weight is not None:
        own.append(quoted(side.weight).cast("double").alias(f"{prefix}_w"))
    frame = side.frame.select(*_standard(side, prefix), *own)
    if join.policies.duplicates == "drop":
        return _first_of_equal(frame, join, prefix, weighted=side.weight is not None)
    rows = f"{prefix}_rows"
    return _with_rows(frame, join.items, rows).where(functions().col(rows) == 1)


def _with_rows(frame: Any, items: Sequence[str], name: str) -> Any:
    """Add the number of rows of each item; Spark sorts only by item, for which it has a radix sort."""
    from pyspark.sql import Window

    sql = functions()
    return frame.withColumn(name, sql.count(sql.lit(1)).over(Window.partitionBy(*items)))


def _first_of_equal(frame: Any, join: Join, prefix: str, *, weighted: bool) -> Any:
    """Return the first row of each item, with its number of rows and whether these differ."""
    from pyspark.sql import Window

    sql, labels = functions(), join.labels(prefix)
    ordered = Window.partitionBy(*join.items).orderBy(*labels)  # one order for all, so Spark sorts once
    by_item = ordered.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    values = sql.struct(*labels, *([f"{prefix}_w"] if weighted else []))
    differ = sql.min(values).over(by_item) != sql.max(values).over(by_item)
    rows = sql.count(sql.lit(1)).over(by_item).alias(f"{prefix}_rows")
    place = sql.row_number().over(ordered).alias("place")
    return frame.select("*", rows, differ.alias(f"{prefix}_differ"), place).where("place = 1").drop("place")


def _repeats(policies: Policies) -> list[Any]:
    """Return the column of the number of repeated rows dropped per item; empty if repeats are not allowed."""
    if policies.duplicates == "raise":
        return []
    sql = functions()
    counts = (sql.coalesce(sql.col(f"{side}_rows") - 1, sql.lit(0)) for side in (TRUE, PRED))
    return [sum(counts, sql.lit(0)).alias("again")]


def _fault(policies: Policies, tables: Sequence[JoinedTable]) -> list[Any]:
    """Return the column that is 1 for items with differing rows or several rows in a table; empty if impossible."""
    sql = functions()
    found = [sql.col(f"{table.what}_rows") > 1 for table in tables]
    if policies.duplicates == "drop":
        found += [sql.col(f"{side}_differ") for side in (TRUE, PRED)]
    if not found:
        return []
    return [reduce(or_, (sql.coalesce(each, sql.lit(False)) for each in found)).cast("int").alias("fault")]


def _of_table(table: JoinedTable, items: Sequence[str]) -> Any:
    """Return a table of weights or attributes with one row for each item, and the item's number of rows."""
    ids = [
        quoted(name).cast("bigint") if table.rows.is_integer(name) else quoted(name) for name in table.items
    ]
    frame = table.rows.frame.select(
        *(each.alias(name) for each, name in zip(ids, items, strict=True)),
        *(quoted(name).alias(new) for name, new in table.columns.items()),
    )
    return _with_rows(frame, items, f"{table.what}_rows").dropDuplicates(list(items))


def explain_repeats(join: Join, n_rows: Sequence[int]) -> None:
    """Raise an error on rows that repeat an item, with their number and examples, if there are any."""
    sql = functions()
    for which, prefix in enumerate((TRUE, PRED)):
        side = join.sides[which]
        weight = [] if side.weight is None else [quoted(side.weight).cast("double").alias("w")]
        frame = side.frame.select(*_standard(side, prefix), *weight)
        label = sql.struct(*join.labels(prefix))
        asked = [sql.count(sql.lit(1)).alias("n"), (sql.min(label) != sql.max(label)).alias("overlap")]
        if weight:
            asked.append((sql.min("w") != sql.max("w")).alias("reweighted"))
        again = frame.groupBy(*join.items).agg(*asked).where("n > 1")
        faults = [
            sql.sum(sql.col(name).cast("int")).alias(name) for name in again.columns[len(join.items) + 1 :]
        ]
        counts = again.agg(*faults, sql.sum(sql.col("n") - 1).alias("rows")).collect()[0]
        total = n_rows[which]
        hint = sources_hint(side.example.items, side.example.attribute_names)
        for name, fault in (("overlap", Overlap), ("reweighted", Reweighted)):
            if name in again.columns and counts[name]:
                named = ids_of(again.where(name).select(*join.items).orderBy(*join.items))
                of = total - counts["rows"] if fault is Overlap else total
                raise fault(side.name, counts[name], of, named, hint).error()
        if counts["rows"] and join.policies.duplicates == "raise":
            named = ids_of(again.select(*join.items).orderBy(*join.items))
            raise RepeatedRows(side.name, counts["rows"], total, named, hint).error()
    for table in join.tables:
        again = table.rows.frame.groupBy(*map(quoted, table.items)).count().where("count > 1")
        n_again = again.agg(sql.sum(sql.col("count") - 1)).collect()[0][0]
        if n_again:
            named = ids_of(again.select(*map(quoted, table.items)))
            raise RepeatedTableRows(
                table.rows.where, n_again, table.rows.frame.count(), named, table.one
            ).error()


def explain_unmatched(join: Join, counts: Sequence[int], n_rows: Sequence[int]) -> None:
    """Raise if a policy forbids missing items and there are some; `counts` are truth-only and prediction-only items."""
    choices = (
        (join.policies.truth, ("drop", "singleton")),
        (join.policies.prediction, ("drop", "singleton", "outside")),
    )
    for k, (policy, options) in enumerate(choices):
        if policy == "raise" and counts[k]:
            rows = join.rows().where(functions().col("kind") == k + 1).select(*join.items)
            named = ids_of(rows.orderBy(*join.items))
            name, other = join.sides[k].name, join.sides[1 - k].name
            raise Unmatched(name, counts[k], n_rows[k], named, other, options).error()


def explain_unweighted(join: Join, n_items: int) -> None:
    """Raise the error on scored or counted items without a weight, of which some were found."""
    sql = functions()
    kinds = [COMMON]
    kinds += [TRUTH_ONLY] if join.policies.truth != "drop" else []
    kinds += [PREDICTION_ONLY] if join.policies.prediction != "drop" else []
    rows = join.rows().where(sql.isnan("w") & sql.col("kind").isin(kinds)).select(*join.items)
    named = ids_of(rows.orderBy(*join.items))
    raise Unweighted("both sides", rows.count(), n_items, named, len(kinds) > 1).error()


#: The least rows of a side in which heavy clusters are searched, and the size of the sample for the search.
SKEW_FROM, SAMPLE = 1 << 22, 1 << 14
#: A cluster with a larger share of the rows is heavy.
HEAVY = 1 / 128
#: Clusters are few if a sample has fewer of them than this share of its rows.
FEW_SHARE = 1 / 2
#: Groups over which the cells of a heavy cluster are spread, and groups for cells without a cluster of a side.
SPREAD, SPREAD_ABSENT = 64, 1 << 10

Label = tuple[Any, ...]


@dataclass(frozen=True)
class Heavy:
    """The heavy clusters of each side, and whether both sides have few clusters for their rows."""

    true: list[Label] = field(default_factory=list)
    pred: list[Label] = field(default_factory=list)
    few: bool = False

    def __bool__(self) -> bool:
        return bool(self.true or self.pred)

    def of(self, side: str) -> list[Label]:
        """Return the heavy clusters of a side."""
        return self.true if side == TRUE else self.pred


def find_heavy(sides: tuple[FrameSide, FrameSide], n_rows: tuple[int, int]) -> Heavy:
    """Return the clusters that are heavy in a sample of rows; small inputs are not searched."""
    found: list[list[Label]] = []
    few = []
    for side, n in zip(sides, n_rows, strict=True):
        if n < SKEW_FROM:
            found.append([])
            few.append(False)
            continue
        labels = side.frame.select(*map(quoted, side.clusters)).sample(SAMPLE / n, seed=0)
        rows = list(map(tuple, labels.groupBy(*map(quoted, side.clusters)).count().collect()))
        found.append([row[:-1] for row in rows if None not in row and row[-1] > SAMPLE * HEAVY])
        few.append(len(rows) < FEW_SHARE * sum(row[-1] for row in rows))
    return Heavy(found[0], found[1], all(few))


@dataclass(frozen=True)
class Cells:
    """The grouping of cells: by both clusters, and by the requested slices."""

    join: Join
    heavy: Heavy = field(default_factory=Heavy)

    @property
    def sliced(self) -> list[str]:
        """The attribute columns that divide cells into parts."""
        return self.join.extra

    @property
    def summed(self) -> list[str]:
        """The columns to sum."""
        return ["n", *(["w"] if self.join.weighted else [])]

    def grouped(self, rows: Any) -> Any:
        """Return the cells of rows: keys, `n`, `w`, and `kind`, `again` and `fault` unless policies imply them.

        Rows are partitioned by predicted cluster, so cells need no shuffle of their own. If clusters are few or heavy,
        there are far fewer cells than rows; rows are then grouped first, and only cells are partitioned.
        """
        sql, join = functions(), self.join
        asked = [sql.count(sql.lit(1)).alias("n")]
        if "singleton" in (join.policies.truth, join.policies.prediction):
            asked.append(sql.max("kind").alias("kind"))
        asked += [sql.sum(name).alias(name) for name in ("again", "fault") if name in rows.columns]
        asked += [sql.sum("w").alias("w")] if join.weighted else []
        keys = [*join.keys(TRUE), *join.keys(PRED), *self.sliced]
        if self.heavy or self.heavy.few:
            return self._placed(rows.groupBy(*keys).agg(*asked), PRED, TRUE)
        by = self.together(PRED)
        return (
            self._placed(rows, PRED, TRUE).repartition(*by).groupBy(*dict.fromkeys([*by, *keys])).agg(*asked)
        )

    def together(self, side: str) -> list[str]:
        """Return the columns by which the cells of a cluster are brought together; see `_placed`."""
        if len(self.join.keys(side)) == 1 and not self.heavy.of(side):
            return [f"{side}_by"]
        return [*self.join.keys(side), f"{side}_by"]

    def with_margins(self, cells: Any) -> Any:
        """Return cells with the number (`_n`) and weight (`_w`) of items in their clusters.

        `b_` counts the scored and `u_` the prediction-only items of the predicted cluster, and `a_` the scored and `l_`
        the truth-only items of the true cluster. With slices, `c_` counts the items of the whole cell, and `head` is
        true in one of its parts.
        """
        cells = self._summed_over(cells, PRED, TRUE, "b", "u").drop("p_by")
        cells = self._summed_over(self._placed(cells, TRUE, PRED), TRUE, PRED, "a", "l")
        return self._whole_cells(cells) if self.sliced else cells

    def _summed_over(self, cells: Any, side: str, other: str, scored: str, lacking: str) -> Any:
        """Add the sums over the clusters of a side, separately for items that the `other` side has, and lacks."""
        from pyspark.sql import Window

        within = Window.partitionBy(*self.together(side))
        if self.sliced and side == TRUE:  # with this order, whole cells need no other sort
            end = Window.unboundedPreceding, Window.unboundedFollowing
            order = [*self.join.keys(side), *self.join.keys(other), *self.sliced]
            within = within.orderBy(*(n for n in order if n not in self.together(side))).rowsBetween(*end)
        sums = self._sums(side, other, scored, lacking)
        found = cells.select("*", *(each.over(within).alias(name) for name, each in sums.items()))
        return self._with_heavy(found, cells, side, sums) if self.heavy.of(side) else found

    def _sums(self, side: str, other: str, scored: str, lacking: str) -> dict[str, Any]:
        """Return the sums over a side's clusters by name; they skip cells that have no cluster of this side."""
        sql, join = functions(), self.join
        here, there = join.is_there(side), join.is_there(other)
        found = {}
        for name in self.summed:
            found[f"{scored}_{name}"] = sql.sum(sql.when(here & there, sql.col(name)).otherwise(0))
            found[f"{lacking}_{name}"] = sql.sum(sql.when(here & ~there, sql.col(name)).otherwise(0))
        return found

    def _placed(self, frame: Any, side: str, other: str) -> Any:
        """Add the partition key `t_by` or `p_by`, which spreads cells without a cluster, and those of heavy clusters.

        The key is the label itself if labels are one column: Spark sorts by one column far faster than by several.
        """
        sql, join = functions(), self.join
        by_other = sql.xxhash64(*join.keys(other))
        name = join.keys(side)[0]
        if self.together(side) == [f"{side}_by"]:
            spread = by_other.cast("string").cast(frame.schema[name].dataType)
            return frame.withColumn(f"{side}_by", sql.coalesce(sql.col(name), spread))
        salt = sql.when(~join.is_there(side), sql.pmod(by_other, sql.lit(SPREAD_ABSENT)))
        if self.heavy.of(side):
            salt = salt.when(self._is_heavy(side), sql.pmod(by_other, sql.lit(SPREAD)))
        return frame.withColumn(f"{side}_by", salt.otherwise(0).cast("int"))

    def _is_heavy(self, side: str) -> Any:
        sql, names = functions(), self.join.labels(side)
        known = self.heavy.of(side)
        if len(names) == 1:
            return sql.coalesce(sql.col(names[0]).isin([label[0] for label in known]), sql.lit(False))
        matches = (
            reduce(lambda a, b: a & b, (sql.col(n) == sql.lit(v) for n, v in zip(names, label, strict=True)))
            for label in known
        )
        return sql.coalesce(reduce(or_, matches), sql.lit(False))

    def _with_heavy(self, found: Any, cells: Any, side: str, asked: dict[str, Any]) -> Any:
        """Replace the sums over parts of heavy clusters with the sums over the whole clusters."""
        sql, names = functions(), self.join.labels(side)
        keys = [sql.col(name).alias(f"heavy_{name}") for name in names]
        margins = (
            cells.where(self._is_heavy(side))
            .groupBy(*keys)
            .agg(*(each.alias(f"heavy_{name}") for name, each in asked.items()))
        )
        on = reduce(lambda a, b: a & b, (sql.col(name) == sql.col(f"heavy_{name}") for name in names))
        joined = found.join(sql.broadcast(margins), on, "left")
        return joined.select(
            *(
                sql.coalesce(sql.col(f"heavy_{name}"), sql.col(name)).alias(name) if name in asked else name
                for name in found.columns
            )
        )

    def _whole_cells(self, cells: Any) -> Any:
        """Add the sums over each whole cell, and mark one of its parts as `head`."""
        from pyspark.sql import Window

        sql, join = functions(), self.join
        by = dict.fromkeys([*self.together(TRUE), *join.keys(TRUE), *join.keys(PRED)])
        within = Window.partitionBy(*by)
        ordered = within.orderBy(*self.sliced)
        whole = ordered.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
        columns = [sql.sum(name).over(whole).alias(f"c_{name}") for name in self.summed]
        return cells.select("*", *columns, (sql.row_number().over(ordered) == 1).alias("head"))
