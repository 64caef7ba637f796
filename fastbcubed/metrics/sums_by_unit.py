"""Sums by independent unit behind scores that are not means over items, and how scores change with each unit.

Each function below takes the cells with their units. It returns additive quantities by unit (numbers of items,
clusters or pairs, logarithms of sizes), and a function from their totals to the sums over all cells that scores need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastbcubed import kernels
from fastbcubed.cells.contingency import CELL_BLOCK, SIDES, Contingency, TrueNegatives, confusion
from fastbcubed.metrics import sums
from fastbcubed.metrics.aggregation import apply_formula
from fastbcubed.metrics.counterparts import (
    Fit,
    Paired,
    Side,
    best_overlaps,
    best_pairs,
    pairs_by_similarity,
    pairs_by_weight,
    pairs_of_mentions,
    sizes_of_entities,
)
from fastbcubed.metrics.equal_units import merge_equal_units
from fastbcubed.metrics.metric import Metric
from fastbcubed.overlap.cover import Cover
from fastbcubed.overlap.omega_and_nmi import Left, entropies_by_cluster, shared_clusters_by_unit, sides_of
from fastbcubed.runtime.object_attributes import cached_property
from fastbcubed.runtime.threads import Pool, blocks
from fastbcubed.types import Codes, Floats, Sizes

#: The step of difference quotients relative to a total, and the factors of the six-point formula.
STEP = 2.0**-9
FACTORS = {1: 45 / 60, 2: -9 / 60, 3: 1 / 60}
#: Steps are shortened, down to the last of these, until slopes over one step and over three differ by at most this
#: share. Where a denominator is nearly 0, a longer step would leave the range in which the score is smooth.
STEPS, ALIKE = STEP * 2.0 ** (-4.0 * np.arange(6)), 0.01
#: Relative distance between neighbouring floats.
EPSILON = float(np.finfo(np.float64).eps)
#: Relative step in the true negatives of an item.
STEP_OF_NEGATIVES = 2.0**-14

#: Factors of linked pairs and of true pairs in the denominator of a score. Scores that are shares of all pairs are left
#: out, since most of these pairs are between units.
SHARES_OF_PAIRS = {"pair_precision": (1.0, 0.0), "pair_recall": (0.0, 1.0)} | dict.fromkeys(
    ("pair_f1", "pair_jaccard", "pair_fowlkes_mallows", "adjusted_rand"), (1.0, 1.0)
)


class Additive(NamedTuple):
    """Additive quantities by unit, and a function from their totals to the sums that scores need."""

    by_unit: list[Floats]  #: each of shape (n_units,)
    fields: Callable[..., Iterable[Any]]  #: takes the totals, and returns the arguments of scores


class Moved(NamedTuple):
    """The first-order change of a score with each unit, the size of its largest term, and the number of units."""

    by_unit: Floats  #: change of the score with each unit; the mean is 0
    size: float
    n: float  #: units that contribute to the score, including those without weight that only count as clusters


class SumsByUnit:
    """Cells with their units, and the sums by unit that several scores share.

    Entities without mentions on the other side are also units of coreference scores; `n_all` counts these. If items
    have no weights, then among the units numbered `n_joined` or higher, one unit that consists of a single exact
    cluster stands for all equal ones.
    """

    def __init__(
        self, table: Contingency, units: Codes, n: int, pool: Pool, n_joined: int | None = None
    ) -> None:
        self.whole, self.pool = table, pool
        self._equal = None if n_joined is None else merge_equal_units(table, units, n_joined, pool)
        if self._equal is None:
            self.table, self.units, self.n = table, units, n
        else:
            self.table, self.units, self.n = self._equal.table, self._equal.units, self._equal.times.size
        self._known: dict[str, Additive] = {}
        self._totals: dict[tuple[str, Any], Floats] = {}

    def cells(self, values: Any) -> Floats:
        """Sum values of cells by unit."""
        values = np.broadcast_to(np.asarray(values, np.float64), self.units.shape)
        return np.bincount(self.units, values, self.n).astype(np.float64, copy=False)

    def clusters(self, side: str, values: NDArray[Any], *, every: bool = False) -> Floats:
        """Sum values of clusters by unit: of those with a scored item or, if `every`, of all that have items."""
        units = self._of_cluster[side] if every else self._of_scored[side]
        n = self.n_all if every else self.n
        if units.min(initial=0) < 0:
            there = units >= 0
            units, values = units[there], values[there]
        return np.bincount(units, values, n).astype(np.float64, copy=False)

    @cached_property
    def _of_scored(self) -> dict[str, Codes]:
        """The unit of each cluster, by side; -1 for a cluster without scored items."""
        found = {}
        for side in SIDES:
            codes, size, cells = self.table.memberships(side)
            units = np.full(size, -1)
            units[codes] = self.units if cells is None else self.units[cells]
            found[side] = units
        return found

    @cached_property
    def _of_cluster(self) -> dict[str, Codes]:
        """The unit of each cluster, by side; a cluster whose items all lack the other side is a unit of its own."""
        found, n = {}, self.n
        for side, units in self._of_scored.items():
            only = self.table.only(side)
            if only is not None:
                units = units.copy()
                alone = np.flatnonzero((units < 0) & (only[0] > 0))
                units[alone] = n + np.arange(alone.size)
                n += alone.size
            found[side] = units
        return found

    @cached_property
    def n_all(self) -> int:
        """The number of distinct units, including those without scored items."""
        return 1 + max(self.n - 1, *(int(units.max(initial=-1)) for units in self._of_cluster.values()))

    @cached_property
    def _times(self) -> Floats | None:
        """The number of equal units that each unit, scored or not, stands for; None if all are 1."""
        if self._equal is None:
            return None
        return np.append(self._equal.times, np.ones(self.n_all - self.n))

    def add(self, by_unit: NDArray[Any]) -> float:
        """Return the sum over all units of values by unit."""
        return float(np.sum(by_unit if self._times is None else by_unit * self._times[: by_unit.size]))

    def count(self, n: int) -> float:
        """Return the number of units that the first n units stand for."""
        return n - self.n + self._n_scored

    @cached_property
    def _n_scored(self) -> float:
        return float(self.n if self._equal is None else np.sum(self._equal.times))

    def of_whole(self, values: NDArray[Any], side: str | None = None) -> NDArray[Any]:
        """Return the values of these cells, or of these clusters of a side, given values for the whole table."""
        if self._equal is None:
            return values
        return values[self._equal.places if side is None else self._equal.in_whole[side]]

    def sums(self, name: str) -> Additive:
        """Return sums by unit, computed when first requested."""
        if name not in self._known:
            self._known[name] = BY_UNIT[name](self)
        return self._known[name]

    def score(self, metric: Metric) -> float:
        """Return a score computed from the sums of all units."""
        by_unit, function = self.function(metric)
        return float(function(self.totals(metric, by_unit)))

    def moved(self, metric: Metric) -> Moved:
        """Return the first-order change of a score by each unit: derivatives times its sums, minus the mean."""
        by_unit, function = self.function(metric)
        totals = self.totals(metric, by_unit)
        slopes = difference_quotients(function, totals)
        moved = np.zeros(max(each.size for each in by_unit))
        adds = np.zeros(moved.size, np.bool_)
        for slope, each in zip(slopes, by_unit, strict=True):
            if slope:
                moved[: each.size] += slope * each
                adds[: each.size] |= each != 0
        moved -= self.add(moved) / self.count(moved.size)
        with np.errstate(invalid="ignore"):  # scores may be infinite
            size = float(np.max(np.abs([function(totals), *(slopes * totals)])))
        return Moved(moved, size, self.add(adds))

    def totals(self, metric: Metric, by_unit: Iterable[Floats], of: Any = None) -> Floats:
        """Return the total of each sum, or of `of(sum)`, that a score needs; totals that scores share are cached."""

        def total(each: Floats) -> float:
            return self.add(each if of is None else of(each))

        if not metric.overall_only:
            return np.array([total(each) for each in by_unit])
        for name in metric.sums:
            if (name, of) not in self._totals:
                self._totals[name, of] = np.array([total(each) for each in self.sums(name).by_unit])
        return np.concatenate([self._totals[name, of] for name in metric.sums])

    def effective(self, metric: Metric) -> float:
        """Return the effective number of units behind a score."""
        by_unit, function = self.function(metric)
        amounts, squares = (self.totals(metric, by_unit, of) for of in (np.abs, np.square))
        return effective_number(amounts, squares, function, self.count(max(each.size for each in by_unit)))

    def largest_share(self, metric: Metric) -> float | None:
        """Return the largest unit's share of the clusters or pairs that a score averages; None for other scores."""
        if is_share_of_pairs(metric):
            tp, fp, fn = self.sums("pairs").by_unit[-3:]
            by_unit = pairs_of(metric, tp + fp, tp + fn)
        elif is_mean_of_clusters(metric):
            by_unit = self.sums(metric.sums[0]).by_unit[0]
        else:
            return None
        return largest_share(by_unit, self.add(by_unit))

    def function(self, metric: Metric) -> tuple[list[Floats], Callable[[Floats], Any]]:
        """Return the sums by unit of a score, and the score as a function of their totals, which may be arrays."""
        parts = (
            [self.sums(name) for name in metric.sums] if metric.overall_only else [_of_formula(self, metric)]
        )
        ends = np.cumsum([len(part.by_unit) for part in parts])[:-1]

        def score(totals: Floats) -> Any:
            fields = [part.fields(*own) for part, own in zip(parts, np.split(totals, ends), strict=True)]
            if not metric.overall_only:
                return next(iter(fields[0]))
            return metric.of_sums(dict(zip(metric.sums, fields, strict=True)))

        return [each for part in parts for each in part.by_unit], score


