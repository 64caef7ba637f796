"""Rows of two clusterings in memory, aligned by item: sides, weights, policies and coverage."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.align.data_errors import (
    NullLabels,
    Overlap,
    RepeatedRows,
    RepeatedTableRows,
    Report,
    Reweighted,
    Unmatched,
    Unweighted,
    WeightsOutOfRange,
    enforce,
)
from fastbcubed.align.policies import Coverage, Policies
from fastbcubed.errors import AlignmentError, EmptyInputError, IdTypeError, first_few
from fastbcubed.inputs import arrow_functions as pc
from fastbcubed.inputs.arrays import combined, from_numpy, id_kind, plain, storage_of
from fastbcubed.inputs.clustering import Clustering
from fastbcubed.inputs.id_columns import Column
from fastbcubed.inputs.keys import key_pair
from fastbcubed.inputs.pair import in_one_order
from fastbcubed.runtime.codes import Matches, match, same_values, take
from fastbcubed.runtime.threads import Pool, blocks
from fastbcubed.types import Mask

Rows = NDArray[np.int64]


class Ids(Protocol):
    """Item ids, some of which a message names."""

    def first_of(self, rows: Rows) -> list[Any]:
        """Return the names of the first few of these rows."""


@dataclass(eq=False)
class Side:
    """A clustering, or a block of one, during alignment: keys of its labels, and masks of special rows."""

    name: str  #: the clustering's name in messages
    #: keys, int64 or int32, equal for equal clusters; shape (n_rows,), as for all arrays here
    labels: NDArray[Any]
    policies: Policies
    absent: Mask | None = None  #: rows treated as if the side lacked the item
    alone: Mask | None = None  #: rows that are singletons
    weight: NDArray[np.float64] | None = None
    items: Ids | None = None  #: None if items are matched by position
    n_null: int = 0
    n_noise: int = 0
    first_row: int = 0  #: the number of a block's first row
    report: Report = enforce  #: callback for faults of the rows
    n_duplicates: int = 0  #: rows dropped as repeats of an earlier one

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
        """Make a side of a clustering with these label keys; nulls are a fault if the policy says so."""
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
        """Choose rows, and count the others as repeated; item ids are dropped."""

        def some(values: NDArray[Any] | None) -> NDArray[Any] | None:
            return None if values is None else values[rows]

        return replace(
            self, labels=self.labels[rows], absent=some(self.absent), alone=some(self.alone),
            weight=some(self.weight), items=None, n_duplicates=self.n_duplicates + len(self) - rows.size,
        )  # fmt: skip

    def aligned(
        self, rows: Rows | None, pool: Pool, brought: NDArray[np.int64] | None = None
    ) -> tuple[NDArray[np.int64], Mask | None, Mask | None]:
        """Return keys, lacking and alone by aligned row; keys may already be in this order."""
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
        """Return the rows left after dropping repeats of earlier rows; report those that may not be dropped."""
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
        """Report rows that repeat an item of these first rows, or put it into another cluster."""
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
    """Raise if the noise label has a type that neither side can hold."""
    faults = []
    for labels in columns:
        try:
            labels.find(noise)
        except IdTypeError as error:
            faults.append(error)
    if len(faults) == len(columns):
        raise faults[0]


def _rows_of_noise(labels: Column, noise: Any) -> Rows:
    """Return the rows with the noise label; a label of another type occurs only on the other side."""
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


WeightTable = tuple[Column, NDArray[np.float64]]
#: The truth's and the prediction's row of each aligned row, -1 for none; None if rows are unchanged.
Matched = tuple[Rows | None, Rows | None]
#: The weight of each aligned row, NaN if unknown, and the total; NaN unless every row surely has a weight.
Weights = tuple[NDArray[np.float64] | None, float]


class CheckedWeights:
    """Checked weights and their sums; those of a truth are shared by all runs."""

    def __init__(self) -> None:
        self._known: list[tuple[NDArray[np.float64], float]] = []

    def total(self, weight: NDArray[np.float64], name: str, outer: bool, pool: Pool) -> float:
        """Return the sum of weights, which are checked when first seen."""
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
    """Check weights (a table's replace the clusterings' own) and join them; zeros pass if `outer`.

    Those in `checked` are not checked again.
    """
    if table is None and all(side.weight is None for side in sides):
        return None, math.nan
    checked = checked or CheckedWeights()
    if table is not None:
        checked.total(table[1], "the weight table", outer, pool)
        return join_weights([_look_up(side, *table, pool) for side in sides], matched), math.nan
    as_they_are = all(rows is None for rows in matched)
    given = [(side.weight, side.name) for side in sides if side.weight is not None]
    if len(given) == 2 and given[0][0] is given[1][0]:  # one column of a common table
        del given[1]
    totals = [checked.total(*each, outer, pool) for each in given]
    weight = join_weights([side.weight for side in sides], matched)
    return weight, totals[0] if totals and as_they_are else math.nan


def own_weights(sides: Sequence[Side], matched: Matched) -> Weights:
    """Join the checked weights of the sides."""
    return join_weights([side.weight for side in sides], matched), math.nan


def join_weights(
    weights: Sequence[NDArray[np.float64] | None], matched: Matched
) -> NDArray[np.float64] | None:
    """Return the weight of each aligned row: the first known one among the sides' rows."""
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
    """Return the weight of each item by key, NaN if it has none; `first_of` names rows of the table."""
    matches = match(own, given, pool)
    if matches.pred_repeats:
        named = first_of(repeated_rows(given))
        report(RepeatedTableRows("the weight table", matches.pred_repeats, given.size, named, "one weight"))
    found = matches.pred_of_true
    if matches.true_repeats:  # repeated rows of an item also get its weight
        order = np.argsort(own, kind="stable")
        begins = np.concatenate([[True], own[order][1:] != own[order][:-1]])
        found[order] = found[order][np.flatnonzero(begins)[np.cumsum(begins) - 1]]
    return np.where(found >= 0, np.append(values, np.nan)[found], np.nan)


