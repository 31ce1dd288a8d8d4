"""A side of trading.py: RecurrentPPO of sb3-contrib on the same batched market."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import torch
from recurrent_ppo import learn
from stable_baselines3.common.vec_env.base_vec_env import VecEnv
from task import KNOWN, Timed, print_result, read_task

from ranks.workloads.stock_trading.data.periods import load_periods
from ranks.workloads.stock_trading.market.market import Market
from ranks.workloads.stock_trading.tables.known_answers import (
    FIRST_EVALUATION_SEED,
    evaluation_days,
    sharpe_over_years,
    yearly_values,
)


class Accounts(VecEnv):
    """Our market as a vectorised environment of Stable-Baselines3."""

    def __init__(self, market: Market) -> None:
        self.timed, self.market = Timed(market), market
        width = market.observation_vector().shape[1]
        observation = gymnasium.spaces.Box(-np.inf, np.inf, (width,), np.float32)
        action = gymnasium.spaces.Box(-1.0, 1.0, (market.num_stocks,), np.float32)
        super().__init__(market.num_environments, observation, action)

    @property
    def spent_s(self) -> float:
        return self.timed.spent_s

    @spent_s.setter
    def spent_s(self, seconds: float) -> None:
        self.timed.spent_s = seconds

    def _vector(self) -> np.ndarray:
        return self.market.vector(self.timed.observe()).numpy()

    def reset(self) -> np.ndarray:
        return self._vector()

    def step_async(self, actions: np.ndarray) -> None:
        self.actions = torch.from_numpy(actions)

    def step_wait(self) -> Any:
        moved = self.timed.step(self.actions)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if moved.final_obs is not None:
            final = self.market.vector(moved.final_obs).numpy()
            infos = [{"TimeLimit.truncated": True, "terminal_observation": row} for row in final]
        return self._vector(), moved.reward_B.numpy(), moved.ended_B.numpy(), infos

    def close(self) -> None:
        pass

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [None] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        pass

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        return []

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs


def main() -> None:
    task = read_task()
    cfg = task.config()
    accounts = Accounts(Market(load_periods(cfg.periods).train, range(task.environments), task.seed, cfg.market))
    model, found = learn(task, accounts)
    print_result(**found, score=score(model, cfg) if task.source in KNOWN else None)


def score(model: Any, cfg: Any) -> float:
    """The Sharpe ratio on an evaluation market with the most likely actions, as on our side."""
    days = evaluation_days(cfg.periods, FIRST_EVALUATION_SEED, load_periods(cfg.periods).stats)
    market = Market(days, range(1), 0, cfg.market)
    state: Any = None

    def act(obs: dict[str, torch.Tensor]) -> torch.Tensor:
        nonlocal state
        seen = market.vector(obs).numpy()
        action, state = model.predict(seen, state, np.full(len(seen), state is None), deterministic=True)
        return torch.from_numpy(action)

    return sharpe_over_years(yearly_values(days, cfg.market, act)[0])


if __name__ == "__main__":
    main()
