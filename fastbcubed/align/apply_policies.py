"""The combination of two sides row by row, and the policies for rows that one side lacks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbcubed.align.data_errors import (
    Unmatched,
    Unweighted,
)
from fastbcubed.align.policies import Coverage, Policies
from fastbcubed.align.sides import Matched, Rows, Side, Weights, either, lacks_weight, only
from fastbcubed.runtime.key_partitions import Matches, match, same_values
from fastbcubed.runtime.threads import Pool
from fastbcubed.types import Mask

#: A function that matches two sides by item keys, and may also return the labels of the second in matched order.
Join = Callable[[NDArray[np.int64], NDArray[np.int64], Pool, NDArray[np.int64]], Matches]


@dataclass(frozen=True)
class Combination:
    """Two sides row by row, before policies are applied to rows that one side lacks."""

    #: label keys, arbitrary in rows that the side lacks and in singletons; shape (n_rows,), like all arrays here
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
    may_lack_weight: bool  #: whether weights may contain NaN, for unknown

    @property
    def policies(self) -> Policies:
        """The policies of the alignment."""
        return self.sides[0].policies

    @property
    def truth_only(self) -> Mask | None:
        """The mask of rows that only the truth has; None if empty."""
        return only(self.lacks_pred, self.lacks_true)

    @property
    def prediction_only(self) -> Mask | None:
        """The mask of rows that only the prediction has; None if empty."""
        return only(self.lacks_true, self.lacks_pred)

    @property
    def is_plain(self) -> bool:
        """Whether policies change nothing: both sides have every row, with a label and any weight."""
        masks = (self.lacks_true, self.lacks_pred, self.alone_true, self.alone_pred)
        return not self.may_lack_weight and all(mask is None for mask in masks)

    def report_faults(self) -> None:
        """Report unmatched items that the policies forbid, truth first, and missing weights."""
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
        """Report items that are scored, or counted in a cluster, but have no weight."""
        assert self.weight is not None
        where = lacks_weight(self.weight, self.policies, self.lacks_true, self.lacks_pred)
        n_items = where.size
        if not n_items:
            return
        lacking = [mask[where].any() for mask in (self.lacks_true, self.lacks_pred) if mask is not None]
        named: list[Any] = []
        for side, rows in zip(self.sides, self.rows, strict=True):  # names items of the truth first
            of_side = where if rows is None else rows[where]
            named += side.take_items(of_side[of_side >= 0])
            where = where[of_side < 0]
        self.sides[0].report(Unweighted("both sides", n_items, self.weight.size, named, any(lacking)))

    def take(self, rows: Rows) -> Combination:
        """Return some of the rows. Coverage is recomputed, except for the counts of nulls, noise and repeated rows."""

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
        """The mask of rows that are scored after applying the policies; None if all are."""
        (lacks_true, _), (lacks_pred, _) = self._by_policy()
        lacking = either(lacks_true, lacks_pred)
        return None if lacking is None else ~lacking

    @property
    def unscored_prediction(self) -> Mask | None:
        """The mask of rows that the prediction has and, after applying the policies, the truth lacks; None if empty."""
        (lacks_true, _), (lacks_pred, _) = self._by_policy()
        return only(lacks_true, lacks_pred)

    def _by_policy(self) -> tuple[tuple[Mask | None, Mask | None], ...]:
        """Return, for each side, the masks of rows it lacks and of singletons, after applying the policies."""
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
        """Whether any row is lacking or a singleton on a side, after applying the policies."""
        return any(mask is not None and mask.any() for masks in self._by_policy() for mask in masks)

    def finished(
        self, start: int, numbers: NDArray[np.int64] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], int | None, int | None]:
        """Return the keys of both sides, and the key for "not on this side" of each; None if no row needs it.

        The key before `start` stands for rows that a side lacks. Singletons get the key `start` plus their number,
        which by default is their row.
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
    """Match the rows of two sides by item, and combine them with their weights; for all rows, a block or a shard.

    `items` returns the keys of both sides' items, which are freed after matching; None if rows correspond. `weigh`
    returns the weights of matched rows. If `matches` are not given, `join`, by default `match`, finds them.
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
    """Return the numbers and weights of rows on both sides and on only one; `total_weight` is NaN if unknown."""
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
    """Match the rows of two sides by item key, and drop repeated rows.

    Returns the truth's and the prediction's row of each aligned row, -1 for none; rows of the truth come first. None
    means that a side's rows are unchanged; on both sides, that rows correspond. The second result is the prediction's
    labels by aligned row, if the join has reordered them.
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
        true_rows = true_side.without_repeats(true_keys, pool)
    if matches.pred_repeats or (in_order and matches.true_repeats):
        pred_rows = pred_side.without_repeats(pred_keys, pool)
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


def starts_of_runs() -> Iterator[int]:
    """Yield candidate starts of key ranges, always in the same order; callers use the first range that is unused."""
    yield 2526497193922298463  # usually used: the first of the generator, without loading NumPy's random numbers
    generator = np.random.default_rng(0)
    while True:
        yield int(generator.integers(-(2**63), 2**63, dtype=np.int64))
