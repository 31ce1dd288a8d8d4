"""How strong nets of chess-spiking are: paired games against simple players.

    python benchmarks/chess_spiking_strength.py RUN [RUN ...] [--games 200] [--simulations 64]

RUN is `name`, `name/best`, `name/ITERATION` or the path of a run folder, as in the player `run:RUN`: without a word
behind it the best checkpoint. With --references two more play, in the search of the first RUN:

    untrained   the same net with random weights
    material    uniform priors and the value of exact material

Each of them plays each opponent (--against), a player of `ranks chess`. A pair of games begins with the same random
plies and is played with both colours. All games of a match are played at once, so that the net evaluates batches. The
search is that of the training without noise. A game of 1,000 plies is a draw, as on the ladder. Nothing is resigned
and no result is given by material. Matches run side by side, one on each core.

Writes benchmarks/results/chess_spiking_strength_DATE.json: for each match the score (won 1, drawn 1/2) with its 95 %
interval over pairs, and all ends by reason.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
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
from ranks.engine.files.jsonl import read_rows
from ranks.engine.runs.find_run import find_folder
from ranks.engine.runs.folder import METRICS_FILE, SESSIONS_FILE
from ranks.errors import UserError
from ranks.rating.elo import estimate
from ranks.search.config import SearchConfig
from ranks.search.evaluation import Evaluation, Evaluator, Leaves
from ranks.search.search import Search
from ranks.selfplay import Encoding, Positions, expected_outcome, policy_and_value
from ranks.selfplay.search_settings import match_search
from ranks.workloads.chess_spiking.building import Net, build_net
from ranks.workloads.chess_spiking.encoding import encoding_of
from ranks.workloads.chess_spiking.players.words import net_of_run

MAX_PLIES = 1_000
BATCH = 64
"""Most rows of a batch of the net: more are slower on a CPU."""
OPPONENTS = ("random", "greedy", "minimax:2", "alphabeta:1")
REFERENCES = ("untrained", "material")


@dataclass(frozen=True)
class Match:
    """What one process plays."""

    run: str
    player: str
    """`trained`, `untrained` or `material`."""
    against: str
    games: int
    simulations: int
    opening_plies: int
    seed: int


def evaluator_of(net: Net, encoding: Encoding) -> Evaluator:
    """The net as evaluator of a search; rows without a position are left out."""

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

    def __init__(self, evaluator: Evaluator, games: int, config: SearchConfig) -> None:
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


def play_match(net: Searcher, other: Single, games: int, opening_plies: int, seed: int) -> list[End]:
    """Games 2 p and 2 p + 1 are a pair; the net is white in the first."""
    rng = np.random.default_rng(seed)
    lines = [opening(rng, opening_plies) for _ in range(games // 2)]
    boards = [Board() for _ in range(games)]
    for game, board in enumerate(boards):
        for move in lines[game // 2]:
            board.push(move)
        net.search.set_root(game, game, board.moves)
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
            net.search.play(chosen, movers)
    return [end for end in ends if end is not None]


def end_of(board: Board, net_is_white: bool) -> End | None:
    outcome = board.outcome()
    if outcome is None:
        return End(0.5, f"{MAX_PLIES:,} plies", board.ply) if board.ply >= MAX_PLIES else None
    points = {"1-0": 1.0, "0-1": 0.0, "1/2-1/2": 0.5}[outcome.result]
    return End(points if net_is_white else 1 - points, outcome.reason, board.ply)


def summary(ends: list[End]) -> dict[str, Any]:
    """The score of the net with its interval over pairs, and what ended the games."""
    points = [end.points for end in ends]
    counts = Counter(int(2 * (first + second)) for first, second in zip(points[::2], points[1::2], strict=True))
    score = estimate([counts[category] for category in range(5)]).score
    return {
        "games": len(ends),
        "score": round(score.value, 4),
        "low": round(score.low, 4),
        "high": round(score.high, 4),
        "won": points.count(1.0),
        "drawn": points.count(0.5),
        "lost": points.count(0.0),
        "draws": dict(Counter(end.reason for end in ends if end.points == 0.5)),
        "mean_plies": round(sum(end.plies for end in ends) / len(ends), 1),
    }


def training_of(run: str) -> dict[str, Any]:
    """How long the run has trained, whichever of its weights play."""
    name = run if (Path("runs") / run).exists() or Path(run).exists() else run.rpartition("/")[0]
    folder = find_folder(name, Path("runs"), f"the run {run}")
    rows = read_rows(folder / METRICS_FILE)
    sessions = read_rows(folder / SESSIONS_FILE)
    return {
        "iterations": len(rows),
        "games": sum(row["rollout/games"] for row in rows),
        "hours": round(rows[-1]["time_s"] / 3600, 3) if rows else 0.0,
        "ranks": next((row["ranks"] for row in sessions if "ranks" in row), None),
    }


def result_of(match: Match) -> dict[str, Any]:
    """Play one match."""
    torch.set_num_threads(1)
    started, cpu = time.perf_counter(), time.process_time()
    saved = net_of_run(match.run, f"the run {match.run}")
    torch.manual_seed(match.seed)
    net = build_net(saved.net).eval() if match.player == "untrained" else saved.model
    evaluator = (
        material_evaluator if match.player == "material" else evaluator_of(net, encoding_of(saved.net, saved.seed))
    )
    side = Searcher(evaluator, match.games, match_search(saved.selfplay, match.simulations))
    ends = play_match(
        side, Single(match.against, match.games, match.seed + 1), match.games, match.opening_plies, match.seed
    )
    who = {"player": match.player, "weights": saved.source, "sha256": saved.sha256, "neuron": saved.net.neuron}
    who |= {"training": training_of(match.run)} if match.player == "trained" else {}
    spent = {"seconds": round(time.perf_counter() - started, 1), "cpu_s": round(time.process_time() - cpu, 1)}
    return who | {"against": match.against, **summary(ends)} | spent


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", nargs="+", metavar="RUN")
    parser.add_argument("--against", nargs="+", default=OPPONENTS)
    parser.add_argument("--references", action="store_true", help="also the untrained net and exact material")
    parser.add_argument("--games", type=int, default=200)
    parser.add_argument("--simulations", type=int, default=64)
    parser.add_argument("--opening-plies", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-result", action="store_true", help="write no file")
    asked = parser.parse_args()
    if asked.games < 2 or asked.games % 2:
        parser.error(f"--games {asked.games}: games are played in pairs; give an even number")
    if asked.simulations < 1:
        parser.error(f"--simulations {asked.simulations}: give 1 or more")
    settings = (asked.games, asked.simulations, asked.opening_plies, asked.seed)
    players = [(run, "trained") for run in asked.runs]
    players += [(asked.runs[0], reference) for reference in REFERENCES] if asked.references else []
    matches = [Match(run, player, against, *settings) for run, player in players for against in asked.against]
    began, rows = origin(), list[dict[str, Any]]()
    try:
        for run in asked.runs:
            net_of_run(run, f"the run {run}")
        for word in asked.against:
            make_player(word).close()
        with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
            for row in pool.map(result_of, matches):
                print({name: value for name, value in row.items() if name != "sha256"}, flush=True)
                rows.append(row)
    except UserError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    if not asked.no_result:
        given = {name: value for name, value in vars(asked).items() if name not in ("runs", "no_result")}
        given["runs"] = [Path(run).name for run in asked.runs]
        write_result(f"chess_spiking_strength_{began['date'][:10]}", {"origin": began, **given, "rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
