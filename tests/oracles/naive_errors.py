"""The naive twin of standard errors: items connected by search, sums by unit, exact fractions until the root.

It restates METRICS.md section 12.1 and shares no code with the package.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction

from naive import HALF, Naive

Item = Hashable


def connected(mates: Mapping[Item, set[Item]]) -> dict[Item, int]:
    """Return the number of the component of each item, from the mates that it has on either side."""
    found: dict[Item, int] = {}
    for start in mates:
        waiting = [] if start in found else [start]
        number = len(set(found.values()))
        while waiting:
            item = waiting.pop()
            if item not in found:
                found[item] = number
                waiting += mates[item]
    return found


def components(twin: Naive) -> dict[Item, int]:
    """Return the component of each scored item; an item outside the truth has one predicted cluster, and joins none."""
    return connected({e: set(twin.true_mates(e) | twin.pred_mates(e)) & set(twin.true) for e in twin.true})


def components_of_families(truth: Sequence[set], prediction: Sequence[set]) -> dict[Item, int]:
    """Return the component of each item of two families, where items may be in several clusters."""
    clusters = [*truth, *prediction]
    items = set().union(*clusters)
    return connected({e: set().union(*(c for c in clusters if e in c)) for e in items})


class ByUnit:
    """Sums of weights, and of weight * score, by unit."""

    def __init__(self, unit: Mapping[Item, Hashable], weight: Mapping[Item, Fraction]) -> None:
        self.unit = unit
        self.weight = weight
        self.weights = self._sums(lambda e: Fraction(1))
        self.weights = {u: w for u, w in self.weights.items() if w}

    def _sums(self, score: Callable[[Item], Fraction]) -> dict[Hashable, Fraction]:
        sums: dict[Hashable, Fraction] = {}
        for e, u in self.unit.items():
            sums[u] = sums.get(u, Fraction(0)) + self.weight[e] * Fraction(score(e))
        return sums

    @property
    def effective(self) -> Fraction:
        return sum(self.weights.values()) ** 2 / sum(w**2 for w in self.weights.values())

    @property
    def largest_share(self) -> Fraction:
        return max(self.weights.values()) / sum(self.weights.values())

    def mean(self, score) -> Fraction:
        return sum(self._sums(score).values()) / sum(self.weights.values())

    def deviations(self, score) -> dict[Hashable, Fraction]:
        """Return S_u - (S / W) W_u of each unit."""
        sums, mean = self._sums(score), self.mean(score)
        return {u: sums[u] - mean * w for u, w in self.weights.items()}

    def error(self, score) -> float:
        """Return the standard error of a mean over items."""
        return self._root(self.deviations(score))

    def error_of_f(self, precision, recall, alpha=HALF) -> float:
        """Return that of an F of means."""
        return self._root(self.deviations_of_f(precision, recall, alpha))

    def deviations_of_f(self, precision, recall, alpha=HALF) -> dict[Hashable, Fraction]:
        """Return those of 1 / (alpha / P + (1 - alpha) / R), whose derivatives are alpha F^2 / P^2 and so on."""
        p, r = self.mean(precision), self.mean(recall)
        of_p, of_r = self.deviations(precision), self.deviations(recall)
        if alpha in (0, 1):
            return of_p if alpha == 1 else of_r
        if not p and not r:
            return of_p  # all 0
        by_p = alpha * (r / (alpha * r + (1 - alpha) * p)) ** 2
        by_r = (1 - alpha) * (p / (alpha * r + (1 - alpha) * p)) ** 2
        return {u: by_p * of_p[u] + by_r * of_r[u] for u in self.weights}

    def _root(self, deviations: Mapping[Hashable, Fraction]) -> float:
        n = len(self.weights)
        if n == 1:
            return math.nan
        squares = sum(d**2 for d in deviations.values()) / sum(self.weights.values()) ** 2
        return math.sqrt(squares * n / (n - 1))


def errors(
    twin: Naive, names: Sequence[str], unit: Mapping[Item, Hashable] | None = None
) -> dict[str, float]:
    """Return the standard errors of scores of an evaluation, by component where no unit is given."""
    by_unit = units(twin, unit)
    found = {}
    for name in names:
        stem, _, last = name.rpartition("_")
        if last in ("f1", "fbeta") and not stem.endswith("mean"):
            stem = f"{stem}_" if stem else ""
            scores = (lambda e, each=stem + part: twin.score(each, e) for part in ("precision", "recall"))
            found[name] = by_unit.error_of_f(*scores, HALF if last == "f1" else twin.alpha)
        else:
            of_item = name.replace("mean_", "item_")
            found[name] = by_unit.error(lambda e, of_item=of_item: twin.score(of_item, e))
    return found


def units(twin: Naive, unit: Mapping[Item, Hashable] | None = None) -> ByUnit:
    """Return sums by unit of the scored items."""
    unit = components(twin) if unit is None else unit
    return ByUnit({e: unit[e] for e in twin.true if e in unit}, twin.weight)
