"""Self-play in one file: a net learns Connect Four from its own games, as in AlphaZero.

    ranks train ./template.py          trains on all GPUs, or resumes; --help shows every setting
    ranks evaluate template            plays the newest checkpoint against random moves
    ranks export template              writes weights that plain PyTorch loads

Put your game into `play`, `legal_moves` and `GAME`, its symmetry into `mirror`, what the net sees of
it into `planes`, your net in place of `Net`, and how long a game is into `SELFPLAY`. docs/self-play.md
explains each part.
"""

# B positions, C channels, 7 columns x 6 rows

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ranks import Learner, OptimConfig, Run, Summary, World, at_least, free
from ranks.jit import helper, kernel
from ranks.search import DRAWN, LEGAL_MOVES, LOST, PLAY, Game
from ranks.selfplay import (
    Encoding,
    Positions,
    ReplayConfig,
    ReplayWindow,
    SelfPlay,
    SelfPlayConfig,
    Snapshots,
    alphazero_loss,
    reinforce_loss,
    score_against_random,
)

SHAPE = "self-play"

# YOUR GAME: a state is words of 64 bits, here the stones of the side to move, then those of the other side. Bit
# 7 * column + row is a square; a seventh row, always empty, keeps lines from running on into the next column.
# Numba compiles a kernel, and a helper for kernels to call: use only numbers and arrays in them.
COLUMN, ONE, SEVEN = np.uint64(0b111111), np.uint64(1), np.uint64(7)
BOTTOM = np.uint64(sum(1 << 7 * column for column in range(7)))
FULL = COLUMN * BOTTOM
EMPTY = np.uint64(0)


@helper
def has_four(stones: Any) -> bool:
    """Whether four of these stones are in a line: up, along a row, or along a diagonal."""
    for shift in (np.uint64(1), np.uint64(6), np.uint64(7), np.uint64(8)):
        pairs = stones & (stones >> shift)
        if pairs & (pairs >> (shift + shift)) != EMPTY:
            return True
    return False


@helper
def landing(taken: Any, column: Any) -> Any:
    """The square that the next stone in this column takes, as a bit; EMPTY if the column is full."""
    return (taken + (ONE << SEVEN * column)) & (COLUMN << SEVEN * column)


@kernel(PLAY)
def play(from_states: Any, from_row: int, to_states: Any, to_row: int, move: Any) -> None:
    """Write the state after a move. The side to move changes, so the words change places."""
    mine, theirs = from_states[from_row, 0], from_states[from_row, 1]
    to_states[to_row, 0] = theirs
    to_states[to_row, 1] = mine | landing(mine | theirs, np.uint64(move))


@kernel(LEGAL_MOVES)
def legal_moves(states: Any, row: int, keys: Any, first: int, end: int, moves: Any, at: int) -> int:
    """Write the legal moves from moves[at] on and return their number, or how the game has ended.

    `keys[first:end]` are the keys of the positions before this one: for games where repetition counts.
    """
    mine, theirs = states[row, 0], states[row, 1]
    if has_four(theirs):
        return LOST
    if mine | theirs == FULL:
        return DRAWN
    count = 0
    for column in range(7):
        if landing(mine | theirs, np.uint64(column)) != EMPTY:
            moves[at + count] = column
            count += 1
    return count


# key_word: the word of a state that identifies a position; history: how many earlier keys legal_moves reads.
GAME = Game("template", np.zeros(2, np.uint64), max_moves=7, key_word=0, history=0, play=play, legal_moves=legal_moves)


def planes(positions: Positions) -> Tensor:
    """[B, 2, 7, 6]: own stones and the other side's."""
    squares = torch.arange(49, device=positions.states_BW.device)
    return ((positions.states_BW[:, :, None] >> squares) & 1).unflatten(2, (7, 7))[..., :6]


def mirror(positions: Positions) -> Positions:
    """Left and right exchanged: a position of equal value, so the net learns from both. None without a symmetry."""
    shifts = torch.arange(0, 49, 7, device=positions.states_BW.device)
    columns = (positions.states_BW[:, :, None] >> shifts) & 127
    return replace(positions, states_BW=(columns.flip(2) << shifts).sum(2), moves_BM=6 - positions.moves_BM)