def repeated_rows(keys: NDArray[np.int64]) -> Rows:
    """Return the first row of each repeated key, in order."""
    _, firsts, counts = np.unique(keys, return_index=True, return_counts=True)
    return np.sort(firsts[counts > 1])


def check_weights(
    weight: NDArray[np.float64],
    name: str,
    outer: bool,
    pool: Pool,
    *,
    first_row: int = 0,
    report: Report = enforce,
) -> float:
    """Report invalid weights, the first belonging to row `first_row`, and return the sum of all."""

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
    """Return the aligned rows that are scored or counted but have no weight."""
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


#: Matches two sides by item keys, and may reorder the labels of the second one on the way.
Join = Callable[[NDArray[np.int64], NDArray[np.int64], Pool, NDArray[np.int64]], Matches]


@dataclass(frozen=True)
class Combination:
    """The two sides, row by row, before policies are applied to rows that one side lacks."""

    #: label keys, meaningless in rows that the side lacks or that are alone; shape (n_rows,), as for all here
    true_keys: NDArray[Any]
    pred_keys: NDArray[Any]
    lacks_true: Mask | None  #: rows that the side lacks
    lacks_pred: Mask | None
    alone_true: Mask | None  #: rows that are singletons on the side
    alone_pred: Mask | None
    weight: NDArray[np.float64] | None
    coverage: Coverage
    sides: tuple[Side, Side]
    rows: Matched
    may_lack_weight: bool  #: whether weights still have to be searched for unknown ones

    @property
    def policies(self) -> Policies:
        """The policies of the alignment."""
        return self.sides[0].policies

    @property
    def truth_only(self) -> Mask | None:
        """Truth-only rows."""
        return only(self.lacks_pred, self.lacks_true)

    @property
    def prediction_only(self) -> Mask | None:
        """Prediction-only rows."""
        return only(self.lacks_true, self.lacks_pred)

    @property
    def is_plain(self) -> bool:
        """Whether both sides have every row, with a label and, if any has one, a weight: policies change nothing."""
        masks = (self.lacks_true, self.lacks_pred, self.alone_true, self.alone_pred)
        return not self.may_lack_weight and all(mask is None for mask in masks)

    def report_faults(self) -> None:
        """Report unmatched items that the policies do not allow, truth first, and missing weights."""
        masks = (self.truth_only, self.prediction_only)
        choices = (
            (self.policies.truth, ("drop", "singleton")),
            (self.policies.prediction, ("drop", "singleton", "outside")),
        )
        for k, (mask, (policy, options)) in enumerate(zip(masks, choices, strict=True)):
            if policy != "raise" or mask is None or not mask.any():
                continue
            side, other, rows = self.sides[k], self.sides[1 - k], self.rows[k]
            where = np.flatnonzero(mask)
            named = side.take_items(where if rows is None else np.sort(rows[where]))
            side.report(Unmatched(side.name, where.size, len(side), named, other.name, options))
        if self.may_lack_weight:
            self._report_unweighted()

    def _report_unweighted(self) -> None:
        """Report items that are scored or counted but have no weight."""
        assert self.weight is not None
        where = lacks_weight(self.weight, self.policies, self.lacks_true, self.lacks_pred)
        n_items = where.size
        if not n_items:
            return
        lacking = [mask[where].any() for mask in (self.lacks_true, self.lacks_pred) if mask is not None]
        named: list[Any] = []
        for side, rows in zip(self.sides, self.rows, strict=True):  # the truth first
            of_side = where if rows is None else rows[where]
            named += side.take_items(of_side[of_side >= 0])
            where = where[of_side < 0]
        self.sides[0].report(Unweighted("both sides", n_items, self.weight.size, named, any(lacking)))

    def take(self, rows: Rows) -> Combination:
        """Choose rows. The coverage is theirs, except that nulls, noise and repeated rows are those of all."""

        def some(values: NDArray[Any] | None) -> NDArray[Any] | None:
            return None if values is None else values[rows]

        lacks_true, lacks_pred, weight = some(self.lacks_true), some(self.lacks_pred), some(self.weight)
        of_true, of_pred = (rows if own is None else own[rows] for own in self.rows)
        return replace(
            self, true_keys=self.true_keys[rows], pred_keys=self.pred_keys[rows],
            lacks_true=lacks_true, lacks_pred=lacks_pred,
            alone_true=some(self.alone_true), alone_pred=some(self.alone_pred), weight=weight,
            coverage=replace(self.coverage, **_figures(lacks_true, lacks_pred, weight, rows.size, math.nan)),
            rows=(of_true, of_pred),
        )  # fmt: skip

    @property
    def scored(self) -> Mask | None:
        """Rows that are scored, policies applied; None for all."""
        (lacks_true, _), (lacks_pred, _) = self._by_policy()
        lacking = either(lacks_true, lacks_pred)
        return None if lacking is None else ~lacking

    @property
    def unscored_prediction(self) -> Mask | None:
        """Rows that the prediction has and the truth, policies applied, lacks; None for none."""
        (lacks_true, _), (lacks_pred, _) = self._by_policy()
        return only(lacks_true, lacks_pred)

    def _by_policy(self) -> tuple[tuple[Mask | None, Mask | None], ...]:
        """Return, for each side, the rows it lacks and its singletons, policies applied."""
        policies = self.policies
        lacks_true, lacks_pred, alone_true, alone_pred = (
            self.lacks_true, self.lacks_pred, self.alone_true, self.alone_pred,
        )  # fmt: skip
        truth_only, prediction_only = self.truth_only, self.prediction_only
        if truth_only is not None and policies.truth == "singleton":
            alone_pred, lacks_pred = either(alone_pred, truth_only), only(lacks_pred, truth_only)
        if prediction_only is not None and policies.prediction == "singleton":
            alone_true, lacks_true = either(alone_true, prediction_only), only(lacks_true, prediction_only)
        return (lacks_true, alone_true), (lacks_pred, alone_pred)

    @property
    def needs_special_keys(self) -> bool:
        """Whether any row is lacking or alone on a side."""
        return any(mask is not None and mask.any() for masks in self._by_policy() for mask in masks)

    def finished(
        self, start: int, numbers: NDArray[np.int64] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], int | None, int | None]:
        """Return the keys of both sides, and the key for "absent" on each if any row is.

        The key before `start` stands for rows that a side lacks; singletons get their own keys from `start` on, by
        number, by default their place among these rows.
        """
        found: list[tuple[NDArray[np.int64], int | None]] = []
        for keys, (lacks, alone) in zip((self.true_keys, self.pred_keys), self._by_policy(), strict=True):
            lacks = lacks if lacks is not None and lacks.any() else None
            if lacks is None and (alone is None or not alone.any()):
                found.append((keys, None))
                continue
            keys, fresh = keys.copy(), np.uint64(start % 2**64)
            if alone is not None:
                rows = np.flatnonzero(alone)
                own = rows if numbers is None else numbers[rows]
                keys[rows] = (fresh + own.astype(np.uint64)).view(np.int64)
            if lacks is None:
                found.append((keys, None))
                continue
            absent = int((np.array([fresh], np.uint64) - np.uint64(1)).view(np.int64)[0])
            keys[lacks] = absent
            found.append((keys, absent))
        (true_keys, absent_true), (pred_keys, absent_pred) = found
        return true_keys, pred_keys, absent_true, absent_pred


