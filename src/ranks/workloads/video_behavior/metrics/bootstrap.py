"""Intervals by a bootstrap over animals.

Frames of one animal are not independent, so whole animals are drawn with replacement (Efron & Tibshirani 1993,
chapter 13: percentile intervals). A mean over classes is not defined in a sample that shows one of them nowhere: such
samples are left out, since the mean of the others would be that of an easier task. Random numbers are counter-based:
number i of sample s depends on the seed, s and i alone.

Legend: A animals, S samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ranks.splitmix64 import GOLDEN_GAMMA_U64, mix
from ranks.workloads.video_behavior.metrics.frames import Ints

SAMPLES = 1000


@dataclass(frozen=True)
class AnimalInterval:
    """A value with its 95 % interval; NaN bounds for fewer than two animals."""

    value: float
    low: float
    high: float
    animals: int

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f}, {self.animals} animals)"


def drawn_animals(num_animals: int, samples: int, seed: int) -> Ints:
    """int64[S, A]: how often each animal is in each sample."""
    sample_S1 = np.arange(samples, dtype=np.uint64)[:, None]
    index_A = np.arange(num_animals, dtype=np.uint64)
    with np.errstate(over="ignore"):
        key_S1 = mix(mix(np.uint64(seed % 2**64)) + sample_S1 * GOLDEN_GAMMA_U64)
        word_SA = mix(key_S1 + index_A * GOLDEN_GAMMA_U64)
    drawn_SA = ((word_SA >> np.uint64(32)) * np.uint64(num_animals) >> np.uint64(32)).astype(np.int64)
    at_SA = np.arange(samples)[:, None] * num_animals + drawn_SA
    return np.bincount(at_SA.ravel(), minlength=samples * num_animals).reshape(samples, num_animals).astype(np.int64)


def interval_over_animals(
    counts_A: Ints, metric: Callable[[Ints], float], *, seed: int = 0, samples: int = SAMPLES
) -> AnimalInterval:
    """The metric of all animals with its 95 % interval.

    `counts_A`: int64[A, ...], the counts of each animal. `metric`: of their sum. A sample in which the metric is not
    defined is left out."""
    num_animals = len(counts_A)
    value = metric(counts_A.sum(0))
    if num_animals < 2:
        return AnimalInterval(value, math.nan, math.nan, num_animals)
    weight_SA = drawn_animals(num_animals, samples, seed)
    values_S = np.array([metric(np.tensordot(weight_A, counts_A, 1)) for weight_A in weight_SA])
    values_S = values_S[~np.isnan(values_S)]
    low, high = np.quantile(values_S, (0.025, 0.975)) if len(values_S) else (math.nan, math.nan)
    return AnimalInterval(value, float(low), float(high), num_animals)
