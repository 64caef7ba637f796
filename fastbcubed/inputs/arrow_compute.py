"""Lazy access to `pyarrow.compute`, whose import takes a fifth of the time to import fastbcubed."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    """Return the function of `pyarrow.compute` with this name."""
    return globals().setdefault(name, getattr(import_module("pyarrow.compute"), name))