def combine(
    sides: tuple[Side, Side],
    items: Callable[[], tuple[NDArray[np.int64], NDArray[np.int64]]] | None,
    weigh: Callable[[Matched], Weights],
    pool: Pool,
    matches: Matches | None = None,
    join: Join | None = None,
) -> Combination:
    """Match the rows of two sides by item, weigh and combine them: all rows, a block or a shard.

    `items` makes the keys of both sides' items, which are released once rows are matched; None if rows correspond.
    `weigh` makes the weights of matched rows. `matches` are passed if known; else `join` finds them, by default
    `match`.
    """
    rows: Matched = (None, None)
    brought: NDArray[np.int64] | None = None
    if items is not None:
        rows, brought = _match(*sides, *items(), pool, matches, join)
    weight, total_weight = weigh(rows)
    true_keys, lacks_true, alone_true = sides[0].aligned(rows[0], pool)
    pred_keys, lacks_pred, alone_pred = sides[1].aligned(rows[1], pool, brought)
    special = (sum(getattr(side, name) for side in sides) for name in ("n_null", "n_noise", "n_duplicates"))
    figures = _figures(lacks_true, lacks_pred, weight, true_keys.size, total_weight)
    coverage = Coverage(**figures, **dict(zip(("n_null", "n_noise", "n_duplicates"), special, strict=True)))
    return Combination(
        true_keys, pred_keys, lacks_true, lacks_pred, alone_true, alone_pred, weight, coverage,
        sides, rows, may_lack_weight=weight is not None and math.isnan(total_weight),
    )  # fmt: skip


