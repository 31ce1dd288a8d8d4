"""TradingEnv passes gymnasium's checker and gives the same values as the market."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ranks.workloads.stock_trading.market.config import MarketConfig
from ranks.workloads.stock_trading.market.market import Market

from ..fixtures import bars, days, of_closes

pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env

from ranks.workloads.stock_trading.market.gymnasium_env import TradingEnv

CONFIG = MarketConfig(episode_days=20)


def test_env_passes_the_gymnasium_checker() -> None:
    check_env(TradingEnv(days(bars(60, 3, 0), window=2), CONFIG), skip_render_check=True)


def test_env_equals_the_market() -> None:
    made = days(bars(60, 3, 0), window=2)
    env, market = TradingEnv(made, CONFIG), Market(made, range(1), 11, CONFIG)
    observation, info = env.reset(seed=11)
    actions = np.random.default_rng(0).uniform(-1, 1, (40, 3)).astype(np.float32)
    for number, action in enumerate(actions, start=1):
        np.testing.assert_array_equal(observation, market.observation_vector()[0].numpy())
        observation, reward, terminated, truncated, info = env.step(action)
        transition = market.step(torch.as_tensor(action)[None])
        assert reward == pytest.approx(transition.reward_B.item(), rel=1e-6)
        assert not terminated
        assert truncated is (transition.final_obs is not None) is (number % 20 == 0)
        if transition.final_obs is not None:
            assert isinstance(transition.final_obs, dict)
            np.testing.assert_array_equal(observation, market.vector(transition.final_obs)[0].numpy())
            assert info["value"] == env.market.value_B.item()
            observation, info = env.reset()
    assert info["date"] == str(made.dates_D[int(market.day_B[0])])


def test_ruin_terminates() -> None:
    crash = days(of_closes([10.0], [10.0], [1.0], [10.0]))
    env = TradingEnv(crash, MarketConfig(1000, commission_bps=0, episode_days=2, ruin_fraction=0.2))
    first = next(seed for seed in range(100) if env.reset(seed=seed)[1]["date"] == str(crash.dates_D[0]))
    env.reset(seed=first)
    buy = np.ones(1, np.float32)
    assert env.step(buy)[2:4] == (False, False)
    assert env.step(buy)[2:4] == (True, False)
