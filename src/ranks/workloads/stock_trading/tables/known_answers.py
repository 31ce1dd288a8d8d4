"""Evaluate policies on synthetic markets whose optimal policy is known.

The markets: a martingale (nothing to gain), mean-reverting prices (buy low, sell high), two regimes (remember the
past). A policy is trained on one market and evaluated on markets with other seeds, with the preprocessing statistics of
its training days, in accounts of one year each. Each training is a run like those of `ranks train stock-trading`.

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
from ranks.workloads.stock_trading.config import Config, ModelConfig, small
from ranks.workloads.stock_trading.data.config import DataConfig, FeatureConfig, PeriodsConfig
from ranks.workloads.stock_trading.data.features import Features, features_of
from ranks.workloads.stock_trading.data.market_days import MarketDays, PreprocessingStats, make_market_days
from ranks.workloads.stock_trading.data.periods import load_periods, load_prices
from ranks.workloads.stock_trading.data.prices import Floats, Prices
from ranks.workloads.stock_trading.data.synthetic import START
from ranks.workloads.stock_trading.market.config import MarketConfig
from ranks.workloads.stock_trading.market.market import Market
from ranks.workloads.stock_trading.market.metrics import YEAR, turnover
from ranks.workloads.stock_trading.market.simulate import Act
from ranks.workloads.stock_trading.policy.backtest import backtest
from ranks.workloads.stock_trading.policy.market_policy import MarketPolicy
from ranks.workloads.stock_trading.policy.preprocessing import get_preprocessing
from ranks.workloads.stock_trading.policy.trading_policy import TradingPolicy

ITERATIONS = 240
"""Rollouts of a training: 967,680 environment steps."""
EVALUATION_DAYS = 10_000
"""About 40 years."""
FIRST_EVALUATION_SEED = 1_000
MARTINGALES = 60
"""Evaluation markets of the martingale."""
Z_LEVEL = 3.2905
"""Standard normal quantile of a two-sided 99.9 % interval."""
LIMITS = tuple(np.round(np.arange(0.0, 0.085, 0.005), 3).tolist())
"""Deviations of the log price from its mean that the grid search for thresholds tries."""


def config(source: str, kind: str = "shared", **changes: object) -> Config:
    """The config that all three markets share. `source`: the synthetic market; `kind`: see ModelConfig."""
    features = FeatureConfig(turbulence=False)
    market = MarketConfig(episode_days=252)
    data = DataConfig(source=source, synthetic_days=30_000, synthetic_stocks=4)
    cfg = replace(small(), data=data, features=features, market=market, iterations=ITERATIONS)
    cfg = replace(cfg, model=ModelConfig(kind=kind, feature_hidden=32, hidden=32))  # type: ignore[arg-type]
    return replace(cfg, **changes)  # type: ignore[arg-type]


def martingale() -> Config:
    """Random walks: trading costs money and gains nothing."""
    return config("martingale")


def mean_reverting() -> Config:
    """Two mean-reverting prices: buy low, sell high. The actions of one day can move the whole account."""
    cfg = config("mean-reverting")
    return replace(cfg, data=replace(cfg.data, synthetic_stocks=2))


def two_regimes(kind: str) -> Config:
    """Regime-switching drift, with the return of the day as the only feature: the policy needs memory to find the
    regime."""
    cfg = config("two-regimes", kind)
    return replace(
        cfg,
        data=replace(cfg.data, synthetic_stocks=2),
        features=replace(cfg.features, names=("return",)),
    )


def evaluation_days(config: PeriodsConfig, seed: int, stats: PreprocessingStats) -> MarketDays:
    """A synthetic market with another seed than in training, preprocessed with `stats`."""
    data = replace(config.data, synthetic_seed=seed, synthetic_days=EVALUATION_DAYS)
    prices, features = _prices_and_features(data, config.features)
    rows = range(features.first_day + config.window, prices.num_days)
    return make_market_days(prices, features, stats, rows, config.window)


@functools.cache
def _prices_and_features(data: DataConfig, config: FeatureConfig) -> tuple[Prices, Features]:
    prices = load_prices(data)
    return prices, features_of(prices, config)


def yearly_values(days: MarketDays, config: MarketConfig, act: Act, copies: int = 1) -> Floats:
    """float64[copies, Y, 253]: daily values of accounts that each trade another year of a period.

    All years run at the same time, and each starts with cash as in training. There are `copies` accounts for each year:
    the first copy of all years comes first, then the second.
    """
    num_years = days.num_days // YEAR
    market = Market(days, range(copies * num_years), 0, replace(config, episode_days=YEAR))
    start_B = days.window - 1 + YEAR * torch.arange(num_years).repeat(copies)
    market.load_state_dict(market.state_dict() | {"day": start_B, "start_day": start_B})
    values = [market.value_B]
    for _ in range(YEAR):
        market.advance(act(market.observe()))
        values.append(market.value_B)
    return torch.stack(values, 1).cpu().numpy().reshape(copies, num_years, YEAR + 1)


def policy_yearly_values(policy: TradingPolicy, days: MarketDays, config: MarketConfig) -> Floats:
    """float64[Y, 253]: `yearly_values` of a policy that takes the most likely actions and starts each
    year without a state."""
    market_policy = MarketPolicy(policy, policy.read(torch.as_tensor(days.table_DK), stride=1))
    state = policy.start_state(days.num_days // YEAR)

    def act(obs: dict[str, Tensor]) -> Tensor:
        nonlocal state
        distribution, _, state = market_policy.act(obs, state)
        return distribution.mode()

    with eval_mode(policy):
        return yearly_values(days, config, act)[0]


def sharpe_over_years(value_YT: Floats) -> float:
    """The Sharpe ratio of the daily returns of all years together."""
    return_R = (value_YT[:, 1:] / value_YT[:, :-1] - 1).ravel()
    return float(return_R.mean() / return_R.std(ddof=1) * np.sqrt(YEAR))


@dataclass(frozen=True)
class Excess:
    """Mean annual return above that of cash, and half the width of its confidence interval."""

    mean: float
    half_width: float


def excess_return(policy: TradingPolicy, config: PeriodsConfig, market: MarketConfig) -> Excess:
    """The excess return of a policy over the years of `MARTINGALES` independent markets."""
    stats = get_preprocessing(policy)
    periods = (evaluation_days(config, FIRST_EVALUATION_SEED + number, stats) for number in range(MARTINGALES))
    value_YT = np.concatenate([policy_yearly_values(policy, days, market) for days in periods])
    return_Y = value_YT[:, -1] / value_YT[:, 0] - 1
    return Excess(float(return_Y.mean()), float(Z_LEVEL * return_Y.std(ddof=1) / np.sqrt(len(return_Y))))


def policy_turnover(policy: TradingPolicy, config: PeriodsConfig, market: MarketConfig) -> float:
    """Annual one-way turnover of one account over all days of an evaluation market."""
    days = evaluation_days(config, FIRST_EVALUATION_SEED, get_preprocessing(policy))
    ledger = backtest(policy, days, market, torch.device("cpu"))
    return turnover(ledger.notional_T, ledger.value_T)


def policy_sharpe(policy: TradingPolicy, config: PeriodsConfig, market: MarketConfig) -> float:
    """The Sharpe ratio of a policy on an evaluation market."""
    days = evaluation_days(config, FIRST_EVALUATION_SEED, get_preprocessing(policy))
    return sharpe_over_years(policy_yearly_values(policy, days, market))


def best_threshold(config: PeriodsConfig, market: MarketConfig) -> tuple[float, float, float]:
    """(buy below, sell above, Sharpe ratio on an evaluation market) of the best threshold strategy.

    The strategy buys all it can where the log price minus its known mean is below the first threshold, and sells all
    it can above the second, in the market of the policies: with the same limit of a day's orders, costs and no-trade
    band. A grid search on the training days finds the pair.
    """
    pairs_G2 = np.array(list(itertools.product([-limit for limit in LIMITS] + list(LIMITS[1:]), LIMITS)))
    pairs_G2 = pairs_G2[pairs_G2[:, 0] < pairs_G2[:, 1]]
    periods = load_periods(config)
    best = int(np.nanargmax(_threshold_sharpes(market, periods.train, pairs_G2)))
    low, high = pairs_G2[best].tolist()
    days = evaluation_days(config, FIRST_EVALUATION_SEED, periods.stats)
    return low, high, float(_threshold_sharpes(market, days, pairs_G2[[best]])[0])


def _threshold_sharpes(config: MarketConfig, days: MarketDays, pairs_G2: Floats) -> Floats:
    """float64[G]: the Sharpe ratio of each pair of thresholds."""
    log_DS, num_years = torch.as_tensor(np.log(days.close_DS / START)), days.num_days // YEAR
    pair_B2 = torch.as_tensor(pairs_G2).repeat_interleave(num_years, 0)

    def act(obs: dict[str, Tensor]) -> Tensor:
        log_BS = log_DS[obs["day"]]
        return (log_BS < pair_B2[:, :1]).double() - (log_BS > pair_B2[:, 1:]).double()

    return np.array([sharpe_over_years(value_YT) for value_YT in yearly_values(days, config, act, len(pairs_G2))])
