"""How strong a net of chess-spiking is: paired games against simple players, the same search without it included.

    python benchmarks/chess_spiking_strength.py FOLDER [FOLDER ...] [--games 200] [--simulations 64]

FOLDER holds the export of a run (`ranks export`). Each net plays each opponent:

    random, greedy, minimax:2, ...   players of `ranks chess`
    untrained                        the same net with random weights, in the same search
    material                         uniform priors and the value of exact material, in the same search

A pair of games begins with the same random plies and is played with both colours. All games of a
match are played at once, so that the net evaluates batches. The search is Gumbel search without noise.
A game of 512 plies is a draw. Nothing is resigned and no result is given by material.

Writes benchmarks/results/chess_spiking_strength_DATE.json: for each match the score of the net (won 1,
drawn 1/2) with its 95 % interval over pairs, and all ends by reason.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import statistics
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measure import origin, write_result

from ranks.chess.board import Board
from ranks.chess.commands.players import make_player
from ranks.chess.core.rules import CHESS
from ranks.chess.players.player import Limits
from ranks.chess.players.tree_search import material_evaluator
from ranks.engine.export.load_export import load_export
from ranks.search.config import SearchConfig
from ranks.search.evaluation import Evaluation, Evaluator, Leaves
from ranks.search.search import Search
from ranks.selfplay import Positions, expected_outcome, policy_and_value
from ranks.workloads.chess_spiking.config import NetConfig
from ranks.workloads.chess_spiking.encoding import encoding_of
from ranks.workloads.chess_spiking.net.spiking_net import SpikingNet

MAX_PLIES = 512
BATCH = 64
"""Most rows of a batch of the net: more are slower on a CPU."""


def evaluator_of(net: SpikingNet) -> Evaluator:
    """The net as evaluator of a search; rows without a position are left out."""
    encoding = encoding_of(NetConfig(), 0)

    def evaluate(leaves: Leaves) -> Evaluation:
        rows = np.flatnonzero(leaves.num_moves_B)
        priors_BM = np.zeros(leaves.moves_BM.shape, np.float32)
        value_B = np.zeros(len(leaves.num_moves_B), np.float32)
        for part in np.array_split(rows, math.ceil(len(rows) / BATCH)) if len(rows) else ():
            most = int(leaves.num_moves_B[part].max())
            positions = Positions(
                torch.from_numpy(leaves.states_BW[part].view(np.int64)),
                torch.from_numpy(leaves.moves_BM[part, :most].astype(np.int64)),
                torch.from_numpy(leaves.num_moves_B[part].astype(np.int64)),
            )
            with torch.inference_mode():
                logits_BM, wdl_B3 = policy_and_value(net, encoding, positions)
                priors_BM[part, :most] = logits_BM.softmax(1).numpy()
                value_B[part] = expected_outcome(wdl_B3).numpy()
        return Evaluation(priors_BM, value_B)

    return evaluate


class Searcher:
    """A search of its own for each game of a match."""

    def __init__(self, evaluator: Evaluator, games: int, simulations: int, c_scale: float) -> None:
        config = SearchConfig(simulations=simulations, root="gumbel", gumbel_scale=0.0, c_scale=c_scale)
        self.search, self.evaluator = Search(CHESS, config, games, groups=1), evaluator

    def moves(self, boards: list[Board], games: list[int]) -> list[int]:
        self.search.begin(games)
        for _ in self.search.steps(self.evaluator):
            pass
        return self.search.result(games).chosen_P.tolist()


class Single:
    """A player of `ranks chess`, with a random sequence of its own for each game."""

    def __init__(self, spec: str, games: int, seed: int) -> None:
        self.players = [make_player(spec) for _ in range(games)]
        for game, player in enumerate(self.players):
            player.new_game(seed * 1_000_003 + game)

    def moves(self, boards: list[Board], games: list[int]) -> list[int]:
        return [self.players[game].choose(boards[game], Limits()).move for game in games]


@dataclass(frozen=True)
class End:
    """How a game ended: for the net 1, 1/2 or 0, why, and after how many plies."""

    points: float
    reason: str
    plies: int


def opening(rng: np.random.Generator, plies: int) -> list[int]:
    """Uniformly random legal moves."""
    board = Board()
    while board.ply < plies:
        moves = board.legal_moves()
        board.push(moves[int(rng.integers(len(moves)))])
        if board.outcome():
            board = Board()
    return board.moves


def match(net: Searcher, other: Searcher | Single, games: int, opening_plies: int, seed: int) -> list[End]:
    """Games 2 p and 2 p + 1 are a pair; the net is white in the first."""
    rng = np.random.default_rng(seed)
    lines = [opening(rng, opening_plies) for _ in range(games // 2)]
    boards = [Board() for _ in range(games)]
    searches = [side.search for side in (net, other) if isinstance(side, Searcher)]
    for game, board in enumerate(boards):
        for move in lines[game // 2]:
            board.push(move)
        for search in searches:
            search.set_root(game, game, board.moves)
    ends: list[End | None] = [None] * games
    while any(end is None for end in ends):
        running = [game for game in range(games) if ends[game] is None]
        to_net = [game for game in running if boards[game].white_to_move == (game % 2 == 0)]
        to_other = [game for game in running if game not in set(to_net)]
        for side, movers in ((net, to_net), (other, to_other)):
            if not movers:
                continue
            chosen = side.moves(boards, movers)
            for game, move in zip(movers, chosen, strict=True):
                boards[game].push(move)
                ends[game] = end_of(boards[game], net_is_white=game % 2 == 0)
            for search in searches:
                search.play(chosen, movers)
    return [end for end in ends if end is not None]


def end_of(board: Board, net_is_white: bool) -> End | None:
    outcome = board.outcome()
    if outcome is None:
        return End(0.5, "512 plies", board.ply) if board.ply >= MAX_PLIES else None
    points = {"1-0": 1.0, "0-1": 0.0, "1/2-1/2": 0.5}[outcome.result]
    return End(points if net_is_white else 1 - points, outcome.reason, board.ply)


def summary(ends: list[End]) -> dict[str, Any]:
    """The score of the net with its interval over pairs, and what ended the games."""
    points = [end.points for end in ends]
    pairs = [(first + second) / 2 for first, second in zip(points[::2], points[1::2], strict=True)]
    half = 1.96 * statistics.stdev(pairs) / math.sqrt(len(pairs)) if len(pairs) > 1 else math.nan
    return {
        "games": len(ends),
        "score": round(statistics.mean(points), 4),
        "half_interval_95": round(half, 4),
        "won": points.count(1.0),
        "drawn": points.count(0.5),
        "lost": points.count(0.0),
        "draws": dict(Counter(end.reason for end in ends if end.points == 0.5)),
        "mean_plies": round(statistics.mean(end.plies for end in ends), 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--against", nargs="+", default=["random", "greedy", "untrained", "material"])
    parser.add_argument("--games", type=int, default=200)
    parser.add_argument("--simulations", type=int, default=64)
    parser.add_argument("--opening-plies", type=int, default=4)
    parser.add_argument("--c-scale", type=float, default=1.0, help="how sharply the search follows values")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--untrained-too", action="store_true", help="also play the untrained net of each folder")
    parser.add_argument("--no-result", action="store_true", help="write no file")
    asked = parser.parse_args()
    if asked.games < 2 or asked.games % 2:
        parser.error(f"--games {asked.games}: games are played in pairs; give an even number")
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    for folder in asked.folders:
        net, sha256 = load_export(folder / "model.safetensors", SpikingNet, str(folder))
        arguments = json.loads((folder / "config.json").read_text())["arguments"]
        torch.manual_seed(asked.seed)
        fresh = SpikingNet(**arguments).eval()
        players = {"trained": net} | ({"untrained": fresh} if asked.untrained_too else {})

        def searcher(evaluator: Evaluator) -> Searcher:
            return Searcher(evaluator, asked.games, asked.simulations, asked.c_scale)

        for weights, player in players.items():
            for against in asked.against:
                if against == weights == "untrained":
                    continue
                started, cpu = time.perf_counter(), time.process_time()
                special = {"untrained": evaluator_of(fresh), "material": material_evaluator}
                other = (
                    searcher(special[against]) if against in special else Single(against, asked.games, asked.seed + 1)
                )
                ends = match(searcher(evaluator_of(player)), other, asked.games, asked.opening_plies, asked.seed)
                row = {"folder": str(folder), "weights": weights, "sha256": sha256, "net": arguments}
                row |= {"against": against, **summary(ends)}
                row |= {"seconds": time.perf_counter() - started, "cpu_s": time.process_time() - cpu}
                print({k: v for k, v in row.items() if k not in ("net", "sha256")}, flush=True)
                rows.append(row)
    settings = {k: v for k, v in vars(asked).items() if k not in ("folders", "no_result")}
    if not asked.no_result:
        source = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
        found = origin()
        write_result(
            f"chess_spiking_strength_{found['date'][:10]}",
            {"origin": found, "script_sha256": source, **settings, "rows": rows},
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
