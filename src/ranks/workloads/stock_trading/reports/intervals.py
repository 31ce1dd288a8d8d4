"""What several seeds say together.

Legend: R runs, X resamples.
"""

from __future__ import annotations

import numpy as np

from ranks.engine.draws import numpy_generator
from ranks.workloads.stock_trading.data.prices import Floats

RESAMPLES = 10_000


def iqm(values_XR: Floats) -> Floats:
    """float64[X]: interquartile means, a quarter of the values left out at each end (Agarwal et al. 2021, arXiv
    2108.13264); with fewer than 4 values the mean."""
    cut = values_XR.shape[-1] // 4
    return np.sort(values_XR, -1)[..., cut : values_XR.shape[-1] - cut].mean(-1)


def over_seeds(values_R: Floats, level: float = 0.95, seed: int = 0) -> dict[str, float]:
    """Mean and interquartile mean, and the percentile bootstrap interval of the mean (Efron 1979) where there are two
    runs or more."""
    found = {"mean": float(values_R.mean()), "iqm": float(iqm(values_R)), "runs": float(len(values_R))}
    if len(values_R) < 2:
        return found
    picks_XR = numpy_generator(seed, "bootstrap", 0, 0).integers(0, len(values_R), (RESAMPLES, len(values_R)))
    low, high = np.quantile(values_R[picks_XR].mean(1), [(1 - level) / 2, (1 + level) / 2])
    return {**found, "low": float(low), "high": float(high)}
