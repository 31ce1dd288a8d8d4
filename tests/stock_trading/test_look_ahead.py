"""No feature, statistic, order, holding or baseline has look-ahead bias, and the check detects code that has."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
import torch

from ranks.workloads.stock_trading.data.config import FeatureConfig
from ranks.workloads.stock_trading.data.features import Features, Scaler, features_of
from ranks.workloads.stock_trading.data.market_days import PreprocessingStats, make_market_days, turbulence_threshold
from ranks.workloads.stock_trading.data.prices import Prices
from ranks.workloads.stock_trading.data.split import Split
from ranks.workloads.stock_trading.market import baselines
from ranks.workloads.stock_trading.market.config import MarketConfig
from ranks.workloads.stock_trading.market.market import Market

from .fixtures import bars, stocks, with_gaps
from .look_ahead import find_leaks, garbage_after

FEATURES = FeatureConfig(
    trend_days=5, macd_fast=3, macd_slow=6, rsi_days=4, cci_days=5, adx_days=4, level_days=20, turbulence_days=40
)
CONFIG = MarketConfig(turbulence_exit=0.8, episode_days=None)
SPLIT = Split(range(60, 140), None, range(150, 420))
LEAST_SALES = 100
WINDOW = 10
TEN = stocks().tickers[:10]
LEAKS = ("none", "feature", "scaler", "threshold", "fill", "benchmark")


def information(prices: Prices, day: int, leak: str = "none") -> dict[str, npt.NDArray[np.generic]]:
    """Everything that is known at the close of row `day` of the test, computed as in a run, with a policy that uses all
    of its inputs. `leak` adds look-ahead bias in one place."""
    features = features_of(prices, FEATURES)
    if leak == "feature":
        shifted_DSF = features.stock_DSF.copy()
        shifted_DSF[:-1, :, 0] = features.stock_DSF[1:, :, 0]
        features = replace(features, stock_DSF=shifted_DSF)
    whole = range(60, prices.num_days)
    scaler = Scaler.fit(features, whole if leak == "scaler" else SPLIT.train, FEATURES.clip)
    threshold = turbulence_threshold(features, whole if leak == "threshold" else SPLIT.train, CONFIG.turbulence_exit)
    test = make_market_days(prices, features, PreprocessingStats(scaler, threshold), SPLIT.test, WINDOW)
    if leak == "fill":
        test = replace(test, fill_DS=np.concatenate([test.fill_DS[1:], test.fill_DS[-1:]]))
    trades = trades_up_to(Market(test, range(2), 0, CONFIG), day - SPLIT.test.start + 1)
    strategy = baselines.momentum if day > 360 else baselines.random
    baseline = strategy(prices, range(360 if day > 360 else SPLIT.test.start, day + 1), CONFIG)
    if leak == "benchmark":
        baseline = baselines.run_strategy(prices, range(SPLIT.test.start, day + 1), look_ahead_strategy(prices), CONFIG)
    return {
        **of_features(features, day),
        "scaler": np.concatenate([scaler.mean_K, scaler.std_K]),
        "threshold": np.array(threshold),
        "table": scaler.table_DK(features)[: day + 1],
        "benchmark": baseline.value_T,
        **trades,
    }


def of_features(features: Features, day: int) -> dict[str, npt.NDArray[np.generic]]:
    assert features.turbulence_D is not None
    return {"features": features.stock_DSF[: day + 1], "turbulence": features.turbulence_D[: day + 1]}


def trades_up_to(market: Market, num_steps: int) -> dict[str, npt.NDArray[np.generic]]:
    """Observations, actions and accounts of a policy that is linear in the last rows of the table and the account. It
    sells a stock and buys it back often."""
    num = WINDOW * market.table_DF.shape[1] + 2 + market.num_stocks
    weight_FS = torch.randn((num, market.num_stocks), generator=torch.Generator().manual_seed(0)) / num**0.5
    seen: dict[str, list[torch.Tensor]] = {"observation": [], "action": [], "cash": [], "shares": [], "value": []}
    back_W = torch.arange(1 - WINDOW, 1)
    for step in range(num_steps + 1):
        observation = market.observe()
        rows_BF = market.table_DF[observation["day"][:, None] + back_W].flatten(1)
        action_BS = torch.tanh(torch.cat([observation["account"], rows_BF], 1) @ weight_FS)
        now = (market.observation_vector(), action_BS, market.cash_B, market.shares_BS, market.value_B)
        for name, tensor in zip(seen, now, strict=True):
            seen[name].append(tensor)
        if step < num_steps:
            market.advance(action_BS)
    return {name: torch.stack(tensors).numpy() for name, tensors in seen.items()}


def look_ahead_strategy(prices: Prices) -> baselines.Strategy:
    """A strategy with look-ahead bias: weights in proportion to the prices of the next day."""

    def strategy(_: int, past_DS: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        next_S = prices.close_DS[len(past_DS) + 1]
        return next_S / next_S.sum()

    return strategy


@pytest.mark.parametrize("case", range(8))
def test_nothing_changes_with_later_prices(case: int) -> None:
    rng = np.random.default_rng(case)
    prices = [
        bars(440, 3, case),
        replace(bars(440, 4, case), open_DS=None),
        stocks().take(range(6000, 6440)).only(TEN),
        with_gaps(bars(440, 4, case), (0, 0, 100), (1, 200, 210), (2, 250, 440)),
    ][case % 4]
    day = int(rng.integers(SPLIT.test.start + 150, SPLIT.test.stop - 2))
    unchanged = information(prices, day)
    num_sales_B = (np.diff(unchanged["shares"], axis=0) < 0).sum((0, 2))
    assert (num_sales_B >= LEAST_SALES).all(), "a policy that hardly trades cannot show a leak"
    assert find_leaks(lambda p, day: unchanged if p is prices else information(p, day), prices, day, seed=case) == []


@pytest.mark.parametrize("day", [151, 417])
@pytest.mark.parametrize("leak", LEAKS[1:])
def test_leaks_are_detected(leak: str, day: int) -> None:
    names = find_leaks(lambda prices, day: information(prices, day, leak), bars(440, 3, 0), day, seed=0)
    found = {
        "feature": {"features", "table", "observation", "action"},
        "scaler": {"scaler", "table", "observation", "action"},
        "threshold": {"threshold"},
        "fill": {"shares", "value", "observation"},
        "benchmark": {"benchmark"},
    }[leak]
    assert found <= set(names)
    assert not {"turbulence"} & set(names)


def test_garbage_starts_after_the_day() -> None:
    prices = bars(50, 3, 0)
    garbage = garbage_after(prices, 20, seed=1)
    for name, values_DS in prices.fields().items():
        changed_DS = garbage.fields()[name] != values_DS
        assert not changed_DS[:21].any()
        assert changed_DS[21:].all()


def test_names_that_appear_or_disappear_are_reported() -> None:
    prices = bars(50, 3, 0)
    mark = prices.close_DS[-1, 0]
    assert find_leaks(lambda p, day: {"a" if p.close_DS[-1, 0] == mark else "b": np.ones(1)}, prices, 9, 0) == [
        "a",
        "b",
    ]
