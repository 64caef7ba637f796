"""The axis of thresholds: linear, or in log odds if thresholds are probabilities near 0 or 1."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed.inputs.link_clusters import as_typed

#: Log odds are used if the median is this close to 0 or 1 and they span at least so much; the thresholds 0 and 1, whose
#: log odds are infinite, are drawn this far beyond the others.
NEAR_END, LEAST_SPAN, BEYOND = 0.05, 4.0, 1.0
#: A range with a smaller relative width than this has no short labels, and no axis.
LEAST_RANGE = 1e-9
#: The number of labels that suffices, and the most steps of a linear axis.
ENOUGH, STEPS = 4, 5

Values = NDArray[np.float64]


class ThresholdAxis(NamedTuple):
    """An axis from the least to the greatest threshold. Its places are thresholds or their log odds."""

    least: float
    most: float
    log_odds: bool
    ends: tuple[float, float]  #: the places of the least and the greatest threshold

    @classmethod
    def of(cls, thresholds: Values) -> ThresholdAxis | None:
        """Return the axis of these thresholds; None if its length would be zero or infinite.

        >>> ThresholdAxis.of(np.array([0.9, 0.5, 0.4])).log_odds
        False
        >>> axis = ThresholdAxis.of(np.array([1.0, 0.999, 0.99, 0.5, 0.01]))  # the log odds of 0.999 are 6.9
        >>> axis.log_odds, [round(end, 1) for end in axis.ends]
        (True, [-4.6, 7.9])
        """
        finite = thresholds[np.isfinite(thresholds)]
        if not finite.size:
            return None
        least, most = float(finite.min()), float(finite.max())
        if not LEAST_RANGE * max(abs(least), abs(most)) < most - least < math.inf:
            return None
        inner = finite[(finite > 0) & (finite < 1)] if 0 <= least and most <= 1 else finite[:0]
        if inner.size and np.median(np.minimum(finite, 1 - finite)) < NEAR_END:
            low, high = _log_odds(np.array([inner.min(), inner.max()])).tolist()
            if high - low >= LEAST_SPAN:
                ends = low - BEYOND * (least == 0), high + BEYOND * (most == 1)
                return cls(least, most, log_odds=True, ends=ends)
        return cls(least, most, log_odds=False, ends=(least, most))

    def places(self, thresholds: Any) -> Values:
        """Return the places of thresholds on the axis; those beyond an end are at that end."""
        found = np.asarray(thresholds, np.float64)
        return np.clip(_log_odds(np.clip(found, 0.0, 1.0)) if self.log_odds else found, *self.ends)

    def thresholds(self, places: Values) -> Values:
        """Return the thresholds at these places; those of the ends are exact."""
        found = np.clip(1 / (1 + np.exp(-places)) if self.log_odds else places, self.least, self.most)
        found[places <= self.ends[0]], found[places >= self.ends[1]] = self.least, self.most
        return found

    def column(self, place: float, width: int) -> int:
        """Return the column of a place on an axis that is `width` columns wide."""
        low, high = self.ends
        return round((place - low) / (high - low) * (width - 1))

    def ticks(self, width: int) -> list[tuple[float, str]]:
        """Return places and short texts of labels, which do not overlap on an axis that is `width` columns wide.

        >>> [text for _, text in ThresholdAxis.of(np.array([0.93, 0.5, 0.4])).ticks(60)]
        ['0.4', '0.6', '0.8']
        >>> axis = ThresholdAxis.of(np.array([1.0, 0.999, 0.99, 0.5, 0.01]))
        >>> [text for _, text in axis.ticks(60)]
        ['0.01', '0.1', '0.5', '0.9', '0.99', '0.999', '1']
        """
        found: dict[float, str] = {}
        taken = np.zeros(width, np.bool_)
        for texts in self._round():
            for text in texts:
                threshold = float(text)
                if self.least - LEAST_RANGE <= threshold <= self.most + LEAST_RANGE:
                    place = float(self.places(threshold))
                    first = self.column(place, width) - len(text) // 2
                    own = slice(max(0, first - 1), first + len(text) + 1)
                    if not taken[own].any():
                        taken[own], found[place] = True, text
            if len(found) >= ENOUGH:
                break
        return sorted(found.items())

    def _round(self) -> Iterator[list[str]]:
        """Yield lists of round thresholds as texts, the roundest first."""
        if not self.log_odds:
            step = 10.0 ** math.floor(math.log10((self.most - self.least) / STEPS))
            step *= next(
                n for n in (1, 2, 5, 10) if n * step * STEPS >= (1 - 1e-9) * (self.most - self.least)
            )
            first, last = math.ceil(self.least / step - 1e-9), math.floor(self.most / step + 1e-9)
            yield [as_typed(float(f"{k * step:.12g}")) for k in range(first, last + 1)]
            return
        yield ["0", "1", "0.5", *_decades(1)]
        yield _decades(5)
        yield _decades(2)


def _decades(digit: int) -> list[str]:
    """Return the texts 0.1, 0.9, 0.01, 0.99 and so on for the digit 1, and 0.05, 0.95 and so on for 5."""
    zeros = ["0" * k for k in range(digit == 5, 16)]
    return [text for each in zeros for text in (f"0.{each}{digit}", f"0.{'9' * len(each)}{10 - digit}")]


def _log_odds(probabilities: Values) -> Values:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(probabilities) - np.log1p(-probabilities))
