"""Asking for memory ahead of its use: many cache misses at once take about as long as one."""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

_numba_config: Any = numba.config

#: What LLVM is told: that the entry will be written, that it belongs into all caches, and that it is data.
_TO_WRITE, _INTO_ALL, _DATA = 1, 3, 1


def _code_of(typing: Any, array: Any, index: Any) -> Any:
    """Return the type and the code of a prefetch, as Numba asks for them."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        made = context.make_array(array)(context, builder, arguments[0])
        entry = cgutils.get_item_pointer(
            context, builder, array, made, [arguments[1]], wraparound=False, boundscheck=False
        )
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        call = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        prefetch = cgutils.get_or_insert_function(builder.module, call, "llvm.prefetch.p0")
        hints = [word(hint) for hint in (_TO_WRITE, _INTO_ALL, _DATA)]
        builder.call(prefetch, [builder.bitcast(entry, byte), *hints])
        return context.get_dummy_value()

    return types.void(array, index), code


def _nothing(array: Any, index: Any) -> None:
    """Do what Python can."""


prefetch: Any = _nothing if _numba_config.DISABLE_JIT else intrinsic(_code_of)