def is_share_of_pairs(metric: Metric) -> bool:
    """Return whether a score is a share of the pairs of one or both sides, or combines such shares."""
    return (metric.alias_of or metric.name) in SHARES_OF_PAIRS


def is_mean_of_clusters(metric: Metric) -> bool:
    """Return whether a score is a mean over clusters, or the F of such means."""
    return bool(metric.sums) and all(name.startswith("means of ") for name in metric.sums)


def pairs_of(metric: Metric, linked: Floats, true: Floats) -> Floats:
    """Return the number of pairs in a score's denominator, by unit."""
    of_linked, of_true = SHARES_OF_PAIRS[metric.alias_of or metric.name]
    return of_linked * linked + of_true * true


def largest_share(by_unit: Floats, total: float) -> float:
    """Return the share of the largest unit; 0 if the total is 0."""
    return float(np.max(by_unit)) / total if total > 0 else 0.0


def difference_quotients(function: Callable[[Floats], Any], at: Floats) -> Floats:
    """Return the derivative by each argument, to about 13 digits; 0 where an argument is 0, since no unit contributes.

    Arguments are numbers, or arrays if the function works element by element.

    >>> slopes = difference_quotients(lambda x: x[0] / (x[0] + x[1]), np.array([1.0, 3.0]))
    >>> slopes.round(12).tolist()  # 3 / 16, -1 / 16
    [0.1875, -0.0625]
    """
    found = np.zeros(at.shape)
    for k in range(len(at)):
        apart = np.where(at[k] == 0, 0.0, np.inf)
        for share in STEPS:
            if np.all(apart <= ALIKE * np.abs(found[k])):
                break
            slope, differs = _quotient(function, at, k, at[k] * share)
            better = differs < apart
            found[k], apart = np.where(better, slope, found[k]), np.where(better, differs, apart)
    return found


