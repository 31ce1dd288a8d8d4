"""The task of trading.py: the same market and sizes for all sides, which import this file."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch

from ranks.workloads.stock_trading.config import Config, ModelConfig
from ranks.workloads.stock_trading.data.config import DataConfig, FeatureConfig
from ranks.workloads.stock_trading.market.config import MarketConfig

EPISODE_DAYS, EPOCHS, MINIBATCHES, HIDDEN = 252, 10, 4, 128
CLIP, NORM, DISCOUNT, LAMBDA, VALUE_WEIGHT = 0.2, 0.5, 0.99, 0.95, 0.5
SP500, KNOWN = "sp500", ("mean-reverting", "two-regimes")
"""The shipped stocks, for speed; markets with a known optimal policy, for Sharpe ratios."""


@dataclass(frozen=True)
class Task:
    """`horizon`: days of a rollout. `iterations`: rollouts after the first, which is not measured. `log_std`,
    `activation`: see ModelConfig; RecurrentPPO has tanh. `finrl`: the file of FinRL's environment."""

    environments: int
    horizon: int
    iterations: int
    seed: int
    source: str
    lr: float
    log_std: float
    activation: Literal["tanh", "hardtanh", "relu"] = "tanh"
    finrl: str = ""

    @property
    def samples(self) -> int:
        """Environment steps of one rollout."""
        return self.environments * self.horizon

    @property
    def updates(self) -> int:
        """Updates from the measured rollouts."""
        return self.iterations * EPOCHS * MINIBATCHES

    def config(self) -> Config:
        """Our side's config; the others read the market's part of it. No KL stop, so all make as many updates."""
        base, is_known = Config(), self.source in KNOWN
        names = ("return",) if self.source == "two-regimes" else FeatureConfig().names
        ppo = replace(base.ppo, epochs=EPOCHS, minibatches=MINIBATCHES, target_kl=None, scale_rewards=False)
        return replace(
            base,
            data=DataConfig(source=self.source, synthetic_days=4_000, synthetic_stocks=2),
            features=FeatureConfig(names=names, turbulence=not is_known),
            market=MarketConfig(episode_days=EPISODE_DAYS),
            model=ModelConfig(hidden=HIDDEN, log_std=self.log_std, activation=self.activation),
            ppo=replace(ppo, clip_range=CLIP, gamma=DISCOUNT, gae_lambda=LAMBDA, vf_coef=VALUE_WEIGHT),
            optim=replace(base.optim, lr=self.lr, clip_norm=NORM, schedule="constant"),
            global_batch=self.environments,
            n_steps=self.horizon,
            iterations=self.iterations + 1,
        )


class Timed:
    """A market whose steps are timed: `spent_s` adds up their CPU seconds."""

    def __init__(self, market: Any) -> None:
        self.market, self.spent_s = market, 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.market, name)

    def observe(self) -> Any:
        start = time.process_time()
        found = self.market.observe()
        self.spent_s += time.process_time() - start
        return found

    def step(self, action: Any) -> Any:
        start = time.process_time()
        found = self.market.step(action)
        self.spent_s += time.process_time() - start
        return found


def read_task() -> Task:
    """The task from the command line, as JSON. Torch uses one thread."""
    task = Task(**json.loads(sys.argv[1]))
    torch.set_num_threads(1)
    return task


def print_result(**result: Any) -> None:
    """Print the result as one line of JSON for the parent process."""
    print(json.dumps(result), flush=True)