def _figures(
    lacks_true: Mask | None,
    lacks_pred: Mask | None,
    weight: NDArray[np.float64] | None,
    n_rows: int,
    total_weight: float,
) -> dict[str, Any]:
    """Return numbers and weights of rows on both sides and on one; the total is NaN if unknown."""
    found: dict[str, Any] = {"n_common": n_rows, "weight_common": total_weight}
    masks: dict[str, Mask | None] = {"truth_only": None, "prediction_only": None}
    if lacks_true is not None or lacks_pred is not None:
        masks["truth_only"], masks["prediction_only"] = (
            only(lacks_pred, lacks_true),
            only(lacks_true, lacks_pred),
        )
        lacking = either(lacks_true, lacks_pred)
        assert lacking is not None
        masks["common"] = ~lacking
    elif weight is None or math.isnan(total_weight):
        found["weight_common"] = float(n_rows) if weight is None else float(weight.sum())
    for name, mask in masks.items():
        n = 0 if mask is None else int(np.count_nonzero(mask))
        found[f"n_{name}"] = n
        found[f"weight_{name}"] = float(n) if weight is None or not n else float(weight[mask].sum())
    return found


def _match(
    true_side: Side,
    pred_side: Side,
    true_keys: NDArray[np.int64],
    pred_keys: NDArray[np.int64],
    pool: Pool,
    matches: Matches | None,
    join: Join | None,
) -> tuple[Matched, NDArray[np.int64] | None]:
    """Match the rows of the two sides by item key, and drop repeated rows.

    Returns the truth's and the prediction's row of each aligned row, -1 for none, rows of the truth first. None means
    that rows are unchanged; on both sides, that they correspond one to one. The third value is the prediction's labels
    by aligned row, if the join reordered them.
    """
    in_order = matches is None and same_values(true_keys, pred_keys)
    if matches is None:
        others = true_keys[:0] if in_order else pred_keys
        if join is None:
            matches = match(true_keys, others, pool)
        else:
            matches = join(true_keys, others, pool, pred_side.labels)
    if in_order and not matches.true_repeats:
        return (None, None), None
    true_rows = pred_rows = None
    if matches.true_repeats:
        true_rows = true_side.without_repeats(true_keys)
    if matches.pred_repeats or (in_order and matches.true_repeats):
        pred_rows = pred_side.without_repeats(pred_keys)
    if matches.true_repeats or matches.pred_repeats:
        matches = match(_some(true_keys, true_rows), _some(pred_keys, pred_rows), pool)
    of_true = matches.pred_of_true
    rest = np.flatnonzero(matches.lacking)
    if pred_rows is not None:
        of_true = np.where(of_true >= 0, np.append(pred_rows, 0)[of_true], -1)
        rest = pred_rows[rest]
    if not rest.size:
        return (true_rows, of_true), matches.value_of_true
    true_rows = np.arange(true_keys.size) if true_rows is None else true_rows
    rows = np.concatenate([true_rows, np.full(rest.size, -1)]), np.concatenate([of_true, rest])
    brought = matches.value_of_true
    return rows, None if brought is None else np.concatenate([brought, pred_side.labels[rest]])


