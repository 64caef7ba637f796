"""Formats of numbers, names on one line, and sentences with counts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from fastbcubed.errors import visible
from fastbcubed.metrics.metric import ROUNDED, without_rounding

#: Plural of outcomes that are nouns; others are adjectives and do not change.
SEVERAL = {"fragment": "fragments", "union": "unions"}


def score_text(value: float) -> str:
    """Return a score with five significant digits, or more near 1, so that only 1 itself is printed as 1.

    Examples
    --------
    >>> score_text(0.8072038), score_text(0.9999996), score_text(1.0), score_text(12345.67), score_text(float("nan"))
    ('0.80720', '0.9999996', '1', '12,346', 'n/a')
    """
    value = float(value)
    if math.isnan(value):
        return "n/a"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if value == round(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= 1e5:
        return f"{value:,.0f}" if abs(value) < 1e15 else f"{value:.5g}"
    if abs(value) < 1e-9:
        return "<0.000000001" if value > 0 else ">-0.000000001"
    if abs(value) < 1e-4:
        return f"{value:.{4 - math.floor(math.log10(abs(value)))}f}"
    text = f"{value:#,.5g}".rstrip(".")
    if abs(float(text.replace(",", ""))) == 1:
        loss = abs(1 - abs(value))
        text = f"{value:.{1 - math.floor(math.log10(loss))}f}".rstrip("0")
    return text


def fixed(value: float, decimals: int = 5, whole: float = 1.0) -> str:
    """Return a score with fixed decimals; only `whole` itself is printed as such, and only zero as 0.

    Examples
    --------
    >>> fixed(0.80720, 3), fixed(1.0, 3), fixed(0.99996, 3), fixed(0.0, 3), fixed(0.00004, 3), fixed(-0.00004, 3)
    ('0.807', '1.000', '>0.999', '0.000', '<0.001', '>-0.001')
    """
    value, least = float(value), 10.0**-decimals
    if not abs(value) <= whole + ROUNDED:
        return score_text(value)
    text, size = f"{value:.{decimals}f}", abs(value)
    for end, near in ((0.0, least), (whole, whole - least)):
        if abs(float(text)) == end and abs(size - end) > ROUNDED:
            sign = "-" if value < 0 else ""
            return f"{'<' if (end == 0) == (value > 0) else '>'}{sign}{near:.{decimals}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def share(part: float) -> str:
    """Return a share as a percentage with two decimals.

    Examples
    --------
    >>> share(0.00044544), share(0.5), share(1.0), share(1e-6), share(0.0)
    ('0.04 %', '50.00 %', '100.00 %', '<0.01 %', '0.00 %')
    """
    return f"{fixed(100 * float(part), 2, 100.0)} %"


def with_interval(
    value: float, low: float | None = None, high: float | None = None, *, change: bool = False
) -> str:
    """Return a score with its interval, to as many digits as the interval supports; without interval, the score.

    The digits are the first two of the interval's half-width, but at least three of the score, and enough that a score
    other than 0 or 1 is not printed as 0 or 1. A change has a sign.

    Examples
    --------
    >>> with_interval(0.929973, 0.545, 0.99342), with_interval(0.95501, 0.9347, 0.96981), with_interval(1.0, 1.0, 1.0)
    ('0.930 (0.545 to 0.993)', '0.955 (0.935 to 0.970)', '1')
    >>> with_interval(0.0032, -0.036, 0.042, change=True), with_interval(0.99996, 0.95, 1.0), with_interval(0.5)
    ('+0.0032 (-0.0360 to +0.0420)', '0.99996 (0.95000 to 1.00000)', '0.50000')
    """
    value, ends = float(value), [end for end in (low, high) if end is not None and not math.isnan(end)]
    if len(ends) < 2 or not math.isfinite(value) or not without_rounding(ends[1] - ends[0], value):
        return signed(value) if change else score_text(value)
    decimals = _decimals(float(without_rounding(value)), *ends)

    def text(end: float) -> str:
        if math.isinf(end):
            return score_text(end)
        written = f"{without_rounding(end) + 0.0:{'+' * change},.{decimals}f}"
        return written[1:] if float(written.replace(",", "")) == 0 and written[0] in "+-" else written

    return f"{text(value)} ({text(ends[0])} to {text(ends[1])})"


def _decimals(value: float, low: float, high: float) -> int:
    """Return the number of decimals that an interval supports."""
    finite = [end for end in (low, high) if math.isfinite(end)]
    half = (
        (finite[1] - finite[0]) / 2
        if len(finite) == 2
        else max([abs(end - value) for end in finite], default=0.0)
    )
    decimals = 1 - math.floor(math.log10(half)) if half > 0 else 3
    size = abs(value)
    decimals = max(0, decimals, 3 if size <= 1 else 2 - math.floor(math.log10(size)))
    if 0 < size < 0.1:
        decimals = max(decimals, 4)
    while decimals < 15 and any(
        abs(value) != end and abs(round(value, decimals)) == end for end in (0.0, 1.0)
    ):
        decimals += 1
    return decimals


def from_to(before: float, after: float, low: float | None, high: float | None) -> str:
    """Return a score before and after, to the digits of the change, followed by the change and its interval.

    >>> from_to(0.85388, 0.97707, 0.088, 0.1584), from_to(0.5, 0.75, None, None)
    ('0.854 → 0.977, +0.123 (+0.088 to +0.158)', '0.50000 → 0.75000, +0.2500')
    """
    change, write = with_interval(after - before, low, high, change=True), score_text
    if change.endswith(")"):
        write = f"{{:,.{len(change.split(' ', 1)[0].partition('.')[2])}f}}".format
    return f"{write(before)} → {write(after)}, {change}"


def percent(part: float) -> str:
    """Return a share as a percentage; only 1 itself is printed as 100 %, and only zero as 0 %.

    Examples
    --------
    >>> percent(0.8767), percent(0.99996), percent(1.0), percent(0.00004), percent(0.0)
    ('87.7 %', '99.996 %', '100 %', '0.004 %', '0 %')
    """
    if math.isnan(part):
        return "n/a"
    rest = min(abs(part), abs(1 - part))
    if rest < ROUNDED:  # sums are rounded
        return f"{100 * part:.0f} %"
    decimals = max(1, -math.floor(math.log10(rest)) - 2) if rest < 0.0005 else 1
    return f"{100 * part:.{decimals}f} %"


def count(number: int) -> str:
    """Return an integer with commas between thousands."""
    return f"{number:,}"


def counted(number: int, thing: str) -> str:
    """Return a count with its noun, in the plural if needed.

    >>> counted(1, "item"), counted(2000, "item")
    ('1 item', '2,000 items')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def listed(names: Sequence[str]) -> str:
    """Return names joined by commas, with "and" before the last."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def not_computed(reasons: Mapping[str, str], title: str = "Not computed") -> list[str]:
    """Return sentences that list the missing scores by reason."""
    names: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        names.setdefault(reason, []).append(name)
    return [f"{title}: {', '.join(each)}: {reason}." for reason, each in names.items()]


def outcomes_of(kind: str, n: int, counted: Mapping[str, int], *, past: bool = False) -> str:
    """Return a sentence on how many of `n` clusters have each outcome; the first is that nothing is wrong.

    If `past`, the outcomes are of a change, and the first is that nothing changed.

    Examples
    --------
    >>> outcomes_of("true", 5, {"exact": 1, "split": 4, "merged": 0})
    'Of 5 true clusters 1 (20.0 %) is exact, 4 split'
    >>> outcomes_of("predicted", 1, {"exact": 0, "union": 1})
    'The only predicted cluster is a union'
    """
    (same, n_same), *others = counted.items()
    found = [(name, k) for name, k in others if k]
    if n == 1:
        name = same if n_same else found[0][0]
        return f"The only {kind} cluster is {f'a {name}' if name in SEVERAL else name}"
    share = f"{count(n_same)} ({percent(n_same / n)}) {'is' if n_same == 1 else 'are'} {same}"
    parts = [f"{count(k)} {name if k == 1 else SEVERAL.get(name, name)}" for name, k in found]
    if past and parts and found[0][0] != "gone":
        parts[0] = parts[0].replace(" ", " was " if found[0][1] == 1 else " were ", 1)
    return ", ".join([f"Of {count(n)} {kind} clusters {share}", *parts])


def amount(weight: float) -> str:
    """Return a weight, as a count if it is whole, otherwise to six significant digits."""
    weight = float(weight)
    if math.isfinite(weight) and weight == round(weight) and abs(weight) < 1e15:
        return f"{int(weight):,}"
    return f"{weight:,.0f}" if 1e6 <= abs(weight) < 1e15 else f"{weight:,.6g}"


def label(value: Any) -> str:
    r"""Return the name of an item, cluster or slice on one line, with control characters escaped.

    Examples
    --------
    >>> label("Zoë"), label({"source": "a", "id": 7}), label(None), label("two\nlines"), label(1800.0)
    ('Zoë', 'a, 7', '(null)', 'two\\nlines', '1800')
    """
    if value is None:
        return "(null)"
    if isinstance(value, Mapping):
        return ", ".join(map(label, value.values()))
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return visible(str(value))


def named(value: Any) -> str:
    """Return the name of an item, cluster or slice, or of a set of these, on one line."""
    if isinstance(value, list | tuple):
        return ", ".join(map(label, value))
    return label(value)


def signed(value: float) -> str:
    """Return a difference with its sign, with four decimals or as many as it needs.

    >>> signed(0.01234), signed(-0.00001234), signed(0.0), signed(float("nan"))
    ('+0.0123', '-0.00001234', '0', '')
    """
    if value != value:
        return ""
    if without_rounding(value) == 0:
        return "0"
    return f"{value:+.{4 if abs(value) >= 5e-4 else 3 - math.floor(math.log10(abs(value)))}f}"
