"""What a policy has to beat: simple rules that trade the same days at the same costs.

A rule names target weights before a day begins, from the closes up to the day before; the orders are sized by money and
filled at that day's price, the open, or the close where only closes are known. Shares are fractions.

Legend: T days of the ledger, P days of a period, D days of a history, S stocks.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ranks.engine.sharding.rng import numpy_generator
from ranks.errors import UserError
from ranks.workloads.stock_trading.data.prices import Floats, Prices
from ranks.workloads.stock_trading.market.config import MarketConfig
from ranks.workloads.stock_trading.market.ledger import Ledger

Rule = Callable[[int, Floats], Floats | None]
"""(number of the day in its period, closes of all days before it [D, S]) -> weights [S], or None: no trade."""

MONTH, YEAR = 21, 252
"""Trading days between rebalancings, and of the history that momentum and variances are taken from."""
WINNERS = 0.3
"""Share of the stocks that momentum holds."""
MOST_STEPS = 2000
"""Of the search for the least variance."""


def follow(prices: Prices, rows: range, rule: Rule, config: MarketConfig) -> Ledger:
    """The books of a rule over the days of `rows`, and the day before them. Weights are 0 or more and add up to 1 at
    most; the rest stays cash. Raises UserError where no day lies before the period, ValueError for other weights."""
    if rows.start < 1:
        do = "begin the period a day later, at least"
        raise UserError(f"a benchmark from {prices.dates_D[rows.start]} on", "no day before it to decide on", do)
    fill_DS, close_DS, num = prices.fill_DS(), prices.close_DS, len(rows) + 1
    cash_T, fee_T, value_T = np.full(num, config.initial_cash), np.zeros(num), np.full(num, config.initial_cash)
    shares_TS, price_TS = np.zeros((num, prices.num_stocks)), np.full((num, prices.num_stocks), np.nan)
    for t, day in enumerate(rows, start=1):
        fill_S, held_S = fill_DS[day - 1], shares_TS[t - 1]
        target_S = rule(t - 1, close_DS[:day])
        if target_S is None:
            shares_TS[t], cash_T[t], price_TS[t] = held_S, cash_T[t - 1], fill_S
        else:
            if not ((target_S >= 0).all() and target_S.sum() <= 1 + 1e-9):
                raise ValueError(f"no weights: {target_S}")
            shares_TS[t], price_TS[t], fee_T[t] = rebalance(cash_T[t - 1], held_S, target_S, fill_S, config)
            paid = float(((shares_TS[t] - held_S) * price_TS[t]).sum() + fee_T[t])
            cash_T[t] = max(cash_T[t - 1] - paid, 0.0)  # where all is invested, rounding leaves a trace
        value_T[t] = cash_T[t] + (shares_TS[t] * close_DS[day]).sum()
    days = slice(rows.start - 1, rows.stop)
    return Ledger(prices.dates_D[days], prices.tickers, cash_T, shares_TS, close_DS[days], price_TS, fee_T, value_T)


def rebalance(
    cash: float, held_S: Floats, target_S: Floats, fill_S: Floats, config: MarketConfig
) -> tuple[Floats, Floats, float]:
    """(shares after, price of each share traded, fees): holdings of `target_S` times the value that is left after all
    costs, V' = V - costs(V'), found by iteration (the costs are a small share of V', so it contracts)."""
    fee, slippage = config.fee, config.slippage
    before = after = cash + float((held_S * fill_S).sum())
    while True:
        traded_S = target_S * after / fill_S - held_S
        price_S = fill_S * (1 + np.sign(traded_S) * slippage)
        fees = float((np.abs(traded_S) * price_S).sum() * fee)
        left = before - fees - float((traded_S * (price_S - fill_S)).sum())
        if abs(left - after) <= 1e-12 * before:
            return held_S + traded_S, price_S, fees
        after = left


def buy_and_hold(prices: Prices, rows: range, config: MarketConfig) -> Ledger:
    """Equal weights, bought on the first day and kept."""
    return follow(prices, rows, lambda day, past_DS: None if day else _equal(past_DS), config)


def equal_weight(prices: Prices, rows: range, config: MarketConfig) -> Ledger:
    """Equal weights again every 21 days (DeMiguel, Garlappi & Uppal 2009: hard to beat)."""
    return follow(prices, rows, _monthly(_equal), config)


def momentum(prices: Prices, rows: range, config: MarketConfig) -> Ledger:
    """12-1 momentum: every 21 days the 30 % of stocks that gained most from 12 months ago to 1 month ago, equally
    weighted (Jegadeesh & Titman 1993, long side). Raises UserError where the history is shorter than a year."""
    _need_year(rows)
    return follow(prices, rows, _monthly(_winners), config)


def min_variance(prices: Prices, rows: range, config: MarketConfig) -> Ledger:
    """Every 21 days the long-only weights of least variance over the 252 days before. Raises UserError where the
    history is shorter."""
    _need_year(rows)
    return follow(prices, rows, _monthly(lambda past_DS: least_variance(np.cov(_returns(past_DS).T))), config)


def random(prices: Prices, rows: range, config: MarketConfig, seed: int = 0) -> Ledger:
    """Every 21 days new weights, uniform over all that are positive and add up to 1."""

    def weights(past_DS: Floats) -> Floats:
        return numpy_generator(seed, "random-weights", len(past_DS), 0).dirichlet(np.ones(past_DS.shape[1]))

    return follow(prices, rows, _monthly(weights), config)


BASELINES: dict[str, Callable[[Prices, range, MarketConfig], Ledger]] = {
    "buy-and-hold": buy_and_hold,
    "equal-weight": equal_weight,
    "momentum": momentum,
    "min-variance": min_variance,
    "random": random,
}
"""An index is `buy_and_hold` of the prices of one stock."""


def least_variance(covariance_SS: Floats) -> Floats:
    """The weights w >= 0 with sum 1 that make w'Cw least, by accelerated projected gradient (Beck & Teboulle 2009)."""
    covariance_SS = np.atleast_2d(covariance_SS)
    step = 1 / float(np.linalg.eigvalsh(covariance_SS)[-1])
    weights_S = ahead_S = np.full(len(covariance_SS), 1 / len(covariance_SS))
    inertia = 1.0
    for _ in range(MOST_STEPS):
        new_S = onto_simplex(ahead_S - step * (covariance_SS @ ahead_S))
        new_inertia = (1 + np.sqrt(1 + 4 * inertia**2)) / 2
        ahead_S = new_S + (inertia - 1) / new_inertia * (new_S - weights_S)
        moved, weights_S, inertia = float(np.abs(new_S - weights_S).max()), new_S, new_inertia
        if moved < 1e-10:
            break
    return weights_S


def onto_simplex(values_S: Floats) -> Floats:
    """The nearest point with no negative number and sum 1 (Duchi et al. 2008)."""
    falling_S = np.sort(values_S)[::-1]
    excess_S = (np.cumsum(falling_S) - 1) / np.arange(1, len(values_S) + 1)
    return np.maximum(values_S - excess_S[np.flatnonzero(falling_S > excess_S)[-1]], 0.0)


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


def _monthly(weights: Callable[[Floats], Floats]) -> Rule:
    return lambda day, past_DS: None if day % MONTH else weights(past_DS)


def _need_year(rows: range) -> None:
    if rows.start <= YEAR:
        found = f"{rows.start} days of history before the period"
        raise UserError(f"a benchmark that looks back on {YEAR} days", found, "begin the period later")