def _quotient(function: Callable[[Floats], Any], at: Floats, k: int, step: Any) -> tuple[Floats, Floats]:
    """Return the derivative by the k-th argument, and how much the slopes over one step and three steps differ.

    The difference is at least the rounding error of the function divided by the step; otherwise the shortest step,
    where this error is largest, could yield a derivative of 0.
    """
    slopes, largest = {}, np.zeros(())
    with np.errstate(all="ignore"):
        for times in FACTORS:
            up, down = at.copy(), at.copy()
            up[k], down[k] = at[k] + times * step, at[k] - times * step
            above, below = function(up), function(down)
            slopes[times] = np.divide(above - below, step, out=np.zeros(np.shape(step)), where=step != 0)
            largest = np.fmax(largest, np.fmax(np.abs(above), np.abs(below)))
        left = np.divide(EPSILON * largest, np.abs(step), out=np.zeros(np.shape(step)), where=step != 0)
    apart = np.maximum(np.abs(slopes[3] / 3 - slopes[1]) / 2, left)
    found = sum(factor * slopes[times] for times, factor in FACTORS.items())
    return np.asarray(found), np.where(np.isnan(apart), np.inf, apart)


def effective_units(by_unit: ArrayLike, function: Callable[[Floats], float]) -> float:
    """Return the effective number of units behind a function of totals; sums count as far as it depends on them.

    >>> right, wrong, others = [3.0, 1.0], [0.0, 0.0], [1.0, 0.0]
    >>> effective_units([right, wrong, others], lambda x: x[0] / (x[0] + x[1]))  # (3 + 1)**2 / (3**2 + 1**2)
    1.6
    """
    amounts = np.abs(np.asarray(by_unit, np.float64))
    return effective_number(amounts.sum(axis=1), (amounts**2).sum(axis=1), function, amounts.shape[1])


