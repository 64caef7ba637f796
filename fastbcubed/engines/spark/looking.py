"""A first look at either side, without moving a row: how many rows there are, and what no policy allows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import Any

from fastbcubed import kernels
from fastbcubed.alignment.faults import NullLabels
from fastbcubed.alignment.policies import Policies
from fastbcubed.engines.spark.frames import FrameSide, functions
from fastbcubed.errors import EmptyInputError, NullError, WeightError, first_few

#: Examples that a message is given: one more than it shows.
FEW = 4


@dataclass(frozen=True)
class Looked:
    """What a side has: rows, rows whose label is null, rows with the noise label."""

    n_rows: int
    n_null: int
    n_noise: int


def quoted(name: str) -> Any:
    """Return the column of this name, whatever letters are in it."""
    return functions().col("`" + name.replace("`", "``") + "`")


def any_null(names: Any) -> Any:
    """Return whether one of several columns is null."""
    return reduce(or_, (quoted(name).isNull() for name in names))


def is_noise(names: tuple[str, ...], noise: Any, kinds: tuple[str, ...]) -> Any:
    """Return whether a label is the noise label; never where it is of another type."""
    sql = functions()
    values = noise if isinstance(noise, tuple | list) else (noise,)
    types: dict[str, type] = {"integer": int, "string": str, "binary": bytes}
    if len(values) != len(names) or any(
        not isinstance(value, types[kind]) for value, kind in zip(values, kinds, strict=True)
    ):
        return sql.lit(False)
    equal = reduce(and_, (quoted(name) == sql.lit(value) for name, value in zip(names, values, strict=True)))
    return sql.coalesce(equal, sql.lit(False))


def out_of_range(weight: Any, *, outer: bool) -> Any:
    """Return whether a weight is none; zeros pass if `outer`."""
    least, most = kernels.sums.LEAST, kernels.sums.MOST
    fine = (weight >= least) & (weight <= most)
    return ~(fine | (weight == 0.0)) if outer else ~fine


def look(side: FrameSide, policies: Policies, *, outer: bool) -> Looked:
    """Count the rows of a side, and raise for what no policy allows."""
    sql = functions()
    asked = {"rows": sql.count(sql.lit(1))}
    asked["no_item"] = _count(any_null(side.items))
    asked["null"] = _count(any_null(side.clusters))
    noise = policies.noise
    asked["noise"] = sql.lit(0)
    if noise is not None:
        asked["noise"] = _count(is_noise(side.clusters, noise, side.example.labels.kinds))
    if side.weight is not None:
        weight = quoted(side.weight).cast("double")
        asked["no_weight"] = _count(weight.isNull() | sql.isnan(weight))
        asked["bad"] = _count(out_of_range(weight, outer=outer))
    found = side.frame.agg(*(each.alias(name) for name, each in asked.items())).collect()[0].asDict()
    _require(side, policies, found, outer=outer)
    return Looked(found["rows"], found["null"] or 0, found["noise"] or 0)


def _count(condition: Any) -> Any:
    sql = functions()
    return sql.sum(sql.when(condition, 1).otherwise(0))


def _require(side: FrameSide, policies: Policies, found: dict[str, Any], *, outer: bool) -> None:
    n_rows = found["rows"]
    if not n_rows:
        raise EmptyInputError(f"there are no rows in {side.name}")
    if found.get("no_weight"):
        assert side.weight is not None
        weight = quoted(side.weight).cast("double")
        named = first_items(side, weight.isNull() | functions().isnan(weight))
        raise WeightError(
            f"{found['no_weight']} of {n_rows} values of column {side.weight!r} of {side.name} are null or NaN (first "
            f"items: {first_few(named)}). Give each item a positive weight, or drop these rows."
        )
    if found["no_item"]:
        raise NullError(
            f"{found['no_item']} of {n_rows} item ids are null in {', '.join(side.items)} of {side.name}. Drop these "
            "rows, or give each item an id."
        )
    if found["null"] and policies.nulls == "raise":
        named = first_items(side, any_null(side.clusters))
        raise NullLabels(side.name, found["null"], n_rows, named, side.example.labels.name, "items").error()
    if found.get("bad"):
        _refuse_weights(side, found["bad"], n_rows, outer=outer)


def _refuse_weights(side: FrameSide, n_bad: int, n_rows: int, *, outer: bool) -> None:
    """Raise for weights that are none, with some of them."""
    assert side.weight is not None
    weight = quoted(side.weight).cast("double")
    rows = side.frame.where(out_of_range(weight, outer=outer)).select(weight.alias("w")).limit(FEW).collect()
    least, most = kernels.sums.LEAST, kernels.sums.MOST
    raise WeightError(
        f"{n_bad} of {n_rows} weights of {side.name} are out of range ({first_few(row['w'] for row in rows)}). They "
        f"have to be positive and finite, from {least} to {most}; zeros are allowed with "
        'weighting="outer". Multiplying all by some number changes no score; leave other items out.'
    )


def first_items(side: FrameSide, condition: Any) -> list[Any]:
    """Return the ids of a few rows of a side, for a message."""
    return ids_of(side.frame.where(condition).select(*map(quoted, side.items)))


def ids_of(frame: Any) -> list[Any]:
    """Return the first ids of a DataFrame of ids; composite ones as tuples."""
    rows = frame.limit(FEW).collect()
    return [row[0] if len(row) == 1 else tuple(row) for row in rows]
