"""Checks of the arguments of public functions: booleans, choices and numbers."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from numbers import Integral, Real
from typing import Any

import numpy as np

from fastbcubed.errors import OptionError, arg, first_few


def is_one_of(value: Any, known: Collection[str | None]) -> bool:
    """Return whether a value is one of these; False for values that cannot be compared, such as arrays.

    Examples
    --------
    >>> is_one_of("cells", ("scores", "cells")), is_one_of(["cells"], {"cells": 1}), is_one_of(None, (None, "disk"))
    (True, False, True)
    """
    return (value is None or isinstance(value, str)) and value in known


#: A URI, or one that pathlib has shortened; a single letter is a drive.
_URI = re.compile(r"[A-Za-z][\w+.-]+:(/|$)")


def local_path(path: str | os.PathLike[str]) -> str:
    """Return the path of an output; raise OptionError for a URI, which would be taken for a local directory.

    Results appear as a whole or not at all, by renaming, which object stores do not have.
    """
    text = os.fspath(path)
    if isinstance(text, str) and _URI.match(text):
        raise OptionError(
            f"{text} is a URI, and results are written to, and loaded from, local paths alone, so that they are there "
            "as a whole or not at all. Write to a local directory, and copy that: "
            f"fsspec.filesystem({text.split(':')[0]!r}).put(local, remote, recursive=True)"
        )
    return text


def true_or_false(value: Any, name: str) -> bool:
    """Return a boolean of Python or NumPy, or raise OptionError.

    Examples
    --------
    >>> true_or_false(True, "errors")
    True
    >>> true_or_false("no", "errors")
    Traceback (most recent call last):
    ...
    fastbcubed.errors.OptionError: errors is True or False, not 'no'
    """
    if not isinstance(value, bool | np.bool_):
        raise OptionError(f"{arg(name)} is True or False, not {first_few([value])}")
    return bool(value)


def is_bare(value: Any) -> bool:
    """Return whether a value is a NumPy array without dimensions: it looks like a list, but has no elements.

    Examples
    --------
    >>> is_bare(np.array("f1")), is_bare(np.array(["f1"])), is_bare("f1")
    (True, False, False)
    """
    return isinstance(value, np.ndarray) and value.ndim == 0


def refuse_bare(**arguments: Any) -> None:
    """Raise OptionError for arguments that are NumPy arrays without dimensions."""
    for name, value in arguments.items():
        if isinstance(value, np.ndarray) and value.ndim == 0:
            raise OptionError(
                f"{arg(name)} is a NumPy array without dimensions, {value!r}; pass [{value.item()!r}]"
            )


def is_utf8(text: str) -> bool:
    """Return whether a text can be encoded as UTF-8; lone surrogates cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_several(value: Any) -> list[Any]:
    """Return several values as a list, and a single one as a list with one element.

    Examples
    --------
    >>> as_several("country"), as_several(("country", "year")), as_several(3)
    (['country'], ['country', 'year'], [3])
    """
    if isinstance(value, str):
        return [value]
    try:
        return list(value)
    except TypeError:
        return [value]


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
        raise OptionError(f"{arg(name)} is {kind}, {bounds}, not {value!r}")
    return int(value)


def number_of(value: Any, name: str, of: str = "") -> Any:
    """Return a number that is not negative and may be infinite, or raise OptionError; `of` is what it counts.

    Examples
    --------
    >>> number_of(1e10, "max_pairs", "pairs")
    10000000000.0
    >>> number_of("1e10", "max_pairs", "pairs")
    Traceback (most recent call last):
    ...
    fastbcubed.errors.OptionError: max_pairs is a number of pairs, 0 or more, not '1e10'
    """
    real = isinstance(value, Real) and not isinstance(value, bool)
    if not real or not value >= 0:  # nor NaN
        raise OptionError(f"{arg(name)} is a number{of and f' of {of}'}, 0 or more, not {first_few([value])}")
    return value
