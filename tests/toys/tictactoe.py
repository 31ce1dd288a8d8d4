"""A toy workload: a net learns tic-tac-toe by self-play. The random numbers of a game depend on its
id.

A slot starts a new game as soon as one ends, so a game's id is (slot, number in the slot). An
iteration ends at the first tick at which enough games have ended. Unfinished games continue with
the new weights.
"""

# G slots, P positions of the window, B positions of a batch; a board has 9 squares: +1 own stone,
# -1 the other's, 0

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ranks import Learner, Loss, OptimConfig, Run, ShardItems, StepBatch, Summary, World, eval_mode, free, rng

SHAPE = "self-play"
LINES = torch.tensor([[0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 3, 6], [1, 4, 7], [2, 5, 8], [0, 4, 8], [2, 4, 6]])


@dataclass(frozen=True)
class Config:
    iterations: int = free(5)
    global_batch: int = 64
    """Positions of one update."""
    slots: int = 32
    games_per_iteration: int = 48
    window_games: int = 300
    updates: int = 4
    width: int = 32
    optim: OptimConfig = OptimConfig(lr=3e-3, schedule="constant")


class Net(nn.Module):
    """Logits of the nine squares and the expected outcome for the side to move."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.body = nn.Sequential(nn.Linear(9, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.policy = nn.Linear(width, 9)
        self.value = nn.Linear(width, 1)

    def forward(self, board_B9: Tensor) -> tuple[Tensor, Tensor]:
        h = self.body(board_B9)
        return self.policy(h), torch.tanh(self.value(h))[:, 0]


@dataclass(frozen=True)
class Positions:
    """`outcome_P`: +1, 0, -1 for the side to move. `game_P`: slot * 2**20 + number in the slot;
    `ply_P`."""

    game_P: Tensor
    ply_P: Tensor
    board_P9: Tensor
    move_P: Tensor
    outcome_P: Tensor

    def __len__(self) -> int:
        return len(self.game_P)

    def __getitem__(self, index: Tensor) -> Positions:
        return Positions(**{n: v[index] for n, v in vars(self).items()})


def replay(game: int, moves: list[int]) -> tuple[list[tuple[int, int, list[int], int, float]], bool]:
    """A game's positions with the outcome for the side to move, and whether the game has ended."""
    board, rows = torch.zeros(9, dtype=torch.int64), list[tuple[int, int, list[int], int, float]]()
    side, winner = 1, 0
    for ply, move in enumerate(moves):
        rows.append((game, ply, (board * side).tolist(), move, float(side)))
        board[move] = side
        if bool((board[LINES].sum(1) == 3 * side).any()):
            winner = side
        side = -side
    return [(g, p, b, m, winner * s) for g, p, b, m, s in rows], winner != 0 or len(moves) == 9


