"""splitmix64 gives the published sequence, in NumPy and in kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

from ranks import splitmix64
from ranks.jit import helper, inlined

FROM_0 = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F, 0xF88BB8A8724C81EC, 0x1B39896A51A8749B]
FROM_1234567 = [0x599ED017FB08FC85, 0x2C73F08458540FA5, 0x883EBCE5A3F27C77, 0x3FBEF740E9177B3F, 0xE3B8346708CB5ECD]
"""The first outputs from a state, as the reference implementation in C gives them (Vigna, prng.di.unimi.it)."""


def states(start: int) -> np.ndarray:
    return np.array([(start + i * splitmix64.GOLDEN_GAMMA) % 2**64 for i in range(5)], np.uint64)


def test_arrays() -> None:
    assert splitmix64.mix(states(0)).tolist() == FROM_0
    assert splitmix64.mix(states(1234567)).tolist() == FROM_1234567


def test_single_numbers() -> None:
    with np.errstate(over="ignore"):
        outputs = [splitmix64.mix(state) for state in states(0)]
    assert outputs == FROM_0
    assert {type(output) for output in outputs} == {np.uint64}


@pytest.mark.parametrize("decorator", [helper, inlined])
def test_kernels(decorator: Callable[[Any], Any]) -> None:
    mix = decorator(splitmix64.mix)

    @numba.njit("uint64(uint64)")
    def call(state):
        return mix(state)

    assert [call(state) for state in states(1234567)] == FROM_1234567


def test_constants_as_signed_numbers() -> None:
    """Torch takes them in this form."""
    for constant in (splitmix64.GOLDEN_GAMMA, splitmix64.MIX_1, splitmix64.MIX_2, 5):
        assert splitmix64.as_int64(constant) % 2**64 == constant
        assert -(2**63) <= splitmix64.as_int64(constant) < 2**63
