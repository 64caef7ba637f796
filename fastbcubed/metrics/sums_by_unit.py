"""How scores that are not means over items change with each independent unit, by the sums of `metrics.sums` by unit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastbcubed.cells.contingency import CELL_BLOCK, Contingency, TrueNegatives, confusion
from fastbcubed.metrics.aggregation import apply_formula
from fastbcubed.metrics.cells_by_unit import Additive, CellsByUnit
from fastbcubed.metrics.metric import Metric
from fastbcubed.metrics.sums import BY_UNIT, OF_COVERS, STEP
from fastbcubed.runtime.object_attributes import cached_property
from fastbcubed.runtime.threads import blocks
from fastbcubed.types import Floats

#: The factors of the six-point formula of difference quotients, whose step is `STEP` relative to a total.
FACTORS = {1: 45 / 60, 2: -9 / 60, 3: 1 / 60}
#: Steps are shortened, down to the last of these, until slopes over one step and over three differ by at most this
#: share. Where a denominator is nearly 0, a longer step would leave the range in which the score is smooth.
STEPS, ALIKE = STEP * 2.0 ** (-4.0 * np.arange(6)), 0.01
#: Relative distance between neighbouring floats.
EPSILON = float(np.finfo(np.float64).eps)
#: Relative step in the true negatives of an item.
STEP_OF_NEGATIVES = 2.0**-14


class Moved(NamedTuple):
    """The first-order change of a score with each unit, the size of its largest term, and the number of units."""

    by_unit: Floats  #: change of the score with each unit; the mean is 0
    size: float
    n: float  #: units that contribute to the score, including those without weight that only count as clusters


class SumsByUnit(CellsByUnit):
    """Cells with their units, and the sums by unit that several scores share."""

    @cached_property
    def _totals(self) -> dict[tuple[str, Any], Floats]:
        return {}

    def sums(self, name: str) -> Additive:
        """Return sums by unit, computed when first requested."""
        return self.once(BY_UNIT[name])

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
    return metric.share_of is not None


def is_mean_of_clusters(metric: Metric) -> bool:
    """Return whether a score is a mean over clusters, or the F of such means."""
    return bool(metric.sums) and all(name.startswith("means of ") for name in metric.sums)


def pairs_of(metric: Metric, linked: Floats, true: Floats) -> Floats:
    """Return the number of pairs in a score's denominator, by unit."""
    assert metric.share_of is not None
    of_linked, of_true = metric.share_of
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
    """Return the effective number of units behind a function of totals; sums count as far as the function uses them.

    >>> right, wrong, others = [3.0, 1.0], [0.0, 0.0], [1.0, 0.0]
    >>> effective_units([right, wrong, others], lambda x: x[0] / (x[0] + x[1]))  # (3 + 1)**2 / (3**2 + 1**2)
    1.6
    """
    amounts = np.abs(np.asarray(by_unit, np.float64))
    return effective_number(amounts.sum(axis=1), (amounts**2).sum(axis=1), function, amounts.shape[1])


def effective_number(
    totals: Floats, squares: Floats, function: Callable[[Floats], float], n_units: float
) -> float:
    """Return the effective number of units from the totals of values and of squared values over units.

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
    """Return whether a score is a function of the sums by unit."""
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
