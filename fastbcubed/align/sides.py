"""A side of an alignment, and the weights of its rows: labels, nulls, repeated rows, own and joined weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.align.data_errors import (
    Fault,
    NullLabels,
    Overlap,
    RepeatedRows,
    RepeatedTableRows,
    Report,
    Reweighted,
    WeightsOutOfRange,
    enforce,
)
from fastbcubed.align.policies import Policies
from fastbcubed.errors import AlignmentError, IdTypeError
from fastbcubed.inputs.clustering import Clustering
from fastbcubed.inputs.id_columns import Column, key_pair
from fastbcubed.inputs.layouts import sources_hint
from fastbcubed.runtime.key_codes import number
from fastbcubed.runtime.key_partitions import Matches, match, take
from fastbcubed.runtime.threads import Pool, blocks
from fastbcubed.types import Mask

Rows = NDArray[np.int64]


class Ids(Protocol):
    """Item ids, a few of which are named in messages."""

    def first_of(self, rows: Rows) -> list[Any]:
        """Return the ids of the first few of these rows."""


@dataclass(eq=False)
class Side:
    """A clustering, or a block of it, during alignment: keys of its labels, and masks of special rows."""

    name: str  #: the clustering's name in messages
    #: keys, int64 or int32, equal for equal clusters; shape (n_rows,), like all arrays here
    labels: NDArray[Any]
    policies: Policies
    absent: Mask | None = None  #: rows treated as if the side lacked the item
    alone: Mask | None = None  #: rows that are singletons
    weight: NDArray[np.float64] | None = None
    items: Ids | None = None  #: None if items are matched by position
    n_null: int = 0
    n_noise: int = 0
    first_row: int = 0  #: the number of a block's first row
    report: Report = enforce  #: callback for faults in the rows
    n_duplicates: int = 0  #: number of rows dropped because they repeat an earlier row
    hint: Callable[[], str] = str  #: makes advice if an item has several rows

    @classmethod
    def of(
        cls,
        clustering: Clustering,
        policies: Policies,
        labels: NDArray[Any],
        nulls: Mask | None,
        *,
        first_row: int = 0,
        report: Report = enforce,
    ) -> Side:
        """Return the side of a clustering, given its label keys and its nulls, which the policy may forbid."""
        n_null = 0 if nulls is None else int(nulls.sum())
        absent = alone = None
        if nulls is not None and n_null:
            if policies.nulls == "drop":
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
            hint=lambda: sources_hint(clustering.items, clustering.attribute_names),
        )  # fmt: skip

    def __len__(self) -> int:
        return int(self.labels.size)

    def take(self, rows: Rows) -> Side:
        """Return some of the rows, and count the others as repeated; item ids are dropped."""

        def some(values: NDArray[Any] | None) -> NDArray[Any] | None:
            return None if values is None else values[rows]

        return replace(
            self, labels=self.labels[rows], absent=some(self.absent), alone=some(self.alone),
            weight=some(self.weight), items=None, n_duplicates=self.n_duplicates + len(self) - rows.size,
        )  # fmt: skip

    def aligned(
        self, rows: Rows | None, pool: Pool, brought: NDArray[np.int64] | None = None
    ) -> tuple[NDArray[np.int64], Mask | None, Mask | None]:
        """Return keys and masks of lacking rows and of singletons by aligned row; `brought` keys are in this order."""
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
        """Return the ids of the first few of these rows, for messages."""
        return (rows[:4] + self.first_row).tolist() if self.items is None else self.items.first_of(rows)

    def without_repeats(self, keys: NDArray[np.int64], pool: Pool) -> Rows:
        """Return the rows that do not repeat an earlier row; report repeated rows that may not be dropped."""
        codes, kept = number(keys, pool)
        first = kept[codes]
        rows = np.flatnonzero(first != np.arange(first.size))
        firsts = first[rows]
        differ = self.labels[rows] != self.labels[firsts]
        for mask in (self.absent, self.alone):
            if mask is not None:  # the keys of nulls are arbitrary, and not compared
                differ = np.where(mask[rows] & mask[firsts], False, differ | (mask[rows] != mask[firsts]))
        if rows.size:
            self._report_repeats(rows, firsts, differ)
        self.n_duplicates = int(rows.size)
        return kept

    def _report_repeats(self, rows: Rows, firsts: Rows, differ: Mask) -> None:
        """Report `rows` that repeat the items of `firsts`, or put them into another cluster."""
        n_rows, weight = len(self), self.weight

        def named(firsts: Rows) -> list[Any]:
            return self.take_items(np.unique(firsts))

        if differ.any():
            items = np.unique(firsts[differ])
            self.report(
                Overlap(self.name, items.size, n_rows - rows.size, self.take_items(items), self.hint())
            )
        elif weight is not None and (other := weight[rows] != weight[firsts]).any():
            n_other = int(np.count_nonzero(other))
            self.report(Reweighted(self.name, n_other, n_rows, named(firsts[other]), self.hint()))
        elif self.policies.duplicates == "raise":
            self.report(RepeatedRows(self.name, rows.size, n_rows, named(firsts), self.hint()))


def require_known_type(policies: Policies, *columns: Column) -> None:
    """Raise IdTypeError if the type of the noise label occurs on neither side, or not on the side it is given for."""
    noise, faults = policies.noise, []
    if isinstance(noise, Mapping):
        for k, labels in enumerate(columns):
            if policies.noise_of(k) is not None:
                labels.find(policies.noise_of(k))
        return
    for labels in columns:
        try:
            labels.find(noise)
        except IdTypeError as error:
            faults.append(error)
    if len(faults) == len(columns):
        raise faults[0]


def _rows_of_noise(labels: Column, noise: Any) -> Rows:
    """Return the rows with the noise label; none if its type does not occur on this side."""
    try:
        return labels.find(noise)
    except IdTypeError:
        return np.empty(0, np.int64)


def either(a: Mask | None, b: Mask | None) -> Mask | None:
    """Return the union of two masks; None is an empty mask."""
    if a is None or b is None:
        return b if a is None else a
    return a | b


def only(a: Mask | None, b: Mask | None) -> Mask | None:
    """Return the mask of rows in `a` but not in `b`; None is an empty mask."""
    return a if a is None or b is None else a & ~b


#: The faults of a table of weights, and of a table of attributes, that have several rows of an item.
REPEATED_WEIGHTS = partial(RepeatedTableRows, "the weight table", one="one weight")
REPEATED_ATTRIBUTES = partial(RepeatedTableRows, "the attributes", one="one row")
WeightTable = tuple[Column, NDArray[np.float64]]
#: The truth's and the prediction's row of each aligned row, -1 for none; None if rows are unchanged.
Matched = tuple[Rows | None, Rows | None]
#: The weight of each aligned row, NaN if unknown; and the total, NaN unless every row is known to have a weight.
Weights = tuple[NDArray[np.float64] | None, float]


class CheckedWeights:
    """Weights that have been checked, and their sums, so that runs with one truth check its weights once."""

    def __init__(self) -> None:
        self._known: list[tuple[NDArray[np.float64], float]] = []

    def total(self, weight: NDArray[np.float64], name: str, outer: bool, pool: Pool) -> float:
        """Return the sum of weights, checking them when they are first seen."""
        for known, total in self._known:
            if known is weight:
                return total
        total = check_weights(weight, name, outer, pool)
        self._known.append((weight, total))
        return total


def row_weights(
    sides: tuple[Clustering, Clustering],
    table: WeightTable | None,
    matched: Matched,
    *,
    outer: bool,
    pool: Pool,
    checked: CheckedWeights | None = None,
) -> Weights:
    """Check weights and join them by aligned row; the weights of a table replace those of the clusterings.

    Zeros are allowed if `outer`. Weights in `checked` are not checked again.
    """
    if table is None and all(side.weight is None for side in sides):
        return None, math.nan
    checked = checked or CheckedWeights()
    if table is not None:
        checked.total(table[1], "the weight table", outer, pool)
        return join_weights([_look_up(side, *table, pool) for side in sides], matched), math.nan
    as_they_are = all(rows is None for rows in matched)
    given = [(side.weight, side.name) for side in sides if side.weight is not None]
    if len(given) == 2 and given[0][0] is given[1][0]:  # both are the same column of a common table
        del given[1]
    totals = [checked.total(*each, outer, pool) for each in given]
    weight = join_weights([side.weight for side in sides], matched)
    return weight, totals[0] if totals and as_they_are else math.nan


def own_weights(sides: Sequence[Side], matched: Matched) -> Weights:
    """Return the weight of each aligned row from the sides' checked weights; the total is unknown."""
    return join_weights([side.weight for side in sides], matched), math.nan


