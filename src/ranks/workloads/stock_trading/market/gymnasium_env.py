"""The market as a `gymnasium.Env` with one account, for other libraries. Needs gymnasium.

Legend: S stocks, A = S + 2 numbers of an account, F columns of the feature table.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
import torch

from ranks.workloads.stock_trading.data.market_days import MarketDays
from ranks.workloads.stock_trading.market.config import MarketConfig
from ranks.workloads.stock_trading.market.market import Market

Vector = npt.NDArray[np.float32]


class TradingEnv(gym.Env[Vector, Vector]):
    """Observation: float32[A + F], see `Market.observation_vector`. Action: float32[S] in -1..1, see `Market.step`.

    `terminated` only when the account falls to `ruin_fraction`, `truncated` at the end of an episode. `info` has `date`
    and `value`.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 gymnasium declares it so

    def __init__(self, days: MarketDays, config: MarketConfig | None = None) -> None:
        """Raises UserError if the period is shorter than an episode."""
        self.days, self.config = days, config or MarketConfig()
        self.market = Market(days, range(1), 0, self.config)
        num_stocks, num = len(days.tickers), self.market.observation_vector().shape[1]
        limit = np.finfo(np.float32).max
        self.action_space = gym.spaces.Box(-1.0, 1.0, (num_stocks,), np.float32)
        self.observation_space = gym.spaces.Box(-limit, limit, (num,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Vector, dict[str, Any]]:
        """Start an episode on a day drawn from `seed`; without it, the next episode of the last seed (0 at first)."""
        super().reset(seed=seed, options=options)
        if seed is not None:
            self.market = Market(self.days, range(1), seed, self.config)
        else:
            self.market.reset()
        return self._observe()

    def step(self, action: Vector) -> tuple[Vector, float, bool, bool, dict[str, Any]]:
        """Give orders at the present close and observe the next close, also at the end of an episode."""
        market, before = self.market, self.market.value_B
        market.advance(torch.as_tensor(np.asarray(action))[None])
        reward = float((market.value_B - before)[0]) * self.config.reward_scale
        is_ruined = float(market.value_B[0]) <= self.config.ruin_fraction * self.config.initial_cash
        is_over = int(market.day_B[0] - market.start_day_B[0]) >= market.episode_days
        observation, info = self._observe()
        return observation, reward, is_ruined, is_over and not is_ruined, info

    def _observe(self) -> tuple[Vector, dict[str, Any]]:
        market = self.market
        date = str(self.days.dates_D[int(market.day_B[0])])
        vector = market.observation_vector()[0].numpy().astype(np.float32)
        return vector, {"date": date, "value": float(market.value_B[0])}
