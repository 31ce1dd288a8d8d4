"""A split or a dividend of the future rescales all adjusted prices before it, and must not change the past."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch

from ranks.workloads.stock_trading.config import Config, ModelConfig, demo
from ranks.workloads.stock_trading.data.config import DataConfig, FeatureConfig
from ranks.workloads.stock_trading.data.features import features_of
from ranks.workloads.stock_trading.data.periods import load_prices, prepare_periods
from ranks.workloads.stock_trading.data.prices import Prices
from ranks.workloads.stock_trading.market import baselines
from ranks.workloads.stock_trading.market.config import MarketConfig
from ranks.workloads.stock_trading.market.ledger import Ledger
from ranks.workloads.stock_trading.policy.backtest import backtest
from ranks.workloads.stock_trading.runs.trained_run import load_run

from .fixtures import bars, days, simulate_actions, stocks, train_run

POWERS = np.array([0.25, 8.0, 1.0, 2.0**-20])
OTHERS = np.array([1 / 3, 7.0, 1.0, 1e-3])
CONFIGS = {"default": MarketConfig(), "costs, no band": MarketConfig(slippage_bps=20.0, no_trade_band=0.0)}
PRICES = {"bars": bars(330, 4, 3), "closes": stocks().take(range(6000, 6330)).only(stocks().tickers[:4])}


def rescaled(prices: Prices, factor_S: npt.NDArray[np.float64]) -> Prices:
    fields = {name: values * (1.0 if name == "volume" else factor_S) for name, values in prices.fields().items()}
    return Prices.of(prices.dates_D, prices.tickers, fields, prices.source, has_gaps=prices.has_gaps)


def money(ledger: Ledger) -> dict[str, npt.NDArray[np.float64]]:
    """All columns of a ledger that are amounts of money."""
    return {
        "cash": ledger.cash_T,
        "held": ledger.shares_TS * ledger.close_TS,
        "traded": (ledger.traded_TS * ledger.price_TS)[1:],
        "commission": ledger.commission_T,
        "value": ledger.value_T,
    }


def books(prices: Prices, config: MarketConfig) -> list[Ledger]:
    """Of random orders, and of all baselines, over the last 60 days."""
    test = range(prices.num_days - 60, prices.num_days)
    actions = np.random.default_rng(0).uniform(-1, 1, (len(test) - 1, prices.num_stocks))
    others = [baseline(prices, test, config) for baseline in baselines.BASELINES.values()]
    return [simulate_actions(days(prices.take(test)), actions, config), *others]


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("prices", PRICES.values(), ids=PRICES)
def test_a_power_of_two_changes_no_bit_of_any_book_or_feature(prices: Prices, config: MarketConfig) -> None:
    other = rescaled(prices, POWERS)
    for one, same in zip(books(prices, config), books(other, config), strict=True):
        assert one.trades_T.sum() > 3
        for name, column in money(one).items():
            np.testing.assert_array_equal(column, money(same)[name], name)
    before, after = (features_of(p, FeatureConfig(turbulence_days=60)).flat_DK for p in (prices, other))
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("prices", PRICES.values(), ids=PRICES)
def test_another_factor_changes_books_and_features_by_rounding(prices: Prices, config: MarketConfig) -> None:
    other = rescaled(prices, OTHERS)
    for one, same in zip(books(prices, config), books(other, config), strict=True):
        for name, column in money(one).items():
            np.testing.assert_allclose(column, money(same)[name], rtol=1e-9, atol=1e-9 * 1e6, err_msg=name)
    one, same = (features_of(p, FeatureConfig(turbulence_days=60)).flat_DK for p in (prices, other))
    np.testing.assert_allclose(one, same, rtol=1e-9, atol=1e-9)


def test_shares_of_a_rescaled_history_would_differ() -> None:
    """The counter-test: whole shares are not free of scale."""
    prices, config = PRICES["closes"], MarketConfig(initial_cash=10_000, whole_shares=True)
    one, same = books(prices, config)[0], books(rescaled(prices, POWERS), config)[0]
    assert (one.value_T != same.value_T).any()


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Config, Path]:
    folder = tmp_path_factory.mktemp("scale")
    cfg = replace(
        demo(),
        data=DataConfig(source="mean-reverting", synthetic_days=1200, synthetic_stocks=4, embargo_days=30),
        features=FeatureConfig(turbulence=False),
        model=ModelConfig(hidden=16, feature_hidden=16),
        optim=replace(demo().optim, lr=3e-3),
        iterations=12,
    )
    train_run(cfg, folder, "run")
    return cfg, folder


@pytest.mark.parametrize("factor_S", [POWERS, OTHERS], ids=["powers of two", "others"])
def test_a_trained_policy_reaches_the_same_value(
    trained: tuple[Config, Path], factor_S: npt.NDArray[np.float64]
) -> None:
    run = load_run("run", trained[1])
    prices = load_prices(run.cfg.data)
    one, same = (
        backtest(run.policy, prepare_periods(run.cfg.periods, p).test, run.cfg.market, torch.device("cpu"))
        for p in (prices, rescaled(prices, factor_S))
    )
    assert one.trades_T.sum() > 50, "it must trade"
    if factor_S is POWERS:
        np.testing.assert_array_equal(one.value_T, same.value_T)
    np.testing.assert_allclose(one.value_T[-1], same.value_T[-1], rtol=1e-4)
