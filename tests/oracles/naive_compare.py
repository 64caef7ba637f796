"""The naive twin of a comparison: runs on aligned items, deltas, paired errors, resampling of rows, exact fractions.

It restates METRICS.md sections 0.3, 1.4 and 12.1 on top of the twin of one evaluation, and shares no code with the
package. A component is found by search from item to item, over the true clusters and those of every run.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import naive
from naive import F_OF_MEANS, HALF, Naive
from naive_errors import ByUnit, connected

Item = Cluster = Hashable
Units = Mapping[Item, Hashable]
ALIGN = ("common", "each")


class Delta(NamedTuple):
    """What an experiment has more than the baseline, and how sure that is; no error from a single unit."""

    baseline_value: Fraction
    value: Fraction
    delta: Fraction
    se: float


@dataclass(frozen=True)
class Compared:
    """Runs by name, each an evaluation of the items that it is compared on."""

    runs: dict[str, Naive]
    baseline: str

    @property
    def items(self) -> list[Item]:
        """Return the items that any run is compared on; with "common" every run has all of them."""
        return list(dict.fromkeys(e for run in self.runs.values() for e in run.true))

    @property
    def experiments(self) -> list[str]:
        return [name for name in self.runs if name != self.baseline]

    def value(self, run: str, score: str, subset: Iterable[Item] | None = None):
        """Return a score of a run, over all its items or those of a subset."""
        twin = self.runs[run]
        return twin.mean(score, None if subset is None else set(subset) & set(twin.true))

    def delta(self, experiment: str, score: str, subset: Iterable[Item] | None = None):
        return self.value(experiment, score, subset) - self.value(self.baseline, score, subset)

    def components(self) -> dict[Item, int]:
        """Return the component of each item: items together in a true cluster or in a cluster of any run are in one."""
        mates: dict[Item, set[Item]] = {e: set() for e in self.items}
        for run in self.runs.values():
            for e in run.true:
                mates[e] |= (run.true_mates(e) | run.pred_mates(e)) & set(run.true)
        return connected(mates)

    def components_for(self, experiment: str) -> dict[Item, int]:
        """Return those that the error of a delta is by: of two runs, where one of all has over a tenth of the weight.

        The weight is the mean over the runs of a component's share of the run's items.
        """
        return self._pair(experiment).components() if self._by_pair else self.components()

    @property
    def _by_pair(self) -> bool:
        return len(self.runs) > 2 and max(self.shares(self.components()).values()) > Fraction(1, 10)

    def _pair(self, experiment: str) -> Compared:
        names = (experiment, self.baseline)
        return Compared({name: run for name, run in self.runs.items() if name in names}, self.baseline)

    def shares(self, unit: Units) -> dict[Hashable, Fraction]:
        """Return the mean over the runs of a unit's share of the run's items."""
        shares: dict[Hashable, Fraction] = {}
        for run in self.runs.values():
            there = [e for e in run.true if e in unit]
            total = sum(map(run.weight.get, there))
            for e in there:
                share = Fraction(run.weight[e]) / Fraction(total) / len(self.runs)
                shares[unit[e]] = shares.get(unit[e], Fraction(0)) + share
        return shares

    def shares_for(self, experiment: str, unit: Units | None = None) -> list[Fraction]:
        """Return the shares of the units that the error of a delta is by."""
        if unit is None and self._by_pair:
            return list(self._pair(experiment).shares(self.components_for(experiment)).values())
        return list(self.shares(self.components() if unit is None else unit).values())

    def true_clusters(self) -> dict[Item, Cluster]:
        return {e: cluster for run in self.runs.values() for e, cluster in run.true.items()}

    def influence(self, run: str, score: str, unit: Units) -> dict[Hashable, Fraction]:
        """Return by unit the sum over its items of share * (s - S); for an F, its slopes times those of P, R."""
        twin = self.runs[run]
        by_unit = ByUnit({e: unit[e] for e in twin.true if e in unit}, twin.weight)
        if f := F_OF_MEANS.fullmatch(score):
            parts = (lambda e, name=f[1] + part: twin.score(name, e) for part in ("precision", "recall"))
            deviations = by_unit.deviations_of_f(*parts, HALF if f[2] == "f1" else twin.alpha)
        else:
            deviations = by_unit.deviations(lambda e: twin.score(score.replace("mean_", "item_"), e))
        whole = sum(by_unit.weights.values())
        return {u: d / whole for u, d in deviations.items()}

    def differences(
        self, experiment: str, score: str, unit: Units | None = None, subset: Iterable[Item] | None = None
    ) -> dict[Hashable, Fraction]:
        """Return d_u, by which each unit moves the delta, or by which its items in a subset move that of the subset."""
        unit = self.components_for(experiment) if unit is None else unit
        unit = unit if subset is None else {e: unit[e] for e in subset if e in unit}
        new, old = (self.influence(run, score, unit) for run in (experiment, self.baseline))
        return {u: new.get(u, Fraction(0)) - old.get(u, Fraction(0)) for u in self.units(unit)}

    def units(self, unit: Units | None = None) -> set[Hashable]:
        """Return the units that have weight in some run."""
        unit = self.components() if unit is None else unit
        return {unit[e] for run in self.runs.values() for e in run.true if e in unit and run.weight[e]}

    def error(
        self, experiment: str, score: str, unit: Units | None = None, subset: Iterable[Item] | None = None
    ) -> float:
        """Return the standard error of a delta: the root of U / (U - 1) times the sum of d_u^2.

        NaN where the items of one of the two runs are one unit.
        """
        unit = self.components_for(experiment) if unit is None else unit
        found = self.differences(experiment, score, unit, subset)
        own = [self._own_units(run, unit, subset) for run in (experiment, self.baseline)]
        n = len(found)
        return (
            math.sqrt(sum(d**2 for d in found.values()) * n / (n - 1)) if min(map(len, own)) > 1 else math.nan
        )

    def degrees_of_freedom(self, experiment: str, score: str, unit: Units | None = None) -> float:
        """Return 2 S2^2 / (S4 - S2^2 / U) / (1 + S4 / S2^2) of the sums of powers of d_u, from 1 to U - 1.

        Of n < 6 units, in number or by the squares of their shares, there are n - 1 at most, but 1 to 1.5.
        """
        of_shares = 1 / float(sum(share**2 for share in self.shares_for(experiment, unit)))
        most = min(max(of_shares - 1, 1.0), 1.5) if of_shares < 6 else math.inf
        return min(most, self._satterthwaite(experiment, score, unit))

    def not_drawn(self, experiment: str, score: str, unit: Units | None = None) -> float:
        """Return 0.36 L / (1 + L) of the largest unit's share L, times the larger share of P or R in an F."""
        largest = max(self.shares_for(experiment, unit))
        of_one = max(self._share_of_one(run, score) for run in (experiment, self.baseline))
        return 0.36 * float(largest / (1 + largest) * of_one)

    def _share_of_one(self, run: str, score: str) -> Fraction:
        """Return the larger of alpha / P and (1 - alpha) / R, as a share of their sum, which is 1 / F."""
        f = F_OF_MEANS.fullmatch(score)
        if not f:
            return Fraction(1)
        precision, recall = (self.value(run, f[1] + part) for part in ("precision", "recall"))
        if not precision or not recall:
            return Fraction(1)
        alpha = HALF if f[2] == "f1" else self.runs[run].alpha
        terms = alpha / precision, (1 - alpha) / recall
        return max(terms) / sum(terms)

    def _satterthwaite(self, experiment: str, score: str, unit: Units | None) -> float:
        moved = self.differences(experiment, score, unit)
        n, second, fourth = len(moved), *(sum(Fraction(d) ** k for d in moved.values()) for k in (2, 4))
        spread = fourth - second**2 / n
        if float(second) <= 1e-24 or spread <= fourth * Fraction(1, 10**13):
            return max(1, n - 1)
        return float(min(max(2 * second**2 / spread / (1 + fourth / second**2), 1), max(1, n - 1)))

    def _own_units(self, run: str, unit: Units, subset: Iterable[Item] | None) -> set[Hashable]:
        twin = self.runs[run]
        return {
            unit[e] for e in twin.true if e in unit and twin.weight[e] and (subset is None or e in subset)
        }

    def compare(self, experiment: str, score: str, unit: Units | None = None) -> Delta:
        old, new = self.value(self.baseline, score), self.value(experiment, score)
        return Delta(old, new, new - old, self.error(experiment, score, unit))

    def gain(self, experiment: str, score: str, group: Iterable[Item]) -> Fraction:
        """Return what some items add to the delta of a mean: the sum of share * s, less that of the baseline."""
        group = set(group)
        return sum(
            sign * twin.weight[e] / sum(map(twin.weight.get, twin.true)) * twin.score(score, e)
            for sign, twin in ((1, self.runs[experiment]), (-1, self.runs[self.baseline]))
            for e in twin.true
            if e in group
        )

    def rank(self, run: str, score: str, best: str = "higher") -> int:
        """Return 1 and one more for each run that is better."""
        sign = 1 if best == "higher" else -1
        return 1 + sum(sign * (self.value(each, score) - self.value(run, score)) > 0 for each in self.runs)

    # Resampling

    def resampled(self, copies: Mapping[Hashable, int], unit: Units | None = None) -> Compared:
        """Return the runs on rows drawn anew: all rows of a unit so many times, each time with labels of its own.

        A unit has to keep clusters whole. Mates outside the truth come with their predicted cluster.
        """
        unit = self.components() if unit is None else unit
        drawn = {name: _drawn(run, copies, unit) for name, run in self.runs.items()}
        return Compared(drawn, self.baseline)

    def reweighted(
        self, run: str, score: str, copies: Mapping[Hashable, int], unit: Units | None = None
    ) -> Fraction:
        """Return a score where every unit counts m_u times in the sums S and W, as METRICS 12.1 has it."""
        if f := F_OF_MEANS.fullmatch(score):
            alpha = HALF if f[2] == "f1" else self.runs[run].alpha
            parts = (self.reweighted(run, f[1] + part, copies, unit) for part in ("precision", "recall"))
            return naive.f_measure(*parts, alpha)
        unit, twin = self.components() if unit is None else unit, self.runs[run]
        weight = {e: twin.weight[e] * copies[unit[e]] for e in twin.true}
        of_item = {e: twin.score(score.replace("mean_", "item_"), e) for e in twin.true}
        return sum(weight[e] * of_item[e] for e in twin.true) / sum(weight.values())


