"""Counter-based random numbers for compiled searches, without state.

Number i of a seed is a hash of both, by splitmix64.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from ranks import splitmix64
from ranks.jit import inlined
from ranks.splitmix64 import GOLDEN_GAMMA_U64

Word: TypeAlias = Any
"""uint64 in Numba. NumPy's type stubs do not accept uint64 arithmetic here."""
int64: Any = np.int64
"""Conversion of a number to 64 bits inside a kernel."""
uintp: Any = np.uintp
"""Conversion of an index that is not negative: Numba then omits the check for negative indices."""

mix = inlined(splitmix64.mix)


@inlined
def randint(key: Word, index: int, limit: int) -> int:
    """Random number `index` of the stream `key` (any hashed word), in 0..limit-1; limit < 2**31."""
    word = mix(key + np.uint64(index) * GOLDEN_GAMMA_U64)
    return int64(((word >> np.uint64(32)) * np.uint64(limit)) >> np.uint64(32))
