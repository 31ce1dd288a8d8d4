"""Made markets whose best policy is known: nothing to gain, a threshold to find, a regime to remember.

Every policy is trained on one made market and judged on others that come from other seeds, with the scaler of its
training days, in accounts of a year each. Each training is a run of its own, as `ranks train stock-trading` makes it.

Legend: T days, Y years, B accounts, S stocks, G pairs of thresholds.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from ranks.engine.update.evaluate import eval_mode
from ranks.workloads.stock_trading.carried import fitted_of
from ranks.workloads.stock_trading.config import Config, DataConfig, ModelConfig, small
from ranks.workloads.stock_trading.data.config import FeatureConfig
from ranks.workloads.stock_trading.data.features import Features, features_of
from ranks.workloads.stock_trading.data.prices import Floats, Prices
from ranks.workloads.stock_trading.data.synthetic import START
from ranks.workloads.stock_trading.loading import load, prices_of
from ranks.workloads.stock_trading.market.config import MarketConfig
from ranks.workloads.stock_trading.market.days import Days, Fitted, days_of
from ranks.workloads.stock_trading.market.market import Market
from ranks.workloads.stock_trading.market.metrics import YEAR, turnover
from ranks.workloads.stock_trading.market.replay import Act
from ranks.workloads.stock_trading.on_market import OnMarket
from ranks.workloads.stock_trading.one_account import backtest
from ranks.workloads.stock_trading.policy import TradingPolicy

ITERATIONS = 240
"""Rollouts of a training: 967,680 days of accounts."""
JUDGED_DAYS = 10_000
"""About 40 years."""
FIRST_JUDGED_SEED = 1_000
MARTINGALES = 60
"""Markets that a policy is judged on where there is nothing to gain."""
Z_LEVEL = 3.2905
"""Standard normal quantile of a two-sided interval of 99.9 %."""
LIMITS = tuple(np.round(np.arange(0.0, 0.085, 0.005), 3).tolist())
"""Deviations of the logarithm of a price from its mean that the search for thresholds tries."""


def config(source: str, kind: str = "clstm", **changes: object) -> Config:
    """What all three trainings share. `source`: a made market; `kind`: of the policy."""
    features = FeatureConfig(turbulence=False)
    market = MarketConfig(max_shares=2_000, episode_days=252)
    data = DataConfig(source=source, made_days=30_000, made_stocks=4)
    cfg = replace(small(), data=data, features=features, market=market, iterations=ITERATIONS)
    cfg = replace(cfg, model=ModelConfig(kind=kind, feature_hidden=32, hidden=32))  # type: ignore[arg-type]
    return replace(cfg, **changes)  # type: ignore[arg-type]


def martingale() -> Config:
    """Random walks: who trades pays, and gains nothing."""
    cfg = config("martingale")
    return replace(cfg, market=replace(cfg.market, max_shares=500))


def mean_reverting() -> Config:
    """Two prices that return to their mean: buy low, sell high. One day's action moves the whole account."""
    cfg = config("mean-reverting")
    return replace(cfg, data=replace(cfg.data, made_stocks=2), market=replace(cfg.market, max_shares=10_000))


def two_regimes(kind: str) -> Config:
    """A drift that flips, and the day's return as the only thing that is told: who does not remember cannot know."""
    cfg = config("two-regimes", kind)
    return replace(
        cfg,
        data=replace(cfg.data, made_stocks=2),
        features=replace(cfg.features, names=("return",)),
        market=replace(cfg.market, max_shares=10_000),
    )


def judged_days(cfg: Config, seed: int, fitted: Fitted) -> Days:
    """A fresh market of the config's kind, seen as a policy sees it that carries `fitted`."""
    prices, known = _fresh(replace(cfg.data, made_seed=seed, made_days=JUDGED_DAYS), cfg.features)
    rows = range(known.first_day + cfg.model.window, prices.num_days)
    return days_of(prices, known, fitted, rows, cfg.model.window)


@functools.cache
def _fresh(data: DataConfig, features: FeatureConfig) -> tuple[Prices, Features]:
    prices = prices_of(data)
    return prices, features_of(prices, features)