def effective_number(
    totals: Floats, squares: Floats, function: Callable[[Floats], float], n_units: float
) -> float:
    """Return the effective number of units from totals over units of amounts and of their squares.

    Totals of 0 are replaced by small numbers: a score without errors of some kind also depends on the sums that it is
    a share of.
    """
    some = np.where(totals > 0, totals, STEP * totals.max())
    dependence = shares = 0.0
    with np.errstate(all="ignore"):
        at = function(some)
        for k in np.flatnonzero(totals):
            more = some.copy()
            more[k] *= 1 + STEP
            moved = np.nan_to_num(abs(function(more) - at))
            dependence += moved
            shares += moved * squares[k] / totals[k] ** 2
    return float(dependence / shares) if shares > 0 else float(n_units)


def has_sums_by_unit(metric: Metric, *, overlapping: bool = False) -> bool:
    """Return whether a score is a function of the sums by unit listed in this module."""
    if metric.overall_only:
        return all(name in (OF_COVERS if overlapping else BY_UNIT) for name in metric.sums)
    plain = metric.formula is not None and metric.matrix is None and not metric.leave_one_out
    return plain and metric.uses_tn and not overlapping


# Means over items of formulas with true negatives
def scores_and_slopes(table: Contingency, metric: Metric) -> tuple[Floats, Floats]:
    """Return the score of each cell's items, and its derivative by their true negatives. Shape (n_cells,) each."""
    negatives = None if table.outside else TrueNegatives(table)
    scores, slopes = np.empty(table.n_cells), np.zeros(table.n_cells)
    for start, stop in blocks(table.n_cells, CELL_BLOCK):
        matrix = confusion(table, start, stop, tn=negatives)
        scores[start:stop] = apply_formula(metric, matrix)
        if matrix.tn is not None:
            up, down = (
                apply_formula(metric, matrix._replace(tn=matrix.tn * (1 + step)))
                for step in (STEP_OF_NEGATIVES, -STEP_OF_NEGATIVES)
            )
            steps = 2 * STEP_OF_NEGATIVES * matrix.tn
            with np.errstate(invalid="ignore"):  # scores may be infinite
                np.divide(up - down, steps, out=slopes[start:stop], where=steps > 0)
    return scores, slopes


def weight_of_cells(table: Contingency) -> NDArray[Any]:
    """Return the contribution of each cell to the total from which true negatives are computed."""
    return table.n if table.weighting == "outer" else table.weight


def _of_formula(by: SumsByUnit, metric: Metric) -> Additive:
    """Return the sums for a mean over items: weights, weights * score, and the total that includes true negatives."""
    table = by.table
    scores, slopes = scores_and_slopes(table, metric)
    slope, whole = by.add(by.cells(table.weight * slopes)), by.cells(weight_of_cells(table))
    of_all = by.add(whole)

    def mean(weight: float, score: float, every: float) -> tuple[float]:
        return ((score + slope * (every - of_all)) / weight,)

    return Additive([by.cells(table.weight), by.cells(table.weight * scores), whole], mean)


