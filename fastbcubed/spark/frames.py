"""Spark DataFrames → two sides with chosen columns, whose rows and weights are checked first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from operator import and_, or_
from typing import Any

import pyarrow as pa

from fastbcubed import kernels
from fastbcubed._version import install
from fastbcubed.align.data_errors import NullLabels
from fastbcubed.align.policies import Policies
from fastbcubed.align.sides import require_known_type
from fastbcubed.errors import (
    ColumnError,
    EmptyInputError,
    IdTypeError,
    MissingPackageError,
    NullError,
    OptionError,
    WeightError,
    arg,
    first_few,
)
from fastbcubed.inputs.arrays import is_spark
from fastbcubed.inputs.clustering import Clustering
from fastbcubed.inputs.id_columns import Column, check_kinds
from fastbcubed.inputs.pair import Given
from fastbcubed.inputs.side_columns import SideRequest, per_side, side_requests
from fastbcubed.inputs.tables import Source, column_names, read_columns

#: Spark types by name: the Arrow type as which they are read, and an example value.
TYPES: Mapping[str, tuple[pa.DataType, Any]] = {
    "byte": (pa.int8(), 1), "short": (pa.int16(), 1), "integer": (pa.int32(), 1), "long": (pa.int64(), 1),
    "string": (pa.string(), ""), "binary": (pa.binary(), b""), "boolean": (pa.bool_(), True),
    "float": (pa.float32(), 0.5), "double": (pa.float64(), 0.5), "date": (pa.date32(), 0),
    "timestamp": (pa.timestamp("us"), 0), "timestamp_ntz": (pa.timestamp("us"), 0),
}  # fmt: skip


def functions() -> Any:
    """Return the functions of Spark SQL."""
    try:
        from pyspark.sql import functions as sql
    except ImportError as error:
        raise MissingPackageError(
            "Spark's Python package is not installed. Spark clusters come with it; on other machines, "
            f"install it with {install('spark-local')}"
        ) from error
    return sql


class FrameRows(Source):
    """The columns of an unread DataFrame, with one example row, from which types are derived."""

    def __init__(self, frame: Any, where: str) -> None:
        super().__init__(frame.columns, where, 1, self._examples)
        self.frame = frame
        self._types = {field.name: field.dataType for field in frame.schema.fields}

    def _examples(self, names: Sequence[str]) -> list[pa.ChunkedArray]:
        return [pa.chunked_array([self._example(self._types[name].typeName())]) for name in names]

    @staticmethod
    def _example(name: str) -> pa.Array:
        if name == "decimal":
            return pa.array([Decimal("0.5")])
        if name.startswith(("varchar", "char")):
            name = "string"
        return pa.array([TYPES[name][1]], TYPES[name][0]) if name in TYPES else pa.array([{}], pa.struct([]))

    def is_integer(self, name: str) -> bool:
        """Return whether a column holds integers of any width."""
        return self._types[name].typeName() in ("byte", "short", "integer", "long")

    def is_nested(self, name: str) -> bool:
        """Return whether a column holds lists, maps or other types that cannot define slices."""
        return self._types[name].typeName() in ("array", "map", "struct", "variant")


@dataclass(frozen=True)
class FrameSide:
    """One side: the DataFrame, the roles of its columns, and an example row, from which types are derived."""

    rows: FrameRows
    items: tuple[str, ...]
    clusters: tuple[str, ...]
    weight: str | None
    example: Clustering

    @property
    def attributes(self) -> tuple[str, ...]:
        """The columns that can define slices."""
        return self.example.attribute_names

    @property
    def name(self) -> str:
        """The name shown in messages."""
        return self.rows.where

    @property
    def frame(self) -> Any:
        """The DataFrame."""
        return self.rows.frame


def open_sides(given: Given, policies: Policies) -> tuple[FrameSide, FrameSide]:
    """Choose the columns of both sides; raise an error if these cannot be joined."""
    _require_frames(given)
    asked = side_requests(given.item, given.cluster)
    truth, prediction = (
        _open(frame, each, given.weight)
        for frame, each in zip((given.truth, given.prediction), asked, strict=True)
    )
    ids = [side.example.items for side in (truth, prediction)]
    check_kinds([each for each in ids if each is not None])
    if policies.noise is not None:
        require_known_type(policies, truth.example.labels, prediction.example.labels)
    if isinstance(given.weight, str) and truth.weight is None and prediction.weight is None:
        raise ColumnError(
            f"There is no weight column {given.weight!r}. Columns: "
            + "; ".join(f"{side.name} has {', '.join(side.frame.columns)}" for side in (truth, prediction))
            + "."
        )
    return truth, prediction


def _require_frames(given: Given) -> None:
    others = {"truth": given.truth, "prediction": given.prediction}
    others |= {
        "attributes": given.attributes,
        "weight": None if isinstance(given.weight, str) else given.weight,
    }
    if given.table is not None:
        raise OptionError(
            f"the Spark engine does not support {arg('table', ...)}; select the columns of either side: "
            'evaluate(df.select("item", "true_cluster"), df.select("item", "pred_cluster"))'
        )
    if given.overlapping:
        raise OptionError(
            f"the Spark engine does not support {arg('overlapping', True)}, which needs all items at once"
        )
    for name, frame in others.items():
        if frame is not None and not is_spark(frame):
            raise OptionError(
                f"the Spark engine needs Spark DataFrames, but {name}= is a {type(frame).__name__}; read "
                "it with spark.read or spark.createDataFrame first"
            )


def _open(frame: Any, asked: SideRequest, weight: Any) -> FrameSide:
    rows = FrameRows(frame, asked.name)
    weighted = isinstance(weight, str) and weight in rows.names
    example = Clustering._of_table(rows, asked.columns, weight if weighted else None, asked.name, asked.typed)
    assert example.items is not None
    for column in (example.items, example.labels):
        _refuse_floats(column)
    return FrameSide(rows, example.items.names, example.labels.names, weight if weighted else None, example)


def item_names(rows: FrameRows, item: Any, truth: FrameSide) -> tuple[str, ...]:
    """Return the item columns of a table of weights or attributes: the given ones, or those named as in the truth."""
    asked = column_names(per_side(item, "item")[0], "item")
    if not set(asked) <= set(rows.names) and set(truth.items) <= set(rows.names):
        asked = list(truth.items)
    (ids,), _ = read_columns(rows, [asked])
    _refuse_floats(ids)
    assert truth.example.items is not None
    check_kinds([truth.example.items, ids])
    return ids.names


def _refuse_floats(column: Column) -> None:
    """Raise an error for ids that are floats or decimals, even if all are whole numbers."""
    for name, part in zip(column.names, column.parts, strict=True):
        if column.was_fractional or pa.types.is_floating(part.type) or pa.types.is_decimal(part.type):
            raise IdTypeError(
                f"{column.where} should be integers, strings or binary, but {name!r} is a float or a decimal. Cast it "
                "to bigint or string in Spark."
            )


#: The number of examples read for a message: one more than it shows.
FEW = 4


@dataclass(frozen=True)
class Looked:
    """Counts of an input: rows, rows with a null label, rows with the noise label, and the weight of rows to score."""

    n_rows: int
    n_null: int
    n_noise: int
    weight: float = math.nan


@dataclass(frozen=True)
class Weighted:
    """A column of weights, and the columns of their items."""

    frame: Any
    items: tuple[str, ...]
    name: str
    where: str

    @property
    def values(self) -> Any:
        """The weights as numbers."""
        return quoted(self.name).cast("double")

    @property
    def is_unknown(self) -> Any:
        """The condition that a weight is null or NaN."""
        return self.values.isNull() | functions().isnan(self.values)

    def is_out_of_range(self, *, outer: bool) -> Any:
        """Return the condition that a weight is out of range; zeros are allowed if `outer`."""
        least, most = kernels.sums.LEAST, kernels.sums.MOST
        fine = (self.values >= least) & (self.values <= most)
        return ~(fine | (self.values == 0.0)) if outer else ~fine

    def asked(self, *, outer: bool) -> dict[str, Any]:
        """Return the Spark expressions of the counts to compute for weights, by name."""
        return {"unknown": _count(self.is_unknown), "bad": _count(self.is_out_of_range(outer=outer))}

    def require(self, found: Mapping[str, Any], *, outer: bool) -> None:
        """Raise an error on invalid weights, with a few of them and their items."""
        items = [quoted(name) for name in self.items]
        if found["unknown"]:
            named = ids_of(self.frame.where(self.is_unknown).select(*items).orderBy(*items))
            raise WeightError(
                f"{found['unknown']} of {found['rows']} values of column {self.name!r} of {self.where} are null or NaN "
                f"(first items: {first_few(named)}). Give each item a positive weight, or drop these rows."
            )
        if not found["bad"]:
            return
        rows = self.frame.where(self.is_out_of_range(outer=outer)).orderBy(*items)
        few = ids_of(rows.select(self.values, *items))
        named = [each[1] if len(each) == 2 else each[1:] for each in few]
        least, most = kernels.sums.LEAST, kernels.sums.MOST
        raise WeightError(
            f"{found['bad']} of {found['rows']} weights of {self.where} are out of range "
            f"({first_few(each[0] for each in few)} for items {first_few(named)}). Weights must be positive "
            f"and finite, from {least} to {most}; zeros are allowed with {arg('weighting', 'outer')}. "
            "Multiply all weights by one number, which changes no score, or leave such items out."
        )


def quoted(name: str) -> Any:
    """Return the column of this name, which may contain any characters."""
    return functions().col("`" + name.replace("`", "``") + "`")


def any_null(names: Any) -> Any:
    """Return the condition that at least one of these columns is null."""
    return reduce(or_, (quoted(name).isNull() for name in names))


def is_noise(names: tuple[str, ...], noise: Any, kinds: tuple[str, ...]) -> Any:
    """Return the condition that a label is the noise label; always false if the types differ."""
    sql = functions()
    values = noise if isinstance(noise, tuple | list) else (noise,)
    types: dict[str, type] = {"integer": int, "string": str, "binary": bytes}
    if len(values) != len(names) or any(
        not isinstance(value, types[kind]) for value, kind in zip(values, kinds, strict=True)
    ):
        return sql.lit(False)
    equal = reduce(and_, (quoted(name) == sql.lit(value) for name, value in zip(names, values, strict=True)))
    return sql.coalesce(equal, sql.lit(False))


def look(
    sides: Sequence[FrameSide], policies: Policies, table: Weighted | None, *, outer: bool
) -> list[Looked]:
    """Count the rows of both sides in one job, and raise an error on invalid rows or weights."""
    own = [Weighted(s.frame, s.items, s.weight, s.name) if s.weight else None for s in sides]
    asked = [
        _asked(side, policies.of_side(k), w, outer=outer)
        for k, (side, w) in enumerate(zip(sides, own, strict=True))
    ]
    frames = [side.frame for side in sides]
    if table is not None:
        frames.append(table.frame)
        asked.append({"rows": functions().count(functions().lit(1)), **table.asked(outer=outer)})
    found = _counted(frames, asked)
    for side, w, each in zip(sides, own, found, strict=False):
        _require(side, policies, w, each, outer=outer)
    if table is not None:
        table.require(found[-1], outer=outer)
    return [
        Looked(each["rows"], each["null"] or 0, each["noise"] or 0, each.get("weight", math.nan))
        for each in found[: len(sides)]
    ]


def _asked(side: FrameSide, policies: Policies, weighted: Weighted | None, *, outer: bool) -> dict[str, Any]:
    """Return the Spark expressions of the counts to compute for a side, by name."""
    sql, noise = functions(), policies.noise
    asked = {"rows": sql.count(sql.lit(1))}
    asked["no_item"] = _count(any_null(side.items))
    asked["null"] = _count(any_null(side.clusters))
    asked["noise"] = sql.lit(0).cast("bigint")
    if noise is not None:
        asked["noise"] = _count(is_noise(side.clusters, noise, side.example.labels.kinds))
    if weighted is not None:
        dropped = any_null(side.clusters) if policies.nulls == "drop" else sql.lit(False)
        asked |= weighted.asked(outer=outer)
        asked["weight"] = sql.sum(sql.when(dropped, 0.0).otherwise(weighted.values))
    return asked


def _counted(frames: Sequence[Any], asked: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the counts of several DataFrames, each read once, in one job."""
    sql = functions()
    rows = [
        frame.agg(*(each.alias(name) for name, each in counts.items())).withColumn("which", sql.lit(k))
        for k, (frame, counts) in enumerate(zip(frames, asked, strict=True))
    ]
    found = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), rows).collect()
    return [
        {name: row[name] for name in counts}
        for row, counts in zip(sorted(found, key=lambda row: row["which"]), asked, strict=True)
    ]


