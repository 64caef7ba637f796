"""Figures and texts of a saved result, read from JSON and checked."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from fastbcubed.errors import quoted

#: Whole numbers beyond this are no figures, as floats cannot hold them all.
MOST = 1 << 53
#: A number or null; figures of which all are such numbers.
NUMBER: Any = (float, None)
NUMBERS = {str: NUMBER}
#: What a value of a type in a shape is, and what messages call it.
KINDS: dict[Any, tuple[Any, str]] = {float: (int | float, "number"), int: (int, "count"), str: (str, "text")}


def require_shape(value: Any, shape: Any, name: str) -> None:
    """Raise TypeError unless a part of a manifest has a shape.

    A shape is a type (int is a count, float any number); None; a tuple of alternatives; a list with the shape of all
    elements; a dict from names to shapes, of which all must be there; or a dict from `str` to the shape of all values.

    Examples
    --------
    >>> require_shape({"n": 3, "largest": None}, {"n": int, "largest": (int, None)}, "summary")
    >>> require_shape({"n": [-1]}, {"n": [int]}, "summary")
    Traceback (most recent call last):
    ...
    TypeError: 'summary.n.0' is not a count
    """
    if isinstance(shape, tuple) and value is None and None in shape:
        return
    if isinstance(shape, tuple):
        require_shape(value, shape[0], name)
    elif isinstance(shape, dict):
        every = shape.get(str)
        if not isinstance(value, Mapping) or any(each not in value for each in shape if each is not str):
            raise TypeError(f"{quoted(name)} lacks figures")
        for each, own in value.items():
            if (of := shape.get(each, every)) is not None:
                require_shape(own, of, f"{name}.{each}")
    elif isinstance(shape, list):
        if not isinstance(value, list | tuple):
            raise TypeError(f"{quoted(name)} is not a list")
        for k, own in enumerate(value):
            require_shape(own, shape[0], f"{name}.{k}")
    else:
        kind, what = KINDS.get(shape, (shape, shape.__name__))
        wrong = not isinstance(value, kind) or (isinstance(value, bool) and shape is not bool)
        if wrong or (shape is int and value < 0) or (type(value) is int and abs(value) > MOST):
            raise TypeError(f"{quoted(name)} is not a {what}")


def with_nan(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return figures of a manifest, also those in its dicts, with NaN instead of None."""
    return {
        name: math.nan if value is None else with_nan(value) if isinstance(value, dict) else value
        for name, value in values.items()
    }


def numbers_in(values: Mapping[str, Any], names: Iterable[str] | None = None) -> dict[str, Any]:
    """Return figures of a manifest, all or with these names, NaN for None; raise if they are not numbers."""
    found = with_nan(values if names is None else {name: values[name] for name in names})
    for name, value in found.items():
        require_shape(value, float, name)
    return found


def texts_in(values: Mapping[str, Any]) -> dict[str, str]:
    """Return texts of a manifest by name; raise if they are not texts."""
    found = dict(values)
    for name, value in found.items():
        require_shape(value, str, name)
    return found
