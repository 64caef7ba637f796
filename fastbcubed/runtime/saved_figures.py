"""Figures and texts of a saved result, read from JSON and checked."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from fastbcubed.errors import quoted


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
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise TypeError(f"{quoted(name)} is not a number")
    return found


def texts_in(values: Mapping[str, Any]) -> dict[str, str]:
    """Return texts of a manifest by name; raise if they are not texts."""
    found = dict(values)
    for name, value in found.items():
        if not isinstance(value, str):
            raise TypeError(f"{quoted(name)} is not a text")
    return found
