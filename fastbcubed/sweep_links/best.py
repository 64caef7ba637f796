"""Conditions on scores, as they are written: ``precision >= 0.98``."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed.errors import MetricError, OptionError, arg
from fastbcubed.inputs.suggestions import did_you_mean
from fastbcubed.metrics.registry import METRICS, computed_as, known_as
from fastbcubed.render.wording import count, score_text
from fastbcubed.results.warnings import NOTE
from fastbcubed.runtime.arguments import as_several, is_one_of
from fastbcubed.sweep_links.curve import AT_SOME, COUNTED, NOT_KEPT, Curve, why_not_kept

WRITTEN = re.compile(r"\s*(\w[\w-]*)\s*(>=|<=|>|<)\s*([-+]?[\d.,_]+(?:[eE][-+]?\d+)?)\s*")
#: Commas between thousands; any other may be meant as a decimal point.
THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+(?![\d,])[^,]*")
HOLDS: dict[str, Callable[[Any, float], Any]] = {
    ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt,
}  # fmt: skip


class Condition(NamedTuple):
    """A condition on a score, a figure of the clusters, or the threshold."""

    name: str
    sign: str
    value: float

    def holds(self, values: Any) -> Any:
        """Return where values are as they have to be."""
        return HOLDS[self.sign](values, self.value)

    def __str__(self) -> str:
        return f"{self.name} {self.sign} {self.value:g}"


def as_conditions(
    where: str | Iterable[str] | None, names: Collection[str], *, weighted: bool = False
) -> list[Condition]:
    """Return conditions from texts, in which several are joined by "and"; `names` are those that there are.

    Examples
    --------
    >>> [str(each) for each in as_conditions("precision >= 0.98 and largest<=500", ["precision", "largest"])]
    ['precision >= 0.98', 'largest <= 500']
    """
    if where is None:
        return []
    parts = [part for text in as_several(where) for part in re.split(r"\s+and\s+|&", str(text))]
    return [_condition(part, names, weighted) for part in parts]


def _condition(text: str, names: Collection[str], weighted: bool) -> Condition:
    found = WRITTEN.fullmatch(text)
    if found is None:
        raise OptionError(
            f'{arg("where")} is a condition such as "precision >= 0.98", or several joined by "and", not '
            f"{text.strip()!r}"
        )
    name, sign, value = found.groups()
    known = name if name in names else computed_as(name, names)
    if known is None:
        raise OptionError(
            f"there is no {name!r} to put a condition on; there are {', '.join(names)}."
            f"{how_to_have(name, names, weighted)}"
        )
    if "," in value and not THOUSANDS.fullmatch(value):
        raise OptionError(
            f"{arg('where')} has numbers with a decimal point and commas between thousands, such as 0.98 or 1,000, "
            f"not {value!r}"
        )
    try:
        return Condition(known, sign, float(value.replace(",", "")))
    except ValueError:
        raise OptionError(f"{arg('where')} is a condition with a number, and {value!r} is none") from None


def how_to_have(name: str, names: Collection[str], weighted: bool) -> str:
    """Say how to have a score that a curve lacks, or why no curve has it."""
    metric = METRICS.get(str(known_as(name)))
    if metric is None:
        return f"{did_you_mean(name, names)} Name a score in {arg('metrics', ...)} to have it"
    reason = why_not_kept(metric, weighted=weighted)
    if reason is None:
        return f" Name {metric.name} in {arg('metrics', ...)} to have it"
    return (
        f" {metric.name} {NOT_KEPT.format(reason)}, so that no threshold can be chosen by it. Choose by another score. "
        f"Pass {AT_SOME}, with {metric.name} in {arg('metrics', ...)}, and compare them in the points"
    )


#: Characters of a threshold that need not become fewer.
SHORT = 6


@dataclass(frozen=True)
class Best:
    """The threshold at which a score is best.

    Attributes
    ----------
    score : str
        The requested score.
    value : float
        What it is there.
    threshold : float
        The strongest threshold that gives it, a score of a link; infinite if it is best to use no link, or
        only those whose scores are infinite.
    until : float or None
        The next score at which clusters become one: every threshold before it gives the same clusters as this one.
        None if there is none.
    figures : dict
        All figures and scores of the curve there.
    where : str
        The conditions.
    strongest : bool
        Whether no link is stronger.
    shown, shown_until : str
        The threshold and the next score, as they are to be typed: in few digits, between which lie thresholds of the
        same clusters.
    """

    score: str
    value: float
    threshold: float
    until: float | None
    figures: Mapping[str, Any]
    where: str = ""
    shown: str = ""
    shown_until: str = ""
    strongest: bool = False

    def __repr__(self) -> str:
        return f"{self.sentence}\n{self.range}"

    @property
    def sentence(self) -> str:
        """The sentence on the best threshold and its scores."""
        others = [n for n in ("precision", "recall", "f1") if n in self.figures and n != self.score]
        told = ", ".join(f"{name} {score_text(self.figures[name])}" for name in others)
        clusters = self.figures["clusters"]
        return (
            f"{self.score} is best {self._at}{f', where {self.where}' if self.where else ''}: {score_text(self.value)}"
            f"{f' ({told})' if told else ''}, with {count(clusters)} cluster{'' if clusters == 1 else 's'}, the "
            f"largest of {count(self.figures['largest'])} item{'' if self.figures['largest'] == 1 else 's'}."
        )

    @property
    def _at(self) -> str:
        return "with no link at all" if self._no_link else f"at threshold {self.shown}"

    @property
    def _no_link(self) -> bool:
        """Whether all items are alone: a threshold that is infinite uses links whose scores are, too."""
        return bool(np.isinf(self.threshold)) and self.figures["largest"] <= 1

    @property
    def range(self) -> str:
        """Which other thresholds give the same clusters, and whether links beyond those given might do better."""
        if self.until is None:
            text = "No weaker threshold joins more."
        elif self._no_link:
            text = f"The first clusters are joined at {self.shown_until}."
        else:
            text = f"Any threshold from there to just before {self.shown_until} gives the same clusters."
        return f"{text} {self.end}".strip()

    @property
    def end(self) -> str:
        """The caution that the threshold is at an end of the curve; empty where it is not."""
        if self.until is None and self.figures["clusters"] > 1:
            return "It is at the weak end of the curve: the best may lie beyond the links that are given."
        if self.strongest and not self._no_link and self.until is not None:
            return (
                "It is at the strong end of the curve: no link is stronger, and a score that tells these links apart "
                "may do better."
            )
        return ""

    @property
    def notes(self) -> list[dict[str, Any]]:
        """That the threshold is at an end of the curve, as a note; empty where it is not."""
        if not self.end:
            return []
        message = f"{self.score} is best {self._at}. {self.end}"
        return [{"code": "best-at-end", "level": NOTE, "message": message, "score": self.score}]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "score": self.score, "value": self.value, "threshold": self.threshold, "until": self.until,
            "where": self.where or None, **self.figures,
        }  # fmt: skip


def shown(threshold: float, gap: float = 0.0, *, up: bool = False) -> str:
    """Return a threshold as it is to be typed: as 0.9 and not 0.90000, rounded down, or up, by less than half a gap.

    >>> shown(0.9), shown(3.0), shown(float("inf"))
    ('0.9', '3', 'inf')
    >>> shown(0.8882696043893098, 0.0004), shown(0.8882696043893098, 0.0004, up=True), shown(0.8888, 1.0)
    ('0.8882', '0.8883', '0.8888')
    """
    threshold = float(threshold)
    exact = (
        f"{threshold:.0f}" if threshold == round(threshold, 0) and abs(threshold) < 1e15 else repr(threshold)
    )
    if len(exact) <= SHORT or not 1e-15 < abs(threshold) < 1e15:
        return exact
    number = Decimal(exact)
    for digits in range(len(exact)):
        near = number.quantize(Decimal(1).scaleb(-digits), ROUND_CEILING if up else ROUND_FLOOR)
        if abs(near - number) < gap / 2:
            return min(f"{near + 0:f}", exact, key=len)
    return exact


def best_point(
    curve: Curve, name: str, where: str | Iterable[str] | None
) -> tuple[int, str, list[Condition]]:
    """Return the point where a score is best (the highest threshold of several), and the score's name."""
    known = known_score(curve, name)
    conditions = as_conditions(where, ["threshold", *curve.names], weighted=curve.weighted)
    allowed = np.ones(len(curve), np.bool_)
    for each in conditions:
        allowed &= each.holds(curve[each.name])
    if not allowed.any():
        raise OptionError(
            f"no threshold has {' and '.join(map(str, conditions))}. {_nearest(curve, conditions)}"
        )
    values = curve[known]
    if not is_higher_better(known):
        np.negative(values, out=values)
    values[~allowed] = -np.inf
    return int(np.argmax(values)), known, conditions


