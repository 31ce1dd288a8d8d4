"""Financial turbulence: how unusual a day's returns are, against the days before it.

Legend: D days, S stocks, N days of a window, C days of a chunk.
"""

from __future__ import annotations

import numpy as np

from ranks.errors import UserError
from ranks.workloads.stock_trading.data.indicators import windows
from ranks.workloads.stock_trading.data.prices import Floats

DAYS_PER_STOCK = 3
"""A window has as many days for each stock, at least: with fewer, a covariance says more of luck than of the stocks
(Ledoit & Wolf 2004), and with as many stocks as days the distance is noise of any size."""
CHUNK = 512
"""Days whose covariances are made at once: 20 MB of returns for 20 stocks."""


def turbulence(close_DS: Floats, days: int = 252) -> Floats:
    """float64[D]: the squared Mahalanobis distance of each day's returns (Kritzman & Li 2010, "Skulls, financial
    turbulence, and risk management"),

        d_t = (r_t - m) C^+ (r_t - m)',

    where mean m and covariance C (ddof 1, pseudo-inverse) are those of the `days` simple returns strictly before day t.
    NaN before day `days` + 1. Its mean is about S. Raises UserError for fewer than 2 stocks, and for more than a third
    of `days`.
    """
    num_stocks, out = close_DS.shape[1], "leave the turbulence out (--features.no-turbulence)"
    if num_stocks < 2:
        do = f"give 2 stocks or more, or {out}"
        raise UserError("the turbulence of a market", f"{num_stocks} stock, where it compares stocks", do)
    if days < DAYS_PER_STOCK * num_stocks:
        found = f"{num_stocks} stocks, whose covariances {days} days do not tell"
        do = f"set --features.turbulence-days {DAYS_PER_STOCK * num_stocks} or more, or {out}"
        raise UserError("the turbulence of a market", found, do)
    return_DS = close_DS[1:] / close_DS[:-1] - 1
    past_DSN, now_DS = windows(return_DS, days)[:-1], return_DS[days:]
    distance_D = [np.full(days + 1, np.nan)]
    for start in range(0, len(now_DS), CHUNK):
        past_CSN = past_DSN[start : start + CHUNK]
        mean_CS = past_CSN.mean(-1)
        centred_CSN = past_CSN - mean_CS[..., None]
        covariance_CSS = centred_CSN @ centred_CSN.transpose(0, 2, 1) / (days - 1)
        inverse_CSS = np.linalg.pinv(covariance_CSS, hermitian=True)
        surprise_CS = now_DS[start : start + CHUNK] - mean_CS
        distance_D.append((surprise_CS[:, None] @ inverse_CSS @ surprise_CS[..., None])[:, 0, 0])
    return np.concatenate(distance_D)
