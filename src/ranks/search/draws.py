"""Random numbers as hashes of what they are for: no generator, no state, the same on any thread and in any batch.

A stream is one 64-bit key, made of the seed, the game's id, the ply and the purpose; number i of a stream is
splitmix64(key + i) (Steele et al. 2014, Fast splittable pseudorandom number generators).
"""

from __future__ import annotations

import math

import numpy as np

from ranks.jit import part

STEP = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)
DIRICHLET, GUMBEL = np.uint64(1), np.uint64(2)
"""Purposes."""


@part
def mix(word: np.uint64) -> np.uint64:
    """Any bit of the input changes about half of the output's."""
    word = word + STEP
    word = (word ^ (word >> np.uint64(30))) * FIRST
    word = (word ^ (word >> np.uint64(27))) * SECOND
    return word ^ (word >> np.uint64(31))


@part
def stream(seed: int, game_id: np.uint64, ply: int, purpose: np.uint64) -> np.uint64:
    """The key of one stream."""
    return mix(mix(mix(mix(np.uint64(seed)) ^ game_id) ^ np.uint64(ply)) ^ purpose)


@part
def uniform(key: np.uint64, index: int) -> float:
    """In (0, 1), never an end of it: the middle of one of 2^52 equal parts."""
    return (float(mix(key + np.uint64(index) * STEP) >> np.uint64(12)) + 0.5) * 2.0**-52


@part
def gumbel(key: np.uint64, index: int) -> float:
    """Standard Gumbel: -log(-log u)."""
    return -math.log(-math.log(uniform(key, index)))


@part
def normal(key: np.uint64, index: int) -> float:
    """Standard normal from the uniforms 2*index and 2*index + 1 (Box and Muller 1958)."""
    radius = math.sqrt(-2.0 * math.log(uniform(key, 2 * index)))
    return radius * math.cos(2.0 * math.pi * uniform(key, 2 * index + 1))


@part
def log_gamma_draw(shape: float, key: np.uint64) -> float:
    """The logarithm of a Gamma(shape, 1) draw, so that small shapes do not underflow.

    Marsaglia and Tsang 2000, A simple method for generating gamma variables; a shape a below one through
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
