"""Nulls where there may be none, in ids and in weights: how many, and in which rows; added up over blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from fastbcubed.errors import FastBCubedError, NullError, WeightError, first_few


@dataclass(frozen=True)
class Nulls:
    """So many of all rows of a column, item ids or else weights, are null; and the first few of them."""

    ids: bool
    where: str
    count: int
    total: int
    rows: list[int]

    def error(self) -> FastBCubedError:
        """Return the error that says so; its attribute `nulls` is this."""
        if self.ids:
            error: FastBCubedError = NullError(
                f"{self.count} of {self.total} item ids are null in {self.where} (first rows: "
                f"{first_few(self.rows)}). Drop these rows, or give each item an id."
            )
        else:
            error = WeightError(
                f"{self.count} of {self.total} values of {self.where} are null or NaN (first rows: "
                f"{first_few(self.rows)}). Give each item a positive weight, or drop these rows."
            )
        error.nulls = self
        return error

    def moved(self, first_row: int) -> Self:
        """Return what it is in a table in which its block begins at this row."""
        return replace(self, rows=[row + first_row for row in self.rows])

    @classmethod
    def sum(cls, parts: Sequence[Self], total: int) -> Self:
        """Add up what blocks of a table of so many rows have, in their order; weights are looked at before ids."""
        kept = [part for part in parts if not part.ids] or parts
        mine = [part for part in kept if part.where == kept[0].where]
        rows = [row for part in mine for row in part.rows]
        return replace(mine[0], count=sum(part.count for part in mine), total=total, rows=rows)
