"""Sums by independent unit at every threshold: standard errors along the curve, and curves of units drawn again.

Units are the connected components of the truth and the clusters of a weak threshold: the same at all thresholds from
there on, and whole at each, so that curves of several samples of units can be compared. Weak links join most items to
one component, which is no sample; so that threshold is the weakest at which components are still many and even.
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
from fastbcubed.results.influences import is_mean
from fastbcubed.results.standard_errors import (
    Errors,
    are_uneven,
    error_and_freedom,
    freedom_of,
    moved_by_another,
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

#: What adds up over units behind each family of scores. Those that neither rise nor fall are the same at all
#: thresholds. What falls is added up from the last threshold on: that of light units is no difference of what heavy
#: ones have.
OF_FAMILY = {
    "bcubed": ("weight", "over", "under"),
    "elm": ("weight", "elm_over", "elm_under"),
    "pairs": ("weight", "squares", "fn", "tp", "fp"),
    "entropy": ("weight", "true", "true_given_pred", "pred_given_true"),
}
RISING = ("over", "elm_over", "tp", "fp", "true_given_pred")
FALLING = ("under", "elm_under", "fn", "pred_given_true")
CHANGING = (*RISING, *FALLING)
#: The effective number of units is at least this share of that of true clusters; steps in which the weakest threshold
#: is looked for at which it is.
LEAST_OF_TRUE, STEPS = 0.25, 12
#: Squares that are less than this share of their terms, of which they are the difference, are added up anew from what
#: each unit moves: rounding may have changed them. Of the terms of heavy units at other points some rounding stays.
CANCELLED, STAYS = 1e-9, 1e-16
#: Events whose products are added up at once, to which come those that the last unit has besides.
EVENTS_AT_ONCE = 1 << 16


class Events(NamedTuple):
    """Where the clusters of a unit change: an entry for each unit and level of its merges, unit by unit."""

    unit: Counts
    level: Counts
    rows: TreeRows  #: the same rows, whose levels are these entries


class Parts(NamedTuple):
    """The parts of true clusters in clusters of all links, each in one unit."""

    unit: Counts
    scored: Floats  #: the weight of the rows that are scored
    own: Floats  #: and of all rows
    apart: Floats  #: of those of the same true cluster elsewhere; 0 where there is none

    @classmethod
    def of(cls, rows: TreeRows, unit_of_place: Counts) -> Parts:
        """Find them from rows and their units."""
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
    """The sums that scores of a curve take, from sums over units; `of` returns one of these by point."""

    def __init__(self, of: Callable[[str], Any], total: float) -> None:
        self._of, self._total = of, total

    def __getitem__(self, name: str) -> NDArray[Any]:
        of = self._of
        if name == "tn":
            return np.asarray((of("weight") ** 2 - of("squares")) / 2 - of("fn") - of("tp") - of("fp"))
        if name == "true":  # its logarithms are of shares of the weight of all units, each once
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
    """What adds up over units at every point of a curve, each sum when it is asked for first.

    Attributes
    ----------
    curve
        The given curve up to its first `n_levels` levels, at which units are whole.
    """

    def __init__(
        self, rows: TreeRows, curve: Curve, n_levels: int, unit_of_place: Counts | None = None
    ) -> None:
        """Find the units of rows, unless they are given, as those of a slice are."""
        self._rows, self._given = up_to(rows, n_levels), unit_of_place
        self.curve = curve.until(len(curve) - (rows.n_levels - n_levels))
        self._known: dict[str, tuple[Floats, Floats]] = {}
        self._points = np.zeros(0, np.int64)  # of `_products`
        self._products: dict[tuple[str, str], tuple[Floats, float]] = {}

    @cached_property
    def _unit_of_place(self) -> Counts:
        """The unit of each row; clusters without true clusters are one."""
        if self._given is not None:
            return self._given
        units, n_units = units_of_places(self._rows)
        return np.where(units < 0, n_units, units)

    @cached_property
    def size(self) -> int:
        """The number of units, with one of the clusters without true clusters."""
        return int(self._unit_of_place.max(initial=0)) + 1

    @cached_property
    def weight(self) -> Floats:
        """The weight of each unit."""
        return self.constant("weight")

    @cached_property
    def there(self) -> NDArray[np.bool_]:
        """Which units have weight."""
        return self.weight > 0

    @cached_property
    def n_units(self) -> int:
        """The number of units that have weight."""
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
        """The units that have weight, in an order that does not depend on that of the rows; equal ones in any."""
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
        """Return a sum by unit that is the same at all thresholds."""
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
        """Return a sum by unit that falls, where all links are used; exactly 0 if true clusters are whole there."""
        parts = self._parts
        with np.errstate(divide="ignore", invalid="ignore"):  # of true clusters of one item
            lost = {
                "under": lambda: parts.scored * parts.apart / (parts.own + parts.apart),
                "elm_under": lambda: parts.scored * parts.apart / (parts.own + parts.apart - 1.0),
                "fn": lambda: parts.scored * parts.apart / 2.0,
                "pred_given_true": lambda: parts.scored * np.log1p(parts.apart / parts.own),
            }[name]()
        values = np.where(parts.apart > 0, lost, 0.0)
        return np.bincount(parts.unit, values, self.size).astype(np.float64, copy=False)

    def changes(self, name: str) -> tuple[Floats, Floats | None]:
        """Return a sum by unit where it is least, and by how much more or less it is after each event, if it changes.

        What rises is least where no link is used, and what falls where all are.
        """
        if name not in CHANGING:
            return self._least(name), None
        if name not in self._known:
            # a pair that is found is missed no more
            by_event = self._by_event["tp" if name == "fn" else name].astype(np.float64, copy=False)
            self._known[name] = self._least(name), by_event
        return self._known[name]

    def _least(self, name: str) -> Floats:
        if name not in CHANGING:
            return self.weight if name == "weight" else self.constant(name)
        return self.left(name) if name in FALLING else np.zeros(self.size)

    def totals(self, names: tuple[str, ...], times: Floats | None = None) -> Floats:
        """Return sums over all units by point, each of which counts so many times. Shape (n_sums, n_points)."""
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
        """Return sums over all units at some points. Shape (n_sums, n_points)."""
        return np.array([self.totals((name,))[0, points] for name in names])

    def _by_point(self, least: float, by_event: Floats, *, falls: bool) -> Floats:
        """Add changes of events up to each point of the curve, or from there on if the sum falls."""
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
        """Return the derivatives of a score by the totals of its sums, by point."""
        return difference_quotients(partial(self._score, metric), totals)

    def _score(self, metric: Metric, totals: Floats) -> Floats:
        """Return a score from the totals of its sums, by point."""
        names = OF_FAMILY[str(family_of(metric))]
        return score_of(metric, self.kept(dict(zip(names, totals, strict=True)).__getitem__))

    def kept(self, of: Callable[[str], Any]) -> Kept:
        """Return sums by point as scores take them."""
        return Kept(Totals(of, self._rows.total), float(of("weight")[0]), self.curve.kept.beta)

    def _product(self, a: str, b: str) -> tuple[Floats, float]:
        """Return the product of two sums of a unit, added up over all units, at `_points`; and the size of all terms.

        Products of a unit before an event are those after its last one to the bit, so that they cancel out. Units come
        block by block, as what a sum of each is before and after each event would take as much as all sums together.
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
            # what falls is now what it is where no link is used
            first = self._first(a, ends) * self._first(b, ends)
            add(np.zeros(first.size, np.int64), first, np.ones(first.size), None, totals, errors)
            sums = np.zeros(2 * totals.size + 1)
            sums[0:-1:2], sums[1::2] = totals, errors
            kernels.merge_tree.sum_before(sums)
            at_points = sums[2::2][-len(self.curve) :][self._points]
            self._products[a, b] = at_points, size + float(np.sum(np.abs(first)))
        return self._products[a, b]

    def _first(self, name: str, ends: Mapping[str, Floats]) -> Floats:
        """Return a sum by unit where no link is used."""
        return ends[name] if name in FALLING else self.changes(name)[0]

    def _course(self, name: str, totals: Floats, start: int, stop: int) -> tuple[Floats, Floats]:
        """Return a sum of the unit of each event before and after it, for some events, which `totals` then has."""
        by_event, unit = self.changes(name)[1], self._events.unit[start:stop]
        if by_event is None:
            return (totals[unit],) * 2
        early, late = np.empty((2, unit.size))
        kernels.merge_tree.run_within(unit, by_event[start:stop], name in FALLING, totals, early, late)
        return (late, early) if name in FALLING else (early, late)

    def errors(self, metric: Metric, points: Points) -> Floats:
        """Return the standard error of a score at some points of the curve."""
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
        """Return the sums behind a score at a point, by unit that has weight."""
        return [self.at(name, point)[self.there] for name in OF_FAMILY[str(family_of(metric))]]

    def moved(self, metric: Metric, point: int) -> Floats:
        """Return how much each unit that has weight moves a score at a point; 0 on average."""
        totals = self._totals_at(OF_FAMILY[str(family_of(metric))], np.array([point]))
        return self._moved(metric, point, self._slopes(metric, totals)[:, 0])

    def _moved(self, metric: Metric, point: int, slopes: Floats) -> Floats:
        moved = sum(slope * each for slope, each in zip(slopes, self._by_unit(metric, point), strict=True))
        return np.asarray(moved - np.mean(moved))

    def errors_at(self, metric: Metric, point: int) -> Errors:
        """Return the standard error of a score at a point, with its degrees of freedom, as of an evaluation."""
        moved = self.moved(metric, point)

        def score(totals: Floats) -> float:
            return float(self._score(metric, totals[:, None])[0])

        units = units_of_weight(self.weight)
        value, mean = self.curve.figures(metric.name, np.array([point])), is_mean(metric)
        error = float(standard_error(np.sum(moved**2), self.n_units, value)[0])
        by_another = moved_by_another(
            metric, units.largest_share if mean else self._largest_share(metric, point)
        )
        if error == 0:
            df = units.effective if mean else effective_units(self._by_unit(metric, point), score)
        else:
            df = float(error_and_freedom(powers_of(moved), self.n_units, **freedom_of(metric, by_another))[1])
        return Errors({metric.name: error}, {metric.name: df}, {metric.name: by_another}, units)

    def _largest_share(self, metric: Metric, point: int) -> float | None:
        """Return the share of the largest unit in the pairs that a score is a share of at a point; None of others."""
        if not is_share_of_pairs(metric):
            return None
        tp, fp, fn = (self.at(name, point) for name in ("tp", "fp", "fn"))
        pairs = pairs_of(metric, tp + fp, tp + fn)
        return largest_share(pairs, float(np.sum(pairs)))

    def of_subset(self, subset: Subset, curve: Curve) -> UnitSums:
        """Return the sums of the same units over the rows of a subset, for its curve."""
        n_levels = int(np.searchsorted(subset.levels, self._rows.n_levels))
        _, units = np.unique(self._unit_of_place[subset.places], return_inverse=True)
        return UnitSums(subset.rows, curve, n_levels, units)

    def drawn(self, times: Floats) -> Curve:
        """Return the curve where each unit counts so many times; the figures of clusters stay those of the data."""
        known: dict[str, Floats] = {}

        def of(name: str) -> Any:
            if name in COUNTED:
                return self.curve.kept.sums[name]
            if name not in known:
                known[name] = self.totals((name,), times)[0]
            return known[name]

        return Curve(self.curve.thresholds, self.kept(of), self.curve.metrics, self.curve.weighted)


