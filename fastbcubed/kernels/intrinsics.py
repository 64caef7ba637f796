"""CPU instructions that Numba lacks, for compiled kernels; the Python equivalents are defined next to their use."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


@intrinsic
def at(typingctx: Any, i: Any) -> Any:
    """Convert an index to an unsigned integer."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.cast(builder, args[0], signature.args[0], types.uint64)

    return types.uint64(types.unliteral(i)), codegen


@intrinsic
def fold(typingctx: Any, a: Any, b: Any) -> Any:
    """Multiply two words to 128 bits and xor the halves."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        high = builder.lshr(product, ir.Constant(wide, 64))
        return builder.trunc(builder.xor(product, high), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), codegen


def _load(bits: int) -> Any:
    def load(typingctx: Any, data: Any, position: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, args[0])
            pointer = builder.gep(array.data, [args[1]])
            pointer = builder.bitcast(pointer, ir.IntType(bits).as_pointer())
            return builder.zext(builder.load(pointer, align=1), ir.IntType(64))

        return types.uint64(data, types.uint64), codegen

    return load


load_word = intrinsic(_load(64))
load_half = intrinsic(_load(32))


@intrinsic
def tail_differs(typingctx: Any, data: Any, end: Any, masks: Any, mask: Any, slots: Any, slot: Any) -> Any:
    """Return 1 if the last 32 bytes of a string differ from those stored in a slot, else 0."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        words, all_bits = ir.VectorType(ir.IntType(64), 4).as_pointer(), ir.IntType(256)

        def load(k: int, position: Any) -> Any:
            array = context.make_array(signature.args[k])(context, builder, args[k])
            pointer = builder.gep(array.data, [position])
            return builder.load(builder.bitcast(pointer, words), align=1)

        text, mask = load(0, builder.sub(args[1], ir.IntType(64)(32))), load(2, args[3])
        differ = builder.xor(builder.and_(text, mask), load(4, args[5]))
        found = builder.icmp_unsigned("!=", builder.bitcast(differ, all_bits), all_bits(0))
        return builder.zext(found, ir.IntType(8))

    arguments = data, types.uint64, masks, types.uint64, slots, types.uint64
    return types.uint8(*arguments), codegen


@intrinsic
def fetch(typingctx: Any, values: Any, i: Any) -> Any:
    """Prefetch an element of an array into the cache."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        pointer = builder.bitcast(builder.gep(array.data, [args[1]]), byte)
        shape = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], shape)
        builder.call(
            prefetch, [pointer, number(0), number(3), number(1)]
        )  # a read of data to keep in all caches
        return context.get_dummy_value()

    return types.void(values, types.int64), codegen
