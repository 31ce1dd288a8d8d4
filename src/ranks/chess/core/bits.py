"""Bitboards: sets of squares as 64-bit words, with a1 as bit 0, b1 as bit 1 and h8 as bit 63.

All constants are np.uint64, because Numba turns uint64 combined with int64 into float64 without a
warning.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numba import types
from numba.core.extending import intrinsic

from ranks.jit import helper

Word: TypeAlias = Any
"""A bitboard, a square or another 64-bit word. Numba sees uint64; NumPy's type hints cannot express
that."""

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
"""The dark squares; a1 is one of them."""


def _unary(name: str, *flags: bool) -> Any:
    """The LLVM intrinsic of this name on one 64-bit word."""

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


popcount = _unary("ctpop")
"""The number of squares in a bitboard."""
lsb = _unary("cttz", False)
"""The lowest square of a bitboard (bit scan forward); 64 for an empty one."""
leading_zeros = _unary("ctlz", False)


@helper
def bit(square: Word) -> Word:
    """The bitboard of one square."""
    return ONE << square


@helper
def clear_lsb(squares: Word) -> Word:
    """A bitboard without its lowest square."""
    return squares & (squares - ONE)


@helper
def rotate(squares: Word, by: Word) -> Word:
    """All squares moved up by `by`, wrapping from h8 to a1."""
    return (squares << by) | (squares >> ((np.uint64(64) - by) & SQUARE))
