"""The engine: nodes a second, depth next to Stockfish, threads, and games against alphabeta:5.

    python benchmarks/chess_engine.py                       about 10 minutes of two cores; nothing else should run
    python benchmarks/chess_engine.py --only speed          one part: speed, depth, threads, games, bench

Speed: fixed nodes from an empty table, in CPU time of the thread, with tables and with quantised nets of random
weights (their size counts, not what they hold). Depth: the iteration that is finished after one second, for ours and
for Stockfish with one thread, on the positions of `ranks chess bench`. Threads: the time to a depth with one and with
two threads, in turns. Games: against alphabeta:5 with as many nodes as alphabeta:5 takes on average.

Random UCI scripts and games on short clocks: `benchmarks/chess_uci.py --players engine:tables`.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import time
from collections.abc import Sequence
from typing import Any

from measure import origin, spread, write_result

from ranks.chess.board import Board
from ranks.chess.commands.bench import POSITIONS
from ranks.chess.commands.players import make_player
from ranks.chess.engine.evaluator import TABLES, Evaluator, load_evaluator
from ranks.chess.engine.nnue.inference import net_arrays
from ranks.chess.engine.nnue.weights import random_weights
from ranks.chess.engine.player import EnginePlayer, EngineSettings
from ranks.chess.match.game import Conditions
from ranks.chess.match.openings import seeded_openings
from ranks.chess.match.schedule import Participant, pair_tasks, play_pairs
from ranks.chess.players.player import Info, Limits
from ranks.chess.uci.player import find_command

WIDTHS = (128, 192, 256)
GOALS = {TABLES: 1e6, "net H=256": 5e5}
SPEED_NODES = 500_000
THREAD_DEPTH = 12
"""For comparing threads; the goal is stated for this depth."""


def evaluators() -> dict[str, Evaluator]:
    """Tables, and nets of random weights."""
    nets = {f"net H={width}": Evaluator.of_net(net_arrays(random_weights(width, seed=1))) for width in WIDTHS}
    return {TABLES: load_evaluator(TABLES, "the tables"), **nets}


def speed(rounds: int) -> list[dict[str, Any]]:
    """Nodes per second of CPU time and of the clock, one thread."""
    engines = {name: EnginePlayer(name, evaluator, EngineSettings()) for name, evaluator in evaluators().items()}
    rates: dict[str, list[tuple[float, float]]] = {name: [] for name in engines}
    for turn in range(rounds + 1):
        for name, engine in engines.items():
            nodes, cpu_s, wall_s = 0, time.thread_time(), time.perf_counter()
            for fen in POSITIONS:
                engine.new_game(0)
                nodes += engine.choose(Board(fen), Limits(nodes=SPEED_NODES if turn else 1000)).nodes
            if turn:
                taken_s = time.thread_time() - cpu_s, time.perf_counter() - wall_s
                rates[name].append((nodes / taken_s[0], nodes / taken_s[1]))
    rows: list[dict[str, Any]] = []
    for name, found in rates.items():
        cpu, wall = zip(*found, strict=True)
        row = {"evaluation": name, "nodes_per_cpu_s": spread(cpu, 0), "nodes_per_s": spread(wall, 0)}
        rows.append({**row, "goal": GOALS.get(name)})
        print(f"{name:12} {statistics.median(cpu):12,.0f} nodes a CPU second, goal {GOALS.get(name)}", flush=True)
    return rows


def depths(seconds: float) -> list[dict[str, Any]]:
    """The last finished iteration after some seconds: ours with tables, and Stockfish."""
    sides = {"engine:tables": "engine:tables", "stockfish": "uci:stockfish?Threads=1&Hash=16"}
    rows: list[dict[str, Any]] = []
    for name, spec in sides.items():
        player = make_player(spec)
        player.choose(Board(), Limits(depth=2))
        found: list[int] = []
        for fen in POSITIONS:
            player.new_game(0)
            infos: list[Info] = []
            player.choose(Board(fen), Limits(movetime_s=seconds, on_info=infos.append))
            found.append(max((info.depth for info in infos), default=0))
        player.close()
        rows.append({"player": name, "seconds": seconds, "depths": found, "median": statistics.median(found)})
        print(f"{name}: depth after {seconds:g} s: {found}", flush=True)
    return rows


def threads(rounds: int) -> dict[str, Any]:
    """Seconds to THREAD_DEPTH over all positions, with one and with two threads in turns."""
    players = {count: make_player(f"engine:tables?Threads={count}&Hash=64") for count in (1, 2)}
    taken: dict[int, list[float]] = {count: [] for count in players}
    for turn in range(rounds + 1):
        for count, player in players.items():
            player.new_game(0)
            start_s = time.perf_counter()
            for fen in POSITIONS:
                player.new_game(0)
                player.choose(Board(fen), Limits(depth=THREAD_DEPTH))
            if turn:
                taken[count].append(time.perf_counter() - start_s)
    ratios = [one / two for one, two in zip(taken[1], taken[2], strict=True)]
    print(f"two threads reach depth {THREAD_DEPTH} {statistics.median(ratios):.2f} times as fast as one", flush=True)
    return {"depth": THREAD_DEPTH, "one_s": taken[1], "two_s": taken[2], "ratio": spread(ratios), "goal": 1.5}


def games(number: int, concurrency: int) -> dict[str, Any]:
    """Against alphabeta:5, at the nodes that alphabeta:5 visits on average over the positions."""
    rival = make_player("alphabeta:5")
    rival.new_game(1)
    nodes = round(statistics.mean(rival.choose(Board(fen), Limits()).nodes for fen in POSITIONS))
    rival.close()
    ours = f"engine:tables?nodes={nodes}"
    sides = [Participant(name, lambda name=name: make_player(name)) for name in (ours, "alphabeta:5")]
    wins = draws = losses = forfeits = 0
    tasks = pair_tasks([(sides[0], sides[1], number // 2)], seeded_openings(1))
    for pair in play_pairs(tasks, Conditions(None), 1, concurrency, lambda game: None):
        for game in (pair.with_white, pair.with_black):
            points = game.white_points if game.white == ours else 2 - game.white_points
            wins, draws, losses = wins + (points == 2), draws + (points == 1), losses + (points == 0)
            forfeits += game.forfeited
    print(f"{ours} against alphabeta:5: {wins} won, {losses} lost, {draws} drawn", flush=True)
    return {"nodes": nodes, "won": wins, "lost": losses, "drawn": draws, "forfeits": forfeits}


def benches() -> dict[str, int]:
    """Nodes of the bench: they identify the version of the search."""
    player = make_player("engine:tables")
    found: dict[str, int] = {}
    for depth in (6, 10):
        total = 0
        for fen in POSITIONS:
            player.new_game(0)
            total += player.choose(Board(fen), Limits(depth=depth)).nodes
        found[f"depth {depth}"] = total
    print(found, flush=True)
    return found


def stockfish_version() -> str:
    """The first line that Stockfish prints."""
    command = find_command("stockfish", "uci:stockfish")
    found = subprocess.run(command, input="quit\n", capture_output=True, text=True, check=True)
    return found.stdout.splitlines()[0]


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("speed", "depth", "threads", "games", "bench"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--games", type=int, default=40)
    parser.add_argument("--concurrency", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args(given)
    parts = {
        "bench": benches,
        "speed": lambda: speed(asked.rounds),
        "depth": lambda: {"stockfish": stockfish_version(), "sides": depths(1.0)},
        "threads": lambda: threads(asked.rounds),
        "games": lambda: games(asked.games, asked.concurrency),
    }
    started = origin()
    found = {name: measure() for name, measure in parts.items() if asked.only in (None, name)}
    path = write_result(f"chess_engine_{started['date'][:10]}", {"origin": started, **found})
    print(f"written to {path.name}")


if __name__ == "__main__":
    main()
