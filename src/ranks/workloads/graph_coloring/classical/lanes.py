"""Rows of small integers, read LANES at a time: the lowest number, and which numbers are equal.

A row is one node's part of a table with LANES x B columns. Each function becomes a few vector
instructions a block. Numba's loops over rows of k numbers would not: LLVM prepares for long rows,
and k is some dozens.

Legend: L columns, a multiple of LANES.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.extending import intrinsic

LANES = 16


def padded(columns: int) -> int:
    """The lowest multiple of LANES that is at least `columns`."""
    return -(-columns // LANES) * LANES


def _splat(builder: Any, value: Any) -> Any:
    """A vector of LANES equal numbers."""
    undefined = ir.Constant(ir.VectorType(value.type, LANES), ir.Undefined)
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(builder.insert_element(undefined, value, ir.IntType(32)(0)), undefined, zeros)


def _for_each_block(context: Any, builder: Any, row_type: Any, row: Any, mask: Any, use: Callable[[Any], None]) -> None:
    """Emits a loop that gives `use` each block of the row, and-ed with `mask`."""
    array = context.make_array(row_type)(context, builder, row)
    number = context.get_value_type(row_type.dtype)
    length = builder.extract_value(array.shape, 0)
    with cgutils.for_range_slice(builder, length.type(0), length, length.type(LANES)) as (start, _):
        place = builder.bitcast(builder.gep(array.data, [start]), ir.VectorType(number, LANES).as_pointer())
        use(builder.and_(builder.load(place, align=number.width // 8), _splat(builder, mask)))


def _lowest(context: Any, row: Any, mask: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = context.get_value_type(signature.args[0].dtype)
        vector = ir.VectorType(number, LANES)
        lowest = cgutils.alloca_once_value(builder, ir.Constant(vector, [2 ** (number.width - 1) - 1] * LANES))

        def use(block: Any) -> None:
            before = builder.load(lowest)
            builder.store(builder.select(builder.icmp_signed("<", block, before), block, before), lowest)

        _for_each_block(context, builder, signature.args[0], arguments[0], arguments[1], use)
        name = f"llvm.vector.reduce.smin.v{LANES}i{number.width}"
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(number, [vector]), name)
        return builder.call(function, [builder.load(lowest)])

    return row.dtype(row, row.dtype), generate


def _count(context: Any, row: Any, mask: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        row, mask, value = arguments
        total = cgutils.alloca_once_value(builder, ir.IntType(64)(0))

        def use(block: Any) -> None:
            equal = builder.icmp_signed("==", block, _splat(builder, value))
            number = builder.ctpop(builder.bitcast(equal, ir.IntType(LANES)))
            builder.store(builder.add(builder.load(total), builder.zext(number, ir.IntType(64))), total)

        _for_each_block(context, builder, signature.args[0], row, mask, use)
        return builder.load(total)

    return types.int64(row, row.dtype, row.dtype), generate


lowest: Any = intrinsic(_lowest)
"""(row int16[L] or int32[L], mask): the lowest of all `number & mask`."""
count: Any = intrinsic(_count)
"""(row, mask, value): how many `number & mask` are equal to `value`, as int64."""
