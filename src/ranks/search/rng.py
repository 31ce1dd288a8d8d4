"""Counter-based random numbers: each is a hash of its key and its index, so there is no generator and no state.

The same numbers come out on any thread and in any batch. A stream has one 64-bit key, made of the seed, the game's id,
the ply and the purpose. Number i of a stream is output i of splitmix64 from the state `key`.
"""

from __future__ import annotations

import math

import numpy as np

from ranks import splitmix64
from ranks.jit import inlined
from ranks.splitmix64 import GOLDEN_GAMMA_U64

DIRICHLET, GUMBEL = np.uint64(1), np.uint64(2)
"""The purposes of a stream."""
mix = inlined(splitmix64.mix)


@inlined
def stream_key(seed: int, game_id: np.uint64, ply: int, purpose: np.uint64) -> np.uint64:
    """The key of one stream."""
    return mix(mix(mix(mix(np.uint64(seed)) ^ game_id) ^ np.uint64(ply)) ^ purpose)


@inlined
def uniform(key: np.uint64, index: int) -> float:
    """Uniform in the open interval (0, 1): the middle of one of 2**52 equal parts."""
    return (float(mix(key + np.uint64(index) * GOLDEN_GAMMA_U64) >> np.uint64(12)) + 0.5) * 2.0**-52


@inlined
def gumbel(key: np.uint64, index: int) -> float:
    """Standard Gumbel: -log(-log u)."""
    return -math.log(-math.log(uniform(key, index)))


@inlined
def normal(key: np.uint64, index: int) -> float:
    """Standard normal from the uniforms 2*index and 2*index + 1 (Box and Muller 1958)."""
    radius = math.sqrt(-2.0 * math.log(uniform(key, 2 * index)))
    return radius * math.cos(2.0 * math.pi * uniform(key, 2 * index + 1))


@inlined
def log_gamma_sample(shape: float, key: np.uint64) -> float:
    """The logarithm of a Gamma(shape, 1) sample. The logarithm does not underflow for small shapes.

    Marsaglia and Tsang 2000, "A simple method for generating gamma variables". A shape a below one uses
    Gamma(a + 1) * u^(1/a). Attempt i uses the uniforms 4i to 4i + 2.
    """
    boost = 0.0
    if shape < 1.0:
        boost = math.log(uniform(mix(key), 0)) / shape
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    attempt = 0
    while True:
        x = normal(key, 2 * attempt)
        v = (1.0 + c * x) ** 3
        if v > 0.0 and math.log(uniform(key, 4 * attempt + 2)) < 0.5 * x * x + d - d * v + d * math.log(v):
            return math.log(d * v) + boost
        attempt += 1