class SelfPlay:
    """This rank's slots. A game is saved as its list of moves, padded with -1."""

    def __init__(self, cfg: Config, world: World) -> None:
        self.cfg, self.world = cfg, world
        slots = world.items(cfg.slots)
        self.moves = {slot: list[int]() for slot in slots}
        self.number = dict.fromkeys(slots, 0)
        mine = [ids for _, ids in world.shard_items(cfg.slots)] if world.exact else [slots]
        self.groups = [list(ids) for ids in mine if len(ids)]

    def play(self, net: Net, iteration: int) -> Positions:
        """All positions of the games that ended, from all ranks, ordered by game."""
        finished, ended, tick = list[tuple[int, int, list[int], int, float]](), 0.0, 0
        with self.world.session.timed("acting"), eval_mode(net, self.world):
            while ended < self.cfg.games_per_iteration:
                self.world.check_stop()
                before = len(finished)
                games = sum(self._tick(net, group, iteration, tick, finished) for group in self.groups)
                ended += self.world.comm.sum_host([float(games)])[0]
                assert games == 0 or len(finished) > before
                tick += 1
        every = sorted(row for rows in self.world.comm.gather_objects(finished) for row in rows)
        game, ply, board, move, outcome = zip(*every, strict=True)
        dtype = torch.get_default_dtype()
        tensors = (torch.tensor(game), torch.tensor(ply), torch.tensor(board), torch.tensor(move))
        return Positions(*tensors, torch.tensor(outcome, dtype=dtype))

    def _tick(self, net: Net, group: list[int], iteration: int, tick: int, finished: list[Any]) -> int:
        """One move in every slot of a group; the net sees the whole group, always of the same
        size."""
        boards = [self._board(slot) for slot in group]
        board_B9 = torch.tensor(boards, dtype=torch.get_default_dtype(), device=self.world.device)
        logits_B9, _ = net(board_B9)
        noise_B9 = rng.gumbel(rng.key(self.world.seed, "move", iteration * 10_000 + tick), torch.tensor(group), 9)
        score_B9 = (logits_B9.cpu() + noise_B9.to(logits_B9.dtype)).masked_fill(board_B9.cpu() != 0, -torch.inf)
        games = 0
        for slot, move in zip(group, score_B9.argmax(1).tolist(), strict=True):
            self.moves[slot].append(move)
            rows, ended = replay(slot * 2**20 + self.number[slot], self.moves[slot])
            if ended:
                finished += rows
                games += 1
                self.moves[slot], self.number[slot] = [], self.number[slot] + 1
        return games

    def _board(self, slot: int) -> list[int]:
        board, side = [0] * 9, 1
        for move in self.moves[slot]:
            board[move], side = side, -side
        return [square * side for square in board]

    def state_dict(self) -> dict[str, Any]:
        rows = [[self.number[s], *self.moves[s], *[-1] * (9 - len(self.moves[s]))] for s in self.moves]
        mine = torch.tensor(rows, dtype=torch.int64).reshape(-1, 10)
        return {"slots_G10": self.world.gather_rows(mine, self.cfg.slots)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for slot in self.moves:
            number, *moves = state["slots_G10"][slot].tolist()
            self.number[slot], self.moves[slot] = number, [m for m in moves if m >= 0]


class ReplayWindow:
    """The newest games; every rank holds the same games in the same order."""

    def __init__(self, max_games: int) -> None:
        self.max_games = max_games
        self.parts: list[Positions] = []

    def add(self, games: Positions) -> None:
        self.parts.append(games)
        while sum(len(p.game_P.unique()) for p in self.parts[1:]) >= self.max_games:
            self.parts.pop(0)

    def batch(self, size: int, world: World, update: int) -> StepBatch[Positions]:
        """Positions sampled with replacement; each random number depends on the index in the
        batch."""
        window = Positions(*(torch.cat([getattr(p, n) for p in self.parts]) for n in vars(self.parts[0])))
        chosen_B = rng.integers(rng.key(world.seed, "window", update), torch.arange(size), 1, len(window))[:, 0]
        shards = tuple(ShardItems(s, chosen_B[i.start : i.stop]) for s, i in world.shard_items(size))
        return StepBatch(shards, lambda ids: Positions(*(v.to(world.device) for v in vars(window[ids]).values())))

    def state_dict(self) -> dict[str, Any]:
        return {str(i): dict(vars(p)) for i, p in enumerate(self.parts)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.parts = [Positions(**state[k]) for k in sorted(state, key=int)]


def selfplay_loss(net: Net, batch: Positions) -> Loss:
    """Moves that led to a better outcome than expected become more likely (REINFORCE with a
    baseline, Williams 1992)."""
    board_B9 = batch.board_P9.to(torch.get_default_dtype())
    logits_B9, value_B = net(board_B9)
    logp_B9 = logits_B9.masked_fill(board_B9 != 0, -1e9).log_softmax(1)
    logp_B = logp_B9.gather(1, batch.move_P[:, None])[:, 0]
    miss_B = (value_B - batch.outcome_P).square()
    loss_B = -(batch.outcome_P - value_B.detach()) * logp_B + miss_B
    return Loss(loss_B.sum(), len(loss_B), value_error=miss_B.detach())


def build(cfg: Config) -> nn.Module:
    return Net(cfg.width)


def train(cfg: Config, world: World) -> Summary:
    net = Net(cfg.width)
    learner = Learner(net, cfg.optim, world, global_batch=cfg.global_batch)
    selfplay, window = SelfPlay(cfg, world), ReplayWindow(cfg.window_games)
    with Run.open(cfg, world, keep=dict(learner=learner, selfplay=selfplay, window=window)) as run:
        for iteration in run.iterations(cfg.iterations, long=True):
            games = selfplay.play(net, iteration)
            window.add(games)
            for _ in range(cfg.updates):
                stats = learner.step(selfplay_loss, window.batch(cfg.global_batch, world, learner.updates))
            run.log(stats)
            run.log({"num_games": float(len(games.game_P.unique())), "positions": float(len(games))}, prefix="rollout")
    return run.finish(export=net)


def evaluate(model: nn.Module, cfg: Config, world: World) -> dict[str, float]:
    """The share of decided games that the first player wins."""
    games = SelfPlay(cfg, world).play(model, 10**6)  # type: ignore[arg-type]
    first = games.ply_P == 0
    return {"first_player_score": float(games.outcome_P[first].mean())}
