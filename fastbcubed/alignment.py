"""Alignment: who is on which side, what the policies make of it, and coverage.

The result has one row per item of either side: first those of the truth in their order, then those
that only the prediction has. Keys stand for clusters; an item that a side lacks has the side's
absent key, and an item that is alone by policy has a key of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbcubed.clustering import Clustering
from fastbcubed.engines.pool import Pool, blocks
from fastbcubed.errors import (
    AlignmentError,
    DuplicateItemError,
    EmptyInputError,
    NullError,
    OptionError,
    OverlapError,
    WeightError,
    first_few,
)
from fastbcubed.sources.columns import Column, key_pair

__all__ = ["Alignment", "Coverage", "Policies", "align"]

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Policies:
    """What happens to items that are missing somewhere; every result states them.

    Attributes
    ----------
    truth, prediction : str
        For items that only this side has: "drop", "raise" or "singleton", for the prediction also
        "outside".
    nulls : {"raise", "singleton", "drop"}
        For items whose cluster is null.
    duplicates : {"raise", "drop"}
        For rows that are the same as an earlier one.
    noise : object
        The label, if any, whose items are alone.
    """

    truth: str = "drop"
    prediction: str = "drop"
    nulls: str = "raise"
    duplicates: str = "raise"
    noise: Any = None

    @classmethod
    def of(
        cls, unmatched: str | Mapping[str, str], nulls: str, duplicates: str, noise: Any
    ) -> Policies:
        """Check the arguments of `evaluate` and fill in what they leave open."""
        sides = {"truth": "drop", "prediction": "drop"}
        if isinstance(unmatched, str):
            sides = dict.fromkeys(sides, unmatched)
            if unmatched == "outside":
                sides["truth"] = "singleton"
        elif isinstance(unmatched, Mapping):
            if strange := set(unmatched) - set(sides):
                raise OptionError(
                    f"unmatched has the keys {first_few(sorted(map(str, strange)))}; "
                    'it takes "truth" and "prediction"'
                )
            sides |= unmatched
            if sides["prediction"] == "outside" and "truth" not in unmatched:
                sides["truth"] = "singleton"
        else:
            raise OptionError(f"unmatched is a policy or a dict of two, not {unmatched!r}")
        known = ("drop", "raise", "singleton")
        _check("unmatched['truth']", sides["truth"], known)
        _check("unmatched['prediction']", sides["prediction"], (*known, "outside"))
        _check("nulls", nulls, ("raise", "singleton", "drop"))
        _check("duplicates", duplicates, ("raise", "drop"))
        return cls(sides["truth"], sides["prediction"], nulls, duplicates, noise)


def _check(name: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise OptionError(f"{name} is one of {', '.join(map(repr, known))}, not {value!r}")


@dataclass(frozen=True)
class Coverage:
    """How far the two sides have the same items, before any policy; weights are NaN if not known.

    Attributes
    ----------
    n_common, n_truth_only, n_prediction_only : int
        Items on both sides, and on one of them.
    weight_common, weight_truth_only, weight_prediction_only : float
        Their weight; their number where there are no weights.
    n_null : int
        Rows, of both sides, whose cluster is null.
    n_noise : int
        Rows, of both sides, with the noise label.
    n_duplicates : int
        Rows, of both sides, dropped since they repeat an earlier one.
    """

    n_common: int
    n_truth_only: int
    n_prediction_only: int
    weight_common: float
    weight_truth_only: float
    weight_prediction_only: float
    n_null: int = 0
    n_noise: int = 0
    n_duplicates: int = 0

    @property
    def truth_coverage(self) -> float:
        """Share of the weight of the truth whose items the prediction has."""
        known = self.weight_common + self.weight_truth_only
        return self.weight_common / known if known else 1.0

    @property
    def complete(self) -> bool:
        """Whether both sides have the same items."""
        return not (self.n_truth_only or self.n_prediction_only)


@dataclass(frozen=True)
class Alignment:
    """The two sides, row by row.

    Attributes
    ----------
    truth, prediction : Clustering
        What was aligned.
    true_keys, pred_keys : ndarray of int64, shape (n_rows,)
        Equal keys on a side, equal cluster.
    absent_true, absent_pred : int or None
        The key of items that the side lacks; None where no item is missing.
    true_rows, pred_rows : ndarray of int64, shape (n_rows,), or None
        Row of the clustering, -1 where it lacks the item; None where rows correspond one to one.
    weight : ndarray of float64, shape (n_rows,), or None
    coverage : Coverage
    policies : Policies
    """

    truth: Clustering
    prediction: Clustering
    true_keys: NDArray[np.int64]
    pred_keys: NDArray[np.int64]
    absent_true: int | None
    absent_pred: int | None
    true_rows: Rows | None
    pred_rows: Rows | None
    weight: NDArray[np.float64] | None
    coverage: Coverage
    policies: Policies

    def __len__(self) -> int:
        return int(self.true_keys.size)

    @property
    def items(self) -> bool:
        """Whether items have ids; else their position is their id."""
        return self.truth.items is not None


def align(
    truth: Clustering,
    prediction: Clustering,
    policies: Policies,
    pool: Pool,
    *,
    weight_table: tuple[Column, NDArray[np.float64]] | None = None,
    outer: bool = False,
    null_is_absent: bool = False,
) -> Alignment:
    """Put two clusterings side by side, by item id or by position.

    Parameters
    ----------
    truth, prediction : Clustering
        Both with item ids, or neither.
    policies : Policies
        What to do about unmatched items, nulls, duplicates and noise.
    pool : Pool
        The threads.
    weight_table : (Column, ndarray), optional
        Items and their weights, where weights are in a table of their own.
    outer : bool
        Whether weights serve the mean alone, so that zeros are allowed.
    null_is_absent : bool
        Whether a null cluster says "not on that side" (the one-table form).

    Raises
    ------
    AlignmentError, DuplicateItemError, OverlapError, NullError, WeightError, EmptyInputError
        As the policies say.
    """
    true_side = _Side(truth, policies, pool, null_is_absent)
    pred_side = _Side(prediction, policies, pool, null_is_absent)
    for side in (true_side, pred_side):
        if not len(side.clustering):
            raise EmptyInputError(f"{side.clustering.name} has no rows")
    if truth.items is None:
        _require_equal_length(truth, prediction)
        true_rows = pred_rows = None
    else:
        true_rows, pred_rows = _join(true_side, pred_side, pool)

    true_keys, lacks_true, alone_true = true_side.aligned(true_rows)
    pred_keys, lacks_pred, alone_pred = pred_side.aligned(pred_rows)
    weight = _weights(true_side, pred_side, true_rows, pred_rows, weight_table, outer, pool)

    truth_only = _and_not(lacks_pred, lacks_true)
    prediction_only = _and_not(lacks_true, lacks_pred)
    coverage = _coverage(
        true_keys.size, lacks_true, lacks_pred, truth_only, prediction_only, weight, true_side, pred_side
    )
    _enforce(policies, coverage, truth_only, prediction_only, true_side, pred_side, true_rows, pred_rows)
    if weight is not None and true_rows is not None:  # by position every row has its weight
        _require_weights(weight, policies, lacks_true, lacks_pred, truth_only, prediction_only)
    if truth_only is not None and policies.truth == "singleton":
        alone_pred, lacks_pred = _or(alone_pred, truth_only), _and_not(lacks_pred, truth_only)
    if prediction_only is not None and policies.prediction == "singleton":
        alone_true, lacks_true = _or(alone_true, prediction_only), _and_not(lacks_true, prediction_only)

    true_keys, absent_true = _special_keys(true_keys, lacks_true, alone_true)
    pred_keys, absent_pred = _special_keys(pred_keys, lacks_pred, alone_pred)
    return Alignment(
        truth, prediction, true_keys, pred_keys, absent_true, absent_pred, true_rows, pred_rows,
        weight, coverage, policies,
    )  # fmt: skip


class _Side:
    """One clustering while it is aligned: keys of its labels, and which rows are special."""

    def __init__(
        self, clustering: Clustering, policies: Policies, pool: Pool, null_is_absent: bool
    ) -> None:
        self.clustering = clustering
        self.policies = policies
        self.labels = clustering.labels.keys(pool)
        self.n_duplicates = 0
        self.total_weight: float | None = None
        nulls = clustering.labels.null_rows
        self.n_null = 0 if nulls is None else int(nulls.sum())
        self.absent: Mask | None = None
        self.alone: Mask | None = None
        if nulls is not None and self.n_null:
            if null_is_absent or policies.nulls == "drop":
                self.absent = nulls
            elif policies.nulls == "singleton":
                self.alone = nulls
            else:
                where = clustering.items
                rows = np.flatnonzero(nulls)[:4]
                named = rows.tolist() if where is None else where.take(rows).to_pylist()
                raise NullError(
                    f"{self.n_null} of {len(clustering)} items of {clustering.name} have a null in "
                    f"{clustering.labels.name!r} ({'rows' if where is None else 'items'} "
                    f'{first_few(named)}). Pass nulls="singleton" to take each as a cluster of its '
                    'own, or nulls="drop" to leave them out.'
                )
        self.n_noise = 0
        if policies.noise is not None:
            rows = clustering.labels.find(policies.noise)
            self.n_noise = int(rows.size)
            if rows.size:
                noise = np.zeros(len(clustering), np.bool_)
                noise[rows] = True
                self.alone = _or(self.alone, noise)

    def aligned(
        self, rows: Rows | None
    ) -> tuple[NDArray[np.int64], Mask | None, Mask | None]:
        """Return keys, lacking and alone by aligned row."""
        if rows is None:
            return self.labels, self.absent, self.alone
        missing = rows < 0
        keys = self.labels[rows]
        alone = None if self.alone is None else self.alone[rows] & ~missing
        lacks: Mask | None = missing if missing.any() else None
        if self.absent is not None:
            lacks = missing | self.absent[rows]
        return keys, lacks, alone

    def take_items(self, rows: Rows) -> list[Any]:
        """Return the ids of a few rows, for a message."""
        items = self.clustering.items
        return rows.tolist() if items is None else items.take(rows).to_pylist()

    def without_repeats(self, keys: NDArray[np.int64]) -> Rows:
        """Return the rows that remain when those that repeat an earlier one are dropped, or raise."""
        order = np.argsort(keys, kind="stable")
        again = np.flatnonzero(keys[order][1:] == keys[order][:-1]) + 1
        begins = np.ones(keys.size, np.bool_)
        begins[again] = False
        first = order[np.flatnonzero(begins)[np.cumsum(begins) - 1]]
        rows, firsts = order[again], first[again]
        differ = self.labels[rows] != self.labels[firsts]
        for mask in (self.absent, self.alone):
            if mask is not None:
                differ |= mask[rows] != mask[firsts]
        name = self.clustering.name
        if differ.any():
            shown = dict.fromkeys(self.take_items(np.sort(rows[differ])[:16]))
            raise OverlapError(
                f"{np.unique(firsts[differ]).size} items of {name} are in more than one cluster "
                f"({first_few(shown)}). A partition has every item in one cluster: choose one for "
                "each, or check that the item column is the right one."
            )
        weight = self.clustering.weight
        if weight is not None and (weight[rows] != weight[firsts]).any():
            raise DuplicateItemError(
                f"{name} has rows that repeat an item and its cluster with another weight "
                f"({first_few(dict.fromkeys(self.take_items(np.sort(rows)[:16])))}); give each item one weight"
            )
        if self.policies.duplicates == "raise":
            raise DuplicateItemError(
                f"{rows.size} of {keys.size} rows of {name} repeat an earlier row "
                f"({first_few(dict.fromkeys(self.take_items(np.sort(rows)[:16])))}). "
                'Pass duplicates="drop" to count each item once.'
            )
        self.n_duplicates = int(rows.size)
        keep = np.ones(keys.size, np.bool_)
        keep[rows] = False
        return np.flatnonzero(keep)


def _require_equal_length(truth: Clustering, prediction: Clustering) -> None:
    if len(truth) != len(prediction):
        raise AlignmentError(
            f"{truth.name} has {len(truth)} labels and {prediction.name} {len(prediction)}. Labels "
            "without item ids are put side by side by position and have to be equally many; pass "
            "tables with an item column to join them by item."
        )


def _join(true_side: _Side, pred_side: _Side, pool: Pool) -> tuple[Rows | None, Rows | None]:
    """Match the rows of the two sides by item; None, None where they correspond one to one."""
    from fastbcubed.engines.joining import match

    true_items, pred_items = true_side.clustering.items, pred_side.clustering.items
    if true_items is None or pred_items is None:
        raise AlignmentError("one side has item ids and the other has none; give both sides the same form")
    one_table = true_items is pred_items
    if one_table:
        true_keys = pred_keys = true_items.keys(pool)
    else:
        true_keys, pred_keys = key_pair(true_items, pred_items, pool)
    in_order = one_table or (true_keys.size == pred_keys.size and _equal(true_keys, pred_keys))
    matches = match(true_keys, true_keys[:0] if in_order else pred_keys, pool)
    if in_order and not matches.true_again:
        return None, None
    true_rows = np.arange(true_keys.size)
    pred_rows = np.arange(pred_keys.size)
    if matches.true_again:
        true_rows = true_side.without_repeats(true_keys)
    if matches.pred_again or (in_order and matches.true_again):
        pred_rows = pred_side.without_repeats(pred_keys)
    if matches.true_again or matches.pred_again:
        matches = match(true_keys[true_rows], pred_keys[pred_rows], pool)
    found = matches.pred_of_true
    of_true = np.where(found >= 0, pred_rows[found], -1)
    rest = pred_rows[matches.true_of_pred < 0]
    if not rest.size and true_rows.size == true_keys.size:
        return true_rows, of_true
    lacking = np.full(rest.size, -1)
    return np.concatenate([true_rows, lacking]), np.concatenate([of_true, rest])


def _equal(a: NDArray[np.int64], b: NDArray[np.int64]) -> bool:
    """Compare block by block, so that the first difference ends it."""
    return a is b or all(np.array_equal(a[i:j], b[i:j]) for i, j in blocks(a.size))


def _weights(
    true_side: _Side,
    pred_side: _Side,
    true_rows: Rows | None,
    pred_rows: Rows | None,
    table: tuple[Column, NDArray[np.float64]] | None,
    outer: bool,
    pool: Pool,
) -> NDArray[np.float64] | None:
    """Return the weight of each aligned row, NaN where none is known; the truth's comes first."""
    sides = []
    for side, rows in ((true_side, true_rows), (pred_side, pred_rows)):
        weight = side.clustering.weight
        if table is None and weight is not None:
            side.total_weight = _check_weights(weight, side.clustering.name, outer, pool)
        sides.append((side, rows, weight))
    if table is not None:
        column, values = table
        _check_weights(values, "the weight table", outer, pool)
        sides = [(side, rows, _look_up(side, column, values, pool)) for side, rows, _ in sides]
    result: NDArray[np.float64] | None = None
    for _, rows, weight in sides:
        if weight is None:
            continue
        values = weight if rows is None else np.where(rows < 0, np.nan, weight[rows])
        if result is None:
            result = values
        elif rows is not None or table is not None:
            result = np.where(np.isnan(result), values, result)
    return result