def known_score(curve: Curve, name: str) -> str:
    """Return the score of the curve that goes by this name; raise MetricError if there is none."""
    names = [metric.name for metric in curve.metrics]
    if is_one_of(name, (*COUNTED, "threshold")):
        raise MetricError(
            f"{name!r} is no score that is best somewhere; put a condition on it with {arg('where', ...)}"
        )
    known = name if is_one_of(name, names) else computed_as(str(name), names)
    if known is None:
        raise MetricError(
            f"the curve has no score {name!r}; it has {', '.join(names) or 'none that is known everywhere'}."
            f"{how_to_have(str(name), names, curve.weighted)}"
        )
    if METRICS[known].best == "neither":
        raise MetricError(f"no value of {known} is better than another; name a score that is best somewhere")
    return known


def is_higher_better(name: str) -> bool:
    """Return whether more of a score is better."""
    return METRICS[name].best == "higher"


def _nearest(curve: Curve, conditions: list[Condition]) -> str:
    """Say how far each condition can be met."""
    told = []
    for each in conditions:
        values: NDArray[np.float64] = curve[each.name].astype(np.float64)
        if not each.holds(values).any():
            most = values.max() if each.sign[0] == ">" else values.min()
            told.append(
                f"{each.name} is {'at most' if each.sign[0] == '>' else 'at least'} {score_text(most)}"
            )
    return f"{'; '.join(told)}." if told else "Each can be met, but not together."
