"""Numbers of keys that come block by block: a hash table of those known, which stand in the order of their codes."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic

from fastbcubed.kernels.jit import kernel
from fastbcubed.kernels.partition import mix

#: Keys whose slots are fetched together, so that one does not wait for the memory of another.
GROUP = 64

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


@kernel
def number_block(new_keys, new_proofs, slots, keys, proofs, n, codes, firsts):
    """Give each key of a block its code, one that is not known the next one; return how many are known then.

    Shapes: (m,), (m,) or None, (power of two,), (capacity,), (capacity,) or None, (), (m,), (m,). Codes stand in
    slots, -1 in those that are empty; `firsts` gets the row of each key that was not known.
    """
    known, mask = n, slots.size - 1
    places = np.empty(GROUP, np.int64)
    for start in range(0, new_keys.size, GROUP):
        stop = min(start + GROUP, new_keys.size)
        for i in range(start, stop):
            places[i - start] = mix(new_keys[i]) & mask
            fetch(slots, places[i - start])
        for i in range(start, stop):
            code = slots[places[i - start]]
            if code >= 0:
                fetch(keys, code)
        for i in range(start, stop):
            key, s = new_keys[i], places[i - start]
            code = slots[s]
            while code >= 0:
                if keys[code] == key:
                    if proofs is None:
                        break
                    elif proofs[code] == new_proofs[i]:
                        break
                s = (s + 1) & mask
                code = slots[s]
            if code < 0:
                code = slots[s] = n
                keys[n] = key
                if proofs is not None:
                    proofs[n] = new_proofs[i]
                firsts[n - known] = i
                n += 1
            codes[i] = code
    return n


@kernel
def enter_keys(keys, n, slots):
    """Enter the codes of the first n keys, all different, into slots that are empty."""
    mask = slots.size - 1
    for code in range(n):
        s = mix(keys[code]) & mask
        while slots[s] >= 0:
            s = (s + 1) & mask
        slots[s] = code
