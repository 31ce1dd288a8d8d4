"""Performance metrics of an account's daily values: pure functions on float64, NaN where a metric is undefined.

Returns are simple returns from close to close, a year has 252 trading days, and the risk-free rate is 0.

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
    "trades": (0.0, np.inf),
    "trading_days": (0.0, np.inf),
    "trades_per_year": (0.0, np.inf),
    "trading_days_per_year": (0.0, YEAR),
}
"""Minimum and maximum of the metrics that have them."""


def returns(value_T: Floats) -> Floats:
    """float64[T - 1]: value_t / value_{t-1} - 1."""
    return value_T[1:] / value_T[:-1] - 1


def cumulative_return(value_T: Floats) -> float:
    """Last value over the first, minus 1."""
    return float(value_T[-1] / value_T[0] - 1)


def cagr(value_T: Floats) -> float:
    """Compound annual growth rate: (1 + cumulative return) ^ (252 / R) - 1."""
    return float((value_T[-1] / value_T[0]) ** (YEAR / (len(value_T) - 1)) - 1) if len(value_T) > 1 else np.nan


def volatility(value_T: Floats) -> float:
    """Annualised standard deviation (ddof 1) of the returns: times sqrt(252)."""
    return float(returns(value_T).std(ddof=1) * np.sqrt(YEAR)) if len(value_T) > 2 else np.nan


def sharpe(value_T: Floats) -> float:
    """Annualised Sharpe ratio: mean over standard deviation (ddof 1) of the returns, times sqrt(252) (Sharpe 1966,
    1994)."""
    return _ratio(float(returns(value_T).mean()) * YEAR, volatility(value_T)) if len(value_T) > 2 else np.nan


def sortino(value_T: Floats) -> float:
    """Annualised Sortino ratio: mean of the returns over the downside deviation, times sqrt(252) (Sortino & van der
    Meer 1991; target return 0). The downside deviation is the root of the mean of min(return, 0)^2 over all days."""
    if len(value_T) < 2:
        return np.nan
    return_R = returns(value_T)
    downside = float(np.sqrt((np.minimum(return_R, 0) ** 2).mean()))
    return _ratio(float(return_R.mean() * np.sqrt(YEAR)), downside)


def drawdown(value_T: Floats) -> Floats:
    """float64[T]: value over its maximum up to that day, minus 1; 0 or negative."""
    return value_T / np.maximum.accumulate(value_T) - 1


def max_drawdown(value_T: Floats) -> float:
    """The maximum drawdown; 0 or negative."""
    return float(drawdown(value_T).min())


def calmar(value_T: Floats) -> float:
    """Calmar ratio: compound annual growth rate over the size of the maximum drawdown (Young 1991, there over 36
    months)."""
    return _ratio(cagr(value_T), -max_drawdown(value_T))


def turnover(notional_T: Floats, value_T: Floats) -> float:
    """Annual one-way turnover: half of the traded value, over the mean account value, times 252 / R. The trades of the
    first day count if it is among the days."""
    if len(value_T) < 2:
        return np.nan
    return float(notional_T.sum() / 2 / value_T.mean() * YEAR / (len(value_T) - 1))


def per_year(count: float, num_days: int) -> float:
    """A count over T days, for a year: times 252 / R."""
    return count * YEAR / (num_days - 1) if num_days > 1 else np.nan


def summary(value_T: Floats, notional_T: Floats, commission_T: Floats, trades_T: Floats) -> dict[str, float]:
    """All metrics by name. `notional_T`: traded value of each day. `commission_T`: commissions of each day; `costs` is
    their sum as a fraction of the first account value. `trades_T`: purchases and sales of each day; `trading_days` are
    the days with one or more."""
    num_days, trades, trading_days = len(value_T), float(trades_T.sum()), float((trades_T > 0).sum())
    return {
        "return": cumulative_return(value_T),
        "cagr": cagr(value_T),
        "volatility": volatility(value_T),
        "sharpe": sharpe(value_T),
        "sortino": sortino(value_T),
        "calmar": calmar(value_T),
        "max_drawdown": max_drawdown(value_T),
        "turnover": turnover(notional_T, value_T),
        "costs": float(commission_T.sum() / value_T[0]),
        "trades": trades,
        "trading_days": trading_days,
        "trades_per_year": per_year(trades, num_days),
        "trading_days_per_year": per_year(trading_days, num_days),
    }


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else np.nan
