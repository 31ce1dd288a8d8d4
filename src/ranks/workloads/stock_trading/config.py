"""Settings of stock-trading. Imports no torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from ranks.engine.config import OptimConfig, free
from ranks.errors import UserError
from ranks.rl.config import PPOConfig
from ranks.workloads.stock_trading.data.config import FeatureConfig
from ranks.workloads.stock_trading.market.config import MarketConfig

MADE = ("martingale", "mean-reverting", "two-regimes")
SHIPPED = "sp500"


@dataclass(frozen=True)
class DataConfig:
    """Which prices, and which of their days are for what. Days are written as 2016-01-04, both ends counted."""

    source: str = SHIPPED
    """sp500 (20 US stocks 1990-2022, which ship with the package), a CSV file of your own, or a made market:
    martingale, mean-reverting, two-regimes."""
    tickers: tuple[str, ...] = ()
    """Only these stocks; without it all."""
    missing: Literal["error", "drop-days", "drop-stocks"] = "error"
    """What to do where a stock has no price on a day; nothing is ever filled in."""
    train_from: str | None = None
    train_to: str | None = None
    validation_from: str | None = None
    """A period between training and test, reported while training; without it there is none."""
    validation_to: str | None = None
    test_from: str | None = None
    """Without any of these days: of sp500 train 2009-01-02 to 2015-09-30 and test 2016-01-04 to 2020-05-08; of other
    prices the first three quarters and the rest."""
    test_to: str | None = None
    embargo_days: int = 60
    """Trading days between two periods that nobody uses; at least the window."""
    made_days: int = 3000
    """Of a made market."""
    made_stocks: int = 4
    made_seed: int = 0

    def __post_init__(self) -> None:
        if min(self.made_days, self.made_stocks) < 1 or self.embargo_days < 0:
            asked = (
                f"--data.made-days {self.made_days} --data.made-stocks {self.made_stocks} "
                f"--data.embargo-days {self.embargo_days}"
            )
            raise UserError(asked, "days and stocks are 1 or more, an embargo 0 or more", "raise them")


@dataclass(frozen=True)
class ModelConfig:
    """The policy: features of the market over a window, then actor and critic with memories of their own."""

    kind: Literal["clstm", "lstm", "mlp"] = "clstm"
    """clstm: an LSTM reads the window, LSTMs of actor and critic read what it says (Zou et al. 2022, arXiv 2212.02721);
    lstm: those of actor and critic read the day itself; mlp: no memory at all (the control)."""
    window: int = 30
    """Days that the first LSTM has read, at least, when it speaks of the last of them."""
    stride: int = 21
    """Consecutive days that share one pass of the first LSTM, so that it has read `window` to `window + stride - 1`
    days; 1 is the paper's way, a pass for each day, and as many times as dear."""
    feature_hidden: int = 128
    hidden: int = 128
    """Hidden numbers of actor and of critic."""
    log_std: float = -0.7
    """Logarithm of the actions' standard deviation at the start; an action of 1 is `max_shares` shares."""

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
    """Accounts that trade at once, all ranks together; a multiple of ppo.minibatches."""
    n_steps: int = 63
    """Days of one rollout; where an episode is a multiple of it, an LSTM runs whole sequences."""
    iterations: int = free(40)
    """Rollouts. 40 of 63 days in 512 accounts are 5,120 episodes of 252 days."""
    eval_every: int = free(10)
    """Iterations between looks at the validation period, where there is one."""

    def __post_init__(self) -> None:
        if min(self.global_batch, self.n_steps, self.iterations, self.eval_every) < 1:
            asked = "--global-batch, --n-steps, --iterations or --eval-every"
            raise UserError(asked, "a number below 1", "give 1 or more")
        if self.data.embargo_days < self.model.window:
            asked = f"--data.embargo-days {self.data.embargo_days}"
            raise UserError(asked, f"a window of {self.model.window} days", "make the embargo as long, at least")


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
    """The first LSTM passes over a window of its own for each day, and turbulent days sell all, as in the paper."""
    market = MarketConfig(turbulence_exit=0.9)
    return replace(Config(), model=ModelConfig(stride=1), market=market)


PRESETS: dict[str, Callable[[], Config]] = {"full": Config, "small": small, "demo": demo, "paper": paper}
"""full: 5,120 episodes of 252 days, 10 passes over each rollout, for a GPU."""
