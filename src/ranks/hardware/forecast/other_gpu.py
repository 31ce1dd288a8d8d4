"""How much faster a GPU is than another one, from their data sheets: a guess, with a wide interval."""

from __future__ import annotations

import math

from ranks.hardware.catalogue.gpus import Gpu
from ranks.hardware.forecast.job import Speedup


def speedup(recorded: Gpu, wanted: Gpu) -> Speedup:
    """Kernels are limited by memory bandwidth, by matrix products, or by their launches, which no GPU makes faster. The
    interval covers all three; its middle is the geometric mean of the first two."""
    if recorded == wanted:
        return Speedup()
    by_memory = wanted.memory_tbs / recorded.memory_tbs
    by_products = wanted.bf16_tflops / recorded.bf16_tflops
    reason = (
        f"recorded on {recorded.name}; {wanted.name} has {by_memory:.2g} times the memory bandwidth and "
        f"{by_products:.2g} times the matrix rate, and launches are not faster"
    )
    rates = by_memory, by_products
    return Speedup(min(1.0, *rates), math.sqrt(by_memory * by_products), max(1.0, *rates), reason)
