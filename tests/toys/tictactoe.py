"""A toy workload: a net learns tic-tac-toe by self-play, without tree search, from the outcome of
the games it has sampled (REINFORCE)."""

# B positions of a batch; planes: own squares, the other side's, 3 x 3

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from ranks import Learner, OptimConfig, Run, Summary, World, free
from ranks.search import TICTACTOE
from ranks.selfplay import Encoding, Positions, ReplayConfig, ReplayWindow, SelfPlay, SelfPlayConfig, reinforce_loss

SHAPE = "self-play"


@dataclass(frozen=True)
class Config:
    iterations: int = free(5)
    global_batch: int = 64
    """Positions of one update."""
    slots: int = 32
    games_per_iteration: int = 48
    width: int = 32
    selfplay: SelfPlayConfig = SelfPlayConfig(search="none", max_plies=9)
    replay: ReplayConfig = ReplayConfig(reuse=1.0, on_policy=True)
    optim: OptimConfig = OptimConfig(lr=3e-3, schedule="constant")


class Net(nn.Module):
    """Logits of the nine squares and the expected outcome for the side to move."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(18, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.policy = nn.Linear(width, 9)
        self.value = nn.Linear(width, 1)

    def forward(self, planes_B233: Tensor) -> tuple[Tensor, Tensor]:
        h = self.body(planes_B233)
        return self.policy(h), torch.tanh(self.value(h))[:, 0]


def planes(positions: Positions) -> Tensor:
    """[B, 2, 3, 3]."""
    squares = torch.arange(9, device=positions.states_BW.device)
    return ((positions.states_BW[:, :, None] >> squares) & 1).unflatten(2, (3, 3))


ENCODING = Encoding(planes)


def build(cfg: Config) -> nn.Module:
    return Net(cfg.width)


def train(cfg: Config, world: World) -> Summary:
    net, loss = build(cfg), partial(reinforce_loss, encoding=ENCODING)
    learner = Learner(net, cfg.optim, world, global_batch=cfg.global_batch)
    selfplay = SelfPlay(TICTACTOE, ENCODING, cfg.slots, cfg.games_per_iteration, cfg.selfplay, world)
    window = ReplayWindow(TICTACTOE, cfg.replay, world)
    with Run.open(cfg, world, keep=dict(learner=learner, selfplay=selfplay, window=window)) as run:
        for iteration in run.iterations(cfg.iterations, long=True):
            games = selfplay.play(net, iteration)
            window.add(games)
            for batch in window.batches(cfg.global_batch):
                run.log(learner.step(loss, batch))
            run.log(games.results(), prefix="rollout")
            run.log(selfplay.statistics(), prefix="selfplay")
    return run.finish(export=net)


def evaluate(model: nn.Module, cfg: Config, world: World) -> dict[str, float]:
    """The shares of results in games of the net against itself."""
    selfplay = SelfPlay(TICTACTOE, ENCODING, cfg.slots, cfg.games_per_iteration, cfg.selfplay, world)
    return selfplay.play(model, 0).results()
