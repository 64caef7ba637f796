"""All kernels: plain loops over valid, contiguous arrays, without checks or conversions; see `jit`.

A kernel module is loaded on first access, e.g. as ``kernels.sums``, so that ``import fastbcubed``
does not need Numba.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastbcubed.kernels import (  # noqa: F401
        by_numpy,
        cache,
        cells,
        clusters,
        components,
        dense,
        extended_bcubed,
        hashing,
        interpreter,
        intrinsics,
        jit,
        join,
        libraries,
        memberships,
        merge_tree,
        metrics,
        overlap,
        partition,
        preaggregate,
        slices,
        sums,
        units,
    )  # fmt: skip

if not TYPE_CHECKING:  # type checkers should report any other name

    def __getattr__(name):
        """Return a kernel module, which is imported on first use."""
        module = f"{__name__}.{name}"
        try:
            if not name.startswith("_"):  # private names are requested by Python itself, such as __wrapped__
                return import_module(module)
        except ModuleNotFoundError as error:
            if error.name != module:  # the module exists, but a package that it imports does not
                raise
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
