"""Memory that is asked for before it is needed, so that a kernel need not wait for it."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic

#: How many records ahead of the one that is written next in a part: as far as the next line of the cache at least. The
#: CPU does not see that parts are written one after the other, as there are too many.
RECORDS_AHEAD = 4

_numba_config: Any = config
if _numba_config.DISABLE_JIT:

    def fetch(values: Any, i: Any) -> None:
        """Do nothing, as plain Python cannot."""

else:

    @intrinsic
    def fetch(typingctx: Any, values: Any, i: Any) -> Any:
        """Begin to bring an element of an array into the cache."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, args[0])
            byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
            pointer = builder.bitcast(builder.gep(array.data, [args[1]]), byte)
            shape = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
            prefetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], shape)
            builder.call(prefetch, [pointer, number(0), number(3), number(1)])  # to be read, kept, as data
            return context.get_dummy_value()

        return types.void(values, types.int64), codegen
