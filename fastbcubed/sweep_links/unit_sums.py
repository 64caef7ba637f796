"""Sums by independent unit at every threshold: standard errors along the curve, and curves of resampled units.

Units are the connected components of the truth and the clusters at a weak threshold. Units are the same at all
stronger thresholds, none of which has a cluster in two units, so curves of resampled units are comparable. Very weak
links join most items into one component, which cannot be resampled; the weak threshold is therefore the weakest one
with many components of similar weight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.metrics.metric import Metric
from fastbcubed.metrics.sums_by_unit import (
    difference_quotients,
    effective_units,
    is_share_of_pairs,
    largest_share,
    pairs_of,
)
from fastbcubed.results.influences import Errors, is_mean, share_of_one_mean, slopes
from fastbcubed.results.standard_errors import (
    Found,
    are_uneven,
    error_not_drawn,
    powers_of,
    standard_error,
)
from fastbcubed.results.unit_cells import Units, units_of_shares
from fastbcubed.runtime.object_attributes import cached_property
from fastbcubed.runtime.threads import Pool
from fastbcubed.sweep_links.curve import COUNTED, Curve, Kept, Points, family_of, score_of
from fastbcubed.sweep_links.level_sums import BY_LEVEL, SumsOnDemand
from fastbcubed.sweep_links.merge_tree import Subset, TreeRows
from fastbcubed.types import Counts, Floats

#: The sums over units behind each family of scores. Sums that neither rise nor fall are the same at all thresholds.
#: Falling sums are accumulated from the last threshold back, so small sums are not differences of large ones.
OF_FAMILY = {
    "bcubed": ("weight", "over", "under"),
    "elm": ("weight", "elm_over", "elm_under"),
    "pairs": ("weight", "squares", "fn", "tp", "fp"),
    "entropy": ("weight", "true", "true_given_pred", "pred_given_true"),
}
RISING = ("over", "elm_over", "tp", "fp", "true_given_pred")
FALLING = ("under", "elm_under", "fn", "pred_given_true")
CHANGING = (*RISING, *FALLING)
#: The least effective number of units, as a share of that of true clusters; and the steps of the bisection for the
#: weakest threshold that has it.
LEAST_OF_TRUE, STEPS = 0.25, 12
#: A sum of squares below this share of the terms whose difference it is may be mostly rounding, and is computed again
#: from the influences of units. The second share is the rounding that large terms at other points leave in it.
CANCELLED, STAYS = 1e-9, 1e-16
#: Events whose products are summed at once; a block also has the remaining events of its last unit.
EVENTS_AT_ONCE = 1 << 16


class Events(NamedTuple):
    """The levels at which the clusters of each unit change: one event for each, sorted by unit, then by level."""

    unit: Counts
    level: Counts
    rows: TreeRows  #: the rows, with events as their levels


class Parts(NamedTuple):
    """The parts into which the clusters of all links divide true clusters, each in one unit. Arrays are by part."""

    unit: Counts
    scored: Floats  #: weight of the scored rows
    own: Floats  #: weight of all rows
    apart: Floats  #: weight of the other rows of the true cluster

    @classmethod
    def of(cls, rows: TreeRows, unit_of_place: Counts) -> Parts:
        """Return the parts, given the unit of each row."""
        known = np.flatnonzero(rows.codes >= 0)
        cluster = np.cumsum(np.concatenate([[0], (rows.levels == rows.n_levels)[:-1]]))
        codes, w = rows.codes[known], rows.weights
        keys = cluster[known] * max(rows.true_sizes.size, 1) + codes
        _, firsts, part = np.unique(keys, return_index=True, return_inverse=True)
        n, of_part, sizes = np.bincount(part), codes[firsts], rows.true_sizes
        weights = np.ones(known.size) if w is None else w[known]
        own = np.bincount(part, weights).astype(np.float64, copy=False)
        scored = own
        if rows.scored is not None:
            scored = np.bincount(part, weights * rows.scored[known]).astype(np.float64, copy=False)
        apart = np.where(n == sizes[of_part], 0.0, rows.true_masses[of_part] - own)
        return cls(unit_of_place[known][firsts], scored, own, apart)


class Totals(Mapping[str, NDArray[Any]]):
    """The sums by point that scores of a curve take, computed from sums over units, which `of` returns by name."""

    def __init__(self, of: Callable[[str], Any], total: float) -> None:
        self._of, self._total = of, total

    def __getitem__(self, name: str) -> NDArray[Any]:
        of = self._of
        if name == "tn":
            return np.asarray((of("weight") ** 2 - of("squares")) / 2 - of("fn") - of("tp") - of("fp"))
        if name == "true":  # logarithms by unit are of shares of the original total weight
            return np.asarray(of("true") + of("weight") * np.log(of("weight") / self._total))
        if name == "pred":
            return self["true"] - of("true_given_pred") + of("pred_given_true")
        if name not in (*CHANGING, *COUNTED):
            raise KeyError(name)
        return np.asarray(of(name))

    def __iter__(self) -> Iterator[str]:
        return iter(("tn", "true", "pred", *CHANGING, *COUNTED))

    def __len__(self) -> int:
        return 3 + len(CHANGING) + len(COUNTED)


class UnitSums:
    """The sums by unit behind scores, at every point of a curve; each is computed when first needed.

    Attributes
    ----------
    curve
        The given curve up to its first `n_levels` levels, at which every cluster is within one unit.
    """

    def __init__(
        self, rows: TreeRows, curve: Curve, n_levels: int, unit_of_place: Counts | None = None
    ) -> None:
        """Use the components of the rows as units, unless `unit_of_place` is given, as for a slice."""
        self._rows, self._given = up_to(rows, n_levels), unit_of_place
        self.curve = curve.until(len(curve) - (rows.n_levels - n_levels))
        self._known: dict[str, tuple[Floats, Floats]] = {}
        self._points = np.zeros(0, np.int64)  # of `_products`
        self._products: dict[tuple[str, str], tuple[Floats, float]] = {}

    @cached_property
    def _unit_of_place(self) -> Counts:
        """The unit of each row; all clusters without true clusters form one unit."""
        if self._given is not None:
            return self._given
        units, n_units = units_of_places(self._rows)
        return np.where(units < 0, n_units, units)

    @cached_property
    def size(self) -> int:
        """The number of units, including the one of clusters without true clusters."""
        return int(self._unit_of_place.max(initial=0)) + 1

    @cached_property
    def weight(self) -> Floats:
        """The weight of the scored rows of each unit."""
        return self.constant("weight")

    @cached_property
    def there(self) -> NDArray[np.bool_]:
        """Whether each unit has a positive weight."""
        return self.weight > 0

    @cached_property
    def n_units(self) -> int:
        """The number of units with a positive weight."""
        return int(np.count_nonzero(self.there))

    @cached_property
    def _events(self) -> Events:
        rows, levels = self._rows, self._rows.levels
        joined = np.flatnonzero(levels < rows.n_levels)
        keys = self._unit_of_place[joined] * max(rows.n_levels, 1) + levels[joined]
        known, places = np.unique(keys, return_inverse=True)
        own = np.full(levels.size, known.size, levels.dtype)
        own[joined] = places
        unit, level = np.divmod(known, max(rows.n_levels, 1))
        return Events(unit, level, TreeRows(own, rows.codes, known.size, rows.weights, rows.scored))

    @cached_property
    def _by_event(self) -> SumsOnDemand:
        return SumsOnDemand(self._events.rows, Pool(1), BY_LEVEL)

    @cached_property
    def order(self) -> Counts:
        """The units with a positive weight, sorted by their figures, so the order does not depend on that of rows."""
        events, size = self._events, self.size
        figures = [
            np.bincount(self._unit_of_place, minlength=size),
            np.bincount(events.unit, minlength=size),
            np.bincount(events.unit, events.level, size),
            *(self.at(name, len(self.curve) - 1).round(6) for name in ("weight", "over", "under")),
        ]
        order = np.lexsort(figures[::-1])
        return order[self.there[order]]

    def constant(self, name: str) -> Floats:
        """Return a sum by unit that is the same at all thresholds: weight, squares or true."""
        rows = self._rows
        counted = rows.scored_in_truth
        codes = rows.codes[counted]
        w = np.ones(codes.size) if rows.weights is None else rows.weights[counted]
        values = {"weight": w, "squares": w * w, "true": w * np.log(rows.total / rows.true_masses[codes])}
        found = np.bincount(self._unit_of_place[counted], values[name], self.size)
        return found.astype(np.float64, copy=False)

    @cached_property
    def _parts(self) -> Parts:
        return Parts.of(self._rows, self._unit_of_place)

    def left(self, name: str) -> Floats:
        """Return the final value of a falling sum by unit, with all links used; 0 if its true clusters are complete."""
        parts = self._parts
        with np.errstate(divide="ignore", invalid="ignore"):  # for true clusters of one item
            lost = {
                "under": lambda: parts.scored * parts.apart / (parts.own + parts.apart),
                "elm_under": lambda: parts.scored * parts.apart / (parts.own + parts.apart - 1.0),
                "fn": lambda: parts.scored * parts.apart / 2.0,
                "pred_given_true": lambda: parts.scored * np.log1p(parts.apart / parts.own),
            }[name]()
        values = np.where(parts.apart > 0, lost, 0.0)
        return np.bincount(parts.unit, values, self.size).astype(np.float64, copy=False)

    def changes(self, name: str) -> tuple[Floats, Floats | None]:
        """Return the least value of a sum by unit, and its change at each event, None for a constant sum.

        A rising sum is least without links, and a falling sum with all links.
        """
        if name not in CHANGING:
            return self._least(name), None
        if name not in self._known:
            # a new true positive pair is one false negative pair less
            by_event = self._by_event["tp" if name == "fn" else name].astype(np.float64, copy=False)
            self._known[name] = self._least(name), by_event
        return self._known[name]

    def _least(self, name: str) -> Floats:
        if name not in CHANGING:
            return self.weight if name == "weight" else self.constant(name)
        return self.left(name) if name in FALLING else np.zeros(self.size)

    def totals(self, names: tuple[str, ...], times: Floats | None = None) -> Floats:
        """Return sums over all units by point, each unit multiplied by `times`. Shape (n_sums, n_points)."""
        found = np.empty((len(names), len(self.curve)))
        for own, name in zip(found, names, strict=True):
            least, by_event = self.changes(name)
            total = float(least.sum() if times is None else np.sum(least * times))
            if by_event is None:
                own[:] = total
                continue
            if times is not None:
                drawn = times[self._events.unit]
                by_event = np.multiply(drawn, by_event, out=drawn)
            own[:] = self._by_point(total, by_event, falls=name in FALLING)
        return found

    def _totals_at(self, names: tuple[str, ...], points: Points) -> Floats:
        """Return sums over all units at these points. Shape (n_sums, n_points)."""
        return np.array([self.totals((name,))[0, points] for name in names])

    def _by_point(self, least: float, by_event: Floats, *, falls: bool) -> Floats:
        """Return a sum at each point of the curve, from its least value and its changes at events."""
        sums = np.empty(self._rows.n_levels + 1)
        by_level = np.bincount(self._events.level, by_event, self._rows.n_levels)
        sums[0], sums[1:] = least, by_level[::-1] if falls else by_level
        np.cumsum(sums, out=sums)
        return (sums[::-1] if falls else sums)[-len(self.curve) :]

    def at(self, name: str, point: int) -> Floats:
        """Return a sum by unit at a point of the curve."""
        least, by_event = self.changes(name)
        if by_event is None:
            return least
        used = self._events.level < self._rows.n_levels + 1 + point - len(self.curve)
        counts = used if name not in FALLING else ~used
        return least + np.bincount(self._events.unit[counts], by_event[counts], least.size)

    def _slopes(self, metric: Metric, totals: Floats) -> Floats:
        """Return the derivatives of a score with respect to its sums, by point. Shapes as of `totals`."""
        return difference_quotients(partial(self._score, metric), totals)

    def _score(self, metric: Metric, totals: Floats) -> Floats:
        """Return a score by point, from its sums over all units. Shape (n_points,)."""
        names = OF_FAMILY[str(family_of(metric))]
        return score_of(metric, self.kept(dict(zip(names, totals, strict=True)).__getitem__))

    def kept(self, of: Callable[[str], Any]) -> Kept:
        """Return the sums by point in the form that scores take, given a function that returns one by name."""
        return Kept(Totals(of, self._rows.total), float(of("weight")[0]), self.curve.kept.beta)

    def _product(self, a: str, b: str) -> tuple[Floats, float]:
        """Return the sum over units of the product of two sums, at `_points`, and the total of absolute terms.

        A unit's product before an event equals, bit by bit, that after its previous event, so these cancel exactly.
        Units are processed in blocks, because the values before and after all events need as much memory as all sums.
        """
        if (a, b) not in self._products:
            names = dict.fromkeys((a, b))
            ends = {name: self.changes(name)[0].copy() for name in names}
            (totals, errors), size = np.zeros((2, self._rows.n_levels + 1)), 0.0
            add = kernels.sums.add_by_code
            for start, stop in whole_units(self._events.unit):
                before, after = zip(
                    *(self._course(name, ends[name], start, stop) for name in names), strict=True
                )
                level = self._events.level[start:stop] + 1
                for sign, ways in ((1.0, after), (-1.0, before)):
                    products = ways[0] * ways[-1]
                    size += float(np.sum(np.abs(products)))
                    add(level, products, np.full(level.size, sign), None, totals, errors)
            # falling sums have now reached their values without links
            first = self._first(a, ends) * self._first(b, ends)
            add(np.zeros(first.size, np.int64), first, np.ones(first.size), None, totals, errors)
            sums = np.zeros(2 * totals.size + 1)
            sums[0:-1:2], sums[1::2] = totals, errors
            kernels.merge_tree.sum_before(sums)
            at_points = sums[2::2][-len(self.curve) :][self._points]
            self._products[a, b] = at_points, size + float(np.sum(np.abs(first)))
        return self._products[a, b]

    def _first(self, name: str, ends: Mapping[str, Floats]) -> Floats:
        """Return a sum by unit without links; `ends` has the values that falling sums have reached."""
        return ends[name] if name in FALLING else self.changes(name)[0]

    def _course(self, name: str, totals: Floats, start: int, stop: int) -> tuple[Floats, Floats]:
        """Return the sum of each event's unit before and after the event, and update `totals` by these events."""
        by_event, unit = self.changes(name)[1], self._events.unit[start:stop]
        if by_event is None:
            return (totals[unit],) * 2
        early, late = np.empty((2, unit.size))
        kernels.merge_tree.run_within(unit, by_event[start:stop], name in FALLING, totals, early, late)
        return (late, early) if name in FALLING else (early, late)

    def errors(self, metric: Metric, points: Points) -> Floats:
        """Return the standard error of a score at these points of the curve."""
        if not np.array_equal(points, self._points):
            self._products, self._points = {}, points.copy()
        names = OF_FAMILY[str(family_of(metric))]
        totals = self._totals_at(names, points)
        slopes = self._slopes(metric, totals)
        squares, sizes = np.zeros((2, points.size))
        for k, a in enumerate(names):
            for own, b in zip(slopes[: k + 1], names[: k + 1], strict=True):
                factor, (products, every) = (1.0 if a == b else 2.0) * slopes[k] * own, self._product(b, a)
                squares += factor * products
                sizes += np.abs(factor) * (np.abs(products) + STAYS * every)
        n = max(self.n_units, 1)
        mean = np.sum(slopes * totals, axis=0) ** 2 / n
        squares -= mean
        for place in np.flatnonzero(~(squares > CANCELLED * (sizes + mean))).tolist():
            squares[place] = np.sum(self._moved(metric, int(points[place]), slopes[:, place]) ** 2)
        scores = self.curve.figures(metric.name, points)
        return np.asarray(standard_error(squares, self.n_units, scores))

    def _by_unit(self, metric: Metric, point: int) -> list[Floats]:
        """Return the sums behind a score at a point, by unit with a positive weight."""
        return [self.at(name, point)[self.there] for name in OF_FAMILY[str(family_of(metric))]]

    def moved(self, metric: Metric, point: int) -> Floats:
        """Return the influence of each unit with a positive weight on a score at a point; the mean is 0."""
        totals = self._totals_at(OF_FAMILY[str(family_of(metric))], np.array([point]))
        return self._moved(metric, point, self._slopes(metric, totals)[:, 0])

    def _moved(self, metric: Metric, point: int, slopes: Floats) -> Floats:
        moved = sum(slope * each for slope, each in zip(slopes, self._by_unit(metric, point), strict=True))
        return np.asarray(moved - np.mean(moved))

    def errors_at(self, metric: Metric, point: int) -> Errors:
        """Return the standard error of a score at a point, with its degrees of freedom, as `evaluate` does."""
        moved = self.moved(metric, point)

        def score(totals: Floats) -> float:
            return float(self._score(metric, totals[:, None])[0])

        def effective(metric: Metric) -> float:
            return units.effective if mean else effective_units(self._by_unit(metric, point), score)

        units, mean = units_of_weight(self.weight), is_mean(metric)
        largest = units.largest_share if mean else self._largest_share(metric, point)
        not_drawn = error_not_drawn(metric, largest, self._share_of_one_mean(metric, point))
        value = self.curve.at(point, metric.name)[metric.name]
        row = metric, powers_of(moved), self.n_units, value, not_drawn
        return Errors(*Found.by_name([row], effective), units)

    def _share_of_one_mean(self, metric: Metric, point: int) -> float:
        if metric.slopes is None:
            return 1.0
        totals = self._totals_at(OF_FAMILY[str(family_of(metric))], np.array([point]))
        means = {need.name: self._score(need, totals)[0] for need in metric.needs}
        return float(share_of_one_mean(slopes(metric, means, self.curve.kept.beta), means))

    def _largest_share(self, metric: Metric, point: int) -> float | None:
        """Return the largest unit's share of the pairs in the denominator of a pair score; None for other scores."""
        if not is_share_of_pairs(metric):
            return None
        tp, fp, fn = (self.at(name, point) for name in ("tp", "fp", "fn"))
        pairs = pairs_of(metric, tp + fp, tp + fn)
        return largest_share(pairs, float(np.sum(pairs)))

    def of_subset(self, subset: Subset, curve: Curve) -> UnitSums:
        """Return the sums over the rows of a subset, by the same units, for the curve of the subset."""
        n_levels = int(np.searchsorted(subset.levels, self._rows.n_levels))
        _, units = np.unique(self._unit_of_place[subset.places], return_inverse=True)
        return UnitSums(subset.rows, curve, n_levels, units)

    def drawn(self, times: Floats) -> Curve:
        """Return the curve in which each unit counts `times` times; figures of the clusters are those of the data."""
        known: dict[str, Floats] = {}

        def of(name: str) -> Any:
            if name in COUNTED:
                return self.curve.kept.sums[name]
            if name not in known:
                known[name] = self.totals((name,), times)[0]
            return known[name]

        return Curve(self.curve.thresholds, self.kept(of), self.curve.metrics, self.curve.weighted)


