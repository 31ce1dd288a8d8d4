"""What several seeds say together.

Legend: R runs, X rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ranks.workloads.stock_trading.data.prices import Floats
from ranks.workloads.stock_trading.market.metrics import BOUNDS

T_975 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)
"""Student's t distribution: its quantile 0.975 by degrees of freedom, from 1; beyond the last one that is taken, which
errs to the wide side."""


def iqm(values_XR: Floats) -> Floats:
    """float64[X]: interquartile means, a quarter of the values left out at each end (Agarwal et al. 2021, arXiv
    2108.13264); with fewer than 4 values the mean."""
    cut = values_XR.shape[-1] // 4
    return np.sort(values_XR, -1)[..., cut : values_XR.shape[-1] - cut].mean(-1)


def measures_over_seeds(found: Sequence[Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """`over_seeds` of each measure, from `metrics.summary` of each run."""
    return {name: over_seeds(np.array([one[name] for one in found]), *BOUNDS.get(name, ())) for name in found[0]}


def over_seeds(values_R: Floats, least: float = -np.inf, most: float = np.inf) -> dict[str, float]:
    """Mean and interquartile mean, and where there are two runs or more the mean's 95 % interval (Student 1908), within
    what the measure can be. A percentile bootstrap of 5 values would hold the mean in 82 of 100 cases, and of 2 in 51.
    """
    found = {"mean": float(values_R.mean()), "iqm": float(iqm(values_R)), "runs": float(len(values_R))}
    if len(values_R) < 2:
        return found
    quantile = T_975[min(len(values_R) - 1, len(T_975)) - 1]
    half = float(quantile * values_R.std(ddof=1) / np.sqrt(len(values_R)))
    return {**found, "low": max(found["mean"] - half, least), "high": min(found["mean"] + half, most)}
