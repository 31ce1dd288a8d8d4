"""Synthetic markets whose optimal policy is known. Closes only, on business days from 2000-01-03.

Legend: D days, S stocks.
"""

from __future__ import annotations

import numpy as np

from ranks.workloads.stock_trading.data.prices import Floats, Prices

FIRST_DAY = np.datetime64("2000-01-03")
START = 100.0
"""Price around which all stocks start."""


def martingale(num_days: int, num_stocks: int, seed: int, volatility: float = 0.01) -> Prices:
    """Geometric random walks, E[p_{t+1} | past] = p_t: trading gains nothing on average, and loses the costs.

    `volatility`: standard deviation of a day's log return.
    """
    noise_DS = _noise("martingale", seed, num_days, num_stocks)
    step_DS = volatility * noise_DS - volatility**2 / 2
    return _prices(np.cumsum(step_DS, 0) - step_DS[:1], f"martingale, seed {seed}")


def mean_reverting(
    num_days: int, num_stocks: int, seed: int, volatility: float = 0.02, half_life: float = 10.0
) -> Prices:
    """Log prices that return to their mean (Uhlenbeck & Ornstein 1930): x_{t+1} = a x_t + noise with a = 2^(-1 / h).

    `volatility`: standard deviation of a day's noise; `half_life`: days until half of a deviation is gone. Prices
    start in their stationary distribution.
    """
    keep = 2 ** (-1 / half_life)
    noise_DS = volatility * _noise("mean-reverting", seed, num_days, num_stocks)
    log_DS = np.empty_like(noise_DS)
    log_DS[0] = noise_DS[0] / np.sqrt(1 - keep**2)
    for day in range(1, num_days):
        log_DS[day] = keep * log_DS[day - 1] + noise_DS[day]
    return _prices(log_DS, f"mean-reverting, seed {seed}")


def two_regimes(
    num_days: int,
    num_stocks: int,
    seed: int,
    volatility: float = 0.01,
    drift: float = 0.003,
    mean_days: float = 60.0,
) -> Prices:
    """Regime-switching random walks that drift up or down by a price change of `drift` a day.

    The direction of each stock flips with probability 1 / `mean_days` a day. The return of one day says little about
    the direction; the mean return of a month says a lot.
    """
    noise_DS = _noise("two-regimes", seed, num_days, num_stocks)
    step_DS = volatility * noise_DS - volatility**2 / 2
    step_DS += np.log1p(drift * directions_DS(num_days, num_stocks, seed, mean_days))
    return _prices(np.cumsum(step_DS, 0) - step_DS[:1], f"two regimes, seed {seed}")


def directions_DS(num_days: int, num_stocks: int, seed: int, mean_days: float = 60.0) -> Floats:
    """float64[D, S]: the hidden direction, 1 or -1, of the step that leads to each day of `two_regimes`."""
    flips_DS = _uniform("two-regimes/flips", seed, num_days, num_stocks) < 1 / mean_days
    first_S = np.where(_uniform("two-regimes/first", seed, 1, num_stocks)[0] < 0.5, 1.0, -1.0)
    return first_S * np.where(np.cumsum(flips_DS, 0) % 2 == 0, 1.0, -1.0)


def _noise(kind: str, seed: int, num_days: int, num_stocks: int) -> Floats:
    """Standard normal; the random numbers of a stock do not depend on the number of stocks."""
    columns = [_generator(seed, kind, stock).standard_normal(num_days) for stock in range(num_stocks)]
    return np.stack(columns, 1)


def _uniform(kind: str, seed: int, num_days: int, num_stocks: int) -> Floats:
    return np.stack([_generator(seed, kind, stock).random(num_days) for stock in range(num_stocks)], 1)


def _generator(seed: int, kind: str, stock: int) -> np.random.Generator:
    from ranks.engine.sharding.rng import numpy_generator  # imports torch, which `--help` must not

    return numpy_generator(seed, kind, 0, stock)


def _prices(log_DS: Floats, source: str) -> Prices:
    dates_D = np.busday_offset(FIRST_DAY, np.arange(len(log_DS)), roll="forward")
    tickers = tuple(f"S{stock}" for stock in range(log_DS.shape[1]))
    return Prices(dates_D, tickers, START * np.exp(log_DS), source=source)
