"""The evaluation on Spark: scores from sums of all tasks, and listings as DataFrames."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from fastbcubed.align.policies import Coverage
from fastbcubed.cells.contingency import side_of
from fastbcubed.engines.request import Request, Scored
from fastbcubed.errors import ColumnError, Message, NotKeptError, OptionError, SliceError, WeightError, arg
from fastbcubed.inputs.file_formats import in_blocks
from fastbcubed.inputs.pair import Given
from fastbcubed.metrics import aggregation
from fastbcubed.metrics.aggregation import WEIGHT
from fastbcubed.metrics.bcubed import LOSS_OF_SIDE, LOSSES
from fastbcubed.metrics.fast_sums import (
    SizeCounts,
    chance_of_counts,
    code_lengths_of_counts,
    entropies_of_counts,
    entropies_of_sums,
    sums_of_counts,
)
from fastbcubed.metrics.metric import Metric
from fastbcubed.metrics.sums import PRECISION, RECALL
from fastbcubed.results import save
from fastbcubed.results.cluster_outcomes import OUTCOMES, SCHEMA, outcome_code
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.figures import Bounds, Figures, bounds_from, describe
from fastbcubed.results.items import Kept
from fastbcubed.results.origin import Origin
from fastbcubed.results.slice_bins import Bins
from fastbcubed.results.slice_sums import SliceSums
from fastbcubed.results.slices import (
    ID,
    Element,
    SliceKey,
    attribute_home,
    elements,
    names_in,
    size_named,
    slice_name,
)
from fastbcubed.results.table import (
    LOSS,
    Table,
    is_higher_better,
    listed,
    not_ordered,
    require_known,
    require_limit,
)
from fastbcubed.runtime.arguments import is_one_of
from fastbcubed.runtime.object_attributes import cached_property
from fastbcubed.runtime.suggestions import did_you_mean
from fastbcubed.runtime.threads import Pool
from fastbcubed.spark.aggregate import (
    AT_ONCE,
    MEAN,
    PRED,
    TRUE,
    Join,
    JoinedTable,
    Margins,
    Question,
    Sums,
    columns_of,
    named_errors,
    streamed_cells,
)
from fastbcubed.spark.frames import FrameRows, FrameSide, Looked, functions, item_names, quoted
from fastbcubed.types import Sizes

#: The sums that can be added up from parts of the cells.
OF_PAIRS, OF_ENTROPIES = ("pairs", "wrong pairs"), ("entropies", "chance", "code lengths")
OF_CLUSTERS = {"means of true clusters": "true", "means of pred clusters": "pred"}
SERVED = (*OF_PAIRS, *OF_ENTROPIES, *OF_CLUSTERS)
WAY_OUT = (
    "it needs all cells at once, but Spark distributes them; with "
    f"{arg('engine', 'disk')} or {arg('engine', 'memory')}, evaluate tables that one machine can read"
)


class Asked:
    """The scores of a request that Spark can compute, and why others are not computed."""

    def __init__(self, request: Request, *, weighted: bool) -> None:
        self.request, self.weighted = request, weighted
        metrics, self.not_computed = request.resolve(weighted=weighted, cells_alone=True)
        reasons = {m.name: WAY_OUT for m in metrics if not _is_served(m)}
        for name in sorted(request.named_metrics & reasons.keys()):
            raise OptionError(f"cannot compute {name}: {reasons[name]}")
        self.metrics = [m for m in metrics if m.name not in reasons]
        self.not_computed |= {name: Message(reason) for name, reason in reasons.items()}
        self.needed = aggregation.with_needs(self.metrics, request.beta)
        self.sums = {
            name for m in self.needed if m.overall_only for name in m.sums
        }  #: names of sums over all cells

    @property
    def needs_total(self) -> bool:
        """Whether a score needs the number or weight of all scored items, so that cells are streamed twice."""
        return any(m.uses_tn for m in self.needed) or (
            self.weighted and not self.sums.isdisjoint(OF_ENTROPIES)
        )

    def question(self, **about: Any) -> Question:
        """Return the sums to compute from the cells."""
        request = self.request
        sides = [side for name, side in OF_CLUSTERS.items() if name in self.sums]
        return Question(
            weighted=self.weighted, outer=request.outer, outside=request.outside,
            bounded=request.policies.prediction == "drop",
            metrics=list({m.name: m for m in (*self.needed, PRECISION, RECALL) if m.formula is not None}.values()),
            by_cluster=[(side, metric) for side in sides for metric in (PRECISION, RECALL)],
            pairs=not self.sums.isdisjoint(OF_PAIRS),
            entropies=not self.sums.isdisjoint(OF_ENTROPIES),
            grouped=self.metrics, beta=request.beta, **about,
        )  # fmt: skip

    def counting(self, **about: Any) -> Question:
        """Return the settings for sums of counts alone."""
        return Question(self.weighted, self.request.outer, self.request.outside, **about)


def _is_served(metric: Metric) -> bool:
    """Return whether a score, and all scores from which it is combined, can be computed from sums over cells."""
    own = not metric.overall_only or set(metric.sums) <= set(SERVED)
    return own and all(map(_is_served, metric.needs))


def sums_of_scores(asked: Asked, sums: Sums, question: Question, pool: Pool) -> dict[str, Any]:
    """Return the sums over all cells from which scores are computed, by their names in `metrics.sums`."""
    floats, n_items = sums.floats, sums.counts["n_items"]
    found: dict[str, Any] = {}
    for name, side in OF_CLUSTERS.items():
        if name in asked.sums:
            added = (floats[f"cluster {side} {metric.name}"] for metric in (PRECISION, RECALL))
            found[name] = [each / round(floats[f"clusters {side}"]) for each in added]
    if question.pairs:
        tp, fp, fn = (sums.counts[f"pairs {name}"] for name in ("tp", "fp", "fn"))
        counted = sums_of_counts(tp, fp, fn, n_items)
        found["pairs"] = counted.tp, counted.fp, counted.fn, counted.tn
        found["wrong pairs"] = counted.fp, counted.fn
    if question.entropies and question.weighted:
        found["entropies"] = entropies_of_sums([floats[f"entropy {k}"] for k in range(4)], floats["weight"])
    elif question.entropies:
        true, pred = (clusters_of(sums.sizes[side]) for side in ("true", "pred"))
        counts = SizeCounts(true, pred, floats["loss 0"], floats["loss 1"])
        found["entropies"] = entropies_of_counts(counts, n_items)
        found["code lengths"] = code_lengths_of_counts(counts, n_items)
        if "chance" in asked.sums:
            found["chance"] = chance_of_counts(counts, n_items, pool)
    return found


def clusters_of(sizes: Sizes) -> Sizes:
    """Return cluster sizes and the number of clusters of each size, given the number of items in these clusters."""
    known, items = sizes
    return known, items // known


def means_of(sums: Sums) -> dict[str, float]:
    """Return the means over items of scores, by name."""
    total = sums.floats["weight"]
    if not 0 < total < math.inf:
        raise WeightError(f"the weights of the scored items add up to {total}; there is no mean over them")
    return {
        name.removeprefix(MEAN): value / total for name, value in sums.floats.items() if name.startswith(MEAN)
    }


def scored(asked: Asked, sums: Sums, question: Question, pool: Pool) -> Scored:
    """Return the scores over all items."""
    of_all = sums_of_scores(asked, sums, question, pool)
    overall = aggregation.finished(asked.metrics, means_of(sums), asked.request.beta, of_all)
    return Scored(overall, asked.metrics, asked.not_computed)


def coverage_of(sums: Sums, looked: Iterable[Looked]) -> Coverage:
    """Return the numbers and weights of items of both sides, and of items that only one side has."""
    sides = list(looked)
    counts, weights = sums.counts, sums.floats
    return Coverage(
        counts["n_0"], counts["n_1"], counts["n_2"],
        weights["weight_0"], weights["weight_1"], weights["weight_2"],
        n_null=sum(side.n_null for side in sides),
        n_noise=sum(side.n_noise for side in sides),
        n_duplicates=counts["again"],
    )  # fmt: skip


def bounds_of(sums: Sums, question: Question, coverage: Coverage) -> Bounds | None:
    """Return the bounds of the precision over all possible true labels of the dropped prediction-only items."""
    if not question.bounded or not coverage.n_prediction_only:
        return None
    return bounds_from(np.array([sums.floats[f"bound {k}"] for k in range(3)]), sums.floats["weight"])


def summary_of(sums: Sums) -> dict[str, dict[str, Any]]:
    """Return the summary of each side: items, clusters, singletons, largest size, size quantiles, exact clusters."""
    counts = sums.counts
    sizes = {side: clusters_of(own) for side, own in sums.sizes.items()}
    return describe(sizes, counts["n_items"], counts["n_exact"])


#: The reason why the name of an attribute that both sides have needs a prefix.
NOT_COMPARED = "the Spark engine does not check whether they are equal"


@dataclass(frozen=True)
class Slicing:
    """The slices of a request: the columns to carry with the rows, and their names."""

    keys: list[SliceKey]
    names: list[dict[str, Element]]
    carried: tuple[Mapping[str, str], Mapping[str, str]]
    tables: tuple[JoinedTable, ...]
    parts: Mapping[str, str]  #: columns of composite ids, by new name

    def tables_of(self, sums: Sums, question: Question, total: float) -> dict[str, Table]:
        """Return the slices by name."""
        found = {}
        for key, names, part in zip(self.keys, self.names, sums.slices, strict=True):
            own = SliceSums(names, question.grouped, question.beta, None)
            own.add(part)
            found[slice_name(key)] = own.result(total)
        return found


def find(request: Request, sides: tuple[FrameSide, FrameSide]) -> Slicing:
    """Find the requested attributes; raise an error on unknown ones before any work is done."""
    truth, prediction = sides
    given = request.given
    for key in request.slices:
        if isinstance(key, Mapping):
            raise OptionError(
                f"the Spark engine does not support named subsets ({', '.join(map(repr, key))}), because "
                "rows have no order; mark them in a column, and slice by it"
            )
    rows = {"truth": truth.rows, "prediction": prediction.rows}
    extra: tuple[str, ...] = ()
    if given.attributes is not None:
        rows[""] = FrameRows(given.attributes, "the attributes")
        ids = item_names(rows[""], given.item, truth)
        extra = tuple(name for name in rows[""].names if name not in ids)
    weights = None if given.weight is None or isinstance(given.weight, str) else _weights(given, truth)
    parts = truth.items if len(truth.items) > 1 else ()
    known = {"truth": truth.attributes, "prediction": prediction.attributes, ID: parts}
    asked = names_in(request.slices)
    names: dict[str, str] = {}
    of_ids: dict[str, str] = {}
    carried: dict[str, dict[str, str]] = {"truth": {}, "prediction": {}, "": {}}
    for k, name in enumerate(each for each in asked if size_named(each, known, extra) is None):
        side, own = attribute_home(name, known, extra, NOT_COMPARED)
        new = f"s{k}"
        if side == ID:
            of_ids[new] = own
        elif rows[side].is_nested(own):
            raise SliceError(f"cannot slice by {name!r}, which is nested; use a plain column")
        else:
            new = carried[side].setdefault(own, new)
        names[name] = f"attributes.{new}"
    tables = [] if weights is None else [weights]
    if carried[""]:
        tables.append(JoinedTable(rows[""], ids, carried[""], "attributes", "one row"))
    located = [{str(each): _located(each, names) for each in elements(key)} for key in request.slices]
    return Slicing(request.slices, located, (carried["truth"], carried["prediction"]), tuple(tables), of_ids)


def _weights(given: Given, truth: FrameSide) -> JoinedTable:
    """Return the table of weights."""
    rows = FrameRows(given.weight, "the weight table")
    ids = item_names(rows, given.item, truth)
    rest = [name for name in rows.names if name not in ids]
    name = "weight" if "weight" in rest or len(rest) != 1 else rest[0]
    rows.columns([name])
    return JoinedTable(rows, ids, {name: "w_table"}, "weight", "one weight")


def _located(element: Element, names: Mapping[str, str]) -> Element:
    """Return an attribute, or bins of it, under the internal name of its column."""
    if isinstance(element, Bins):
        return replace(element, name=names[element.name])
    return names.get(element, element)


#: The columns of clusters that precede losses and scores.
FIRST = ("cluster", "n_items", "weight", "n_parts", "exact", "outcome")


@dataclass(frozen=True)
class Frames:
    """Listings as DataFrames; `cells` has each scored cell once, with keys, margins and scores."""

    join: Join
    question: Question
    metrics: list[Metric]
    total: float  #: the weight of all scored items
    cells: Any

    @classmethod
    def of(
        cls, join: Join, question: Question, metrics: list[Metric], total: tuple[int, float], margins: Any
    ) -> Frames:
        """Score cells with margins on the executors; `total` has the number and the weight of scored items."""
        found = margins.where(join.is_there(TRUE) & join.is_there(PRED))
        if join.extra:
            found = found.where("head").drop("head", "n", "w", *join.extra)
            found = found.withColumnsRenamed({"c_n": "n", "c_w": "w"})
        asked = replace(question, carried=[], slices=[], total=total)
        scores = _scores(metrics, question.beta)
        names = [*join.keys(TRUE), *join.keys(PRED), "n", *(["w"] if question.weighted else [])]
        names += [f"{margin}_{name}" for margin in "abu" for name in names if name in ("n", "w")]
        found = found.select(*names)
        schema = _schema(found.schema.fields, ("weight", "fp", "fn", "tn", *scores))
        scored = found.mapInArrow(_score_cells(asked, scores), schema)
        return cls(join, asked, metrics, total[1], scored)

    def label(self, side: str) -> Any:
        """Return the column of cluster labels, a struct if composite; null for clusters made by a policy."""
        names = self.join.labels(side)
        if len(names) == 1:
            return functions().col(names[0])
        own = self.join.sides[side == PRED].clusters
        sql = functions()
        parts = sql.struct(*(sql.col(name).alias(new) for name, new in zip(names, own, strict=True)))
        return sql.when(sql.col(names[0]).isNotNull(), parts)

    def listed_cells(self) -> Any:
        """Return the cells as `Evaluation.cells` lists them."""
        sql = functions()
        return self.cells.select(
            self.label(TRUE).alias("true_cluster"), self.label(PRED).alias("pred_cluster"),
            sql.col("n").alias("n_items"), "weight", "fp", "fn", *self._losses(sql.col("weight")),
        )  # fmt: skip

    def listed_items(self, rows: Any) -> Any:
        """Return the items of rows as `Evaluation.items` lists them."""
        sql, join = functions(), self.join
        keys = [*join.keys(TRUE), *join.keys(PRED)]
        scores = {m.item_name: m.name for m in self.metrics if m.item_name}
        tp = "n" if self.question.outer else "weight"
        matrix = [sql.col(tp).cast("double").alias("tp"), sql.col("fp"), sql.col("fn"), sql.col("tn")]
        cells = self.cells.select(
            *(sql.col(name).alias(f"c_{name}") for name in keys), *matrix,
            *(sql.col(metric.name).alias(f"c_{metric.name}") for metric in LOSSES.values()),
            *(sql.col(name).alias(f"score_{new}") for new, name in scores.items()),
        )  # fmt: skip
        on = reduce(and_, (sql.col(name).eqNullSafe(sql.col(f"c_{name}")) for name in keys))
        found = rows.where(join.is_there(TRUE) & join.is_there(PRED)).join(cells, on)
        weight = sql.col("w") if join.weighted else sql.lit(1.0)
        item = sql.col("i0")
        if len(join.items) > 1:
            named = zip(join.items, join.sides[0].items, strict=True)
            item = sql.struct(*(sql.col(own).alias(name) for own, name in named))
        return found.select(
            item.alias("item"), self.label(TRUE).alias("true_cluster"), self.label(PRED).alias("pred_cluster"),
            *(sql.col(new).alias(name) for name, new in self._attributes()), weight.alias("weight"),
            "tp", "fp", "fn", "tn", *self._losses(weight, "c_"),
            *(sql.col(f"score_{new}").alias(new) for new in scores),
        )  # fmt: skip

    def _attributes(self) -> list[tuple[str, str]]:
        """Return the carried attributes: names that no other column has, and internal columns."""
        join = self.join
        found = [("truth", *each) for each in join.carried[0].items()]
        found += [("prediction", *each) for each in join.carried[1].items()]
        found += [
            ("attributes", *each)
            for table in join.tables
            for each in table.columns.items()
            if each[1] != "w_table"
        ]
        return [(f"{side}.{name}", new) for side, name, new in found]

    def listed_clusters(self, side: str) -> Any:
        """Return the clusters of a side as `Evaluation.clusters` lists them."""
        sql, join = functions(), self.join
        needed = aggregation.summed(aggregation.grouped(self.metrics), self.question.beta, losses=True)
        weight, in_parts = sql.col("weight"), sql.col("fn") > 0
        if side == PRED and self.question.outside:
            in_parts |= sql.col("u_n") > 0
        asked = [
            sql.sum("n").alias("n_items"), sql.sum(weight).alias("weight"), sql.count(sql.lit(1)).alias("n_parts"),
            sql.max(sql.col("fp") > 0).alias("any_fp"), sql.max(in_parts).alias("any_fn"),
        ]  # fmt: skip
        asked += [sql.sum(weight * sql.col(m.name)).alias(f"sum_{m.name}") for m in needed]
        found = self.cells.groupBy(*join.keys(side)).agg(*asked)
        code = sql.col("any_fn").cast("int") + 2 * sql.col("any_fp").cast("int")
        names = OUTCOMES["true" if side == TRUE else "pred"]
        outcome = sql.element_at(sql.array(*map(sql.lit, names)), code + 1)
        found = found.select(
            self.label(side).alias("cluster"), "n_items", "weight", "n_parts",
            (code == 0).alias("exact"), outcome.alias("outcome"), *(f"sum_{m.name}" for m in needed),
        )  # fmt: skip
        grouped = aggregation.grouped(self.metrics)
        kept = [field for field in found.schema.fields if field.name in FIRST]
        schema = _schema(kept, (*LOSSES, *(m.name for m in grouped)))
        return found.mapInArrow(_mean_clusters(grouped, needed, self.question.beta, self.total), schema)

    def _losses(self, weight: Any, prefix: str = "") -> list[Any]:
        sql = functions()
        return [
            (sql.col(f"{prefix}{m.name}") * weight / self.total).alias(name) for name, m in LOSSES.items()
        ]


Task = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def _schema(fields: Iterable[Any], floats: Iterable[str]) -> str:
    """Return the schema of a DataFrame with these columns, followed by columns of floats."""
    known = [f"`{field.name}` {field.dataType.simpleString()}" for field in fields]
    return ", ".join([*known, *(f"`{name}` double" for name in floats)])


def _scores(metrics: list[Metric], beta: float) -> dict[str, Metric]:
    """Return the losses and scores of cells that listings of items and clusters show, by name."""
    needed = aggregation.summed(aggregation.grouped(metrics), beta, losses=True)
    return {metric.name: metric for metric in needed}


def _score_cells(question: Question, scores: dict[str, Metric]) -> Task:
    """Return the function that adds weights, confusion matrices and scores to batches of scored cells."""

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in in_blocks(batches, AT_ONCE):
            numbers = [
                name for name in table.column_names if name == "n" or name == "w" or name[1:] in ("_n", "_w")
            ]
            columns = columns_of(table.select(numbers), question)
            cells = streamed_cells(Margins(columns, question), question)
            found: dict[str, Any] = {"weight": cells.weight, "fp": cells.fp, "fn": cells.fn}
            found["tn"] = cells.known_tn
            found |= {name: aggregation.cell_scores(cells, metric) for name, metric in scores.items()}
            for name, values in found.items():
                column = (
                    pa.nulls(len(table), pa.float64())
                    if values is None
                    else pa.array(np.ascontiguousarray(values))
                )
                table = table.append_column(name, column)
            yield from table.combine_chunks().to_batches()

    return task


def _mean_clusters(metrics: list[Metric], needed: list[Metric], beta: float, total: float) -> Task:
    """Return the function that computes means, and scores combined from them, from sums by cluster."""

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in in_blocks(batches, AT_ONCE):
            sums: dict[str, Any] = {m.name: np.array(table[f"sum_{m.name}"].combine_chunks()) for m in needed}
            sums |= {"n_items": np.array(table["n_items"].combine_chunks())}
            sums[WEIGHT] = np.array(table["weight"].combine_chunks())
            means = aggregation.means_of_groups(sums, metrics, beta, total)
            table = table.select(list(FIRST))
            for name in (*LOSSES, *(m.name for m in metrics)):
                table = table.append_column(name, pa.array(np.ascontiguousarray(means[name])))
            yield from table.combine_chunks().to_batches()

    return task


#: The directories that are written for each value of `keep`.
DIRECTORIES = {"scores": (), "cells": ("cells", "true_clusters", "pred_clusters"), "items": ("items",)}


@dataclass(frozen=True)
class Stored:
    """The directories below a URI, and the session that can read them; no URI if nothing was written."""

    session: Any
    uri: str | None = None
    keep: str = "scores"

    @property
    def has_cells(self) -> bool:
        """Whether cells and clusters were written."""
        return self.uri is not None and self.keep != "scores"

    def frame(self, name: str) -> Any:
        """Return the table of this name as an unread DataFrame; raise NotKeptError if it was not written."""
        needed = "items" if name == "items" else "cells"
        if self.uri is None or self.keep not in ("items", needed):
            what = "items were" if name == "items" else "cells were"
            raise NotKeptError(
                f"the {what} not kept; on Spark, evaluate with {arg('keep', needed)} and out=URI, which writes them "
                "there"
            )
        return self.session.read.parquet(f"{self.uri}/{name}")

    def write(self, name: str, frame: Any) -> None:
        """Write a DataFrame under this name, replacing any earlier DataFrame of this name."""
        frame.write.mode("overwrite").parquet(f"{self.uri}/{name}")

    def write_text(self, name: str, text: str) -> None:
        """Write a text as the only row of a directory of text files."""
        self.session.createDataFrame([(text,)], "value string").coalesce(1).write.mode("overwrite").text(
            f"{self.uri}/{name}"
        )


def joined(uri: Any) -> str:
    """Return a URI without a trailing slash."""
    if not isinstance(uri, str) and not hasattr(uri, "__fspath__"):
        raise OptionError(f"a directory must be a path or URI, not {quoted(uri)}")
    return str(uri).rstrip("/")


def first_of(
    frame: Any, metrics: list[Metric], order_by: str | None, limit: int | None, ids: Iterable[str]
) -> Table:
    """Return the first rows of a DataFrame, ordered by a column as in other listings, then by weight, then by id."""
    limit = require_limit(limit)
    ids = list(ids)
    order = [quoted(name).asc_nulls_last() for name in ids]
    if order_by is not None:
        require_known(order_by, frame.columns)
        order = [_worst_first(frame, order_by, metrics), functions().desc("weight"), *order]
    with named_errors():
        cut = frame.orderBy(*order)
        table = arrow_of(cut if limit is None else cut.limit(limit))
    return listed(table, metrics, None, None)


def _worst_first(frame: Any, name: str, metrics: list[Metric]) -> Any:
    """Return the expression that orders a column from worst to best, with NaN and null last."""
    from pyspark.sql.types import BooleanType, NumericType

    column = reduce(lambda a, b: a + b, map(quoted, LOSSES)) if name == LOSS else quoted(name)
    kind = None if name == LOSS else frame.schema[name].dataType
    if kind is not None and kind.typeName().startswith(("date", "time", "daytimeinterval")):
        return column.desc_nulls_last()
    if kind is not None and not isinstance(kind, (NumericType, BooleanType)):
        raise not_ordered(name)
    number = column.cast("double")
    return (number if is_higher_better(name, metrics) else -number).asc_nulls_last()


def where_label(frame: Any, column: str, label: Any) -> Any:
    """Return the rows with this label, which is a tuple if composite."""
    sql = functions()
    kind = frame.schema[column].dataType
    if kind.typeName() != "struct":
        return frame.where(quoted(column) == sql.lit(label))
    values = label if isinstance(label, tuple | list) else (label,)
    parts = zip(kind.names, values, strict=True)
    return frame.where(reduce(and_, (quoted(column)[name] == sql.lit(value) for name, value in parts)))


def attribute_columns(frame: Any, names: Iterable[str], fixed: Iterable[str]) -> Mapping[str, str]:
    """Return the columns of the named attributes, by original name."""
    known = [name for name in frame.columns if name not in fixed and "." in name]
    found = {}
    for name in names:
        fits = [each for each in known if each == name or each.partition(".")[2] == name]
        if len(fits) != 1:
            there = ", ".join(known) or f"none; those that are named in {arg('slices', ...)} are written"
            raise ColumnError(
                f"{'there is no' if not fits else 'there is more than one'} attribute {name!r} with the items. There "
                f"are: {there}." + did_you_mean(name, known)
            )
        found[name] = fits[0]
    return found


def arrow_of(frame: Any) -> pa.Table:
    """Return a DataFrame of few rows as an Arrow table."""
    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    rows = frame.collect()
    from pyspark.sql.pandas.types import to_arrow_schema

    schema = to_arrow_schema(frame.schema)
    columns = [pa.array([_plain(row[k]) for row in rows], field.type) for k, field in enumerate(schema)]
    return pa.table(columns, schema=schema)


def _plain(value: Any) -> Any:
    """Return a value; a Spark row, which is the form of a composite id, becomes a dict."""
    return value.asDict() if hasattr(value, "asDict") else value


LIMIT = 1000


class KeptOnSpark(Kept):
    """The data of an evaluation whose cells and items stay on Spark."""

    def require_items(self) -> NoReturn:
        """Raise NotKeptError: items are not available on this machine."""
        raise NotKeptError(
            f"the items stay on Spark. Pass {arg('slices', ...)} to evaluate to compute slices; to list items with "
            f"items(limit=…) or items_df(), evaluate with {arg('keep', 'items')} and out=URI"
        )


class SparkEvaluation(Evaluation):
    """The scores of a clustering of DataFrames; see `fastbcubed.Evaluation`.

    Scores, slices, coverage and summary are local; items, cells and clusters are in `out`. The methods `items`,
    `cells` and `clusters` read up to `limit` rows, which Spark sorts and limits; `items_df`, `cells_df` and
    `clusters_df` return unread DataFrames.
    """

    stored: Stored

    @classmethod
    def of(cls, stored: Stored, figures: Figures, kept: Kept, origin: Origin) -> SparkEvaluation:
        """Return an evaluation whose tables were written to `stored`."""
        ev = cls(figures, KeptOnSpark(kept.cells, kept.policies), origin)
        ev.stored = stored
        return ev

    def items_df(self) -> Any:
        """Return all scored items as a DataFrame: the columns of `items`, and the attributes of requested slices.

        The methods for DataFrames of items, cells and clusters raise NotKeptError if the DataFrame was not written.
        """
        return self.stored.frame("items")

    def cells_df(self) -> Any:
        """Return all cells as a DataFrame with the columns of `cells`."""
        return self.stored.frame("cells")

    def clusters_df(self, side: str) -> Any:
        """Return all clusters of a side ("true" or "pred") as a DataFrame with the columns of `clusters`."""
        return self.stored.frame(f"{side_of(side)}_clusters")

    def items(
        self,
        columns: str | Iterable[str] = (),
        *,
        true_cluster: Any = None,
        pred_cluster: Any = None,
        order_by: str | None = None,
        limit: int | None = LIMIT,
    ) -> Table:
        """Return scored items as `Evaluation.items` does, by default in the order of ids; `limit=None` returns all."""
        frame = self.items_df()
        for name, label in (("true_cluster", true_cluster), ("pred_cluster", pred_cluster)):
            frame = frame if label is None else where_label(frame, name, label)
        names = [columns] if isinstance(columns, str) else list(columns)
        fixed = [name for name in frame.columns if "." not in name]
        attributes = attribute_columns(frame, names, fixed).items()
        chosen = [quoted(name) for name in fixed]
        chosen[3:3] = [quoted(column).alias(name) for name, column in attributes]
        return first_of(frame.select(*chosen), self.metrics, order_by, limit, ["item"])

    def cells(self, *, order_by: str | None = None, limit: int | None = LIMIT) -> Table:
        """Return cells as `Evaluation.cells` does, those with the largest losses first; `limit=None` returns all."""
        return first_of(self.cells_df(), [], order_by or LOSS, limit, ["true_cluster", "pred_cluster"])

    def clusters(
        self,
        side: str,
        *,
        order_by: str | None = None,
        limit: int | None = LIMIT,
        outcome: str | None = None,
    ) -> Table:
        """Return clusters as `Evaluation.clusters` does, the costliest first; `limit=None` returns all."""
        side = side_of(side)
        frame = self.clusters_df(side)
        if outcome is not None:
            outcome_code(side, outcome)
            frame = frame.where(functions().col("outcome") == outcome)
        order_by = LOSS_OF_SIDE[side] if order_by is None or is_one_of(order_by, (LOSS,)) else order_by
        return first_of(frame, self.metrics, order_by, limit, ["cluster"])

    def outcomes(self) -> Table:
        """Return the outcomes of the clusters as `Evaluation.outcomes` does, from the clusters written to `out`."""
        if not self.has_clusters:
            raise NotKeptError(
                "outcomes need the written clusters, but none were written: on Spark, evaluate with "
                f"out=URI and {arg('keep', 'cells', 'items')}"
            )
        return super().outcomes()

    @cached_property
    def _outcomes(self) -> pa.Table | None:
        """The result of `outcomes`; None if clusters were not kept."""
        if not self.has_clusters:
            return None
        sql = functions()
        sums = {"n_clusters": sql.count(sql.lit(1))}
        sums |= {name: sql.sum(name) for name in SCHEMA.names[3:]}
        rows = []
        for side, names in OUTCOMES.items():
            with named_errors():
                asked = (each.alias(name) for name, each in sums.items())
                found = arrow_of(self.clusters_df(side).groupBy("outcome").agg(*asked)).to_pylist()
            known = {row["outcome"]: row for row in found}
            blank = dict.fromkeys(sums, 0)
            rows += [{"side": side, **blank, **known.get(name, {}), "outcome": name} for name in names]
        return pa.Table.from_pylist(rows, schema=SCHEMA)

    @property
    def has_clusters(self) -> bool:
        """Whether the clusters were written, so that they can be listed."""
        return self.stored.has_cells

    def metric(self, which: str | Metric | Callable[..., Any]) -> float:
        """Return a computed score; other scores need the cells, and raise NotKeptError."""
        if isinstance(which, str) and (known := self.overall.named(which)) is not None:
            return float(self.overall[known])
        raise NotKeptError(
            "the cells stay on Spark, where scores are computed once: name this score in "
            f"{arg('metrics', ...)} of evaluate"
        )

    def save(self, directory: Any, *, keep: str = "scores", repairs: int = 0) -> None:
        """Save scores, coverage, summary and slices; cells and items are written only by `out` of `evaluate`.

        Parameters
        ----------
        directory : path or URI
            The directory to which Spark writes. The JSON is written to ``overall``, a directory of text files. If the
            driver can access the directory, the JSON is also written to ``overall.json`` and the slices to
            ``slices.parquet``; `fastbcubed.load` reads both files.
        keep : {"scores", "cells", "items"}
            What to save; anything but "scores" requires that `out` was the same directory.
        repairs : int
            Must be 0, because repairs are not supported.

        Raises
        ------
        OptionError
            If repairs are requested.
        NotKeptError
            If the data to write were not kept.
        """
        if repairs:
            raise OptionError(
                f"repairs need all cells at once, which Spark does not support; omit {arg('repairs', ...)}"
            )
        uri = joined(directory)
        if keep not in DIRECTORIES:
            raise OptionError(
                f"{arg('keep')} must be one of {', '.join(map(repr, DIRECTORIES))}, not {quoted(keep)}"
            )
        if keep != "scores" and (uri, keep) != (self.stored.uri, self.stored.keep):
            raise NotKeptError(
                f"cells and items are written while they are computed: pass {arg('out', ...)} and "
                f"{arg('keep', ...)} to evaluate; {arg('keep', 'scores')} writes the rest"
            )
        with named_errors():
            Stored(self.stored.session, uri).write_text("overall", self.to_json(indent=None))
        path = uri.removeprefix("file://")
        if os.path.isdir(os.path.join(path, "overall")):
            save.save(self, path, keep="scores")