def _some(keys: NDArray[np.int64], rows: Rows | None) -> NDArray[np.int64]:
    return keys if rows is None else keys[rows]


#: Changes that may make unmatched ids match, and the Arrow functions that apply them.
ALIKE = {
    "without the spaces around them": ("utf8_trim_whitespace",),
    "in lower case": ("utf8_lower",),
    "in lower case, without the spaces around them": ("utf8_trim_whitespace", "utf8_lower"),
}
#: Ids of each side examined for that.
LOOKED_AT = 1 << 20
#: Advice if none of these is the cause.
WRITTEN_ALIKE = "Check that the item columns name the same things in the same way."


@dataclass(frozen=True)
class Alignment:
    """The two sides, row by row, after policies."""

    truth: Clustering
    prediction: Clustering
    #: keys equal for equal clusters; int64, or int32 if `narrow`; shape (n_rows,), as for all arrays here
    true_keys: NDArray[Any]
    pred_keys: NDArray[Any]
    absent_true: int | None  #: the key of items that the side lacks; None if no item is missing
    absent_pred: int | None
    true_rows: Rows | None  #: row of the clustering, -1 if it lacks the item; None if rows are unchanged
    pred_rows: Rows | None
    weight: NDArray[np.float64] | None
    coverage: Coverage

    def __len__(self) -> int:
        return int(self.true_keys.size)


def align(
    truth: Clustering,
    prediction: Clustering,
    policies: Policies,
    pool: Pool,
    *,
    weight_table: WeightTable | None = None,
    outer: bool = False,
    null_is_absent: bool = False,
    narrow: bool = False,
) -> Alignment:
    """Align two clusterings by item id or position; raise for anything the policies do not allow.

    Weights of items may come from a separate table. If `outer`, they apply to the mean only, so zeros are allowed. If
    `null_is_absent`, a null cluster means "not on that side" (the one-table form). Keys of labels matched by position
    may be `narrow`.
    """
    if truth.items is not None:
        prediction = in_one_order(truth, prediction)
    both = matched(
        truth, prediction, policies, pool,
        weight_table=weight_table, outer=outer, null_is_absent=null_is_absent, narrow=narrow,
    )  # fmt: skip
    keys = both.true_keys, both.pred_keys
    if both.is_plain:
        return Alignment(truth, prediction, *keys, None, None, *both.rows, both.weight, both.coverage)
    start = 0
    if both.needs_special_keys:
        start = next(start for start in starts_of_runs() if not any(is_used(start, k, k.size) for k in keys))
    return Alignment(truth, prediction, *both.finished(start), *both.rows, both.weight, both.coverage)


