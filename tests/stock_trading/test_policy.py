"""The policy: its memory against a loop, the days of its features, acting equals learning, gradients, no look-ahead."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
import torch

from ranks.rl.config import PPOConfig
from ranks.rl.ppo import ppo_loss
from ranks.workloads.stock_trading.config import Config, ModelConfig, demo
from ranks.workloads.stock_trading.data.config import DataConfig, FeatureConfig
from ranks.workloads.stock_trading.data.market_days import MarketDays, Periods, make_periods
from ranks.workloads.stock_trading.data.prices import Floats, Prices
from ranks.workloads.stock_trading.data.split import Split
from ranks.workloads.stock_trading.market.config import MarketConfig
from ranks.workloads.stock_trading.market.market import Market
from ranks.workloads.stock_trading.policy.branches import MLPBranch
from ranks.workloads.stock_trading.policy.market_policy import MarketPolicy
from ranks.workloads.stock_trading.policy.preprocessing import set_preprocessing
from ranks.workloads.stock_trading.policy.shared_memory import HALF_LIVES, SharedMemory, consecutive
from ranks.workloads.stock_trading.policy.trading_policy import TradingPolicy
from ranks.workloads.stock_trading.training import build

from .fixtures import bars, with_gaps
from .look_ahead import find_leaks
from .rollouts import collected

WINDOW = 10
KINDS = ["shared", "clstm", "lstm", "mlp"]
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
    policy = TradingPolicy(2, 6, 4, "clstm", window=WINDOW, stride=stride, feature_hidden=8, hidden=8).double()
    market_policy = MarketPolicy(policy, policy.read(table_DK))
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


@pytest.mark.parametrize("kind", KINDS)
def test_unroll_has_the_probabilities_of_acting(kind: str) -> None:
    policy, inputs, rollout = collected(kind, n_steps=21, episode_days=42, iterations=3)
    assert rollout.first_TB is None
    with torch.no_grad():
        loss = ppo_loss(MarketPolicy(policy, inputs), rollout, cfg=PPOConfig())
    assert float(loss.metrics["approx_kl"].abs().max()) < 1e-10  # type: ignore[union-attr]
    assert not float(loss.metrics["clip_fraction"].sum())  # type: ignore[union-attr]


def test_unroll_handles_episodes_that_end_inside_a_rollout() -> None:
    policy, inputs, rollout = collected("clstm", n_steps=20, episode_days=30, iterations=2)
    assert rollout.first_TB is not None
    assert rollout.first_TB[1:].any()
    with torch.no_grad():
        loss = ppo_loss(MarketPolicy(policy, inputs), rollout, cfg=PPOConfig())
    assert float(loss.metrics["approx_kl"].abs().max()) < 1e-10  # type: ignore[union-attr]


def test_all_three_lstms_learn() -> None:
    """PPO gradients reach the feature extractor; in the original program its features were detached."""
    policy, inputs, rollout = collected("clstm", n_steps=21, episode_days=42, iterations=1)
    moved = replace(rollout, advantage_TB=torch.randn_like(rollout.advantage_TB))
    ppo_loss(MarketPolicy(policy, inputs), moved, cfg=PPOConfig()).sum.backward()
    for name in ("reader", "actor.lstm", "critic.lstm"):
        lstm = policy.get_submodule(name)
        assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in lstm.parameters()), name


@pytest.mark.parametrize("kind", KINDS)
def test_forward_equals_acting_with_stride_1(kind: str) -> None:
    """`forward` gets an unscaled window of each day; that equals the features of the table with a stride of 1."""
    torch.manual_seed(0)
    raw_DK = torch.randn(60, 6) * 7 + 3
    policy = TradingPolicy(2, 6, 4, kind, window=WINDOW, stride=7, feature_hidden=8, hidden=8, clip=1.5)
    policy.mean_K.fill_(3.0)
    policy.std_K.fill_(7.0)
    table_DK = ((raw_DK - 3) / 7).clamp(-1.5, 1.5)
    if policy.memory is not None:
        policy.memory.fit(table_DK, 2, 0)
    account_BA, day_B = torch.rand(3, 4), torch.tensor([9, 20, 59])
    market_policy = MarketPolicy(policy, policy.read(table_DK, stride=1))
    inside, value_B, _ = market_policy.act({"day": day_B, "account": account_BA}, policy.start_state(3))
    window_BWK = torch.stack([raw_DK[day - WINDOW + 1 : day + 1] for day in day_B])
    action_BS, same_value_B, state = policy(window_BWK, account_BA, policy.start_state(3))
    torch.testing.assert_close(action_BS, inside.mode().clamp(-1, 1))
    torch.testing.assert_close(same_value_B, value_B)
    assert set(state) == ({"actor.h", "actor.c", "critic.h", "critic.c"} if policy.is_recurrent else set())


# The shared memory ----------------------------------------------------------------------------------------------------


def slow_memory(
    table_DK: Floats, day: int, window: int, clip: float, train_DK: Floats, groups: list[list[int]]
) -> Floats:
    """The features of one day and its averages, day by day; scaled by the deviation of the averages of `train_DK`, one
    for each group of columns."""

    def average(of_DK: Floats, last: int, half_life: float) -> Floats:
        total_K, weights = np.zeros(of_DK.shape[1]), 0.0
        for back in range(window):
            weight = 0.5 ** (back / half_life)
            total_K, weights = total_K + weight * of_DK[last - back], weights + weight
        return total_K / weights

    parts = [table_DK[day]]
    for half_life in HALF_LIVES:
        train_NK = np.array([average(train_DK, d, half_life) for d in range(window - 1, len(train_DK))])
        deviation_K = np.ones(table_DK.shape[1])
        for columns in groups:
            deviation_K[columns] = train_NK[:, columns].std() or 1.0
        parts.append(np.clip(average(table_DK, day, half_life) / deviation_K, -clip, clip))
    return np.concatenate(parts)


def test_the_memory_is_that_of_a_loop_over_days() -> None:
    """Two stocks with two features each, and one feature of the market."""
    rng = np.random.default_rng(0)
    train_DK, table_DK = rng.standard_normal((80, 5)), 3 * rng.standard_normal((50, 5))
    train_DK[:, [1, 3]] = 0.25  # constant in training
    train_DK[:, 2] *= 4
    memory = SharedMemory(5, WINDOW, clip=2.0).double()
    memory.fit(torch.as_tensor(train_DK), 2, 1)
    groups = [[0, 2], [1, 3], [4]]
    rows_NF = memory(consecutive(torch.as_tensor(table_DK), WINDOW)).numpy()
    assert rows_NF.shape == (50 - WINDOW + 1, memory.num_features)
    for n, row_F in enumerate(rows_NF):
        slow_F = slow_memory(table_DK, n + WINDOW - 1, WINDOW, 2.0, train_DK, groups)
        np.testing.assert_allclose(row_F, slow_F, atol=1e-12)
    assert (np.abs(rows_NF[:, 5:]) == 2.0).any(), "some averages are clipped"


@pytest.mark.parametrize("turbulence", [True, False])
def test_a_stock_listed_shortly_before_the_end_of_training_is_scaled_like_the_others(turbulence: bool) -> None:
    prices = with_gaps(bars(640, 3, 5), (1, 0, SPLIT.train.stop - 3))
    features = replace(FEATURES, turbulence=turbulence)
    made = make_periods(prices, SPLIT, features, WINDOW)
    cfg = replace(config("shared"), features=features)
    policy = build(replace(cfg, data=replace(cfg.data, tickers=prices.tickers)))
    set_preprocessing(policy, made)
    assert policy.memory is not None
    num_features = len(features.names)
    std_MSF = policy.memory.std_MK[:, : 3 * num_features].unflatten(1, (3, num_features))
    assert (std_MSF == std_MSF[:, :1]).all()
    rows_PF = policy.read(torch.as_tensor(made.test.table_DK)).rows_P
    averages_PMK = rows_PF[:, made.test.table_DK.shape[1] :].unflatten(1, (3, -1))
    is_clipped_PK = (averages_PMK.abs() >= policy.clip).any(1)
    assert is_clipped_PK[:, num_features : 2 * num_features].double().mean() < 0.05
    if turbulence:
        assert (policy.memory.std_MK[:, -1] != std_MSF[:, 0, 0]).all()


def test_the_market_features_have_their_own_deviation() -> None:
    table_DK = torch.tensor([[1.0, 3.0, 100.0], [-1.0, -3.0, -100.0]]).repeat(40, 1)
    memory = SharedMemory(3, 1, clip=5.0)
    memory.fit(table_DK, 2, 1)
    assert memory.std_MK[0].tolist() == pytest.approx([5**0.5, 5**0.5, 100.0])


def slow_mlp(branch: MLPBranch, features_F: Floats, account_A: Floats) -> list[float]:
    """The outputs of actor or critic for one account on one day, number by number."""
    layers = (branch.first, branch.second, branch.head)
    values = [*features_F.tolist(), *account_A.tolist()]
    for number, layer in enumerate(layers):
        rows, biases = layer.weight.tolist(), layer.bias.tolist()
        values = [
            b + math.fsum(w * v for w, v in zip(row, values, strict=True)) for row, b in zip(rows, biases, strict=True)
        ]
        values = values if number == 2 else [SLOW[branch.activation](value) for value in values]
    return values


def clamped(value: float) -> float:
    return min(max(value, -1.0), 1.0)


SLOW = {"tanh": math.tanh, "hardtanh": clamped, "relu": lambda value: max(value, 0.0)}


@pytest.mark.parametrize("activation", SLOW)
@pytest.mark.parametrize("num_accounts", [3, 200], ids=["fewer than days", "more than days"])
def test_actor_and_critic_are_mlps_on_features_and_account(num_accounts: int, activation: str) -> None:
    """Acting, and learning from any days in any order, with the market part computed by row or once for the table."""
    torch.manual_seed(0)
    table_DK, account_BA = torch.randn(60, 3).double(), torch.rand(num_accounts, 4).double()
    policy = TradingPolicy(2, 3, 4, window=WINDOW, hidden=8, activation=activation).double()
    for parameter in policy.parameters():
        torch.nn.init.normal_(parameter)
    market_policy = MarketPolicy(policy, policy.read(table_DK))
    day_B = torch.randint(WINDOW - 1, 60, (num_accounts,))
    acted, value_B, state = market_policy.act({"day": day_B, "account": account_BA}, policy.start_state(num_accounts))
    assert state == {}
    obs = {"day": day_B[None], "account": account_BA[None]}
    learned, value_1B = market_policy.unroll(obs, {}, torch.ones(1, num_accounts, dtype=torch.bool))
    torch.testing.assert_close(learned.mean_A[0], acted.mean_A)
    torch.testing.assert_close(value_1B[0], value_B)
    ones_DK = np.concatenate([np.ones((WINDOW, 3)), -np.ones((WINDOW, 3))])
    assert policy.memory is not None
    assert isinstance(policy.actor, MLPBranch)
    assert isinstance(policy.critic, MLPBranch)
    policy.memory.fit(torch.as_tensor(ones_DK), 1, 0)
    market_policy = MarketPolicy(policy, policy.read(table_DK))
    acted, value_B, _ = market_policy.act({"day": day_B, "account": account_BA}, {})
    for b in range(3):
        features_F = slow_memory(table_DK.numpy(), int(day_B[b]), WINDOW, policy.clip, ones_DK, [[0], [1], [2]])
        account_A = account_BA[b].numpy()
        np.testing.assert_allclose(acted.mean_A[b].detach(), slow_mlp(policy.actor, features_F, account_A), atol=1e-10)
        np.testing.assert_allclose(value_B[b].detach(), slow_mlp(policy.critic, features_F, account_A)[0], atol=1e-10)


def config(kind: Literal["shared", "clstm"]) -> Config:
    market = MarketConfig(turbulence_exit=0.9)
    model = ModelConfig(kind=kind, window=WINDOW, stride=7, feature_hidden=8, hidden=8)
    return replace(demo(), data=DataConfig(embargo_days=10), features=FEATURES, market=market, model=model)


def periods(prices: Prices) -> Periods:
    cfg = config("shared")
    return make_periods(prices, SPLIT, cfg.features, WINDOW, cfg.market.turbulence_exit)


def actions_up_to(policy: TradingPolicy, days: MarketDays, cfg: Config, num_steps: int) -> dict[str, np.ndarray]:
    """Actions, values, cash and holdings from the first action of a period to the one `num_steps` later."""
    market = Market(days, range(1), 0, replace(cfg.market, episode_days=None))
    market_policy, state = MarketPolicy(policy, policy.read(market.table_DF)), policy.start_state(1)
    seen: list[list[torch.Tensor]] = []
    with torch.no_grad():
        for step in range(num_steps + 1):
            distribution, value_B, state = market_policy.act(market.observe(), state)
            seen.append([distribution.mode(), value_B, market.cash_B, market.shares_BS])
            if step < num_steps:
                market.advance(distribution.mode())
    names = ("action", "value", "cash", "shares")
    return {name: torch.stack(rows).numpy() for name, rows in zip(names, zip(*seen, strict=True), strict=True)}


@pytest.mark.parametrize("kind", ["shared", "clstm"])
@pytest.mark.parametrize("leaks", [False, True])
def test_policy_does_not_look_ahead(leaks: bool, kind: Literal["shared", "clstm"]) -> None:
    """Replacing all prices after day t by garbage changes no action up to t, by any bit."""
    torch.manual_seed(1)
    cfg, prices = config(kind), bars(640, 3, 5)
    policy = build(replace(cfg, data=replace(cfg.data, tickers=prices.tickers)))
    with torch.no_grad():
        policy.actor.head.weight.mul_(100.0)  # initial actions are within the no-trade band

    def information(changed: Prices, day: int) -> dict[str, np.ndarray]:
        test = periods(changed).test
        if leaks:
            test = replace(test, table_DK=np.concatenate([test.table_DK[1:], test.table_DK[-1:]]))
        return actions_up_to(policy, test, cfg, day - SPLIT.test.start + 1)

    days = 450, 563, 630
    unchanged = information(prices, days[-1])

    def shown(changed: Prices, day: int) -> dict[str, np.ndarray]:
        if changed is not prices:
            return information(changed, day)
        return {name: rows[: day - SPLIT.test.start + 2] for name, rows in unchanged.items()}

    num_sales = (np.diff(shown(prices, days[0])["shares"], axis=0) < 0).sum()
    assert num_sales >= LEAST_SALES, "a policy that hardly trades cannot show a leak"
    assert any(find_leaks(shown, prices, day, seed) for seed, day in enumerate(days)) is leaks
