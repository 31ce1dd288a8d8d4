"""Sets of nodes as bitsets: node v is bit v % 64 of word v // 64.

A row of W words is a set of N nodes.

All words are np.uint64: Numba silently turns uint64 combined with int64 into float64.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from numba import types
from numba.core.extending import intrinsic

from ranks.jit import inlined, kernel

Word: TypeAlias = Any
"""uint64 in Numba. NumPy's type stubs do not accept uint64 arithmetic here."""
Number: TypeAlias = Any
"""int64 in Numba."""
Bitset = npt.NDArray[np.uint64]
"""uint64[W], or one row for each node or colour."""
ZERO: Word = np.uint64(0)
ONE: Word = np.uint64(1)
ALL_ONES: Word = np.uint64(0xFFFFFFFFFFFFFFFF)


def _ctpop(context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


popcount: Any = intrinsic(_ctpop)
"""The number of set bits of a word, as int64."""


@inlined
def lowest_bit(word: Word) -> int:
    """The position of the lowest set bit; 64 if the word is 0."""
    return popcount((word - ONE) & ~word)


@inlined
def bit(node: Number) -> Word:
    """The bit of a node within its word."""
    return ONE << np.uint64(node & 63)


@inlined
def contains(set_W: Bitset, node: Number) -> bool:
    """Whether a node is in a set."""
    return set_W[node >> 6] & bit(node) != ZERO


@kernel("uint64[:, ::1](int32[::1], int32[::1])")
def adjacency_bitsets(starts: npt.NDArray[np.int32], neighbours: npt.NDArray[np.int32]) -> Bitset:
    """uint64[N, W]: the neighbours of each node, from `Graph.csr`."""
    n = len(starts) - 1
    neighbours_NW = np.zeros((n, (n + 63) // 64), np.uint64)
    for v in range(n):
        for i in range(starts[v], starts[v + 1]):
            neighbours_NW[v, neighbours[i] >> 6] |= bit(neighbours[i])
    return neighbours_NW
