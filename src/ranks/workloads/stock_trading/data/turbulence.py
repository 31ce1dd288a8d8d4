"""Financial turbulence: how unusual the returns of a day are, compared with the days before it.

Legend: D days, S stocks, N days of a window, C days of a chunk.
"""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

from ranks.errors import UserError
from ranks.workloads.stock_trading.data.indicators import windows
from ranks.workloads.stock_trading.data.prices import Floats

DAYS_PER_STOCK = 3
"""Minimum days of the window for each stock. With fewer days, the covariance is mostly estimation noise (Ledoit & Wolf
2004); with as many stocks as days, the distance is arbitrary."""
CHUNK = 512
"""Days whose covariances are computed at once: 20 MB of returns for 20 stocks."""


def turbulence(close_DS: Floats, days: int = 252) -> Floats:
    """float64[D]: the squared Mahalanobis distance of each day's returns (Kritzman & Li 2010, "Skulls, financial
    turbulence, and risk management"),

        d_t = (r_t - m) C^+ (r_t - m)',

    where mean m and covariance C (ddof 1, pseudo-inverse) are those of the `days` simple returns strictly before day t.
    Its mean is about S. NaN before day `days` + 1.

    A stock counts on a day if it was traded on that day and on all days of its window (its closes are not NaN). Where
    only n of S stocks count, the distance is multiplied by S / n; it is 0 for less than two of them. Raises UserError
    for S < 2, and for S > `days` / 3.
    """
    num_stocks, off = close_DS.shape[1], "turn turbulence off (--features.no-turbulence)"
    if num_stocks < 2:
        do = f"give 2 stocks or more, or {off}"
        raise UserError("the turbulence of a market", f"{num_stocks} stock, too few to compare", do)
    if days < DAYS_PER_STOCK * num_stocks:
        found = f"{num_stocks} stocks, too many for covariances from {days} days"
        do = f"set --features.turbulence-days {DAYS_PER_STOCK * num_stocks} or more, or {off}"
        raise UserError("the turbulence of a market", found, do)
    return_DS = close_DS[1:] / close_DS[:-1] - 1
    counts_DS: npt.NDArray[np.bool_] = np.asarray(np.isfinite(windows(return_DS, days + 1)).all(-1))
    edges = [0, *(np.flatnonzero((counts_DS[1:] != counts_DS[:-1]).any(1)) + 1).tolist(), len(counts_DS)]
    distance_D = [np.full(days + 1, np.nan)]
    for start, stop in itertools.pairwise(edges):  # days on which the same stocks count
        counts_S = counts_DS[start]
        return_RS = np.ascontiguousarray(return_DS[start : stop + days, counts_S])
        num = return_RS.shape[1]
        distance_D.append(_distances(return_RS, days) * (num_stocks / num) if num > 1 else np.zeros(stop - start))
    return np.concatenate(distance_D)


def _distances(return_DS: Floats, days: int) -> Floats:
    """The distance of each day's returns from those of the `days` days before it, from row `days` on."""
    past_DSN, now_DS = windows(return_DS, days)[:-1], return_DS[days:]
    distance_D: list[Floats] = []
    for start in range(0, len(now_DS), CHUNK):
        past_CSN = past_DSN[start : start + CHUNK]
        mean_CS = past_CSN.mean(-1)
        centred_CSN = past_CSN - mean_CS[..., None]
        covariance_CSS = centred_CSN @ centred_CSN.transpose(0, 2, 1) / (days - 1)
        inverse_CSS = np.linalg.pinv(covariance_CSS, hermitian=True)
        deviation_CS = now_DS[start : start + CHUNK] - mean_CS
        distance_D.append((deviation_CS[:, None] @ inverse_CSS @ deviation_CS[..., None])[:, 0, 0])
    return np.concatenate(distance_D)