def _look_up(
    side: _Side, column: Column, values: NDArray[np.float64], pool: Pool
) -> NDArray[np.float64]:
    from fastbcubed.engines.joining import match

    items = side.clustering.items
    if items is None:
        raise AlignmentError("a table of weights needs items with ids; pass an array of weights instead")
    matches = match(*key_pair(items, column, pool), pool)
    if matches.pred_again:
        raise DuplicateItemError(
            f"{matches.pred_again} rows of the weight table repeat an item of an earlier row; give "
            "each item one weight"
        )
    if matches.true_again:  # the side repeats items: each row looks up its own
        order = {key: row for row, key in enumerate(column.take(np.arange(len(column))).to_pylist())}
        found = np.array([order.get(item, -1) for item in side.take_items(np.arange(len(items)))])
    else:
        found = matches.pred_of_true
    return np.where(found >= 0, values[found], np.nan)


def _check_weights(weight: NDArray[np.float64], name: str, outer: bool, pool: Pool) -> float:
    """Raise for weights that are none, and return their sum."""
    from fastbcubed.kernels.sums import check_weights

    def check(start: int, stop: int) -> tuple[int, float]:
        return check_weights(weight, start, stop, outer)

    found = pool.map(check, *zip(*blocks(weight.size), strict=True), stage="check weights")
    bad = sum(count for count, _ in found)
    if not bad:
        with suppress(OverflowError):
            total = math.fsum(each for _, each in found)
            if total < math.inf:
                return total
        raise WeightError(
            f"the weights of {name} add up to more than a float holds; divide them all by some number"
        )
    wrong = ~((weight > 0) & (weight < np.inf)) & ~((weight == 0) & outer)
    zeros = int(np.count_nonzero(weight == 0))
    hint = ""
    if zeros and not outer:
        hint = f' {zeros} of them are zero, which weighting="outer" allows.'
    rows = np.flatnonzero(wrong)[:4]
    raise WeightError(
        f"{bad} of {weight.size} weights of {name} are not positive and finite "
        f"({first_few(weight[rows].tolist())} in rows {first_few(rows.tolist())}).{hint} "
        "Drop these items or give them a weight."
    )