# Pairs
def _pairs(by: SumsByUnit) -> Additive:
    table = by.table
    w: Floats = table.weight
    of_items: Any = w
    if table.weighted:
        assert table.rows is not None
        scored = table.rows.cell >= 0
        of_items = np.bincount(table.rows.cell[scored], table.rows.weight[scored] ** 2, table.n_cells)
    together = np.where(table.n == 1, 0.0, w * w - of_items)

    def counts(weight: float, squares: float, tp: float, fp: float, fn: float) -> sums.PairCounts:
        return sums.PairCounts(tp, fp, fn, (weight * weight - squares) / 2 - tp - fp - fn)  # type: ignore[arg-type]

    pairs = (together / 2, w * table.fp / 2, w * table.fn / 2)
    return Additive([by.cells(each) for each in (w, of_items, *pairs)], counts)


def _wrong_pairs(by: SumsByUnit) -> Additive:
    table = by.table
    return Additive(
        [by.cells(table.weight * wrong / 2) for wrong in (table.fp, table.fn)], lambda *wrong: wrong
    )


def _shared_clusters(by: SumsByUnit) -> Additive:
    """Return the sums of pairs for Omega, by the number of clusters that a pair shares: 0 or 1, or more in a cover."""
    table = by.table
    if table.overlapping:
        found = shared_clusters_by_unit(table.once(sides_of, by.pool), by.units, by.n, table.max_pairs)
        return Additive([by.cells(table.n), *found], found.fields)
    pairs = by.sums("pairs")

    def fields(*totals: float) -> tuple[float, float, float]:
        tp, fp, fn, tn = pairs.fields(*totals)
        return tp + fp + fn + tn, tp + tn, (tp + fn) * (tp + fp) + (fn + tn) * (fp + tn)

    return Additive(pairs.by_unit, fields)


# Entropies
def _entropies(by: SumsByUnit) -> Additive:
    """Return the sums for entropies: weights, w log(N / a) of true clusters of weight a, and both losses."""
    table = by.table
    w, whole = table.weight, table.total_weight
    open_true = w * np.log(whole / (w + table.fn))
    losses = [w * np.log1p(wrong / w) for wrong in (table.fp, table.fn)]

    def entropies(
        weight: float, true: float, true_given_pred: float, pred_given_true: float
    ) -> sums.Entropies:
        pred = true - true_given_pred + pred_given_true
        more = np.log(weight / whole)
        true, pred = (
            np.maximum(more + each / weight, 0.0) for each in (true, pred)
        )  # rounding must not make the entropy of a single cluster negative
        return sums.Entropies(true, pred, true_given_pred / weight, pred_given_true / weight)

    return Additive([by.cells(each) for each in (w, open_true, *losses)], entropies)


def _entropies_of_clusters(by: SumsByUnit) -> Additive:
    """Return the number of items, and for each side the number of clusters and the sums of `Left`.

    All of them depend on the number of items, with jumps where it decides whether a cluster is informative about
    another. Derivatives by it are therefore slopes over a range as wide as its variation between samples.
    """
    sides, n, items = by.table.once(sides_of, by.pool), float(by.table.n_items), by.cells(by.table.n)
    spread = max(float(np.sqrt(by.add((items - n / by.count(by.n)) ** 2))) / n, STEP)
    step = n * min(spread, 0.5 * (1.0 - float(items.max()) / n))
    found, up, down = (entropies_by_cluster(sides, n + s) for s in (0.0, step, -step))
    figures, slopes = [items], []
    for k, side in enumerate(SIDES):
        figures.append(by.clusters(side, (sides.sizes[k].n > 0).astype(np.float64)))
        figures += [by.clusters(side, own) for own in found[k]]
        changes = (by.add(by.clusters(side, more - less)) for more, less in zip(up[k], down[k], strict=True))
        slopes.append([change / (2.0 * step) if step else 0.0 for change in changes])

    def fields(items: float, *totals: float) -> tuple[Left, ...]:
        sides = ((totals[4 * k], totals[4 * k + 1 : 4 * k + 4], slopes[k]) for k in (0, 1))
        return tuple(
            Left(clusters, *(own + slope * (items - n) for own, slope in zip(added, by_item, strict=True)))
            for clusters, added, by_item in sides
        )

    return Additive(figures, fields)


