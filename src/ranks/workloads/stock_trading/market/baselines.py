"""Baseline strategies that a policy is compared with: they trade the same days at the same costs.

A strategy chooses target weights from the closes up to the day before. Orders are sized by value and filled at the
day's open (at its close for close-only prices). Shares may be fractional.

Legend: T days of the ledger, P days of a period, D days of a history, S stocks.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ranks.errors import UserError
from ranks.workloads.stock_trading.data.prices import Floats, Prices
from ranks.workloads.stock_trading.market.config import MarketConfig
from ranks.workloads.stock_trading.market.ledger import Ledger

Strategy = Callable[[int, Floats], Floats | None]
"""(index of the day in the period, closes of all days before it [D, S]) -> target weights [S], or None: no trade."""

MONTH, YEAR = 21, 252
"""Trading days between rebalancings, and the lookback window of momentum and covariances."""
WINNERS = 0.3
"""Fraction of the stocks that momentum holds."""
MAX_STEPS = 2000
"""Iteration limit of `minimum_variance_weights`."""


def run_strategy(prices: Prices, rows: range, strategy: Strategy, config: MarketConfig) -> Ledger:
    """Run a strategy over the days of `rows`; the ledger starts on the day before. Weights are 0 or more with a sum of
    at most 1; the rest stays cash. Raises UserError if there is no day before the period, ValueError for other
    weights."""
    if rows.start < 1:
        do = "begin the period at least a day later"
        raise UserError(f"a baseline from {prices.dates_D[rows.start]} on", "no day before it to choose weights on", do)
    fill_DS, close_DS, num = prices.fill_DS(), prices.close_DS, len(rows) + 1
    cash_T, commission_T, value_T = np.full(num, config.initial_cash), np.zeros(num), np.full(num, config.initial_cash)
    shares_TS, price_TS = np.zeros((num, prices.num_stocks)), np.full((num, prices.num_stocks), np.nan)
    for t, day in enumerate(rows, start=1):
        fill_S, held_S = fill_DS[day - 1], shares_TS[t - 1]
        target_S = strategy(t - 1, close_DS[:day])
        if target_S is None:
            shares_TS[t], cash_T[t], price_TS[t] = held_S, cash_T[t - 1], fill_S
        else:
            if not ((target_S >= 0).all() and target_S.sum() <= 1 + 1e-9):
                raise ValueError(f"invalid weights: {target_S}")
            shares_TS[t], price_TS[t], commission_T[t] = rebalance(cash_T[t - 1], held_S, target_S, fill_S, config)
            paid = float(((shares_TS[t] - held_S) * price_TS[t]).sum() + commission_T[t])
            cash_T[t] = max(cash_T[t - 1] - paid, 0.0)  # if all is invested, rounding may go below 0
        value_T[t] = cash_T[t] + (shares_TS[t] * close_DS[day]).sum()
    days = slice(rows.start - 1, rows.stop)
    return Ledger(
        prices.dates_D[days], prices.tickers, cash_T, shares_TS, close_DS[days], price_TS, commission_T, value_T
    )


def rebalance(
    cash: float, held_S: Floats, target_S: Floats, fill_S: Floats, config: MarketConfig
) -> tuple[Floats, Floats, float]:
    """(shares after, price of each traded share, commissions) of a rebalancing to the weights `target_S`.

    The weights apply to the account's value after costs, V' = V - costs(V'). Fixed-point iteration finds V'; it
    converges because costs are a small fraction of V'.
    """
    commission_rate, slippage = config.commission, config.slippage
    before = after = cash + float((held_S * fill_S).sum())
    while True:
        traded_S = target_S * after / fill_S - held_S
        price_S = fill_S * (1 + np.sign(traded_S) * slippage)
        commissions = float((np.abs(traded_S) * price_S).sum() * commission_rate)
        left = before - commissions - float((traded_S * (price_S - fill_S)).sum())
        if abs(left - after) <= 1e-12 * before:
            return held_S + traded_S, price_S, commissions
        after = left


def buy_and_hold(prices: Prices, rows: range, config: MarketConfig) -> Ledger:
    """Buy equal weights on the first day and hold them."""
    return run_strategy(prices, rows, lambda day, past_DS: None if day else _equal(past_DS), config)


def equal_weight(prices: Prices, rows: range, config: MarketConfig) -> Ledger:
    """Rebalance to equal weights every 21 days (DeMiguel, Garlappi & Uppal 2009: hard to beat)."""
    return run_strategy(prices, rows, _monthly(_equal), config)


def momentum(prices: Prices, rows: range, config: MarketConfig) -> Ledger:
    """12-1 momentum: every 21 days, equal weights of the 30 % of stocks with the highest return from 12 months to 1
    month ago (Jegadeesh & Titman 1993, long side). Raises UserError if the history is shorter than a year."""
    _require_year(rows)
    return run_strategy(prices, rows, _monthly(_winners), config)


def min_variance(prices: Prices, rows: range, config: MarketConfig) -> Ledger:
    """Every 21 days, the long-only minimum-variance weights of the 252 days before. Raises UserError if the history is
    shorter."""
    _require_year(rows)
    return run_strategy(
        prices, rows, _monthly(lambda past_DS: minimum_variance_weights(np.cov(_returns(past_DS).T))), config
    )


def random(prices: Prices, rows: range, config: MarketConfig, seed: int = 0) -> Ledger:
    """Every 21 days, random weights: uniform over all positive weights with sum 1."""
    from ranks.engine.sharding.rng import numpy_generator  # imports torch, which `--help` must not

    def weights(past_DS: Floats) -> Floats:
        return numpy_generator(seed, "random-weights", len(past_DS), 0).dirichlet(np.ones(past_DS.shape[1]))

    return run_strategy(prices, rows, _monthly(weights), config)


BASELINES: dict[str, Callable[[Prices, range, MarketConfig], Ledger]] = {
    "buy-and-hold": buy_and_hold,
    "equal-weight": equal_weight,
    "momentum": momentum,
    "min-variance": min_variance,
    "random": random,
}
"""An index is `buy_and_hold` with the index as the only stock."""


def minimum_variance_weights(covariance_SS: Floats) -> Floats:
    """The weights w >= 0 with sum 1 that minimise w'Cw, by accelerated projected gradient (Beck & Teboulle 2009)."""
    covariance_SS = np.atleast_2d(covariance_SS)
    step = 1 / float(np.linalg.eigvalsh(covariance_SS)[-1])
    weights_S = extrapolated_S = np.full(len(covariance_SS), 1 / len(covariance_SS))
    momentum_term = 1.0
    for _ in range(MAX_STEPS):
        new_S = project_to_simplex(extrapolated_S - step * (covariance_SS @ extrapolated_S))
        new_momentum_term = (1 + np.sqrt(1 + 4 * momentum_term**2)) / 2
        extrapolated_S = new_S + (momentum_term - 1) / new_momentum_term * (new_S - weights_S)
        change, weights_S, momentum_term = float(np.abs(new_S - weights_S).max()), new_S, new_momentum_term
        if change < 1e-10:
            break
    return weights_S


def project_to_simplex(values_S: Floats) -> Floats:
    """The nearest point with non-negative entries and sum 1 (Duchi et al. 2008)."""
    sorted_S = np.sort(values_S)[::-1]
    excess_S = (sorted_S.cumsum() - 1) / _counts(len(values_S))
    last = (sorted_S > excess_S).nonzero()[0][-1]
    return np.maximum(values_S - excess_S[last], 0.0)


@functools.cache
def _counts(num: int) -> npt.NDArray[np.int64]:
    return np.arange(1, num + 1)


def _equal(past_DS: Floats) -> Floats:
    return np.full(past_DS.shape[1], 1 / past_DS.shape[1])


def _winners(past_DS: Floats) -> Floats:
    gain_S = past_DS[-1 - MONTH] / past_DS[-1 - YEAR] - 1
    num = max(1, round(WINNERS * len(gain_S)))
    weights_S = np.zeros(len(gain_S))
    weights_S[np.argsort(-gain_S, kind="stable")[:num]] = 1 / num
    return weights_S


def _returns(past_DS: Floats) -> Floats:
    return past_DS[-YEAR:] / past_DS[-YEAR - 1 : -1] - 1


def _monthly(weights: Callable[[Floats], Floats]) -> Strategy:
    return lambda day, past_DS: None if day % MONTH else weights(past_DS)


def _require_year(rows: range) -> None:
    if rows.start <= YEAR:
        found = f"{rows.start} days of history before the period"
        raise UserError(f"a baseline with a lookback window of {YEAR} days", found, "begin the period later")
