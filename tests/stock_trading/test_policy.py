"""The policy: which days its features use, equal outputs in acting and learning, gradients, no look-ahead."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from ranks.rl.config import PPOConfig
from ranks.rl.ppo import ppo_loss
from ranks.workloads.stock_trading.config import Config, ModelConfig, demo
from ranks.workloads.stock_trading.data.config import DataConfig, FeatureConfig
from ranks.workloads.stock_trading.data.market_days import MarketDays, Periods, make_periods
from ranks.workloads.stock_trading.data.prices import Prices
from ranks.workloads.stock_trading.data.split import Split
from ranks.workloads.stock_trading.market.config import MarketConfig
from ranks.workloads.stock_trading.market.market import Market
from ranks.workloads.stock_trading.policy.market_policy import MarketPolicy
from ranks.workloads.stock_trading.policy.trading_policy import TradingPolicy
from ranks.workloads.stock_trading.training import build

from .fixtures import bars
from .look_ahead import find_leaks
from .rollouts import collected

WINDOW = 10
FEATURES = FeatureConfig(
    trend_days=5, macd_fast=3, macd_slow=6, rsi_days=4, cci_days=5, adx_days=4, level_days=20, turbulence_days=40
)
SPLIT = Split(range(60, 140), None, range(150, 640))
LEAST_SALES = 100


@pytest.mark.parametrize("stride", [1, 5, 21, 40])
def test_features_use_only_days_of_the_window(stride: int) -> None:
    """Reference: run the first LSTM from the first day of a window to the day of the feature."""
    torch.manual_seed(0)
    table_DK = torch.randn(300, 6, dtype=torch.float64)
    policy = TradingPolicy(2, 6, 4, window=WINDOW, stride=stride, feature_hidden=8, hidden=8).double()
    market_policy = MarketPolicy(policy, table_DK)
    day_TB = torch.tensor([[9, 50, 236]]) + torch.arange(63)[:, None]
    some = market_policy.features(day_TB, is_consecutive=True)
    every = market_policy.features(day_TB, is_consecutive=False)
    torch.testing.assert_close(some, every, rtol=0, atol=1e-14)
    assert policy.reader is not None
    for t, b in [(0, 0), (62, 2), (30, 1), (62, 0), (20, 2)]:
        day = int(day_TB[t, b])
        start = (day - (WINDOW - 1)) // stride * stride
        assert day - start >= WINDOW - 1
        hidden, _ = policy.reader(table_DK[start : day + 1, None])
        torch.testing.assert_close(hidden[-1, 0], some[t, b], rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["clstm", "lstm", "mlp"])
def test_unroll_has_the_probabilities_of_acting(kind: str) -> None:
    policy, table_DK, rollout = collected(kind, n_steps=21, episode_days=42, iterations=3)
    assert rollout.first_TB is None
    with torch.no_grad():
        loss = ppo_loss(MarketPolicy(policy, table_DK), rollout, cfg=PPOConfig())
    assert float(loss.metrics["approx_kl"].abs().max()) < 1e-10  # type: ignore[union-attr]
    assert not float(loss.metrics["clip_fraction"].sum())  # type: ignore[union-attr]


def test_unroll_handles_episodes_that_end_inside_a_rollout() -> None:
    policy, table_DK, rollout = collected("clstm", n_steps=20, episode_days=30, iterations=2)
    assert rollout.first_TB is not None
    assert rollout.first_TB[1:].any()
    with torch.no_grad():
        loss = ppo_loss(MarketPolicy(policy, table_DK), rollout, cfg=PPOConfig())
    assert float(loss.metrics["approx_kl"].abs().max()) < 1e-10  # type: ignore[union-attr]


def test_all_three_lstms_learn() -> None:
    """PPO gradients reach the feature extractor; in the original program its features were detached."""
    policy, table_DK, rollout = collected("clstm", n_steps=21, episode_days=42, iterations=1)
    moved = replace(rollout, advantage_TB=torch.randn_like(rollout.advantage_TB))
    ppo_loss(MarketPolicy(policy, table_DK), moved, cfg=PPOConfig()).sum.backward()
    for name in ("reader", "actor.lstm", "critic.lstm"):
        lstm = policy.get_submodule(name)
        assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in lstm.parameters()), name


def test_forward_equals_acting_with_stride_1() -> None:
    """`forward` gets an unscaled window of each day; that equals the features of the table with a stride of 1."""
    torch.manual_seed(0)
    raw_DK = torch.randn(60, 6) * 7 + 3
    policy = TradingPolicy(2, 6, 4, window=WINDOW, stride=7, feature_hidden=8, hidden=8, clip=1.5)
    policy.mean_K.fill_(3.0)
    policy.std_K.fill_(7.0)
    table_DK = ((raw_DK - 3) / 7).clamp(-1.5, 1.5)
    account_BA, day_B = torch.rand(3, 4), torch.tensor([9, 20, 59])
    market_policy = MarketPolicy(policy, table_DK, stride=1)
    inside, value_B, _ = market_policy.act({"day": day_B, "account": account_BA}, policy.start_state(3))
    window_BWK = torch.stack([raw_DK[day - WINDOW + 1 : day + 1] for day in day_B])
    action_BS, same_value_B, state = policy(window_BWK, account_BA, policy.start_state(3))
    torch.testing.assert_close(action_BS, inside.mode().clamp(-1, 1))
    torch.testing.assert_close(same_value_B, value_B)
    assert set(state) == {"actor.h", "actor.c", "critic.h", "critic.c"}


def config() -> Config:
    market = MarketConfig(turbulence_exit=0.9)
    model = ModelConfig(window=WINDOW, stride=7, feature_hidden=8, hidden=8)
    return replace(demo(), data=DataConfig(embargo_days=10), features=FEATURES, market=market, model=model)


def periods(prices: Prices) -> Periods:
    cfg = config()
    return make_periods(prices, SPLIT, cfg.features, WINDOW, cfg.market.turbulence_exit)


def actions_up_to(policy: TradingPolicy, days: MarketDays, cfg: Config, num_steps: int) -> dict[str, np.ndarray]:
    """Actions, values, cash and holdings from the first action of a period to the one `num_steps` later."""
    market = Market(days, range(1), 0, replace(cfg.market, episode_days=None))
    market_policy, state = MarketPolicy(policy, market.table_DF), policy.start_state(1)
    seen: list[list[torch.Tensor]] = []
    with torch.no_grad():
        for step in range(num_steps + 1):
            distribution, value_B, state = market_policy.act(market.observe(), state)
            seen.append([distribution.mode(), value_B, market.cash_B, market.shares_BS])
            if step < num_steps:
                market.advance(distribution.mode())
    names = ("action", "value", "cash", "shares")
    return {name: torch.stack(rows).numpy() for name, rows in zip(names, zip(*seen, strict=True), strict=True)}


@pytest.mark.parametrize("leaks", [False, True])
def test_policy_does_not_look_ahead(leaks: bool) -> None:
    """Replacing all prices after day t by garbage changes no action up to t, by any bit."""
    torch.manual_seed(1)
    cfg, prices = config(), bars(640, 3, 5)
    policy = build(replace(cfg, data=replace(cfg.data, tickers=prices.tickers)))
    with torch.no_grad():
        policy.actor.head.weight.mul_(100.0)  # initial actions are within the no-trade band

    def information(changed: Prices, day: int) -> dict[str, np.ndarray]:
        test = periods(changed).test
        if leaks:
            test = replace(test, table_DK=np.concatenate([test.table_DK[1:], test.table_DK[-1:]]))
        return actions_up_to(policy, test, cfg, day - SPLIT.test.start + 1)

    shares_TBS = information(prices, 450)["shares"]
    assert (np.diff(shares_TBS, axis=0) < 0).sum() >= LEAST_SALES, "a policy that hardly trades cannot show a leak"
    leaks_found = [find_leaks(information, prices, day, seed) for seed, day in enumerate((450, 500, 563, 630))]
    assert any(leaks_found) is leaks
    assert leaks or not any(leaks_found)
