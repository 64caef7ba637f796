"""The choice of the threshold in resamples of units: how much choosing it on the same data adds to its score."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fastbcubed.errors import OptionError
from fastbcubed.render.number_formats import counted, score_text
from fastbcubed.results.intervals import Interval, interval
from fastbcubed.results.standard_errors import standard_error
from fastbcubed.sweep_links.curve import Best, best_point, value_at
from fastbcubed.sweep_links.recall_stages import Stages
from fastbcubed.sweep_links.unit_sums import UnitSums


@dataclass(frozen=True)
class Chosen:
    """The best threshold, with intervals that allow for choosing the threshold on the same data.

    Attributes
    ----------
    best : Best
        The threshold and its values, as in `Sweep.best`.
    low, high : float
        The interval for the score that the best threshold has on similar data.
    expected : float
        The score to expect on similar data: the score on the data of the sweep minus the optimism.
    optimism : float
        How much the score of a chosen threshold exceeds the score of the same threshold on other data, on average over
        the resamples.
    threshold_low, threshold_high : float
        The range of the thresholds chosen in a share `level` of the resamples.
    level : float
        The confidence level.
    draws, seed : int
        Number of resamples of the units, and their seed.
    n_units : int
        Number of units, the connected components of the truth and the clusters at the weakest threshold considered.
    without : int
        Number of resamples that are ignored, because no threshold meets the conditions.
    shown_low, shown_high : str
        The ends of the range of thresholds, in text form.
    """

    best: Best
    low: float
    high: float
    expected: float
    optimism: float
    threshold_low: float
    threshold_high: float
    level: float
    draws: int
    seed: int
    n_units: int
    without: int
    shown_low: str
    shown_high: str

    @property
    def interval(self) -> Interval:
        """The interval for the score."""
        return Interval(self.low, self.high)

    def __repr__(self) -> str:
        return f"{self.best.sentence}\n{self.sentence}"

    @property
    def sentence(self) -> str:
        """The sentence on the score to expect on other data, and on the thresholds chosen in the resamples."""
        share = f"{100 * self.level:g} %"
        same = self.shown_low == self.shown_high
        where = f"was {self.shown_low}" if same else f"was from {self.shown_low} to {self.shown_high}"
        text = (
            "The threshold was chosen on the same data. On other data of this kind, expect "
            f"{score_text(self.expected)}, from {score_text(self.low)} to {score_text(self.high)} "
            f"({share}), based on {counted(self.draws, 'draw')} of {counted(self.n_units, 'component')}. Each "
            f"draw has its own best threshold, which {where} in {share} of them."
        )
        if self.without:
            text += f" In {counted(self.without, 'draw')} no threshold meets the conditions."
        return text

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes except the best threshold as plain values."""
        names = ("low", "high", "expected", "optimism", "threshold_low", "threshold_high", "level", "draws")
        return {name: getattr(self, name) for name in (*names, "seed", "n_units", "without")}


class Leading(NamedTuple):
    """The results that a sweep shows: the best threshold, its choice in resamples, a number of merges, and stages.

    Results that were not requested are None.
    """

    best: Best | None
    chosen: Chosen | None = None
    merges: int | None = None
    stages: Stages | None = None


def choose_again(
    units: UnitSums,
    best: Best,
    where: str | Iterable[str] | None,
    scale: Mapping[str, Any],
    level: float,
    draws: int,
    seed: int,
    shown: Callable[[float], str],
) -> Chosen:
    """Resample the units with replacement, and choose the best threshold of each resample.

    The excess is the score of a resample at its own threshold minus the score of the data there. It stands for the
    excess of the data's score over that of the population, at the threshold chosen by the data. Its mean is the
    optimism, and its variance gives the interval, on the scale of `Errors.scale`.
    """
    rng, order, curve = np.random.default_rng(seed), units.order, units.curve
    n = order.size
    excess, thresholds = [], []
    for _ in range(draws):
        times = np.zeros(units.size)
        times[order] = rng.multinomial(n, np.full(n, 1.0 / n))
        drawn = units.drawn(times)
        try:
            point, name, *_ = best_point(drawn, best.score, where)
        except OptionError:  # no threshold meets the conditions
            continue
        excess.append(value_at(drawn, name, point) - value_at(curve, name, point))
        thresholds.append(float(curve.thresholds[point]))
    if not excess:
        raise OptionError(f"no threshold meets the conditions in any of {counted(draws, 'draw')}")
    optimism = float(np.mean(excess))
    expected = min(max(best.value - optimism, scale["low"]), scale["high"])
    error = float(standard_error(float(np.var(excess)), n, best.value))
    low, high = interval(expected, error, level=level, **scale)
    tail = (1.0 - level) / 2
    first, last = np.quantile(thresholds, [tail, 1.0 - tail], method="inverted_cdf").tolist()
    without = draws - len(excess)
    return Chosen(
        best, low, high, expected, optimism, first, last, level, draws, seed, n, without, shown(first), shown(last)
    )  # fmt: skip
