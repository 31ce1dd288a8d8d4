"""Sets of squares as 64-bit words: a1 is bit 0, b1 bit 1, h8 bit 63.

All numbers are np.uint64, since Numba makes uint64 with int64 a float64 without a word.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numba import types
from numba.core.extending import intrinsic

from ranks.jit import helper

Word: TypeAlias = Any
"""A set of squares, a square, or another word of 64 bits: uint64 to Numba; NumPy's own types do not follow that."""

ZERO: Word = np.uint64(0)
ONE: Word = np.uint64(1)
TWO: Word = np.uint64(2)
SIX: Word = np.uint64(6)
SQUARE: Word = np.uint64(63)
ALL: Word = np.uint64(0xFFFFFFFFFFFFFFFF)
FILE_A = np.uint64(0x0101010101010101)
FILE_H = np.uint64(0x8080808080808080)
RANK_1 = np.uint64(0xFF)
RANK_8 = np.uint64(0xFF00000000000000)
DARK = np.uint64(0xAA55AA55AA55AA55)
"""The dark squares, a1 among them."""


def _unary(name: str, *flags: bool) -> Any:
    """An instruction of the processor on one 64-bit word, by its LLVM name."""

    def typed(context: Any, word: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            from llvmlite import ir

            kinds = [arguments[0].type, *(ir.IntType(1) for _ in flags)]
            function = builder.module.declare_intrinsic(
                f"llvm.{name}", [arguments[0].type], ir.FunctionType(arguments[0].type, kinds)
            )
            return builder.call(function, [arguments[0], *(ir.Constant(ir.IntType(1), int(flag)) for flag in flags)])

        return types.uint64(types.uint64), generate

    return intrinsic(typed)


count = _unary("ctpop")
"""How many squares are in a set."""
first = _unary("cttz", False)
"""The lowest square of a set; 64 for the empty one."""
leading_zeros = _unary("ctlz", False)


@helper
def bit(square: Word) -> Word:
    """The set of one square."""
    return ONE << square


@helper
def without_first(squares: Word) -> Word:
    """A set without its lowest square."""
    return squares & (squares - ONE)


@helper
def rotate(squares: Word, by: Word) -> Word:
    """All squares moved by so many, round the end of the board."""
    return (squares << by) | (squares >> ((np.uint64(64) - by) & SQUARE))
