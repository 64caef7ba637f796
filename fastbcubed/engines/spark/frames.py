"""Spark DataFrames → two sides whose columns are named and typed alike; what cannot be joined is said first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from fastbcubed.alignment.side import require_known_type
from fastbcubed.clusterings.clustering import Clustering
from fastbcubed.clusterings.inputs import Asked, Given, asked_of_sides, per_side
from fastbcubed.errors import ColumnError, IdTypeError, MissingPackageError, OptionError
from fastbcubed.sources.columns import Column
from fastbcubed.sources.keys import check_kinds
from fastbcubed.sources.tables import BaseRows, column_names, read_columns

#: Types of Spark by their names: the Arrow type that they are read as, and a value that stands for all.
TYPES: Mapping[str, tuple[pa.DataType, Any]] = {
    "byte": (pa.int8(), 1), "short": (pa.int16(), 1), "integer": (pa.int32(), 1), "long": (pa.int64(), 1),
    "string": (pa.string(), ""), "binary": (pa.binary(), b""), "boolean": (pa.bool_(), True),
    "float": (pa.float32(), 0.5), "double": (pa.float64(), 0.5), "date": (pa.date32(), 0),
    "timestamp": (pa.timestamp("us"), 0), "timestamp_ntz": (pa.timestamp("us"), 0),
}  # fmt: skip


def is_frame(given: Any) -> bool:
    """Tell whether this is a DataFrame of Spark, classic or Connect; Spark is not imported for that."""
    return any(
        each.__module__.startswith("pyspark.sql.") and each.__name__ == "DataFrame"
        for each in type(given).__mro__
    )


def is_any(given: Sequence[Any]) -> bool:
    """Tell whether one of these is a DataFrame of Spark."""
    return any(map(is_frame, given))


def functions() -> Any:
    """Return the functions of Spark SQL."""
    try:
        from pyspark.sql import functions as sql
    except ImportError as error:
        raise MissingPackageError(
            "Spark's Python package is not installed. A cluster has it; elsewhere install fastbcubed[spark-local]"
        ) from error
    return sql


class FrameRows(BaseRows):
    """The columns of a DataFrame, which is not read: one row stands for all where types matter."""

    def __init__(self, frame: Any, where: str) -> None:
        super().__init__(frame.columns, where)
        self.frame = frame
        self._types = {field.name: field.dataType for field in frame.schema.fields}

    def __len__(self) -> int:
        return 1

    def _read(self, names: Sequence[str]) -> list[pa.ChunkedArray]:
        return [pa.chunked_array([self._example(self._types[name])]) for name in names]

    @staticmethod
    def _example(kind: Any) -> pa.Array:
        name = kind.typeName()
        if name == "decimal":
            return pa.array([Decimal("0.5")])
        if name.startswith(("varchar", "char")):
            name = "string"
        return pa.array([TYPES[name][1]], TYPES[name][0]) if name in TYPES else pa.array([{}], pa.struct([]))

    def is_integer(self, name: str) -> bool:
        """Tell whether a column holds integers, of whatever width."""
        return self._types[name].typeName() in ("byte", "short", "integer", "long")

    def is_nested(self, name: str) -> bool:
        """Tell whether a column holds lists, maps or other things that slices cannot go by."""
        return self._types[name].typeName() in ("array", "map", "struct", "variant")


@dataclass(frozen=True)
class FrameSide:
    """One side: the DataFrame, which of its columns are what, and a row that stands for all where types matter."""

    rows: FrameRows
    items: tuple[str, ...]
    clusters: tuple[str, ...]
    weight: str | None
    example: Clustering

    @property
    def attributes(self) -> tuple[str, ...]:
        """The columns that it can be sliced by."""
        return self.example.attribute_names

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return self.rows.where

    @property
    def frame(self) -> Any:
        """The DataFrame."""
        return self.rows.frame


def open_sides(given: Given, noise: Any) -> tuple[FrameSide, FrameSide]:
    """Choose the columns of both sides, and raise where they cannot be joined."""
    _require_frames(given)
    asked = asked_of_sides(given.item, given.cluster)
    truth, prediction = (
        _open(frame, each, given.weight)
        for frame, each in zip((given.truth, given.prediction), asked, strict=True)
    )
    ids = [side.example.items for side in (truth, prediction)]
    check_kinds([each for each in ids if each is not None])
    if noise is not None:
        require_known_type(noise, truth.example.labels, prediction.example.labels)
    if isinstance(given.weight, str) and truth.weight is None and prediction.weight is None:
        raise ColumnError(
            f"There is no weight column {given.weight!r}. Columns: "
            + "; ".join(f"{side.name} has {', '.join(side.frame.columns)}" for side in (truth, prediction))
            + "."
        )
    return truth, prediction


def _require_frames(given: Given) -> None:
    """Raise for what the Spark engine does not take."""
    others = {"truth": given.truth, "prediction": given.prediction}
    others |= {
        "attributes": given.attributes,
        "weight": None if isinstance(given.weight, str) else given.weight,
    }
    if given.table is not None:
        raise OptionError(
            "the Spark engine does not serve table=; select the columns of either side: "
            'evaluate(df.select("item", "true_cluster"), df.select("item", "pred_cluster"))'
        )
    if given.overlapping:
        raise OptionError(
            "the Spark engine does not serve overlapping=True, for which all items are needed at once"
        )
    for name, frame in others.items():
        if frame is not None and not is_frame(frame):
            raise OptionError(
                f"the Spark engine takes DataFrames of Spark, but {name}= is a {type(frame).__name__}; read it with "
                "spark.read or spark.createDataFrame first"
            )


def _open(frame: Any, asked: Asked, weight: Any) -> FrameSide:
    rows = FrameRows(frame, asked.name)
    weighted = isinstance(weight, str) and weight in rows.names
    example = Clustering._of_table(rows, asked.columns, weight if weighted else None, asked.name, asked.typed)
    assert example.items is not None
    for column in (example.items, example.labels):
        _refuse_floats(column)
    return FrameSide(rows, example.items.names, example.labels.names, weight if weighted else None, example)


def item_names(rows: FrameRows, item: Any, truth: FrameSide) -> tuple[str, ...]:
    """Return the item columns of a table of weights or attributes: as asked, else named as in the truth."""
    asked = column_names(per_side(item, "item")[0], "item")
    if not set(asked) <= set(rows.names) and set(truth.items) <= set(rows.names):
        asked = list(truth.items)
    (ids,), _ = read_columns(rows, [asked])
    _refuse_floats(ids)
    assert truth.example.items is not None
    check_kinds([truth.example.items, ids])
    return ids.names


def _refuse_floats(column: Column) -> None:
    """Raise for ids that are floats: whether all are whole is not looked at."""
    for name, part in zip(column.names, column.parts, strict=True):
        if column.was_fractional or pa.types.is_floating(part.type) or pa.types.is_decimal(part.type):
            raise IdTypeError(
                f"{column.where} should be integers, strings or binary, but {name!r} is a float or a decimal. Cast it "
                "to bigint or string in Spark."
            )