def _chance(by: SumsByUnit) -> Additive:
    """Return the number of items, and what each side's clusters contribute to the information by chance."""
    table, n = by.table, by.table.n_items
    counts = by.whole.once(sums.count, by.pool)
    chance = sums.chance_of_counts(counts, n, by.pool)
    around = [
        kernels.metrics.expect_shared(n + step, *counts.true, 0, counts.true[0].size, *counts.pred)
        for step in (1, -1)
    ]
    slope, nats = (around[0] - around[1]) / 2, chance.expected * n

    def of_side(own: Sizes, other: Sizes) -> Floats:
        once = own[0], np.ones_like(own[1])
        found = by.pool.map(
            lambda k: float(kernels.metrics.expect_shared(n, *once, k, k + 1, *other)), range(own[0].size)
        )
        return np.array(found)

    def fields(items: float, true: float, pred: float) -> sums.Chance:
        return sums.Chance((true + pred - nats + slope * (items - n)) / items, chance.fixed)

    sides = ((counts.true, counts.pred), (counts.pred, counts.true))
    by_side = []
    for side, (own, other), sizes in zip(SIDES, sides, (table.true_n, table.pred_n), strict=True):
        of_size = np.append(of_side(own, other), 0.0)
        by_side.append(by.clusters(side, of_size[np.searchsorted(own[0], sizes)]))
    return Additive([by.cells(table.n), *by_side], fields)


def _code_lengths(by: SumsByUnit) -> Additive:
    """Return the numbers of items and true clusters, one loss, and the code lengths of each side's clusters."""
    table, n_true = by.table, by.table.n_true
    n = table.n.astype(np.float64)
    loss = n * np.log1p(table.fp / n)
    lengths, slopes = [], []
    for side, sizes in zip(SIDES, (table.true_n, table.pred_n), strict=True):
        usual, place = np.unique(sizes, return_inverse=True)
        of_size, more, fewer = np.empty((3, usual.size))
        for others, out in ((n_true - 1, of_size), (n_true, more), (max(n_true - 2, 0), fewer)):
            kernels.metrics.log_choices(usual, others, out)
        lengths.append(by.clusters(side, of_size[place]))
        slopes.append(by.add(by.clusters(side, (more - fewer)[place])) / (2 if n_true > 1 else 1))

    def fields(items: float, clusters: float, lost: float, true: float, pred: float) -> sums.CodeLengths:
        of_truth, of_prediction = (
            length + slope * (clusters - n_true) for length, slope in zip((true, pred), slopes, strict=True)
        )
        return sums.CodeLengths(of_truth, lost + of_prediction, items)  # type: ignore[arg-type]

    ones = np.ones(table.n_codes["true"])
    return Additive([by.cells(n), by.clusters("true", ones), by.cells(loss), *lengths], fields)


# Clusters
def _clusters(by: SumsByUnit) -> Additive:
    n_clusters = [by.clusters(side, np.ones(by.table.n_codes[side])) for side in SIDES]
    return Additive([by.cells(by.table.n), by.cells(1.0), *n_clusters], lambda *counts: counts)


def _means_of_clusters(side: str, by: SumsByUnit) -> Additive:
    """Return the number of clusters with weight, and the sums of their mean precision and recall."""
    table = by.table
    tp, fp, fn, _ = confusion(table)
    weight = table.true_weight if side == "true" else table.pred_weight
    codes, size = table.codes(side)
    scored = np.maximum(weight, np.finfo(np.float64).tiny)
    means = [
        np.bincount(codes, table.weight * score, size) / scored for score in (tp / (tp + fp), tp / (tp + fn))
    ]
    by_unit = [by.clusters(side, values) for values in ((weight > 0).astype(np.float64), *means)]
    return Additive(by_unit, lambda n, *added: [each / n for each in added])