def join_weights(
    weights: Sequence[NDArray[np.float64] | None], matched: Matched
) -> NDArray[np.float64] | None:
    """Return the weight of each aligned row: that of the truth's row if known, otherwise that of the prediction's."""
    result: NDArray[np.float64] | None = None
    for weight, rows in zip(weights, matched, strict=True):
        if weight is None:
            continue
        if rows is None:
            return weight  # this side has every row
        values = np.where(rows < 0, np.nan, weight[rows]) if weight.size else np.full(rows.size, np.nan)
        result = values if result is None else np.where(np.isnan(result), values, result)
    return result


def _look_up(
    clustering: Clustering, column: Column, values: NDArray[np.float64], pool: Pool
) -> NDArray[np.float64]:
    items = clustering.items
    if items is None:
        raise AlignmentError("a table of weights needs items with ids; pass an array of weights instead")
    own, given = key_pair(items, column, pool)
    return weights_by_key(own, given, values, column.first_of, pool)


def weights_by_key(
    own: NDArray[np.int64],
    given: NDArray[np.int64],
    values: NDArray[np.float64],
    first_of: Callable[[Rows], list[Any]],
    pool: Pool,
    report: Report = enforce,
) -> NDArray[np.float64]:
    """Return the weight of each item by key, NaN if it has none; see `match_table`."""
    matches = match_table(own, given, first_of, REPEATED_WEIGHTS, pool, report)
    found = matches.pred_of_true
    if matches.true_repeats:  # repeated rows of an item get its weight as well
        codes, firsts = number(own, pool)
        found = found[firsts][codes]
    return np.where(found >= 0, np.append(values, np.nan)[found], np.nan)


