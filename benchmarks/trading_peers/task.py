"""The task of trading_recurrent_ppo.py: the same market and sizes for both sides, which import this file."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, replace
from typing import Any

import torch

from ranks.workloads.stock_trading.config import Config, ModelConfig
from ranks.workloads.stock_trading.data.config import DataConfig, FeatureConfig
from ranks.workloads.stock_trading.market.config import MarketConfig

HORIZON, EPOCHS, MINIBATCHES, HIDDEN = 63, 10, 4, 128
LR, CLIP, NORM, DISCOUNT, LAMBDA, VALUE_WEIGHT = 3e-4, 0.2, 0.5, 0.99, 0.95, 0.5


@dataclass(frozen=True)
class Task:
    """`threads`: of torch. `iterations`: rollouts after the first, which is not measured."""

    environments: int
    iterations: int
    seed: int
    threads: int
    source: str

    def config(self) -> Config:
        """LSTMs for actor and critic on the features of the day; no KL stop, so that both make as many updates."""
        base = Config()
        synthetic = self.source != "sp500"
        market = MarketConfig(episode_days=4 * HORIZON)
        ppo = replace(base.ppo, epochs=EPOCHS, minibatches=MINIBATCHES, target_kl=None, scale_rewards=False)
        return replace(
            base,
            data=DataConfig(source=self.source, synthetic_days=4_000, synthetic_stocks=2),
            features=FeatureConfig(turbulence=not synthetic),
            market=market,
            model=ModelConfig(kind="lstm", hidden=HIDDEN),
            ppo=replace(ppo, clip_range=CLIP, gamma=DISCOUNT, gae_lambda=LAMBDA, vf_coef=VALUE_WEIGHT),
            optim=replace(base.optim, lr=LR, clip_norm=NORM, schedule="constant"),
            global_batch=self.environments,
            n_steps=HORIZON,
            iterations=self.iterations + 1,
        )


class Timed:
    """A market whose steps are timed: `spent_s` adds up their seconds."""

    def __init__(self, market: Any) -> None:
        self.market, self.spent_s = market, 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.market, name)

    def observe(self) -> Any:
        start = time.perf_counter()
        found = self.market.observe()
        self.spent_s += time.perf_counter() - start
        return found

    def step(self, action: Any) -> Any:
        start = time.perf_counter()
        found = self.market.step(action)
        self.spent_s += time.perf_counter() - start
        return found


def read_task() -> Task:
    """The task from the command line, as JSON."""
    task = Task(**json.loads(sys.argv[1]))
    torch.set_num_threads(task.threads)
    return task


def print_result(**result: Any) -> None:
    """Print the result as one line of JSON for the parent process."""
    print(json.dumps(result), flush=True)
