"""The task that both sides of trading_recurrent_ppo.py learn: one market, one set of sizes. Imported by both."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, replace
from typing import Any

import torch

from ranks.workloads.stock_trading.config import Config, DataConfig, ModelConfig
from ranks.workloads.stock_trading.data.config import FeatureConfig
from ranks.workloads.stock_trading.market.config import MarketConfig

HORIZON, EPOCHS, MINIBATCHES, HIDDEN = 63, 10, 4, 128
LR, CLIP, NORM, DISCOUNT, LAMBDA, VALUE_WEIGHT = 3e-4, 0.2, 0.5, 0.99, 0.95, 0.5


@dataclass(frozen=True)
class Task:
    """`threads`: of torch. `iterations`: rollouts after the one that is not measured."""

    environments: int
    iterations: int
    seed: int
    threads: int
    source: str

    def config(self) -> Config:
        """LSTMs for actor and critic on the day's features; no KL stop, so the updates are as many on both sides."""
        base = Config()
        made = self.source != "sp500"
        market = MarketConfig(max_shares=10_000 if made else 100, episode_days=4 * HORIZON)
        ppo = replace(base.ppo, epochs=EPOCHS, minibatches=MINIBATCHES, target_kl=None, scale_rewards=False)
        return replace(
            base,
            data=DataConfig(source=self.source, synthetic_days=4_000, synthetic_stocks=2),
            features=FeatureConfig(turbulence=not made),
            market=market,
            model=ModelConfig(kind="lstm", hidden=HIDDEN),
            ppo=replace(ppo, clip=CLIP, discount=DISCOUNT, gae_lambda=LAMBDA, value_weight=VALUE_WEIGHT),
            optim=replace(base.optim, lr=LR, clip_norm=NORM, schedule="constant"),
            global_batch=self.environments,
            horizon=HORIZON,
            iterations=self.iterations + 1,
        )


class Timed:
    """A market whose steps are timed. `spent_s`: since it was last set to 0."""

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


def begin() -> Task:
    """The task that the parent gave as JSON."""
    task = Task(**json.loads(sys.argv[1]))
    torch.set_num_threads(task.threads)
    return task


def tell(**found: Any) -> None:
    """One line of JSON for the parent."""
    print(json.dumps(found), flush=True)