def _require_weights(
    weight: NDArray[np.float64],
    policies: Policies,
    lacks_true: Mask | None,
    lacks_pred: Mask | None,
    truth_only: Mask | None,
    prediction_only: Mask | None,
) -> None:
    """Raise if an item that is scored or counted has no weight."""
    needed = np.isnan(weight)
    if not needed.any():
        return
    if lacks_true is not None and policies.prediction == "drop":
        needed &= ~lacks_true
    if lacks_pred is not None and policies.truth == "drop":
        needed &= ~lacks_pred
    both = _and(lacks_true, lacks_pred)
    if both is not None:
        needed &= ~both
    if n := int(needed.sum()):
        raise WeightError(
            f"{n} of {weight.size} items that are scored or counted have no weight (first rows: "
            f"{first_few(np.flatnonzero(needed)[:4].tolist())}). Give every item a weight, or leave "
            'unmatched items out with unmatched="drop".'
        )


def _coverage(
    n_rows: int,
    lacks_true: Mask | None,
    lacks_pred: Mask | None,
    truth_only: Mask | None,
    prediction_only: Mask | None,
    weight: NDArray[np.float64] | None,
    true_side: _Side,
    pred_side: _Side,
) -> Coverage:
    def figure(mask: Mask | None) -> tuple[int, float]:
        if mask is None:
            return 0, 0.0
        n = int(np.count_nonzero(mask))
        return n, float(n) if weight is None else float(weight[mask].sum())

    truth, prediction = figure(truth_only), figure(prediction_only)
    lacking = _or(lacks_true, lacks_pred)
    if lacking is None:
        total = true_side.total_weight
        if weight is not None and (total is None or n_rows != len(true_side.clustering)):
            total = float(weight.sum())
        common = (n_rows, float(n_rows) if total is None else total)
    else:
        common = figure(~lacking)
    if not common[0]:
        raise EmptyInputError(
            f"no item of {true_side.clustering.name} is in {pred_side.clustering.name}: "
            f"{truth[0]} items are only in the first, {prediction[0]} only in the second "
            f"({_example(true_side)} against {_example(pred_side)}). Check that the item columns name "
            "the same things in the same way."
        )
    return Coverage(
        common[0], truth[0], prediction[0], common[1], truth[1], prediction[1],
        true_side.n_null + pred_side.n_null,
        true_side.n_noise + pred_side.n_noise,
        true_side.n_duplicates + pred_side.n_duplicates,
    )  # fmt: skip


