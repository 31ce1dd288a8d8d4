"""What is measured of an account's daily values: pure functions on float64, NaN where a measure is not defined.

Returns are simple returns from close to close, a year has 252 trading days, and the riskless rate is 0.

Legend: T days, values in money; R = T - 1 returns.
"""

from __future__ import annotations

import numpy as np

from ranks.workloads.stock_trading.data.prices import Floats

YEAR = 252
"""Trading days."""
BOUNDS = {
    "return": (-1.0, np.inf),
    "cagr": (-1.0, np.inf),
    "volatility": (0.0, np.inf),
    "max_drawdown": (-1.0, 0.0),
    "turnover": (0.0, np.inf),
    "costs": (0.0, np.inf),
}
"""What a measure can be; the others can be anything."""


def returns(value_T: Floats) -> Floats:
    """float64[T - 1]: value_t / value_{t-1} - 1."""
    return value_T[1:] / value_T[:-1] - 1


def cumulative_return(value_T: Floats) -> float:
    """Last value over the first, less 1."""
    return float(value_T[-1] / value_T[0] - 1)


def cagr(value_T: Floats) -> float:
    """Compound annual growth rate: (1 + cumulative return) ^ (252 / R) - 1."""
    return float((value_T[-1] / value_T[0]) ** (YEAR / (len(value_T) - 1)) - 1) if len(value_T) > 1 else np.nan


def volatility(value_T: Floats) -> float:
    """Standard deviation (ddof 1) of the returns, a year's: times sqrt(252)."""
    return float(returns(value_T).std(ddof=1) * np.sqrt(YEAR)) if len(value_T) > 2 else np.nan


def sharpe(value_T: Floats) -> float:
    """Mean over standard deviation (ddof 1) of the returns, times sqrt(252) (Sharpe 1966, 1994)."""
    return _ratio(float(returns(value_T).mean()) * YEAR, volatility(value_T)) if len(value_T) > 2 else np.nan


def sortino(value_T: Floats) -> float:
    """Mean of the returns over the root of the mean square of the negative ones, all days counted, times sqrt(252)
    (Sortino & van der Meer 1991; target return 0)."""
    if len(value_T) < 2:
        return np.nan
    return_R = returns(value_T)
    downside = float(np.sqrt((np.minimum(return_R, 0) ** 2).mean()))
    return _ratio(float(return_R.mean() * np.sqrt(YEAR)), downside)


def drawdown(value_T: Floats) -> Floats:
    """float64[T]: value over its highest up to that day, less 1; 0 or negative."""
    return value_T / np.maximum.accumulate(value_T) - 1


def max_drawdown(value_T: Floats) -> float:
    """The deepest drawdown; 0 or negative."""
    return float(drawdown(value_T).min())


def calmar(value_T: Floats) -> float:
    """Compound annual growth rate over the depth of the deepest drawdown (Young 1991; there over 36 months)."""
    return _ratio(cagr(value_T), -max_drawdown(value_T))


def turnover(notional_T: Floats, value_T: Floats) -> float:
    """One-way turnover a year: half of the money that changed hands, over the mean value, times 252 / R. The first
    day's trades are counted where it is among the days."""
    if len(value_T) < 2:
        return np.nan
    return float(notional_T.sum() / 2 / value_T.mean() * YEAR / (len(value_T) - 1))


def summary(value_T: Floats, notional_T: Floats, cost_T: Floats) -> dict[str, float]:
    """All of them by name. `notional_T`: money that changed hands on each day; `cost_T`: what the trades cost, of which
    `costs` is the sum, as a share of the first value."""
    return {
        "return": cumulative_return(value_T),
        "cagr": cagr(value_T),
        "volatility": volatility(value_T),
        "sharpe": sharpe(value_T),
        "sortino": sortino(value_T),
        "calmar": calmar(value_T),
        "max_drawdown": max_drawdown(value_T),
        "turnover": turnover(notional_T, value_T),
        "costs": float(cost_T.sum() / value_T[0]),
    }


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else np.nan
