"""Sets of nodes as words of 64 bits: node v is bit v % 64 of word v // 64. A row of W words is a set of N nodes.

All words are np.uint64, since Numba makes uint64 with int64 a float64 without a word.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from numba import types
from numba.core.extending import intrinsic

from ranks.jit import inlined, kernel

Word: TypeAlias = Any
"""uint64 to Numba; NumPy's own types do not follow that."""
Number: TypeAlias = Any
"""int64 to Numba."""
Words = npt.NDArray[np.uint64]
ZERO: Word = np.uint64(0)
ONE: Word = np.uint64(1)
FULL: Word = np.uint64(0xFFFFFFFFFFFFFFFF)


def _ctpop(context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


count: Any = intrinsic(_ctpop)
"""How many bits of a word are set, as int64."""


@inlined
def lowest(word: Word) -> int:
    """The number of the lowest bit that is set; 64 where none is."""
    return count((word - ONE) & ~word)


@inlined
def bit(node: Number) -> Word:
    """The bit of a node within its word."""
    return ONE << np.uint64(node & 63)


@inlined
def holds(set_W: Words, node: Number) -> bool:
    """Whether a node is in a set."""
    return set_W[node >> 6] & bit(node) != ZERO


@kernel("uint64[:, ::1](int32[::1], int32[::1])")
def adjacency(starts: npt.NDArray[np.int32], near: npt.NDArray[np.int32]) -> Words:
    """uint64[N, W]: the neighbours of each node, from `Graph.csr`."""
    n = len(starts) - 1
    near_NW = np.zeros((n, (n + 63) // 64), np.uint64)
    for v in range(n):
        for i in range(starts[v], starts[v + 1]):
            near_NW[v, near[i] >> 6] |= bit(near[i])
    return near_NW