def years_of(days: Days, cfg: Config, act: Act, copies: int = 1) -> Floats:
    """float64[copies, Y, 253]: values of accounts that each trade another year of a period, all years at once, begun
    with cash as in training. The first of the account's copies trades all years, then the second, ..."""
    num_years = days.num_days // YEAR
    market = Market(days, range(copies * num_years), 0, replace(cfg.market, episode_days=YEAR))
    start_B = days.window - 1 + YEAR * torch.arange(num_years).repeat(copies)
    market.load_state_dict(market.state_dict() | {"day": start_B, "start_day": start_B})
    values = [market.value_B]
    for _ in range(YEAR):
        market.advance(act(market.observe()))
        values.append(market.value_B)
    return torch.stack(values, 1).cpu().numpy().reshape(copies, num_years, YEAR + 1)


def by_policy(policy: TradingPolicy, days: Days, cfg: Config) -> Floats:
    """float64[Y, 253]: a policy's years; it takes the likeliest action each day, and begins each year afresh."""
    on_market = OnMarket(policy, torch.as_tensor(days.table_DK), stride=1)
    state = policy.start_state(days.num_days // YEAR)

    def act(obs: dict[str, Tensor]) -> Tensor:
        nonlocal state
        distribution, _, state = on_market.act(obs, state)
        return distribution.mode()

    with eval_mode(policy):
        return years_of(days, cfg, act)[0]


def sharpe_of_years(value_YT: Floats) -> float:
    """Of the daily returns of all years together."""
    return_R = (value_YT[:, 1:] / value_YT[:, :-1] - 1).ravel()
    return float(return_R.mean() / return_R.std(ddof=1) * np.sqrt(YEAR))


@dataclass(frozen=True)
class Excess:
    """Return a year above that of cash, and half the width of its interval."""

    mean: float
    half_width: float


def excess_of(policy: TradingPolicy, cfg: Config) -> Excess:
    """Over the years of `MARTINGALES` fresh markets, which are independent."""
    fitted = fitted_of(policy)
    judged = (judged_days(cfg, FIRST_JUDGED_SEED + number, fitted) for number in range(MARTINGALES))
    value_YT = np.concatenate([by_policy(policy, days, cfg) for days in judged])
    return_Y = value_YT[:, -1] / value_YT[:, 0] - 1
    return Excess(float(return_Y.mean()), float(Z_LEVEL * return_Y.std(ddof=1) / np.sqrt(len(return_Y))))


def turnover_of(policy: TradingPolicy, cfg: Config) -> float:
    """One way, a year's, of one account through all days of a fresh market."""
    days = judged_days(cfg, FIRST_JUDGED_SEED, fitted_of(policy))
    ledger = backtest(policy, days, cfg, torch.device("cpu"))
    return turnover(ledger.notional_T, ledger.value_T)


def sharpe_of(policy: TradingPolicy, cfg: Config) -> float:
    """On a fresh market."""
    return sharpe_of_years(by_policy(policy, judged_days(cfg, FIRST_JUDGED_SEED, fitted_of(policy)), cfg))


def best_threshold(cfg: Config) -> tuple[float, float, float]:
    """(buy below, sell above, Sharpe ratio on the fresh market) of the best pair of thresholds, found by search on the
    training days: where the log price lies that far below its known mean all is bought, above it all is sold."""
    pairs_G2 = np.array(list(itertools.product([-limit for limit in LIMITS] + list(LIMITS[1:]), LIMITS)))
    pairs_G2 = pairs_G2[pairs_G2[:, 0] < pairs_G2[:, 1]]
    periods = load(cfg)
    best = int(np.nanargmax(_by_thresholds(cfg, periods.train, pairs_G2)))
    low, high = pairs_G2[best].tolist()
    judged = judged_days(cfg, FIRST_JUDGED_SEED, periods.fitted)
    return low, high, float(_by_thresholds(cfg, judged, pairs_G2[[best]])[0])


def _by_thresholds(cfg: Config, days: Days, pairs_G2: Floats) -> Floats:
    """float64[G]: the Sharpe ratio of each pair."""
    log_DS, num_years = torch.as_tensor(np.log(days.close_DS / START)), days.num_days // YEAR
    pair_B2 = torch.as_tensor(pairs_G2).repeat_interleave(num_years, 0)

    def act(obs: dict[str, Tensor]) -> Tensor:
        log_BS = log_DS[obs["day"]]
        return (log_BS < pair_B2[:, :1]).double() - (log_BS > pair_B2[:, 1:]).double()

    return np.array([sharpe_of_years(value_YT) for value_YT in years_of(days, cfg, act, len(pairs_G2))])
