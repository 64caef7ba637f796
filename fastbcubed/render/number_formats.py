"""Number formats, names on one line, and sentences on counts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from fastbcubed.errors import visible
from fastbcubed.metrics.metric import ROUNDED, without_rounding

#: What clusters of an outcome are called when they are counted, if not as the outcome.
SEVERAL = {"fragment": "fragments", "union": "unions"}


def score_text(value: float) -> str:
    """Return a score in five significant digits, and more near 1: only 1 itself reads as 1.

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
    """Return a score as a column of scores has it; only the whole itself reads as such, and only nothing as 0.

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
    """Return a share as a column of shares has it.

    Examples
    --------
    >>> share(0.00044544), share(0.5), share(1.0), share(1e-6), share(0.0)
    ('0.04 %', '50.00 %', '100.00 %', '<0.01 %', '0.00 %')
    """
    return f"{fixed(100 * float(part), 2, 100.0)} %"


def with_error(value: float, error: float | None, change: float | None = None) -> str:
    """Return a score and its standard error, in the digits that the error leaves; without one the score alone.

    Digits are added until the value, or the `change` shown next to it, no longer rounds to 0, unless it is 0.

    Examples
    --------
    >>> with_error(0.95501, 0.00382), with_error(0.98082, 0.00132), with_error(0.955, 0.0099), with_error(1.0, 0.0)
    ('0.955 ± 0.004', '0.9808 ± 0.0013', '0.9550 ± 0.0099', '1')
    >>> with_error(-0.0032, 0.02), with_error(0.7946, 0.02, -0.0032), with_error(-1e-17, 0.02)
    ('-0.003 ± 0.020', '0.795 ± 0.020', '0.00 ± 0.02')
    """
    value = float(value)
    if not math.isfinite(value) or not plus_minus(error, value):
        return score_text(value)
    assert error is not None
    kept = 2 if f"{error:.0e}"[0] == "1" else 1  # one digit would be too coarse there
    decimals = max(0, kept - 1 - int(f"{error:.{kept - 1}e}".partition("e")[2]))
    if size := abs(without_rounding(value if change is None else change)):
        while round(size, decimals) == 0:
            decimals += 1
    return f"{without_rounding(value) + 0.0:,.{decimals}f} ± {error:.{decimals}f}"


def change_with_error(value: float, error: float | None) -> str:
    """Return a difference with its sign, and its standard error.

    >>> change_with_error(0.0356, 0.3), change_with_error(-0.25, 0.1), change_with_error(-0.0, 0.02)
    ('+0.04 ± 0.30', '-0.25 ± 0.10', '0.00 ± 0.02')
    """
    value = float(without_rounding(value)) + 0.0  # which has no negative zero
    return f"{'+' * (value > 0)}{with_error(value, error)}"


def plus_minus(error: float | None, value: float = 1.0) -> str:
    """Return a standard error in two digits; nothing where none is known, or none was seen, which is not certainty.

    Examples
    --------
    >>> plus_minus(0.00382), plus_minus(5.6e-17), plus_minus(0.0), plus_minus(float("nan")), plus_minus(None)
    ('0.0038', '', '', '', '')
    """
    known = error is not None and 0 < without_rounding(error, value) < math.inf
    return f"{error:.{max(0, 1 - math.floor(math.log10(error)))}f}" if known and error else ""


def percent(part: float) -> str:
    """Return a share as a percentage; only all of it reads as 100 %, and only nothing as 0 %.

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


def percent_with_error(part: float, error: float) -> str:
    """Return a share and its standard error as percentages; the share alone where there is no error.

    Examples
    --------
    >>> percent_with_error(0.95, 0.021), percent_with_error(1.0, 0.0)
    ('95 ± 2 %', '100 %')
    """
    text = with_error(100 * part, None if math.isnan(error) else 100 * error)
    return f"{text} %" if "±" in text else percent(part)


def count(number: int) -> str:
    """Return a number of things, thousands apart."""
    return f"{number:,}"


def counted(number: int, thing: str) -> str:
    """Return how many things there are.

    >>> counted(1, "item"), counted(2000, "item")
    ('1 item', '2,000 items')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def not_computed(reasons: Mapping[str, str], title: str = "Not computed") -> list[str]:
    """Return the scores that lack, by reason."""
    names: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        names.setdefault(reason, []).append(name)
    return [f"{title}: {', '.join(each)}: {reason}." for reason, each in names.items()]


def outcomes_of(kind: str, n: int, counted: Mapping[str, int], *, past: bool = False) -> str:
    """Return how many of n clusters have each outcome; the first is that nothing is wrong, or nothing `past`.

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
    """Return a weight: whole as a count, else in six significant digits."""
    weight = float(weight)
    if math.isfinite(weight) and weight == round(weight) and abs(weight) < 1e15:
        return f"{int(weight):,}"
    return f"{weight:,.0f}" if 1e6 <= abs(weight) < 1e15 else f"{weight:,.6g}"


def label(value: Any) -> str:
    r"""Return the name of an item, cluster or slice on one line, with nothing that a terminal obeys.

    Examples
    --------
    >>> label("Zoë"), label({"source": "a", "id": 7}), label(None), label("two\nlines")
    ('Zoë', 'a, 7', '(null)', 'two\\nlines')
    """
    if value is None:
        return "(null)"
    if isinstance(value, Mapping):
        return ", ".join(map(label, value.values()))
    if isinstance(value, bytes):
        return value.hex()
    return visible(str(value))


def named(value: Any) -> str:
    """Return the name of an item, a cluster, a slice or a set of them, on one line."""
    if isinstance(value, list | tuple):
        return ", ".join(map(label, value))
    return label(value)


def signed(value: float) -> str:
    """Return a difference with its sign, in four decimals or as many as it takes.

    >>> signed(0.01234), signed(-0.00001234), signed(0.0), signed(float("nan"))
    ('+0.0123', '-0.00001234', '0', '')
    """
    if value != value:
        return ""
    if without_rounding(value) == 0:
        return "0"
    return f"{value:+.{4 if abs(value) >= 5e-4 else 3 - math.floor(math.log10(abs(value)))}f}"
