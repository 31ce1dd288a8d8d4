"""Baseline strategies that a policy is compared with: they trade the same days in the same market.

A strategy chooses target weights from the closes up to the day before. Its orders have the same limits, costs and
no-trade band as those of a policy. Where a day's limit does not reach the target, the orders of the next days go on.

Legend: D days of a history, S stocks.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ranks.errors import UserError
from ranks.workloads.stock_trading.data.market_days import days_without_features
from ranks.workloads.stock_trading.data.prices import Floats, Prices
from ranks.workloads.stock_trading.market.config import MarketConfig
from ranks.workloads.stock_trading.market.ledger import Ledger

Strategy = Callable[[int, Floats], Floats | None]
"""(index of the day in the period, closes of all days before it [D, S]) -> target weights [S], or None: no new ones.
The stocks are those that are traded on the day before and were `lookback` days ago."""

MONTH, YEAR = 21, 252
"""Trading days between rebalancings, and the lookback window of momentum and covariances."""
WINNERS = 0.3
"""Fraction of the stocks that momentum holds."""
ROUNDING = 1e-9
"""Of a weight."""
MAX_STEPS = 2000
"""Iteration limit of `minimum_variance_weights`."""


def run_strategy(prices: Prices, rows: range, strategy: Strategy, config: MarketConfig, lookback: int = 1) -> Ledger:
    """Run a strategy over the days of `rows`; the ledger starts on the day before. Weights are 0 or more with a sum of
    at most 1; the rest stays cash. Raises UserError if there is no day before the period, ValueError for other
    weights."""
    import torch  # which `--help` must not import

    from ranks.workloads.stock_trading.market.market import Market
    from ranks.workloads.stock_trading.market.simulate import simulate

    if rows.start < 1:
        do = "begin the period at least a day later"
        raise UserError(f"a baseline from {prices.dates_D[rows.start]} on", "no day before it to choose weights on", do)
    config = replace(config, episode_days=None, ruin_fraction=0.0)
    market = Market(days_without_features(prices, rows), range(1), 0, config)
    close_DS, is_traded_DS, step = prices.last_close_DS(), prices.is_traded_DS, config.step_of(prices.num_stocks)
    target_S: Floats | None = None  # None: reached

    def act(obs: dict[str, torch.Tensor]) -> torch.Tensor:
        nonlocal target_S
        day = int(obs["day"])
        past_DS, is_traded_S = close_DS[: rows.start + day], is_traded_DS[rows.start + day - 1]
        chosen_S = _chosen(strategy, day, past_DS, is_traded_S & np.isfinite(past_DS[-min(lookback, len(past_DS))]))
        target_S = target_S if chosen_S is None else chosen_S
        if target_S is None:
            return torch.zeros(1, market.num_stocks)
        move_S = np.where(is_traded_S, target_S - market.weights_BS()[0].numpy(), 0.0) / step
        target_S = None if (np.abs(move_S) <= 1 + ROUNDING).all() else target_S
        return torch.from_numpy(move_S)[None]

    return simulate(market, act)


def _chosen(strategy: Strategy, day: int, past_DS: Floats, is_open_S: npt.NDArray[np.bool_]) -> Floats | None:
    """The target weights of all stocks, 0 for those that are not open. ValueError for weights that are none."""
    if not is_open_S.any():
        return None
    chosen_S = strategy(day, past_DS if is_open_S.all() else past_DS[:, is_open_S])
    if chosen_S is None:
        return None
    if not ((chosen_S >= 0).all() and chosen_S.sum() <= 1 + ROUNDING):
        raise ValueError(f"invalid weights: {chosen_S}")
    target_S = np.zeros(len(is_open_S))
    target_S[is_open_S] = chosen_S
    return target_S


def buy_and_hold(prices: Prices, rows: range, config: MarketConfig) -> Ledger:
    """Buy equal weights and hold them."""
    return run_strategy(prices, rows, lambda day, past_DS: None if day else _equal(past_DS), config)


def equal_weight(prices: Prices, rows: range, config: MarketConfig) -> Ledger:
    """Rebalance to equal weights every 21 days (DeMiguel, Garlappi & Uppal 2009: hard to beat)."""
    return run_strategy(prices, rows, _monthly(_equal), config)


def momentum(prices: Prices, rows: range, config: MarketConfig) -> Ledger:
    """12-1 momentum: every 21 days, equal weights of the 30 % of stocks with the highest return from 12 months to 1
    month ago (Jegadeesh & Titman 1993, long side). Raises UserError if the history is shorter than a year."""
    _require_year(rows)
    return run_strategy(prices, rows, _monthly(_winners), config, YEAR + 1)


def min_variance(prices: Prices, rows: range, config: MarketConfig) -> Ledger:
    """Every 21 days, the long-only minimum-variance weights of the 252 days before. Raises UserError if the history is
    shorter."""
    _require_year(rows)
    weights = _monthly(lambda past_DS: minimum_variance_weights(np.cov(_returns(past_DS).T)))
    return run_strategy(prices, rows, weights, config, YEAR + 1)


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