def up_to(rows: TreeRows, n_levels: int) -> TreeRows:
    """Return rows whose clusters are joined at the first levels only."""
    if n_levels == rows.n_levels:
        return rows
    return replace(rows, levels=np.minimum(rows.levels, n_levels), n_levels=n_levels, known_merges=None)


def even_levels(rows: TreeRows) -> int:
    """Return how many levels can be used so that units are many and even: all, if true clusters are not."""
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
    """Return how many units there are, and how evenly the weight is spread over them."""
    counted = rows.scored_in_truth
    weights = None if rows.weights is None else rows.weights[counted]
    return units_of_weight(np.bincount(units_of_places(rows)[0][counted], weights).astype(np.float64))


def units_of_weight(weight: Floats) -> Units:
    """Return the units that have weight."""
    shares = weight[weight > 0] / weight.sum()
    return units_of_shares(shares.size, np.sum(shares**2), shares.max())


def units_of_places(rows: TreeRows) -> tuple[Counts, int]:
    """Return the unit of each place, -1 in clusters without true clusters; and how many units there are."""
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
    """Yield blocks of events that are ordered by unit, none of which is in two blocks."""
    start = 0
    while start < unit.size:
        stop = min(start + EVENTS_AT_ONCE, unit.size)
        stop = int(np.searchsorted(unit, unit[stop - 1], "right"))
        yield start, stop
        start = stop
