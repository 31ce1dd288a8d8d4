"""splitmix64, the one mixing function behind all counter-based random numbers and hashes of the package.

Reference: Steele, Lea & Flood 2014, "Fast splittable pseudorandom number generators". The generator adds GOLDEN_GAMMA
to its 64-bit state and returns the mixed state. So its outputs from the state s on are

    mix(s), mix(s + GOLDEN_GAMMA), mix(s + 2 * GOLDEN_GAMMA), ...        all sums and products modulo 2**64

and output number i is computed without the ones before it. From state 0 the first output is 0xE220A8397B1DCDAF.

`mix` is plain Python, for three kinds of words:

- uint64 arrays of NumPy, elementwise;
- single numbers of type np.uint64, under `np.errstate(over="ignore")`, because NumPy warns when a scalar wraps;
- uint64 in kernels, where Numba compiles it into the caller: `mix = inlined(splitmix64.mix)` or
  `mix = helper(splitmix64.mix)` with the decorators of `ranks.jit`. The cache of machine code depends on this file.

Torch has no uint64 arithmetic: code on tensors takes the constants with `as_int64`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

GOLDEN_GAMMA = 0x9E3779B97F4A7C15
"""2**64 divided by the golden ratio, made odd: the step from one state to the next."""
MIX_1 = 0xBF58476D1CE4E5B9
MIX_2 = 0x94D049BB133111EB

GOLDEN_GAMMA_U64: Any = np.uint64(GOLDEN_GAMMA)
MIX_1_U64: Any = np.uint64(MIX_1)
MIX_2_U64: Any = np.uint64(MIX_2)


def mix(state: Any) -> Any:
    """The output of splitmix64 at a 64-bit state; each bit of the input changes about half of the output's bits."""
    word = state + GOLDEN_GAMMA_U64
    word = (word ^ (word >> np.uint64(30))) * MIX_1_U64
    word = (word ^ (word >> np.uint64(27))) * MIX_2_U64
    return word ^ (word >> np.uint64(31))


def as_int64(word: int) -> int:
    """The signed 64-bit integer with the bits of `word`, 0 <= word < 2**64."""
    return word - 2**64 if word >= 2**63 else word
