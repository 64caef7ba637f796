"""Checks of the arguments of public functions: booleans, choices, numbers and paths, each defined once."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np

from fastbcubed.errors import (
    ColumnError,
    FastBCubedError,
    FileFormatError,
    IdTypeError,
    OptionError,
    arg,
    first_few,
    quoted,
)

#: Maximum nesting depth of values in a column; Arrow has the same limit for Parquet.
DEEPEST = 100
#: The highest seed; like NumPy's, seeds have up to 128 bits.
MOST_SEED = (1 << 128) - 1


def is_one_of(value: Any, known: Collection[str | None]) -> bool:
    """Return whether a value is one of the `known` ones; False for values that cannot be compared, such as arrays.

    Examples
    --------
    >>> is_one_of("cells", ("scores", "cells")), is_one_of(["cells"], {"cells": 1}), is_one_of(None, (None, "disk"))
    (True, False, True)
    """
    return (value is None or isinstance(value, str)) and value in known


#: A URI, possibly shortened by pathlib to one slash; a single letter before the colon is a drive, not a scheme.
_URI = re.compile(r"[A-Za-z][\w+.-]+:(/|$)")


def true_or_false(value: Any, name: str) -> bool:
    """Return the value as a bool if it is a boolean of Python or NumPy; otherwise raise OptionError.

    Examples
    --------
    >>> true_or_false(True, "errors")
    True
    >>> true_or_false("no", "errors")
    Traceback (most recent call last):
    ...
    fastbcubed.errors.OptionError: errors must be True or False, not 'no'
    """
    if not isinstance(value, bool | np.bool_):
        raise OptionError(f"{arg(name)} must be True or False, not {first_few([value])}")
    return bool(value)


def a_text(value: Any, name: str) -> str:
    """Return the value if it is a string; otherwise raise OptionError.

    >>> a_text("Run 7", "title")
    'Run 7'
    """
    if not isinstance(value, str):
        raise OptionError(f"{arg(name)} must be a string, not {quoted(value)}")
    return value


def is_bare(value: Any) -> bool:
    """Return whether a value is a NumPy array without dimensions, which looks like a list but cannot be iterated.

    Examples
    --------
    >>> is_bare(np.array("f1")), is_bare(np.array(["f1"])), is_bare("f1")
    (True, False, False)
    """
    return isinstance(value, np.ndarray) and value.ndim == 0


def refuse_bare(**arguments: Any) -> None:
    """Raise OptionError for arguments that are NumPy arrays without dimensions."""
    for name, value in arguments.items():
        if is_bare(value):
            raise OptionError(
                f"{arg(name)} is a NumPy array without dimensions, {value!r}; pass [{value.item()!r}]"
            )


def is_utf8(text: str) -> bool:
    """Return whether a string can be encoded as UTF-8, i.e. has no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_several(value: Any) -> list[Any]:
    """Return a list of values; a single value, including a string, becomes a list with one element.

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


def is_whole(value: Any) -> bool:
    """Return whether a value is an integer of Python or NumPy; booleans and NumPy's durations are not.

    Examples
    --------
    >>> is_whole(3), is_whole(np.uint8(3)), is_whole(3.0), is_whole(True), is_whole(np.timedelta64(3, "s"))
    (True, True, False, False, False)
    """
    return isinstance(value, Integral) and not isinstance(value, bool | np.timedelta64)


def whole_number(value: Any, name: str, of: str = "", *, least: int = 0, most: int = sys.maxsize) -> int:
    """Return an integer of any type as an int, or raise OptionError; `of` names what it counts.

    Examples
    --------
    >>> whole_number(3, "limit", "rows")
    3
    >>> whole_number(2.5, "limit", "rows")
    Traceback (most recent call last):
    ...
    fastbcubed.errors.OptionError: limit must be a number of rows, 0 or more, not 2.5
    """
    if not is_whole(value) or not least <= value <= most:
        kind = f"a number of {of}" if of else "a whole number"
        bounds = f"from {least:,} to {most:,}" if most < sys.maxsize else f"{least:,} or more"
        raise OptionError(f"{arg(name)} must be {kind}, {bounds}, not {quoted(value)}")
    return int(value)


def seed_of(value: Any) -> int:
    """Return a valid seed as an int, or raise OptionError.

    >>> seed_of(np.int64(7)), seed_of(2**100) == 2**100
    (7, True)
    """
    return whole_number(value, "seed", most=MOST_SEED)


def limit_of(value: Any, name: str = "limit", of: str = "rows") -> int:
    """Return a limit as an int, at most `sys.maxsize`, or raise OptionError.

    >>> limit_of(5), limit_of(10**400) == sys.maxsize
    (5, True)
    """
    beyond = is_whole(value) and value > sys.maxsize
    return sys.maxsize if beyond else whole_number(value, name, of)


def as_float(value: Any) -> float:
    """Return a real number of any type as a float, infinite if it is too large; NaN for anything else.

    >>> as_float(1), as_float(np.float32(0.5)), as_float(10**400), as_float("1"), as_float(True)
    (1.0, 0.5, inf, nan, nan)
    """
    is_real = isinstance(value, Real) and not isinstance(value, bool | np.timedelta64)
    try:
        return float(value) if is_real else math.nan
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def number(
    value: Any,
    name: str,
    what: str,
    fits: Callable[[float], bool] = math.isfinite,
    error: type[FastBCubedError] = OptionError,
) -> float:
    """Return a real number of any type that `fits`; otherwise, and for NaN, raise an error that says `what` is valid.

    `name` is the name of the argument, or a phrase for it.

    Examples
    --------
    >>> number(0.9, "level", "a confidence between 0 and 1, such as 0.95", lambda level: 0 < level < 1)
    0.9
    >>> number(10**5000, "tolerance", "a finite number")
    Traceback (most recent call last):
    ...
    fastbcubed.errors.OptionError: tolerance must be a finite number, not an integer of about 5,000 digits
    """
    found = as_float(value)
    if math.isnan(found) or not fits(found):
        raise error(f"{arg(name) if name.isidentifier() else name} must be {what}, not {quoted(value)}")
    return found


def number_of(value: Any, name: str, of: str = "") -> float:
    """Return a number from 0 to infinity as a float, or raise OptionError; `of` names what it counts.

    Examples
    --------
    >>> number_of(1e10, "max_pairs", "pairs")
    10000000000.0
    >>> number_of("1e10", "max_pairs", "pairs")
    Traceback (most recent call last):
    ...
    fastbcubed.errors.OptionError: max_pairs must be a number of pairs, 0 or more, not '1e10'
    """
    return number(value, name, f"a number{of and f' of {of}'}, 0 or more", lambda found: found >= 0)


def refuse_idle(idle: bool, name: str, without: object, instead: str = "") -> None:
    """Raise OptionError if an argument was given that has no effect `without` another; `instead` says what has.

    Examples
    --------
    >>> refuse_idle(False, "max_pairs", arg("overlapping", True))
    >>> refuse_idle(True, "max_pairs", arg("overlapping", True))
    Traceback (most recent call last):
    ...
    fastbcubed.errors.OptionError: max_pairs has no effect without overlapping=True; omit it
    """
    if idle:
        raise OptionError(f"{arg(name)} has no effect without {without}; {instead or 'omit it'}")


def is_path(value: object) -> bool:
    """Return whether a value is a path: a string or an object with `__fspath__`."""
    return isinstance(value, str) or hasattr(value, "__fspath__")


def path_of(value: Any, what: str = "a path must name a file or a directory") -> str:
    """Return a path as a string, or raise an error if it is invalid.

    Raises
    ------
    OptionError
        If it is neither a string nor an object with a path, or is empty; `what` begins the message.
    FileFormatError
        If it contains a zero byte, or is not valid Unicode, which neither Arrow nor JSON can write.

    Examples
    --------
    >>> from pathlib import PurePosixPath
    >>> path_of(PurePosixPath("runs/7.parquet"))
    'runs/7.parquet'
    >>> path_of(7, "out must be a directory")
    Traceback (most recent call last):
    ...
    fastbcubed.errors.OptionError: out must be a directory, not 7
    """
    try:
        text = os.fspath(value) if is_path(value) else None
    except TypeError:
        text = None
    text = os.fsdecode(text) if isinstance(text, bytes) else text
    if not text or not isinstance(text, str):
        raise OptionError(f"{what}, not {quoted(value)}")
    return named_file(str(text))  # converts a NumPy string


def named_file(text: str) -> str:
    """Return a file name unchanged, or raise FileFormatError if no file can have it."""
    if "\0" in text:
        raise FileFormatError(f"There is no file {quoted(text)}: no path has a zero byte.")
    if not is_utf8(text):
        raise FileFormatError(
            f"the path {quoted(text)} is not UTF-8, as paths must be: rename the file, or type the path "
            "in a UTF-8 locale."
        )
    return text


def local_path(path: Any, what: str = "a path") -> str:
    """Return the path of an output as `path_of` does; raise OptionError for a URI.

    Results appear as a whole or not at all because they are renamed at the end, which object stores do not support.
    """
    text = path_of(path, what)
    if _URI.match(text):
        raise OptionError(
            f"{text} is a URI, and results are written to and loaded from local paths only, so that no result "
            "is ever partial. Write to a local directory, and copy it: "
            f"fsspec.filesystem({text.split(':')[0]!r}).put(local, remote, recursive=True)"
        )
    return text


@contextmanager
def naming_faults_of(given: Any) -> Iterator[None]:
    """Convert exceptions that an object raises while it is read to ColumnError, except Arrow's and our own."""
    try:
        yield
    except (FastBCubedError, MemoryError):
        raise
    except Exception as error:
        if type(error).__module__.startswith("pyarrow"):
            raise
        raise ColumnError(
            f"A {type(given).__name__} cannot be read: it raises {type(error).__name__} ({error}). Pass a list, an "
            "array or a table."
        ) from error


def refuse_deep_lists(values: Iterable[Any], where: str) -> None:
    """Raise IdTypeError for lists whose first values are nested so deep that Arrow would exhaust the stack."""
    for _ in range(DEEPEST + 1):
        inner = next((each for each in values if each is not None), None)
        if not isinstance(inner, list | tuple):
            return
        values = inner
    raise IdTypeError(f"{where} has lists nested more than {DEEPEST} levels deep. Give plain values.")
