"""Cells with margins → DataFrames of cells, clusters and items, which stay on Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import Any

import numpy as np
import pyarrow as pa

from fastbcubed.errors import ColumnError, NotKeptError, OptionError, arg
from fastbcubed.inputs.suggestions import did_you_mean
from fastbcubed.metrics import aggregation
from fastbcubed.metrics import aggregation as groups
from fastbcubed.metrics.aggregation import WEIGHT
from fastbcubed.metrics.pointwise import LOSSES
from fastbcubed.metrics.score import Metric
from fastbcubed.results.outcomes import OUTCOMES
from fastbcubed.results.table import LOSS, Table, listed, require_known, require_limit
from fastbcubed.spark.aggregate import Margins, Question, StreamedCells, columns_of, gathered, named_errors
from fastbcubed.spark.frames import functions, quoted
from fastbcubed.spark.grouping import PRED, TRUE, Join

#: Columns of clusters before losses and scores.
FIRST = ("cluster", "n_items", "weight", "n_parts", "exact", "outcome")


@dataclass(frozen=True)
class Frames:
    """DataFrames made of the cells: `cells` has the scored ones, each once, with keys, margins and scores."""

    join: Join
    question: Question
    metrics: list[Metric]
    total: float  #: the weight of all scored items
    cells: Any

    @classmethod
    def of(
        cls, join: Join, question: Question, metrics: list[Metric], total: tuple[int, float], margins: Any
    ) -> Frames:
        """Score cells with margins on the executors; `total` is the number and the weight of scored items."""
        found = margins.where(join.is_there(TRUE) & join.is_there(PRED))
        if join.extra:
            found = found.where("head").drop("head", "n", "w", *join.extra)
            found = found.withColumnsRenamed({"c_n": "n", "c_w": "w"})
        asked = replace(question, carried=[], slices=[], total=total)
        scores = _scores(metrics, question.beta)
        names = [*join.keys(TRUE), *join.keys(PRED), "n", *(["w"] if question.weighted else [])]
        names += [f"{margin}_{name}" for margin in "abu" for name in names if name in ("n", "w")]
        found = found.select(*names)
        schema = ", ".join(
            [*(f"`{field.name}` {field.dataType.simpleString()}" for field in found.schema.fields)]
            + [f"`{name}` double" for name in ("weight", "fp", "fn", "tn", *scores)]
        )
        scored = found.mapInArrow(_score_cells(asked, scores), schema)
        return cls(join, asked, metrics, total[1], scored)

    def label(self, side: str) -> Any:
        """Return the label of a cluster, a struct if it is composite; null for one made by a policy."""
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
        losses = [
            (sql.col(f"c_{metric.name}") * weight / self.total).alias(name) for name, metric in LOSSES.items()
        ]
        return found.select(
            item.alias("item"), self.label(TRUE).alias("true_cluster"), self.label(PRED).alias("pred_cluster"),
            *(sql.col(new).alias(name) for name, new in self._attributes()), weight.alias("weight"),
            "tp", "fp", "fn", "tn", *losses, *(sql.col(f"score_{new}").alias(new) for new in scores),
        )  # fmt: skip

    def _attributes(self) -> list[tuple[str, str]]:
        """Return the carried attributes, under names that no other column has, and their columns."""
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
        needed = groups.summed(groups.grouped(self.metrics), self.question.beta, losses=True)
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
        grouped = groups.grouped(self.metrics)
        kept = [field for field in found.schema.fields if field.name in FIRST]
        schema = ", ".join(
            [*(f"`{field.name}` {field.dataType.simpleString()}" for field in kept)]
            + [f"`{name}` double" for name in (*LOSSES, *(m.name for m in grouped))]
        )
        return found.mapInArrow(_mean_clusters(grouped, needed, self.question.beta, self.total), schema)

    def _losses(self, weight: Any) -> list[Any]:
        sql = functions()
        return [(sql.col(m.name) * weight / self.total).alias(name) for name, m in LOSSES.items()]


Task = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def _scores(metrics: list[Metric], beta: float) -> dict[str, Metric]:
    """Return the scores of cells that are listed for items and clusters, and their losses."""
    needed = groups.summed(groups.grouped(metrics), beta, losses=True)
    return {metric.name: metric for metric in needed}


def _score_cells(question: Question, scores: dict[str, Metric]) -> Task:
    """Return the function that adds weight, confusion matrix and scores to batches of scored cells."""

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in gathered(batches):
            numbers = [
                name for name in table.column_names if name == "n" or name == "w" or name[1:] in ("_n", "_w")
            ]
            columns = columns_of(table.select(numbers), question)
            cells = StreamedCells(Margins(columns, question), question)
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
    """Return the function that computes means, and their combinations, from sums by cluster."""

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in gathered(batches):
            sums: dict[str, Any] = {m.name: np.array(table[f"sum_{m.name}"].combine_chunks()) for m in needed}
            sums |= {"n_items": np.array(table["n_items"].combine_chunks())}
            sums[WEIGHT] = np.array(table["weight"].combine_chunks())
            means = groups.means_of_groups(sums, metrics, beta, total)
            table = table.select(list(FIRST))
            for name in (*LOSSES, *(m.name for m in metrics)):
                table = table.append_column(name, pa.array(np.ascontiguousarray(means[name])))
            yield from table.combine_chunks().to_batches()

    return task


#: The directories written for each level of `keep`.
DIRECTORIES = {"scores": (), "cells": ("cells", "true_clusters", "pred_clusters"), "items": ("items",)}


@dataclass(frozen=True)
class Stored:
    """The directories below a URI, which a session can read; no URI where nothing was written."""

    session: Any
    uri: str | None = None
    keep: str = "scores"

    def frame(self, name: str) -> Any:
        """Return the table written under this name, unread; raise NotKeptError if there is none."""
        needed = "items" if name == "items" else "cells"
        if self.uri is None or self.keep not in ("items", needed):
            what = "items were" if name == "items" else "cells were"
            raise NotKeptError(
                f"the {what} not kept; on Spark, evaluate with {arg('keep', needed)} and out=URI, which writes them "
                "there"
            )
        return self.session.read.parquet(f"{self.uri}/{name}")

    def write(self, name: str, frame: Any) -> None:
        """Write a DataFrame, replacing any under this name."""
        frame.write.mode("overwrite").parquet(f"{self.uri}/{name}")

    def write_text(self, name: str, text: str) -> None:
        """Write a text as the one row of a directory of text."""
        self.session.createDataFrame([(text,)], "value string").coalesce(1).write.mode("overwrite").text(
            f"{self.uri}/{name}"
        )


def joined(uri: Any) -> str:
    """Return a URI without a trailing slash."""
    if not isinstance(uri, str) and not hasattr(uri, "__fspath__"):
        raise OptionError(f"a directory is named by a path or URI, not {uri!r}")
    return str(uri).rstrip("/")


def first_of(
    frame: Any, metrics: list[Metric], order_by: str | None, limit: int | None, ids: Iterable[str]
) -> Table:
    """Return the first rows of a DataFrame in the order of `listing.listed`: by rank, then by weight, then by id."""
    require_limit(limit)
    ids = list(ids)
    order = [quoted(name).asc_nulls_last() for name in ids]
    if order_by is not None:
        require_known(order_by, frame.columns)
        order = [_rank(frame, order_by, metrics).asc_nulls_last(), functions().desc("weight"), *order]
    with named_errors():
        cut = frame.orderBy(*order)
        table = arrow_of(cut if limit is None else cut.limit(limit))
    return listed(table, metrics, None, None)


def _rank(frame: Any, name: str, metrics: list[Metric]) -> Any:
    """Return a rank that ascends from worst to best; NaN comes last."""
    higher = {m.name: m.best == "higher" for m in metrics} | {
        m.item_name: m.best == "higher" for m in metrics if m.item_name
    }
    column = reduce(lambda a, b: a + b, map(quoted, LOSSES)) if name == LOSS else quoted(name)
    if name != LOSS and not isinstance(frame.schema[name].dataType.typeName(), str):
        raise OptionError(f"cannot order by {name!r}, which is not a number")
    number = column.cast("double")
    return number if higher.get(name, False) else -number


def where_label(frame: Any, column: str, label: Any) -> Any:
    """Return the rows with a label; a tuple if composite."""
    sql = functions()
    kind = frame.schema[column].dataType
    if kind.typeName() != "struct":
        return frame.where(quoted(column) == sql.lit(label))
    values = label if isinstance(label, tuple | list) else (label,)
    parts = zip(kind.names, values, strict=True)
    return frame.where(reduce(and_, (quoted(column)[name] == sql.lit(value) for name, value in parts)))


def attribute_columns(frame: Any, names: Iterable[str], fixed: Iterable[str]) -> Mapping[str, str]:
    """Return the columns of attributes under their original names."""
    known = [name for name in frame.columns if name not in fixed and "." in name]
    found = {}
    for name in names:
        fits = [each for each in known if each == name or each.partition(".")[2] == name]
        if len(fits) != 1:
            there = ", ".join(known) or f"none; those that are named in {arg('slices', ...)} are written"
            raise ColumnError(
                f"{'there is no' if not fits else 'there is more than one'} attribute {name!r} beside the items. There "
                f"are: {there}." + did_you_mean(name, known)
            )
        found[name] = fits[0]
    return found


def arrow_of(frame: Any) -> pa.Table:
    """Return a DataFrame as an Arrow table; for few rows."""
    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    rows = frame.collect()
    from pyspark.sql.pandas.types import to_arrow_schema

    schema = to_arrow_schema(frame.schema)
    columns = [pa.array([_plain(row[k]) for row in rows], field.type) for k, field in enumerate(schema)]
    return pa.table(columns, schema=schema)


def _plain(value: Any) -> Any:
    """Return a Spark row, the form of a composite id, as a dict."""
    return value.asDict() if hasattr(value, "asDict") else value
