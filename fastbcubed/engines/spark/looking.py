"""A first look at the inputs, without moving a row: how many rows there are, and what no policy allows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
    """What an input has: rows, rows whose label is null, rows with the noise label, and the weight of rows to score."""

    n_rows: int
    n_null: int
    n_noise: int
    weight: float = math.nan


@dataclass(frozen=True)
class Weighted:
    """A column of weights, and the items that they are of."""

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
        """Whether a weight is null or NaN."""
        return self.values.isNull() | functions().isnan(self.values)

    def is_out_of_range(self, *, outer: bool) -> Any:
        """Return whether a weight is none; zeros pass if `outer`."""
        least, most = kernels.sums.LEAST, kernels.sums.MOST
        fine = (self.values >= least) & (self.values <= most)
        return ~(fine | (self.values == 0.0)) if outer else ~fine

    def asked(self, *, outer: bool) -> dict[str, Any]:
        """Return what is counted of weights, by name."""
        return {"unknown": _count(self.is_unknown), "bad": _count(self.is_out_of_range(outer=outer))}

    def require(self, found: Mapping[str, Any], *, outer: bool) -> None:
        """Raise for weights that are none, with some of them and their items."""
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
            f"({first_few(each[0] for each in few)} of items {first_few(named)}). They have to be positive and finite, "
            f'from {least} to {most}; zeros are allowed with weighting="outer". Multiplying all by some number changes '
            "no score; leave other items out."
        )


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


def look(
    sides: Sequence[FrameSide], policies: Policies, table: Weighted | None, *, outer: bool
) -> list[Looked]:
    """Count the rows of both sides in one job, and raise for what no policy allows there or in a table of weights."""
    own = [Weighted(s.frame, s.items, s.weight, s.name) if s.weight else None for s in sides]
    asked = [_asked(side, policies, w, outer=outer) for side, w in zip(sides, own, strict=True)]
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
    """Return what is counted of a side, by name."""
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
    """Return what is counted in several DataFrames, each read once, in one job."""
    sql = functions()
    rows = [
        frame.agg(*(each.alias(name) for name, each in counts.items())).withColumn("which", sql.lit(k))
        for k, (frame, counts) in enumerate(zip(frames, asked, strict=True))
    ]
    found = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), rows).collect()
    return [
        {name: row[name] for name in counts}
        for row, counts in zip(sorted(found, key=_which), asked, strict=True)
    ]


def _which(row: Any) -> int:
    return int(row["which"])


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
    """Return the ids of a few rows of a side, for a message."""
    return ids_of(side.frame.where(condition).select(*map(quoted, side.items)))


def ids_of(frame: Any) -> list[Any]:
    """Return the first ids of a DataFrame of ids; composite ones as tuples."""
    rows = frame.limit(FEW).collect()
    return [row[0] if len(row) == 1 else tuple(row) for row in rows]