def match_table(
    items: NDArray[np.int64],
    given: NDArray[np.int64],
    first_of: Callable[[Rows], list[Any]],
    repeated: Callable[..., Fault],
    pool: Pool,
    report: Report = enforce,
) -> Matches:
    """Match items with the rows of a table of weights or attributes by key; report the fault `repeated`.

    `first_of` returns the ids of rows of the table, for messages.
    """
    matches = match(items, given, pool)
    if matches.pred_repeats:
        _, firsts, counts = np.unique(given, return_index=True, return_counts=True)
        named = first_of(np.sort(firsts[counts > 1]))
        report(repeated(matches.pred_repeats, given.size, named))
    return matches


def check_weights(
    weight: NDArray[np.float64],
    name: str,
    outer: bool,
    pool: Pool,
    *,
    first_row: int = 0,
    report: Report = enforce,
) -> float:
    """Report invalid weights, and return the sum of all; `first_row` is the number of the first row."""

    def check(start: int, stop: int) -> tuple[int, float]:
        return kernels.sums.check_weights(weight, start, stop, outer)

    found = pool.map(check, *zip(*blocks(weight.size), strict=True), stage="check weights")
    bad = sum(count for count, _ in found)
    if bad:
        least, most = kernels.sums.LEAST, kernels.sums.MOST
        in_range = (weight >= least) & (weight <= most) | (weight == 0) & outer
        rows = np.flatnonzero(~in_range)
        values, few = weight[rows], rows[:4]
        first = list(zip(weight[few].tolist(), (few + first_row).tolist(), strict=True))
        finite = bool(((values > 0) & (values < np.inf)).all())
        report(WeightsOutOfRange(name, bad, weight.size, first, finite, bool((values == 0).all())))
    return math.fsum(total for _, total in found)


def lacks_weight(
    weight: NDArray[np.float64], policies: Policies, lacks_true: Mask | None, lacks_pred: Mask | None
) -> Rows:
    """Return the aligned rows that are scored or counted in a cluster but have no weight."""
    needed = np.isnan(weight)
    if not needed.any():
        return np.empty(0, np.int64)
    if lacks_true is not None and policies.prediction == "drop":
        needed &= ~lacks_true
    if lacks_pred is not None and policies.truth == "drop":
        needed &= ~lacks_pred
    if lacks_true is not None and lacks_pred is not None:
        needed &= ~(lacks_true & lacks_pred)
    return np.flatnonzero(needed)