def _example(side: _Side) -> str:
    return first_few(side.take_items(np.arange(min(3, len(side.clustering)))))


def _enforce(
    policies: Policies,
    coverage: Coverage,
    truth_only: Mask | None,
    prediction_only: Mask | None,
    true_side: _Side,
    pred_side: _Side,
    true_rows: Rows | None,
    pred_rows: Rows | None,
) -> None:
    """Raise if there are unmatched items where the policy says so."""
    for policy, mask, side, other, rows, options in (
        (policies.truth, truth_only, true_side, pred_side, true_rows, '"drop" or "singleton"'),
        (policies.prediction, prediction_only, pred_side, true_side, pred_rows, '"drop", "singleton" or "outside"'),
    ):  # fmt: skip
        if policy != "raise" or mask is None or not mask.any():
            continue
        where = np.flatnonzero(mask)
        shown = where[:4] if rows is None else rows[where[:4]]
        raise AlignmentError(
            f"{where.size} of {len(side.clustering)} items of {side.clustering.name} are missing from "
            f"{other.clustering.name} (first: {first_few(side.take_items(shown))}). Pass unmatched="
            f"{options} to continue."
        )


def _special_keys(
    keys: NDArray[np.int64], lacks: Mask | None, alone: Mask | None
) -> tuple[NDArray[np.int64], int | None]:
    """Give lonely items keys of their own, and lacking ones the absent key, none of them in use."""
    if lacks is not None and not lacks.any():
        lacks = None
    if lacks is None and (alone is None or not alone.any()):
        return keys, None
    from fastbcubed.kernels.sums import find_run

    generator = np.random.default_rng(0)  # any start serves that is not in use; the same each time
    while True:
        start = int(generator.integers(-(2**63), 2**63, dtype=np.int64))
        if not find_run(keys, start, keys.size + 1):
            break
    keys = keys.copy()
    fresh = np.uint64(start % 2**64)
    if alone is not None:
        rows = np.flatnonzero(alone)
        keys[rows] = (fresh + rows.astype(np.uint64)).view(np.int64)
    absent = np.array([fresh], np.uint64) + np.uint64(keys.size)
    if lacks is None:
        return keys, None
    keys[lacks] = absent.view(np.int64)[0]
    return keys, int(absent.view(np.int64)[0])


def _or(a: Mask | None, b: Mask | None) -> Mask | None:
    if a is None or b is None:
        return b if a is None else a
    return a | b


def _and(a: Mask | None, b: Mask | None) -> Mask | None:
    return None if a is None or b is None else a & b


def _and_not(a: Mask | None, b: Mask | None) -> Mask | None:
    """Rows in `a` and not in `b`."""
    return a if a is None or b is None else a & ~b
