"""Settings of stock-trading. Imports no torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from ranks.engine.config import OptimConfig, free
from ranks.errors import UserError
from ranks.rl.config import PPOConfig
from ranks.workloads.stock_trading.data.config import TRADED, DataConfig, FeatureConfig, PeriodsConfig
from ranks.workloads.stock_trading.market.config import MarketConfig


@dataclass(frozen=True)
class ModelConfig:
    """The policy: what reads the market, and an actor and a critic that also observe the account."""

    kind: Literal["shared", "clstm", "lstm", "mlp"] = "shared"
    """shared: moving averages of the market over the window, once for all accounts; actor and critic are MLPs; clstm:
    an LSTM reads the window, the LSTMs of actor and critic read its output (Zou et al. 2022, arXiv 2212.02721); lstm:
    the LSTMs of actor and critic read the day's features; mlp: no memory (the control)."""
    window: int = 30
    """Lookback window in days, up to the present one; with clstm at least so many."""
    stride: int = 21
    """Consecutive days that share one pass of clstm's first LSTM in training. It then reads `window` to
    `window + stride - 1` days. 1 is the paper's way: a pass for each day, at `stride` times the cost."""
    feature_hidden: int = 128
    """Hidden size of clstm's first LSTM."""
    hidden: int = 128
    """Hidden size of actor and critic."""
    activation: Literal["tanh", "hardtanh", "relu"] = "tanh"
    """Of the MLPs of `shared` and `mlp`; LSTMs have tanh. hardtanh is x clamped to -1..1, at a tenth of tanh's cost."""
    log_std: float = -0.7
    """Initial logarithm of the actions' standard deviation; an action of 1 is a change of
    `market.weight_step`."""

    def __post_init__(self) -> None:
        if min(self.window, self.stride, self.feature_hidden, self.hidden) < 1:
            asked = (
                f"--model.window {self.window} --model.stride {self.stride} "
                f"--model.feature-hidden {self.feature_hidden} --model.hidden {self.hidden}"
            )
            raise UserError(asked, "a number below 1", "give 1 or more")


@dataclass(frozen=True)
class Config:
    """Everything that shapes a training run of stock-trading."""

    data: DataConfig = DataConfig()
    features: FeatureConfig = FeatureConfig()
    market: MarketConfig = MarketConfig()
    model: ModelConfig = ModelConfig()
    ppo: PPOConfig = PPOConfig(epochs=10, minibatches=8, ent_coef=0.0, scale_rewards=True, target_kl=0.05)
    optim: OptimConfig = OptimConfig(lr=3e-4, clip_norm=0.5, weight_decay=0.0, eps=1e-5, schedule="linear")
    global_batch: int = 512
    """Accounts that trade at the same time, over all ranks; a multiple of ppo.minibatches."""
    n_steps: int = 63
    """Days of one rollout. Where an episode is a multiple of it, LSTMs run whole sequences without masks."""
    iterations: int = free(40)
    """Rollouts. 40 of 63 days in 512 accounts are 5,120 episodes of 252 days."""
    eval_every: int = free(10)
    """Iterations between backtests of the validation period, where there is one."""

    def __post_init__(self) -> None:
        if min(self.global_batch, self.n_steps, self.iterations, self.eval_every) < 1:
            asked = "--global-batch, --n-steps, --iterations or --eval-every"
            raise UserError(asked, "a number below 1", "give 1 or more")
        if self.data.embargo_days < self.model.window:
            asked = f"--data.embargo-days {self.data.embargo_days}"
            raise UserError(asked, f"a window of {self.model.window} days", "make the embargo at least as long")

    @property
    def periods(self) -> PeriodsConfig:
        """The settings that turn prices into the periods of a run."""
        features, is_masked = self.features, self.data.missing == "not-traded"
        if is_masked and TRADED not in features.names:
            features = replace(features, names=(*features.names, TRADED))
        return PeriodsConfig(self.data, features, self.model.window, self.market.turbulence_exit)


def small() -> Config:
    """Half a minute on 2 CPU cores."""
    return replace(
        Config(),
        model=ModelConfig(feature_hidden=32, hidden=32),
        ppo=replace(Config().ppo, epochs=4, minibatches=4),
        optim=replace(Config().optim, lr=1e-3),
        global_batch=64,
    )


def demo() -> Config:
    """Ten seconds on 2 CPU cores."""
    return replace(small(), global_batch=32, iterations=12)


def paper() -> Config:
    """As in the paper: cascaded LSTMs, a window for each day, and all holdings are sold on turbulent days."""
    market = MarketConfig(turbulence_exit=0.9)
    return replace(Config(), model=ModelConfig(kind="clstm", stride=1), market=market)


PRESETS: dict[str, Callable[[], Config]] = {"full": Config, "small": small, "demo": demo, "paper": paper}
"""full: 5,120 episodes of 252 days, 10 passes over each rollout, for a GPU."""