def _count(condition: Any) -> Any:
    sql = functions()
    return sql.sum(sql.when(condition, 1).otherwise(0))


def _require(
    side: FrameSide, policies: Policies, weighted: Weighted | None, found: Mapping[str, Any], *, outer: bool
) -> None:
    n_rows = found["rows"]
    if not n_rows:
        raise EmptyInputError(f"there are no rows in {side.name}")
    if found["no_item"]:
        raise NullError(
            f"{found['no_item']} of {n_rows} item ids are null in {', '.join(side.items)} of {side.name}. Drop these "
            "rows, or give each item an id."
        )
    if found["null"] and policies.nulls == "raise":
        named = first_items(side, any_null(side.clusters))
        raise NullLabels(side.name, found["null"], n_rows, named, side.example.labels.name, "items").error()
    if weighted is not None:
        weighted.require(found, outer=outer)


def first_items(side: FrameSide, condition: Any) -> list[Any]:
    """Return the item ids of a few rows of a side that meet a condition, for a message."""
    return ids_of(side.frame.where(condition).select(*map(quoted, side.items)))


def ids_of(frame: Any) -> list[Any]:
    """Return the first rows of a DataFrame of ids as values, or as tuples for composite ids."""
    rows = frame.limit(FEW).collect()
    return [row[0] if len(row) == 1 else tuple(row) for row in rows]
