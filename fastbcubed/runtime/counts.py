"""Whole numbers among the arguments of public functions."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from fastbcubed.errors import OptionError


def whole_number(value: Any, name: str, of: str = "", *, least: int = 0, most: int | None = None) -> int:
    """Return a whole number of any type, or raise OptionError; `of` is what it counts.

    Examples
    --------
    >>> whole_number(3, "limit", "rows")
    3
    >>> whole_number(2.5, "limit", "rows")
    Traceback (most recent call last):
    ...
    fastbcubed.errors.OptionError: limit is a number of rows, 0 or more, not 2.5
    """
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):
        kind = f"a number of {of}" if of else "a whole number"
        bounds = f"{least:,} or more" if most is None else f"from {least:,} to {most:,}"
        raise OptionError(f"{name} is {kind}, {bounds}, not {value!r}")
    return int(value)
