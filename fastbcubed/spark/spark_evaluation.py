"""Evaluation of DataFrames: scores are local; items, cells and clusters stay on Spark."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import pyarrow as pa

from fastbcubed.cells.contingency import side_of
from fastbcubed.errors import NotKeptError, OptionError, arg
from fastbcubed.metrics.pointwise import LOSS_OF_SIDE
from fastbcubed.metrics.score import Metric
from fastbcubed.results import save
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.outcomes import OUTCOMES, SCHEMA, outcome_code
from fastbcubed.results.table import LOSS, Table
from fastbcubed.runtime.arguments import is_one_of
from fastbcubed.runtime.attributes import cached_property
from fastbcubed.spark.aggregate import named_errors
from fastbcubed.spark.frames import functions
from fastbcubed.spark.listings import (
    DIRECTORIES,
    Stored,
    arrow_of,
    attribute_columns,
    first_of,
    joined,
    where_label,
)

#: The default number of rows of a listing.
LIMIT = 1000


class SparkEvaluation(Evaluation):
    """The scores of a clustering of DataFrames; see `fastbcubed.Evaluation`.

    Scores, slices, coverage and summary are local. Items, cells and clusters are in `out`: `items`, `cells` and
    `clusters` read up to `limit` rows, sorted and cut by Spark, and `items_df`, `cells_df` and `clusters_df` return
    them unread.
    """

    stored: Stored

    @classmethod
    def of(cls, stored: Stored, *args: Any, **fields: Any) -> SparkEvaluation:
        """Return an evaluation whose tables have been written."""
        ev = cls(*args, **fields)
        ev.stored = stored
        return ev

    def items_df(self) -> Any:
        """Return every scored item, unread: the columns of `items`, and the attributes of the requested slices.

        Returns
        -------
        pyspark.sql.DataFrame

        Raises
        ------
        NotKeptError
            If they were not written.
        """
        return self.stored.frame("items")

    def cells_df(self) -> Any:
        """Return the cells, unread: the columns of `cells`.

        Returns
        -------
        pyspark.sql.DataFrame

        Raises
        ------
        NotKeptError
            If they were not written.
        """
        return self.stored.frame("cells")

    def clusters_df(self, side: str) -> Any:
        """Return the clusters of a side, unread: the columns of `clusters`.

        Parameters
        ----------
        side : {"true", "pred"}
            Which clusters; also "truth", "prediction".

        Returns
        -------
        pyspark.sql.DataFrame

        Raises
        ------
        NotKeptError
            If they were not written.
        """
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
        """Return scored items as `Evaluation.items` does, by id unless they are ordered; None for all of them."""
        frame = self.items_df()
        for name, label in (("true_cluster", true_cluster), ("pred_cluster", pred_cluster)):
            frame = frame if label is None else where_label(frame, name, label)
        names = [columns] if isinstance(columns, str) else list(columns)
        fixed = [name for name in frame.columns if "." not in name]
        chosen = attribute_columns(frame, names, fixed)
        found = first_of(frame, self.metrics, order_by, limit, ["item"]).to_arrow()
        table = found.select(fixed)
        for k, (name, column) in enumerate(chosen.items(), 3):
            table = table.add_column(k, name, found[column])
        return Table(table)

    def cells(self, *, order_by: str | None = None, limit: int | None = LIMIT) -> Table:
        """Return cells as `Evaluation.cells` does, those with the largest losses first; None for all of them."""
        return first_of(self.cells_df(), [], order_by or LOSS, limit, ["true_cluster", "pred_cluster"])

    def clusters(
        self,
        side: str,
        *,
        order_by: str | None = None,
        limit: int | None = LIMIT,
        outcome: str | None = None,
    ) -> Table:
        """Return clusters as `Evaluation.clusters` does, the costliest first; None for all of them."""
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
                "outcomes are counted over the clusters that were written, and none were: on Spark, evaluate with "
                f"out=URI and {arg('keep', 'cells', 'items')}"
            )
        return super().outcomes()

    @cached_property
    def _outcomes(self) -> pa.Table | None:
        """The result of `outcomes`; None if clusters were not kept."""
        if self.stored.uri is None or self.stored.keep == "scores":
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
        return self.stored.uri is not None and self.stored.keep != "scores"

    def metric(self, which: str | Metric | Callable[..., Any]) -> float:
        """Return a computed score; others need the cells, and raise NotKeptError."""
        if isinstance(which, str) and (known := self.overall.named(which)) is not None:
            return float(self.overall[known])
        raise NotKeptError(
            f"the cells stay on Spark, where scores are added up once: name this one in {arg('metrics', ...)} of "
            "evaluate"
        )

    def kept_items(self) -> NoReturn:
        """Raise NotKeptError: the items are on Spark."""
        raise NotKeptError(
            f"the items stay on Spark. Slices are made while cells are added up: name them in {arg('slices', ...)} "
            f"of evaluate; items are listed by items(limit=…) and items_df() where {arg('keep', 'items')} and "
            "out=URI have written them"
        )

    def save(self, directory: Any, *, keep: str = "scores", repairs: int = 0) -> None:
        """Save scores, coverage, summary and slices; cells and items are written only by `out` of `evaluate`.

        Parameters
        ----------
        directory : path or URI
            Where Spark writes. JSON goes to ``overall``, a directory of text, and, if the driver sees the directory, to
            ``overall.json`` and ``slices.parquet``, which `fastbcubed.load` reads.
        keep : {"scores", "cells", "items"}
            More than "scores" where `out` was the same directory.
        repairs : int
            Not supported: 0.

        Raises
        ------
        OptionError
            If repairs are requested.
        NotKeptError
            If the data to write was not kept.
        """
        if repairs:
            raise OptionError(
                f"repairs take all cells at once, which Spark does not serve; leave {arg('repairs', ...)} out"
            )
        uri = joined(directory)
        if keep not in DIRECTORIES:
            raise OptionError(f"{arg('keep')} is one of {', '.join(map(repr, DIRECTORIES))}, not {keep!r}")
        if keep != "scores" and (uri, keep) != (self.stored.uri, self.stored.keep):
            raise NotKeptError(
                f"cells and items are written while they are made: pass {arg('out', ...)} and {arg('keep', ...)} to "
                f"evaluate; {arg('keep', 'scores')} writes the rest"
            )
        with named_errors():
            Stored(self.stored.session, uri).write_text("overall", self.to_json(indent=None))
        path = uri.removeprefix("file://")
        if os.path.isdir(os.path.join(path, "overall")):
            save.save(self, path, keep="scores")