def _losses(by: SumsByUnit) -> Additive:
    table = by.table
    tp, fp, fn, _ = confusion(table)
    lost = [table.weight * wrong / (tp + wrong) for wrong in (fp, fn)]
    return Additive(
        [by.cells(each) for each in (table.weight, *lost)], lambda n, *lost: [each / n for each in lost]
    )


def _losses_by_chance(by: SumsByUnit) -> Additive:
    """Return the numbers of items and clusters, and the sums of squared cluster sizes."""
    table = by.table
    same = by.whole.n_cells == table.n_true == table.n_pred
    sizes = [table.true_n.astype(np.float64), table.pred_n.astype(np.float64)]

    def fields(n: float, n_true: float, n_pred: float, true: float, pred: float) -> sums.LossesByChance:
        # smooth even if each item is a cluster: n falls below the number of clusters only in difference quotients
        of_precision, of_recall = (
            (n - clusters) / n * (n * n - squares) / (n * (n - 1)) if n > 1 else 0.0
            for clusters, squares in ((n_pred, true), (n_true, pred))
        )
        return sums.LossesByChance(of_precision, of_recall, same)

    counts = [by.clusters(side, np.ones(own.size)) for side, own in zip(SIDES, sizes, strict=True)]
    squares = [by.clusters(side, own * own) for side, own in zip(SIDES, sizes, strict=True)]
    return Additive([by.cells(table.n), *counts, *squares], fields)


# Counterparts
def _counterparts(by: SumsByUnit) -> Additive:
    """Return the sums of `Fit` for both sides, where each cluster contributes to its own unit."""
    table, n = by.table, len(Fit._fields)
    if isinstance(table, Cover):
        of_sides = zip(SIDES, best_overlaps(table), strict=True)
        added = [
            by.clusters("true" if name == "exact" else side, own)
            for side, best in of_sides
            for name, own in best._asdict().items()
        ]
        return Additive(added, lambda *fields: (Fit(*fields[:n]), Fit(*fields[n:])))
    own, fp, fn, _ = confusion(table)
    w, exact = table.weight, by.cells((fp == 0) & (fn == 0))
    f1, jaccard = 2 * own / (2 * own + fp + fn), own / (own + fp + fn)
    figures: list[Floats] = []
    for side, others in (("true", fn), ("pred", fp)):
        codes, size = table.codes(side)
        share, best_f1, best_jaccard = np.zeros((3, size))
        for best, values in ((share, own / (own + others)), (best_f1, f1), (best_jaccard, jaccard)):
            np.maximum.at(best, codes, values)
        of_cells = (w, w * share[codes], w * (1.0 - share[codes]), w * best_f1[codes])
        figures += [by.clusters(side, np.ones(size)), exact, *map(by.cells, of_cells)]
        figures.append(by.clusters(side, best_jaccard))
    return Additive(figures, lambda *fields: (Fit(*fields[:n]), Fit(*fields[n:])))


def _majorities(by: SumsByUnit) -> Additive:
    """Return the items in largest cells of predicted clusters, and the clusters matched with their majority classes."""
    table = by.table
    codes, size = table.codes("pred")
    largest = np.zeros(size, np.int64)
    np.maximum.at(largest, codes, table.n)
    exact = (table.fp == 0) & (table.fn == 0)
    rivals = np.flatnonzero((table.n == largest[codes]) & ~exact)
    pred, true = (own[rivals].astype(np.int64) for own in (codes, table.true))
    only = np.bincount(pred, minlength=size)[pred] == 1
    taken = np.zeros(table.n_codes["true"])
    taken[true[only]] = (
        1.0  # by a cluster that has no other choice; all such clusters of a class are in one unit
    )
    free = ~only & (taken[true] == 0.0)
    matched, _ = best_pairs(pred[free], true[free], np.ones(np.count_nonzero(free)), size, taken.size)
    ones = np.bincount(matched, minlength=size).astype(np.float64)
    both = by.cells(exact) + by.clusters("true", taken) + by.clusters("pred", ones)
    return Additive([by.clusters("pred", largest.astype(np.float64)), both], lambda *fields: fields)