def matched(
    truth: Clustering,
    prediction: Clustering,
    policies: Policies,
    pool: Pool,
    *,
    weight_table: WeightTable | None,
    outer: bool,
    null_is_absent: bool,
    join: Join | None = None,
    checked: CheckedWeights | None = None,
    narrow: bool = False,
) -> Combination:
    """Match the rows of two clusterings; raise as the policies require. Parameters are those of `align`.

    `join` matches item keys; weights already `checked` with another run are not checked again.
    """
    if policies.noise is not None:
        require_known_type(policies.noise, truth.labels, prediction.labels)
    pair = truth, prediction
    narrow = narrow and policies.noise is None  # if every key of rows that correspond stands for a label
    narrow = narrow and all(side.items is None and side.labels.null_rows is None for side in pair)
    true_side, pred_side = (
        Side.of(side, policies, side.labels.keys(pool, narrow=narrow), null_is_absent) for side in pair
    )
    for side in (true_side, pred_side):
        if not side.labels.size:
            raise EmptyInputError(f"there are no rows in {side.name}")
    weigh = partial(row_weights, pair, weight_table, outer=outer, pool=pool, checked=checked)
    both = combine((true_side, pred_side), _items(*pair, pool), weigh, pool, join=join)
    if not both.coverage.n_common:
        require_common(both.coverage, Facts.of(true_side, truth.items), Facts.of(pred_side, prediction.items))
    if not both.is_plain:
        both.report_faults()
    return both


def _items(
    truth: Clustering, prediction: Clustering, pool: Pool
) -> Callable[[], tuple[NDArray[np.int64], NDArray[np.int64]]] | None:
    """Return the key maker for both sides' items; None if rows match by position."""
    true_items, pred_items = truth.items, prediction.items
    if true_items is None:
        if len(truth) != len(prediction):
            raise AlignmentError(
                f"{truth.name} has {len(truth)} labels and {prediction.name} {len(prediction)}. Labels "
                "without item ids are put side by side by position and have to be equally many; pass "
                "tables with an item column to join them by item."
            )
        return None
    if pred_items is None:
        raise AlignmentError("one side has item ids and the other has none; give both sides the same form")
    if true_items is pred_items:
        return lambda: (true_items.keys(pool),) * 2
    return lambda: key_pair(true_items, pred_items, pool)


class Facts(NamedTuple):
    """The facts about a side for messages: name, rows, rows without a label, and items, or the first ones."""

    name: str
    n_rows: int
    n_absent: int
    items: Column | None
    n_first: int

    @classmethod
    def of(cls, side: Side, items: Column | None) -> Facts:
        """Return the facts of a whole side, with its item ids."""
        n_absent = 0 if side.absent is None else side.n_null
        return cls(side.name, len(side), n_absent, items, len(side))


def first_items(items: Column | None, n_rows: int) -> list[Any]:
    """Return the first few items of `n_rows` rows, which may repeat items."""
    if items is None:
        return list(range(min(3, n_rows)))
    _, firsts = np.unique(items.keys(), return_index=True)
    return items.first_of(np.sort(firsts)[:3])


def require_common(coverage: Coverage, truth: Facts, prediction: Facts) -> None:
    """Raise if the two sides have no item in common."""
    for side in (truth, prediction):
        if not side.n_rows:
            raise EmptyInputError(f"there are no rows in {side.name}")
        if side.n_absent == side.n_rows:
            raise EmptyInputError(
                f"all {side.n_rows} clusters of {side.name} are null, so there is nothing to score"
            )
    if not coverage.n_common:
        n = coverage.n_truth_only
        examples = [first_few(first_items(side.items, side.n_first)) for side in (truth, prediction)]
        raise EmptyInputError(
            f"no item of {truth.name} is in {prediction.name}: {n} item{' is' if n == 1 else 's are'} only in the "
            f"first, {coverage.n_prediction_only} only in the second ({examples[0]} against {examples[1]}). "
            + (_matching_hint(truth.items, prediction.items) or WRITTEN_ALIKE)
        )


def _matching_hint(a: Column | None, b: Column | None) -> str:
    """Return how unmatched text ids would match, judged by the first of each side; empty if they would not."""
    if a is None or b is None or a.kinds != b.kinds or "string" not in a.kinds:
        return ""
    for how, changes in ALIKE.items():
        texts = []
        for column in (a, b):
            parts = [plain(part) for part in column.stretch(0, min(len(column), LOOKED_AT)).parts]
            for change in changes:
                parts = [
                    getattr(pc, change)(part) if pa.types.is_string(part.type) else part for part in parts
                ]
            written = [part.cast(pa.string()) for part in parts]
            texts.append(pc.binary_join_element_wise(*written, "\x1f") if len(written) > 1 else written[0])
        found = np.flatnonzero(pc.is_in(texts[0], value_set=pc.unique(texts[1].combine_chunks())))
        if found.size:
            example = first_few(a.first_of(found[:1]))
            return f"Ids such as {example} would match {how}: write them alike on both sides."
    return ""


