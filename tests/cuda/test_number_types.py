"""Recurrent layers stay in float32 under bf16 autocast on a GPU too: the tests of the CPU, with another world."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ranks import RunConfig, World
from tests.cuda.gpu import NEEDS_GPU
from tests.engine.distributed.test_precision import (
    test_a_recurrent_cell_of_any_model_stays_in_float32,
    test_a_recurrent_layer_of_any_model_stays_in_float32,
)

__all__ = [
    "test_a_recurrent_cell_of_any_model_stays_in_float32",
    "test_a_recurrent_layer_of_any_model_stays_in_float32",
]
pytestmark = NEEDS_GPU


@pytest.fixture
def world() -> Iterator[World]:
    made = World.join(RunConfig(precision="bf16", threads=1), device="cuda:0", workload="test")
    yield made
    made.leave()
