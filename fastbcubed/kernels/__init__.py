"""All Numba code: plain loops over valid, contiguous arrays, which check and convert nothing.

A module of kernels is loaded when it is first asked for, as ``kernels.sums`` say, so that ``import fastbcubed``
needs no Numba.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastbcubed.kernels import (
        cache,
        cells,
        clusters,
        components,
        dense,
        generation,
        hashing,
        jit,
        join,
        mates,
        memberships,
        merge_tree,
        metrics,
        overlap,
        partition,
        preaggregate,
        runs,
        subsets,
        sums,
        texts,
        units,
    )  # fmt: skip


__all__ = [
    "cache",
    "cells",
    "clusters",
    "components",
    "dense",
    "generation",
    "hashing",
    "jit",
    "join",
    "mates",
    "memberships",
    "merge_tree",
    "metrics",
    "overlap",
    "partition",
    "preaggregate",
    "runs",
    "subsets",
    "sums",
    "texts",
    "units",
]

if not TYPE_CHECKING:  # of a name that is none of these, type checkers are to say so

    def __getattr__(name):
        """Return a module of kernels, loaded on its first use."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return import_module(f"{__name__}.{name}")