ENCODING = Encoding(planes)

# max_plies: a longer game is cut, and its value is not learned. opening_plies: the most random moves that a game begins
# with, to see many positions; with too many of them a short game is over before anything is learned.
SELFPLAY = SelfPlayConfig(simulations=32, c_scale=0.2, opening_plies=20, max_plies=42)


class Net(nn.Module):
    """YOUR NETWORK: logits of the seven columns, and the expected outcome for the side to move."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.width, self.layers = width, layers
        convolutions = [nn.Conv2d(width if layer else 2, width, 3, padding=1) for layer in range(layers)]
        self.body = nn.Sequential(*(part for layer in convolutions for part in (layer, nn.ReLU())))
        self.policy = nn.Linear(width * 42, 7)
        self.value = nn.Sequential(nn.Linear(width * 42, 64), nn.ReLU(), nn.Linear(64, 1))
        for parameter in self.policy.parameters():
            nn.init.zeros_(parameter)  # a new net finds all moves equally good

    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        features = self.body(planes).flatten(1)
        return self.policy(features), torch.tanh(self.value(features))[:, 0]


@dataclass(frozen=True)
class Config:
    """Every field is a flag. A field marked `free` may change between the sessions of one run."""

    iterations: int = free(100)
    """Each plays games and learns from them."""
    games_per_iteration: int = 512
    """Games that end in an iteration, at least."""
    slots: int = 256
    """Games that are played at the same time, all ranks together."""
    global_batch: int = 256
    """Positions of one update."""
    width: int = 32
    """Channels of the network's layers."""
    layers: int = 4
    """Convolutions of the network."""
    selfplay: SelfPlayConfig = SELFPLAY
    replay: ReplayConfig = ReplayConfig(reuse=4.0, positions=100_000)
    # Constant: how many updates there will be depends on the length of the games.
    optim: OptimConfig = OptimConfig(lr=2e-3, weight_decay=1e-4, schedule="constant")
    eval_every: int = free(10)
    """Iterations between evaluations."""
    eval_games: int = 100
    """Games against random moves of one evaluation."""
    snapshot_every: int = free(10)
    """Iterations between weights that the run keeps."""

    def __post_init__(self) -> None:
        at_least(1, self, "iterations", "games_per_iteration", "slots", "global_batch", "width", "layers")
        at_least(1, self, "eval_every", "eval_games", "snapshot_every")
        self.replay.check_batch(self.global_batch)
        self.replay.check_search(self.selfplay.search)


def build(cfg: Config) -> nn.Module:
    return Net(cfg.width, cfg.layers)


def train(cfg: Config, world: World) -> Summary:
    net = build(cfg)
    loss = partial(reinforce_loss if cfg.selfplay.search == "none" else alphazero_loss, encoding=ENCODING)
    learner = Learner(net, cfg.optim, world, global_batch=cfg.global_batch)
    selfplay = SelfPlay(GAME, ENCODING, cfg.slots, cfg.games_per_iteration, cfg.selfplay, world)
    window = ReplayWindow(GAME, cfg.replay, world, mirror)
    snapshots = Snapshots(net, cfg.snapshot_every, world)
    keep = dict(learner=learner, selfplay=selfplay, window=window, snapshots=snapshots)
    with Run.open(cfg, world, keep=keep) as run:
        for iteration in run.iterations(cfg.iterations, long=True):  # a stop in a long one repeats it on resume
            games = selfplay.play(net, iteration)
            window.add(games)
            for batch in window.batches(cfg.global_batch):
                run.log(learner.step(loss, batch))
            snapshots.take(iteration)
            run.log(games.results(), prefix="rollout")
            run.log(selfplay.statistics(), prefix="selfplay")
            if run.every(cfg.eval_every):
                run.log(evaluate(net, cfg, world), prefix="val")
                run.save()
    return run.finish(export=net)


def evaluate(model: nn.Module, cfg: Config, world: World) -> dict[str, float]:
    """The score against random moves with its 95 % interval, with the search of the training without its noise."""
    return score_against_random(model, GAME, ENCODING, cfg.eval_games, cfg.selfplay, world)