def _drawn(run: Naive, copies: Mapping[Hashable, int], unit: Units) -> Naive:
    unit_of_cluster = {run.pred[e]: unit[e] for e in run.pred}
    rows = [(e, k) for e in run.true for k in range(copies[unit[e]])]
    outside = [
        (e, k)
        for e, cluster in run.outside.items()
        if cluster in unit_of_cluster
        for k in range(copies[unit_of_cluster[cluster]])
    ]
    return replace(
        run,
        true={(e, k): (run.true[e], k) for e, k in rows},
        pred={(e, k): (run.pred[e], k) for e, k in rows},
        outside={(e, k): (run.outside[e], k) for e, k in outside},
        weight={(e, k): run.weight[e] for e, k in rows + outside},
    )


def compare(
    truth: Mapping[Item, Cluster],
    runs: Mapping[str, Mapping[Item, Cluster]],
    weights: Mapping[Item, int | Fraction | float] | None = None,
    *,
    baseline: str | None = None,
    align: str = "common",
    **options,
) -> Compared:
    """Evaluate each run, policies first; with "common" then keep the items that every run scores, in every set."""
    if align not in ALIGN:
        raise ValueError(f"no way to align {align!r}")
    found = {name: naive.evaluate(truth, run, weights, **options) for name, run in runs.items()}
    baseline = next(iter(found)) if baseline is None else baseline
    if baseline not in found:
        raise ValueError(f"no run {baseline!r}")
    if align == "common":
        common = set.intersection(*(set(run.true) for run in found.values()))
        if not common:
            raise ValueError("no item is scored by every run")
        found = {name: restricted(run, common) for name, run in found.items()}
    if any(not sum(run.weight[e] for e in run.true) for run in found.values()):
        raise ValueError("all scored items have weight zero")
    return Compared(found, baseline)


def restricted(run: Naive, items: set[Item]) -> Naive:
    """Return an evaluation without the scored items that are not among these; those outside the truth stay."""
    kept = {e: cluster for e, cluster in run.true.items() if e in items}
    return replace(run, true=kept, pred={e: run.pred[e] for e in kept})


def tau_b(first: Sequence, second: Sequence) -> float:
    """Return Kendall's tau-b: pairs in one order less those in opposite orders, over the root of what is not tied."""
    places = list(itertools.combinations(range(len(first)), 2))
    signs = [[(x[i] > x[k]) - (x[i] < x[k]) for i, k in places] for x in (first, second)]
    untied = math.prod(sum(map(abs, each)) for each in signs)
    return sum(a * b for a, b in zip(*signs, strict=True)) / math.sqrt(untied) if untied else math.nan