def up_to(rows: TreeRows, n_levels: int) -> TreeRows:
    """Return the rows with only the first `n_levels` levels of merges."""
    if n_levels == rows.n_levels:
        return rows
    return replace(rows, levels=np.minimum(rows.levels, n_levels), n_levels=n_levels, known_merges=None)


def even_levels(rows: TreeRows) -> int:
    """Return how many levels leave many units of similar weight; all levels, if even true clusters are uneven."""
    least = LEAST_OF_TRUE * units_of_rows(up_to(rows, 0)).effective

    def are_many(n_levels: int) -> bool:
        units = units_of_rows(up_to(rows, n_levels))
        return units.n > 1 and units.effective >= least and not are_uneven(units)

    low, high = 0, rows.n_levels
    if are_many(high) or not are_many(low):
        return high
    for _ in range(STEPS):
        if high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if are_many(middle) else (low, middle)
    return low


def units_of_rows(rows: TreeRows) -> Units:
    """Return the number of units of the rows, and how evenly the weight is distributed over them."""
    counted = rows.scored_in_truth
    weights = None if rows.weights is None else rows.weights[counted]
    return units_of_weight(np.bincount(units_of_places(rows)[0][counted], weights).astype(np.float64))


def units_of_weight(weight: Floats) -> Units:
    """Return the number of units with a positive weight, and how evenly the weight is distributed over them."""
    shares = weight[weight > 0] / weight.sum()
    return units_of_shares(shares.size, np.sum(shares**2), shares.max())


def units_of_places(rows: TreeRows) -> tuple[Counts, int]:
    """Return the unit of each place, -1 in clusters without true clusters, and the number of units."""
    ends = np.flatnonzero(rows.levels == rows.n_levels) + 1
    known = rows.codes >= 0
    offsets = np.concatenate([[0], np.cumsum(known)])[np.concatenate([[0], ends])]
    parents = np.arange(rows.true_sizes.size)
    nodes = np.full(ends.size, -1)
    kernels.components.join_sets(offsets, rows.codes[known], 0, nodes, parents)
    n_units = int(kernels.components.number_components(parents))
    unit_of_cluster: NDArray[np.int64] = np.where(nodes < 0, -1, parents[nodes])
    return np.repeat(unit_of_cluster, np.diff(np.concatenate([[0], ends]))), n_units


def whole_units(unit: Counts) -> Iterator[tuple[int, int]]:
    """Yield start and stop of blocks of events, which are sorted by unit; no unit is in two blocks."""
    start = 0
    while start < unit.size:
        stop = min(start + EVENTS_AT_ONCE, unit.size)
        stop = int(np.searchsorted(unit, unit[stop - 1], "right"))
        yield start, stop
        start = stop
