"""Random numbers of compiled searches: number i of a seed is a hash of both, so no generator advances.

The hash is splitmix64 (Steele, Lea & Flood 2014, "Fast splittable pseudorandom number generators").
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from ranks.jit import inlined

Word: TypeAlias = Any
"""uint64 to Numba; NumPy's own types do not follow that."""
wide: Any = np.int64
"""Row numbers are reckoned with in 64 bits."""
STEP: Word = np.uint64(0x9E3779B97F4A7C15)
FIRST: Word = np.uint64(0xBF58476D1CE4E5B9)
SECOND: Word = np.uint64(0x94D049BB133111EB)


@inlined
def mix(word: Word) -> Word:
    """Any bit of the input changes about half of the output's."""
    word = word + STEP
    word = (word ^ (word >> np.uint64(30))) * FIRST
    word = (word ^ (word >> np.uint64(27))) * SECOND
    return word ^ (word >> np.uint64(31))


@inlined
def draw(key: Word, index: int, limit: int) -> int:
    """Number `index` of the stream `key` (any mixed word), in 0..limit-1, limit < 2**31."""
    return wide(((mix(key + np.uint64(index) * STEP) >> np.uint64(32)) * np.uint64(limit)) >> np.uint64(32))
