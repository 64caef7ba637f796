"""The functions of `pyarrow.compute`, loaded on first use: importing them takes a fifth of our whole import."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    """Return a function on Arrow's columns."""
    return getattr(import_module("pyarrow.compute"), name)
