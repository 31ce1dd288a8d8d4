"""Settings of chess-spiking. This module imports no torch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from ranks.chess.match import OPENING_PLIES
from ranks.engine.config import OptimConfig, at_least, free
from ranks.errors import UserError
from ranks.selfplay.config import ReplayConfig, SelfPlayConfig

ORIGIN_CHANNELS = (64, 128, 256)
"""Channels of the three convolutions of chess-snn-rl."""


@dataclass(frozen=True)
class NetConfig:
    """The net and its neurons."""

    kind: Literal["residual", "origin"] = "residual"
    """residual: blocks of width channels. origin: the net of chess-snn-rl, 64-128-256 channels."""
    neuron: Literal["lif", "relu"] = "lif"
    """lif: leaky integrate-and-fire. relu: the same net without spikes, the control: one step, on the planes
    themselves. It does not use the settings of time steps, coding and neurons."""
    blocks: int = 6
    """Residual blocks."""
    width: int = 64
    """Channels of each block."""
    steps: int = 4
    """Time steps of an evaluation."""
    coding: Literal["direct", "rate"] = "direct"
    """direct: the planes are a constant current. rate: random spikes, more often where a plane is 1."""
    tau: float = 2.0
    """Membrane time constant, in steps; 1 means no memory."""
    threshold: float = 1.0
    """A neuron fires when its potential reaches this."""
    reset: Literal["hard", "soft"] = "hard"
    """hard: the potential is 0 after a spike. soft: it is lowered by the threshold."""
    detach_reset: bool = True
    """No gradient through the reset."""
    alpha: float = 2.0
    """Steepness of the surrogate gradient."""
    groups: int = 8
    """Groups of each group norm; 0: no norm (only the origin's net)."""
    value_channels: int = 16
    """Channels of the value head's own convolution (residual); 0: the value only counts spikes."""
    value_hidden: int = 128
    """Neurons of the value head."""

    def __post_init__(self) -> None:
        for name, fewest in (("width", 1), ("steps", 1), ("value_channels", 0), ("value_hidden", 1)):
            if getattr(self, name) < fewest:
                flag = f"--net.{name.replace('_', '-')}"
                raise UserError(f"{flag} {getattr(self, name)}", f"a size below {fewest}", f"give {fewest} or more")
        if self.blocks < 0:
            raise UserError(f"--net.blocks {self.blocks}", "a negative number of blocks", "give 0 or more")
        if not (1 <= self.tau < math.inf and 0 < self.threshold < math.inf and 0 < self.alpha < math.inf):
            asked = f"--net.tau {self.tau} --net.threshold {self.threshold} --net.alpha {self.alpha}"
            raise UserError(asked, "tau is 1 or more, threshold and alpha are above 0, all finite", "change them")
        least = 1 if self.kind == "residual" else 0
        sizes = (self.width, self.value_channels) if self.kind == "residual" else ORIGIN_CHANNELS
        if self.groups < least or (self.groups and any(size and size % min(self.groups, size) for size in sizes)):
            found = f"it must be {least} or more, and divide the channels {', '.join(map(str, sizes))}"
            raise UserError(f"--net.groups {self.groups}", found, "give 8 groups, or channels that are multiples")


@dataclass(frozen=True)
class Config:
    """Settings of a chess-spiking run."""

    iterations: int = free(500)
    games_per_iteration: int = 1600
    """Games that end in one iteration, on all ranks together."""
    slots: int = 512
    """Games played at the same time, on all ranks together."""
    global_batch: int = 1024
    """Positions of one update, on all ranks together."""
    vf_coef: float = 1.0
    """Factor of the value loss."""
    ent_coef: float = 0.0
    """Factor of the policy's entropy, for games without search."""
    eval_every: int = free(10)
    """Iterations between matches."""
    eval_games: int = free(64)
    """Games of a match, against all opponents together."""
    eval_simulations: int = 32
    """Simulations of each move there; 0: the likeliest move, without search."""
    eval_max_plies: int = free(1000)
    """A longer game there is drawn. (The ladder, whose ratings the opponents have, was played with 1,000.)"""
    snapshot_every: int = free(10)
    """Iterations between weights that the run keeps; run:RUN/ITERATION names them as players."""
    measure_positions: int = 64
    """Positions of the newest games on which spikes are counted, once an iteration."""
    net: NetConfig = NetConfig()
    selfplay: SelfPlayConfig = SelfPlayConfig(opening_plies=8)
    replay: ReplayConfig = ReplayConfig(positions=2_000_000)
    optim: OptimConfig = OptimConfig(lr=1e-3, weight_decay=1e-4, schedule="constant")

    def __post_init__(self) -> None:
        at_least(1, self, "iterations", "games_per_iteration", "slots", "global_batch", "measure_positions")
        at_least(1, self, "eval_every", "eval_games", "snapshot_every")
        if self.eval_max_plies <= OPENING_PLIES:
            found = f"the openings of a match have {OPENING_PLIES} plies, so no move would be played"
            raise UserError(f"--eval-max-plies {self.eval_max_plies}", found, "give some hundred")
        at_least(0, self, "eval_simulations")
        self.replay.check_batch(self.global_batch)
        self.replay.check_search(self.selfplay.search)
        if not (0 <= self.vf_coef < math.inf and 0 <= self.ent_coef < math.inf):
            asked = f"--vf-coef {self.vf_coef} --ent-coef {self.ent_coef}"
            raise UserError(asked, "factors are finite and not negative", "give 0 or more")


def demo() -> Config:
    """The first 7 of the 40 iterations of `small`, which took 30.5 and 53 minutes: 5 to 9 minutes on 2 CPU cores."""
    return replace(small(), iterations=7, eval_every=7)


def small() -> Config:
    """40 iterations, which took 30.5 minutes on 2 CPU cores of an AMD EPYC and 53 on 2 of an Intel Xeon, once each.

    A net of 2 steps, because evaluations are most of the time, and few simulations, because a value learns from many
    games: the first update waits for some hundred of them. The log has what was tried.
    """
    return Config(
        iterations=40,
        games_per_iteration=200,
        slots=128,
        global_batch=128,
        eval_every=10,
        eval_games=40,
        net=NetConfig(blocks=2, width=32, steps=2, value_channels=0, value_hidden=64),
        selfplay=SelfPlayConfig(
            simulations=16, num_considered=8, gumbel_scale=0.5, c_scale=0.5, opening_plies=8, max_plies=200
        ),
        replay=ReplayConfig(reuse=1.5, positions=200_000, first_positions=40_000),
        optim=OptimConfig(lr=2e-3, weight_decay=1e-4, schedule="constant", warmup_updates=100),
    )


def full() -> Config:
    """For a GPU: two batches of 1,024 positions. Give --slots 2048 and --games-per-iteration 2048 for each GPU. All 500
    iterations never ran."""
    return Config(slots=2048, games_per_iteration=2048, net=NetConfig(blocks=10, width=128))


def origin() -> Config:
    """The net of chess-snn-rl (16 steps, rate coding, 64-128-256 channels), trained as there without search, by
    REINFORCE with updates of 256 and an entropy weight of 0.01. Group norm replaces batch norm, and the value is win,
    draw and loss. The page has the other differences."""
    return Config(
        net=NetConfig(kind="origin", steps=16, coding="rate", detach_reset=False),
        selfplay=SelfPlayConfig(search="none"),
        replay=ReplayConfig(reuse=1.0, on_policy=True),
        global_batch=256,
        ent_coef=0.01,
        eval_simulations=0,
        optim=OptimConfig(lr=1e-4, weight_decay=0.0, schedule="constant"),
    )


PRESETS: dict[str, Callable[[], Config]] = {"full": full, "small": small, "demo": demo, "origin": origin}