# One-to-one pairings
def _paired(find: Callable[[Contingency, Pool], Paired], by: SumsByUnit) -> Additive:
    found = by.whole.once(find, by.pool)
    gains = by.of_whole(np.bincount(found.pred, found.gains, by.whole.n_codes["pred"]), "pred")
    of_cells, rivals = by.of_whole(found.of_cells), by.of_whole(found.rivals)
    sure = by.cells(np.where(rivals, 0.0, of_cells))
    return Additive([sure + by.clusters("pred", gains), by.cells(of_cells)], lambda *fields: fields)


# Entities of key and response
def _entities(by: SumsByUnit) -> Additive:
    table = by.table
    n = table.n.astype(np.float64)
    figures: list[Floats] = []
    every = []
    for side, others in (("true", table.fn), ("pred", table.fp)):
        sizes, codes = sizes_of_entities(table, side), table.codes(side)[0]
        own = sizes[codes].astype(np.float64) if sizes.size else n + others
        sizes = sizes if sizes.size else (table.true_n if side == "true" else table.pred_n)
        links = np.divide(n * (n - 1), own - 1, out=np.zeros(n.size), where=own > 1)
        figures += [by.clusters(side, sizes, every=True), by.clusters(side, np.ones(sizes.size), every=True)]
        figures += [by.cells(n * n / own), by.cells(links)]
        every.append(own)
    alone = by.cells((every[0] == 1) & (every[1] == 1))
    none = np.empty(0, np.int64)

    def fields(*totals: float) -> tuple[Any, ...]:
        key, response = (Side(none, *totals[k : k + 4]) for k in (0, 4))  # type: ignore[arg-type]
        return key, response, *totals[8:]

    return Additive([*figures, by.cells(n), by.cells(1.0), alone], fields)


def _links(by: SumsByUnit) -> Additive:
    """Return mentions and links within entities: shared by both sides, and of each side with all of its mentions."""
    table = by.table
    n = table.n.astype(np.float64)
    scored, every = [], []
    for side, sizes in zip(SIDES, (table.true_n, table.pred_n), strict=True):
        scored.append(by.clusters(side, sizes * (sizes - 1) / 2))
        of_all = sizes_of_entities(table, side)
        of_all = of_all if of_all.size else sizes
        every += [by.clusters(side, own, every=True) for own in (of_all, of_all * (of_all - 1) / 2)]

    def fields(*totals: float) -> tuple[sums.Links, sums.Links]:
        mentions, both, key, response, in_key, within_key, in_response, within_response = totals
        between = [m * (m - 1) / 2 - own for m, own in ((in_key, within_key), (in_response, within_response))]
        apart = mentions * (mentions - 1) / 2 - key - response + both
        of_kinds: Any = (within_key, within_response, both), (*between, apart)
        return sums.Links(*of_kinds[0]), sums.Links(*of_kinds[1])

    return Additive([by.cells(n), by.cells(n * (n - 1) / 2), *scored, *every], fields)


#: Function that computes each of the sums by unit.
BY_UNIT: Mapping[str, Callable[[SumsByUnit], Additive]] = {
    "pairs": _pairs,
    "wrong pairs": _wrong_pairs,
    "entropies": _entropies,
    "chance": _chance,
    "code lengths": _code_lengths,
    "clusters": _clusters,
    "means of true clusters": partial(_means_of_clusters, "true"),
    "means of pred clusters": partial(_means_of_clusters, "pred"),
    "losses": _losses,
    "losses by chance": _losses_by_chance,
    "counterparts": _counterparts,
    "majorities": _majorities,
    "pairing by weight": partial(_paired, pairs_by_weight),
    "entities": _entities,
    "links": _links,
    "pairing of mentions": partial(_paired, pairs_of_mentions),
    "shared clusters": _shared_clusters,
    "pairing of entities": partial(_paired, pairs_by_similarity),
    "entropies of clusters": _entropies_of_clusters,
}
#: Names of the sums that are also defined where clusters overlap.
OF_COVERS = ("counterparts", "shared clusters", "entropies of clusters")