def starts_of_runs() -> Iterator[int]:
    """Yield candidate starts of runs of keys, the same each time; any with unused keys serves."""
    generator = np.random.default_rng(0)
    while True:
        yield int(generator.integers(-(2**63), 2**63, dtype=np.int64))


def is_used(start: int, keys: NDArray[np.int64], n_rows: int) -> bool:
    """Return whether any key of a run from `start`, or the one before it, is in use."""
    return bool(kernels.sums.find_run(keys, start - 1, n_rows + 1))


#: Types that hold ids of different width, by kind; the first that fits is used.
WIDEST = {
    "integer": (pa.int64(), pa.uint64(), pa.large_string()),
    "string": (pa.large_string(),),
    "binary": (pa.large_binary(),),
}


def take_or_null(column: Column, rows: Rows) -> pa.Array:
    """Return the values of some rows, null for row -1."""
    missing = rows < 0
    if not missing.any():
        return column.take(rows)
    values = column.take(rows[~missing])
    at = np.cumsum(~missing) - 1
    return values.take(from_numpy(at, missing))


def rows_or_null(table: pa.Table, rows: Rows | None) -> pa.Table:
    """Return some rows of a table, nulls for row -1; all rows if `rows` is None."""
    return table if rows is None else table.take(from_numpy(rows, rows < 0))


def either_id(a: Column, a_rows: Rows, b: Column, b_rows: Rows) -> pa.Array:
    """Take from `a` if it has the row, else from `b`; the types may differ in width."""
    lacking = a_rows < 0
    if not lacking.any():
        return a.take(a_rows)
    first, second = in_common(a.take(a_rows[~lacking]), b.take(b_rows[lacking]))
    at = np.empty(lacking.size, np.int64)
    at[~lacking] = np.arange(len(first))
    at[lacking] = len(first) + np.arange(len(second))
    return pa.concat_arrays([first, second]).take(from_numpy(at))


def in_common(a: pa.Array, b: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Convert two arrays of ids to a common type; composite ids part by part, named as in `a`."""
    if pa.types.is_struct(a.type):
        parts = [in_common(x, y) for x, y in zip(a.flatten(), b.flatten(), strict=True)]
        names = [field.name for field in a.type.fields]
        first, second = (pa.StructArray.from_arrays(own, names) for own in zip(*parts, strict=True))
        return first, second
    a, b = (x.dictionary_decode() if pa.types.is_dictionary(x.type) else x for x in (a, b))
    if a.type == b.type:
        return a, b
    a, b = (combined(storage_of(pa.chunked_array([x]))) for x in (a, b))
    for kind in WIDEST[id_kind(a.type, "")]:
        with suppress(pa.ArrowInvalid):
            return a.cast(kind), b.cast(kind)
    raise IdTypeError(f"no type holds ids of both sides, which are {a.type} and {b.type}. Cast one of them")


def rows_of_attributes(
    items: Rows, given: Rows, first_of: Callable[[Rows], list[Any]], pool: Pool, report: Report = enforce
) -> Rows:
    """Return the row of the attributes for each item, -1 if there is none; both given by item key.

    `first_of` names rows of the attributes.
    """
    matches = match(items, given, pool)
    if matches.pred_repeats:
        named = first_of(repeated_rows(given))
        report(RepeatedTableRows("the attributes", matches.pred_repeats, given.size, named, "one row"))
    return matches.pred_of_true


def aligned_keys(keys: list[NDArray[np.int64]], matched: Matched) -> NDArray[np.int64]:
    """Return the item key of each aligned row."""
    true_rows, pred_rows = matched
    if true_rows is None:
        return keys[0]
    if pred_rows is None or (true_rows >= 0).all():
        return keys[0][true_rows]
    return np.where(true_rows >= 0, np.append(keys[0], 0)[true_rows], np.append(keys[1], 0)[pred_rows])
