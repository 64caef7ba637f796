"""What was written on Spark: directories of Parquet, and listings of them that Spark sorts and cuts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

import pyarrow as pa

from fastbcubed.engines.spark.frames import functions
from fastbcubed.engines.spark.jobs import named_errors
from fastbcubed.engines.spark.looking import quoted
from fastbcubed.errors import ColumnError, NotKeptError, OptionError
from fastbcubed.metrics.losses import LOSSES
from fastbcubed.metrics.metric import Metric
from fastbcubed.results.listings.listing import LOSS, listed, require_known, require_limit
from fastbcubed.results.listings.table import Table
from fastbcubed.sources.suggestions import did_you_mean

#: The directories that each level of `keep` writes.
DIRECTORIES = {"scores": (), "cells": ("cells", "true_clusters", "pred_clusters"), "items": ("items",)}


@dataclass(frozen=True)
class Stored:
    """The directories below a URI, which a session can read; none of them where nothing was written."""

    session: Any
    uri: str | None = None
    keep: str = "scores"

    def frame(self, name: str) -> Any:
        """Return what was written under this name, unread; raise NotKeptError where nothing was."""
        needed = "items" if name == "items" else "cells"
        if self.uri is None or self.keep not in ("items", needed):
            what = "items were" if name == "items" else "cells were"
            raise NotKeptError(
                f'the {what} not kept; on Spark, evaluate with keep="{needed}" and out=URI, which writes them there'
            )
        return self.session.read.parquet(f"{self.uri}/{name}")

    def write(self, name: str, frame: Any) -> None:
        """Write a DataFrame; what was there under this name is replaced."""
        frame.write.mode("overwrite").parquet(f"{self.uri}/{name}")

    def write_text(self, name: str, text: str) -> None:
        """Write a text as the one row of a directory of text."""
        self.session.createDataFrame([(text,)], "value string").coalesce(1).write.mode("overwrite").text(
            f"{self.uri}/{name}"
        )


def joined(uri: Any) -> str:
    """Return a URI without the slash at its end."""
    if not isinstance(uri, str) and not hasattr(uri, "__fspath__"):
        raise OptionError(f"a directory is named by a path or URI, not {uri!r}")
    return str(uri).rstrip("/")


def first_of(
    frame: Any, metrics: list[Metric], order_by: str | None, limit: int | None, ids: Iterable[str]
) -> Table:
    """Return the first rows of a DataFrame as `listing.listed` orders them: by rank, then by weight, then by id."""
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
    """Return what ascends from worst to best; NaN comes last."""
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
    """Return the columns of attributes by the names that users give them."""
    known = [name for name in frame.columns if name not in fixed and "." in name]
    found = {}
    for name in names:
        fits = [each for each in known if each == name or each.partition(".")[2] == name]
        if len(fits) != 1:
            raise ColumnError(
                f"{'there is no' if not fits else 'there is more than one'} attribute {name!r} beside the items. There "
                f"are: {', '.join(known) or 'none; those that are named in slices= are written'}."
                + did_you_mean(name, known)
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
    """Return a row of Spark, which a composite id comes as, as a dict."""
    return value.asDict() if hasattr(value, "asDict") else value
