"""One side while it is aligned: keys of its labels, which rows are special, which repeat others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fastbcubed.alignment.faults import NullLabels, Overlap, RepeatedRows, Report, Reweighted, enforce
from fastbcubed.alignment.policies import Policies
from fastbcubed.clusterings.clustering import Clustering
from fastbcubed.errors import IdTypeError
from fastbcubed.runtime.joining import take
from fastbcubed.runtime.pool import Pool
from fastbcubed.sources.columns import Column

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Ids(Protocol):
    """Ids of items, some of which a message names."""

    def first_of(self, rows: Rows) -> list[Any]:
        """Return what names the first few of these rows."""


@dataclass(eq=False)
class Side:
    """One clustering while it is aligned, or a block of one: keys of its labels, and which rows are special."""

    name: str  #: what the clustering is, for messages
    #: keys, int64 or int32: equal ones, equal cluster; shape (n_rows,), as of all arrays here
    labels: NDArray[Any]
    policies: Policies
    absent: Mask | None = None  #: rows that count as if the side lacked the item
    alone: Mask | None = None  #: rows that are a cluster of their own
    weight: NDArray[np.float64] | None = None
    items: Ids | None = None  #: None where items go by position
    n_null: int = 0
    n_noise: int = 0
    first_row: int = 0  #: the number of the first row, where it is a block
    report: Report = enforce  #: takes faults of the rows
    n_duplicates: int = 0  #: rows left out as they repeat an earlier one

    @classmethod
    def of(
        cls,
        clustering: Clustering,
        policies: Policies,
        labels: NDArray[Any],
        null_is_absent: bool,
        *,
        first_row: int = 0,
        report: Report = enforce,
    ) -> Side:
        """Take over a clustering whose labels have these keys; nulls are a fault where the policy says so."""
        nulls = clustering.labels.null_rows
        n_null = 0 if nulls is None else int(nulls.sum())
        absent = alone = None
        if nulls is not None and n_null:
            if null_is_absent or policies.nulls == "drop":
                absent = nulls
            elif policies.nulls == "singleton":
                alone = nulls
            else:
                where = clustering.items
                rows = np.flatnonzero(nulls)
                named = (rows[:4] + first_row).tolist() if where is None else where.first_of(rows)
                what = "rows" if where is None else "items"
                report(
                    NullLabels(clustering.name, n_null, len(clustering), named, clustering.labels.name, what)
                )
        n_noise = 0
        if policies.noise is not None:
            rows = _rows_of_noise(clustering.labels, policies.noise)
            n_noise = int(rows.size)
            if n_noise:
                noise = np.zeros(len(clustering), np.bool_)
                noise[rows] = True
                alone = either(alone, noise)
        return cls(
            clustering.name, labels, policies, absent=absent, alone=alone, weight=clustering.weight,
            items=clustering.items, n_null=n_null, n_noise=n_noise, first_row=first_row, report=report,
        )  # fmt: skip

    def __len__(self) -> int:
        return int(self.labels.size)

    def take(self, rows: Rows) -> Side:
        """Choose rows, and count the others as repeated; the ids of items stay behind."""

        def some(values: NDArray[Any] | None) -> NDArray[Any] | None:
            return None if values is None else values[rows]

        return replace(
            self, labels=self.labels[rows], absent=some(self.absent), alone=some(self.alone),
            weight=some(self.weight), items=None, n_duplicates=self.n_duplicates + len(self) - rows.size,
        )  # fmt: skip

    def aligned(
        self, rows: Rows | None, pool: Pool, brought: NDArray[np.int64] | None = None
    ) -> tuple[NDArray[np.int64], Mask | None, Mask | None]:
        """Return keys, lacking and alone by aligned row; keys may have been brought into this order already."""
        if rows is None:
            return self.labels, self.absent, self.alone
        missing = rows < 0
        keys = take(self.labels, rows, pool) if brought is None else brought
        alone = None if self.alone is None else self.alone[rows] & ~missing
        lacks: Mask | None = missing if missing.any() else None
        if self.absent is not None:
            lacks = missing | self.absent[rows]
        return keys, lacks, alone

    def take_items(self, rows: Rows) -> list[Any]:
        """Return the ids of the first few of these rows, for a message."""
        return (rows[:4] + self.first_row).tolist() if self.items is None else self.items.first_of(rows)

    def without_repeats(self, keys: NDArray[np.int64]) -> Rows:
        """Return the rows that remain when those that repeat an earlier one are dropped; report what may not be."""
        order = np.argsort(keys, kind="stable")
        again = np.flatnonzero(keys[order][1:] == keys[order][:-1]) + 1
        begins = np.ones(keys.size, np.bool_)
        begins[again] = False
        first = order[np.flatnonzero(begins)[np.cumsum(begins) - 1]]
        rows, firsts = order[again], first[again]
        differ = self.labels[rows] != self.labels[firsts]
        for mask in (self.absent, self.alone):
            if mask is not None:  # keys of nulls are arbitrary
                differ = np.where(mask[rows] & mask[firsts], False, differ | (mask[rows] != mask[firsts]))
        self._report_repeats(rows, firsts, differ)
        self.n_duplicates = int(rows.size)
        keep = np.ones(keys.size, np.bool_)
        keep[rows] = False
        return np.flatnonzero(keep)

    def _report_repeats(self, rows: Rows, firsts: Rows, differ: Mask) -> None:
        """Report what is wrong with rows that repeat an item of these first rows, or put it into another cluster."""
        n_rows, weight = len(self), self.weight

        def named(firsts: Rows) -> list[Any]:
            return self.take_items(np.unique(firsts))

        if differ.any():
            items = np.unique(firsts[differ])
            self.report(Overlap(self.name, items.size, n_rows - rows.size, self.take_items(items)))
        elif weight is not None and (other := weight[rows] != weight[firsts]).any():
            n_other = int(np.count_nonzero(other))
            self.report(Reweighted(self.name, n_other, n_rows, named(firsts[other])))
        elif self.policies.duplicates == "raise":
            self.report(RepeatedRows(self.name, rows.size, n_rows, named(firsts)))


def require_known_type(noise: Any, *columns: Column) -> None:
    """Raise if the noise label is of a type that neither side can hold."""
    faults = []
    for labels in columns:
        try:
            labels.find(noise)
        except IdTypeError as error:
            faults.append(error)
    if len(faults) == len(columns):
        raise faults[0]


def _rows_of_noise(labels: Column, noise: Any) -> Rows:
    """Return the rows with the noise label; a label of another type is on the other side alone."""
    try:
        return labels.find(noise)
    except IdTypeError:
        return np.empty(0, np.int64)


def either(a: Mask | None, b: Mask | None) -> Mask | None:
    """Return the rows in `a` or in `b`; None is an empty mask."""
    if a is None or b is None:
        return b if a is None else a
    return a | b


def only(a: Mask | None, b: Mask | None) -> Mask | None:
    """Return the rows in `a` and not in `b`."""
    return a if a is None or b is None else a & ~b
