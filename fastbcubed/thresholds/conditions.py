"""Conditions on scores, as they are written: ``precision >= 0.98``."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

from fastbcubed.errors import OptionError
from fastbcubed.metrics.registry import computed_as
from fastbcubed.runtime.choices import as_several
from fastbcubed.sources.suggestions import did_you_mean

WRITTEN = re.compile(r"\s*(\w[\w-]*)\s*(>=|<=|>|<)\s*([-+]?[\d.,_]+(?:[eE][-+]?\d+)?)\s*")
#: Commas between thousands; any other may be meant as a decimal point.
THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+(?![\d,])[^,]*")
HOLDS: dict[str, Callable[[Any, float], Any]] = {
    ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt,
}  # fmt: skip


class Condition(NamedTuple):
    """What a score, a figure of the clusters or the threshold has to be."""

    name: str
    sign: str
    value: float

    def holds(self, values: Any) -> Any:
        """Return where values are as they have to be."""
        return HOLDS[self.sign](values, self.value)

    def __str__(self) -> str:
        return f"{self.name} {self.sign} {self.value:g}"


def as_conditions(where: str | Iterable[str] | None, names: Collection[str]) -> list[Condition]:
    """Return conditions from texts, in which several are joined by "and"; `names` are those that there are.

    Examples
    --------
    >>> [str(each) for each in as_conditions("precision >= 0.98 and largest<=500", ["precision", "largest"])]
    ['precision >= 0.98', 'largest <= 500']
    """
    if where is None:
        return []
    parts = [part for text in as_several(where) for part in re.split(r"\s+and\s+|&", str(text))]
    return [_condition(part, names) for part in parts]


def _condition(text: str, names: Collection[str]) -> Condition:
    found = WRITTEN.fullmatch(text)
    if found is None:
        raise OptionError(
            f'where is a condition such as "precision >= 0.98", or several joined by "and", not {text.strip()!r}'
        )
    name, sign, value = found.groups()
    known = name if name in names else computed_as(name, names)
    if known is None:
        raise OptionError(
            f"there is no {name!r} to put a condition on; there are {', '.join(names)}.{did_you_mean(name, names)} "
            "Name a score in metrics= to have it"
        )
    if "," in value and not THOUSANDS.fullmatch(value):
        raise OptionError(
            f"where has numbers with a decimal point and commas between thousands, such as 0.98 or 1,000, not {value!r}"
        )
    try:
        return Condition(known, sign, float(value.replace(",", "")))
    except ValueError:
        raise OptionError(f"where is a condition with a number, and {value!r} is none") from None
