"""Counter-based random numbers for compiled searches: number i of a seed is a hash of both; there
is no state.

The hash is splitmix64 (Steele, Lea & Flood 2014, "Fast splittable pseudorandom number generators").
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from ranks.jit import part

Word: TypeAlias = Any
"""uint64 in Numba. NumPy's type stubs do not accept uint64 arithmetic here."""
int64: Any = np.int64
"""Conversion of a number to 64 bits inside a kernel."""
GAMMA: Word = np.uint64(0x9E3779B97F4A7C15)
MIX_1: Word = np.uint64(0xBF58476D1CE4E5B9)
MIX_2: Word = np.uint64(0x94D049BB133111EB)


@part
def splitmix64(word: Word) -> Word:
    """One step of splitmix64. Each bit of the input changes about half of the output bits."""
    word = word + GAMMA
    word = (word ^ (word >> np.uint64(30))) * MIX_1
    word = (word ^ (word >> np.uint64(27))) * MIX_2
    return word ^ (word >> np.uint64(31))


@part
def randint(key: Word, index: int, limit: int) -> int:
    """Random number `index` of the stream `key` (any hashed word), in 0..limit-1; limit < 2**31."""
    return int64(((splitmix64(key + np.uint64(index) * GAMMA) >> np.uint64(32)) * np.uint64(limit)) >> np.uint64(32))
