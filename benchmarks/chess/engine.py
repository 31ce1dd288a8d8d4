"""The engine: nodes a second, depth next to Stockfish, a suite of tactics, threads, and games against alphabeta:5.

    python -m benchmarks.chess.engine                       about 10 minutes of two cores; nothing else should run
    python -m benchmarks.chess.engine --only speed depth    some parts
    python -m benchmarks.chess.engine --only suite --epd wac.epd --players engine:tables chess-value
    python -m benchmarks.chess.engine --only thread-games --games 300

Each part is written to benchmarks/results/chess_engine_DATE.json when it has ended, with its command, next to the
parts that were measured before on that day.

Speed: fixed nodes from an empty table, in CPU time of the thread, with tables and with quantised nets of random
weights (their size counts, not what they hold). Depth: the iteration that is finished after one second, for ours and
for Stockfish with one thread, on the positions of `ranks chess bench`. Threads: the time to a depth with one and with
two threads, position by position, over 50 positions of own games. Thread-games, only where they are asked for: two
threads against one, both with 100 ms a move, one game at a time. Games: against alphabeta:5 with as many nodes as
alphabeta:5 takes on average.

Suite: the positions of a file of EPD with the operation `bm`; one second each, one thread, from an empty table.
Solved is a position whose best move is played at the end. The goal is that of Win at Chess, the 300 positions of Fred
Reinfeld's book (1945). The file is not part of this repository, because nobody has stated a licence for it: copies are
in many engines' repositories, for example assets/epds/wac.epd of github.com/cosmobobak/viridithas. The result has its
sha256.

Random UCI scripts and games on short clocks: `benchmarks/chess/uci.py`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.measure import RESULTS, origin, spread, write_result
from ranks.chess.board import Board
from ranks.chess.commands.bench import POSITIONS
from ranks.chess.commands.players import make_player
from ranks.chess.engine.evaluator import TABLES, Evaluator, load_evaluator
from ranks.chess.engine.nnue.inference import net_arrays
from ranks.chess.engine.nnue.weights import random_weights
from ranks.chess.engine.player import EnginePlayer, EngineSettings
from ranks.chess.epd import parse_epd
from ranks.chess.match.game import Conditions
from ranks.chess.match.openings import seeded_openings
from ranks.chess.match.schedule import Participant, pair_tasks, play_pairs
from ranks.chess.players.player import Info, Limits
from ranks.chess.san import parse_san
from ranks.chess.uci.player import find_command
from ranks.cli.main import add_players
from ranks.rating.elo import estimate

WIDTHS = (128, 192, 256)
GOALS = {TABLES: 1e6, "net H=256": 5e5}
SPEED_NODES = 500_000
THREAD_DEPTH, THREAD_POSITIONS = 12, 50
"""For comparing threads; the goal is stated for this depth and number."""
THREAD_MOVETIME_S = 0.1
SUITE_SECONDS, SUITE_GOAL = 1.0, 285


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


def own_positions(number: int) -> list[Board]:
    """Positions of games that the engine begins against itself: after 8 random plies and 0 to 49 of its own."""
    player = make_player("engine:tables?nodes=1000")
    boards = [opening.board() for opening in islice(seeded_openings(2), number)]
    for plies, board in enumerate(boards):
        for _ in range(plies * 50 // number):
            move = player.choose(board, Limits()).move
            board.push(move)
            if board.outcome() is not None:
                board.pop()
                break
    player.close()
    return boards


def threads(rounds: int) -> dict[str, Any]:
    """Seconds to THREAD_DEPTH over all positions, with one and with two threads, in turns for each position."""
    players = {count: make_player(f"engine:tables?Threads={count}&Hash=64") for count in (1, 2)}
    boards = own_positions(THREAD_POSITIONS)
    taken: dict[int, list[float]] = {count: [] for count in players}
    for turn in range(rounds + 1):
        total = dict.fromkeys(players, 0.0)
        for board in boards:
            for count, player in players.items():
                player.new_game(0)
                start_s = time.perf_counter()
                player.choose(board, Limits(depth=THREAD_DEPTH))
                total[count] += time.perf_counter() - start_s
        if turn:
            for count, seconds in total.items():
                taken[count].append(seconds)
    ratios = [one / two for one, two in zip(taken[1], taken[2], strict=True)]
    print(f"two threads reach depth {THREAD_DEPTH} {statistics.median(ratios):.2f} times as fast as one", flush=True)
    found = {"depth": THREAD_DEPTH, "positions": len(boards), "one_s": taken[1], "two_s": taken[2]}
    return {**found, "ratio": spread(ratios), "goal": 1.5}


def suite(path: Path, specs: Sequence[str]) -> dict[str, Any]:
    """How many positions of a file each player solves."""
    content = path.read_bytes()
    lines = [line for text in content.decode().splitlines() if (line := parse_epd(text)) is not None]
    rows: list[dict[str, Any]] = []
    for spec in specs:
        player = make_player(spec)
        player.choose(Board(), Limits(depth=2))
        failed, depths_found, nodes = list[str](), list[int](), 0
        for number, line in enumerate(lines, start=1):
            board = Board(line.fen)
            player.new_game(0)
            choice = player.choose(board, Limits(movetime_s=SUITE_SECONDS))
            if choice.move not in {parse_san(board, text) for text in line.operations["bm"].split()}:
                failed.append(line.operations.get("id", str(number)))
            depths_found.append(choice.depth)
            nodes += choice.nodes
        player.close()
        row = {"player": spec, "solved": len(lines) - len(failed), "failed": failed}
        rows.append({**row, "median_depth": statistics.median(depths_found), "mean_nodes": nodes // len(lines)})
        print(f"{spec}: {row['solved']} of {len(lines)} solved", flush=True)
    found = {"name": path.stem, "sha256": hashlib.sha256(content).hexdigest(), "positions": len(lines)}
    return {**found, "seconds": SUITE_SECONDS, "goal": SUITE_GOAL, "players": rows}


def played(ours: str, rival: str, number: int, conditions: Conditions, concurrency: int) -> dict[str, Any]:
    """Results of paired games for `ours`. `pairs`: how many pairs gave 0, 1/2, ... 2 points."""
    sides = [Participant(name, lambda name=name: make_player(name)) for name in (ours, rival)]
    wins = draws = losses = forfeits = 0
    pairs = [0] * 5
    tasks = pair_tasks([(sides[0], sides[1], number // 2)], seeded_openings(1))
    for pair in play_pairs(tasks, conditions, 1, concurrency, lambda game: None):
        both = [pair.with_white.white_points, 2 - pair.with_black.white_points]
        pairs[sum(both)] += 1
        wins, draws, losses = wins + both.count(2), draws + both.count(1), losses + both.count(0)
        forfeits += pair.with_white.forfeited + pair.with_black.forfeited
    print(f"{ours} against {rival}: {wins} won, {losses} lost, {draws} drawn", flush=True)
    return {"won": wins, "lost": losses, "drawn": draws, "forfeits": forfeits, "pairs": pairs}


def games(number: int, concurrency: int) -> dict[str, Any]:
    """Against alphabeta:5, at the nodes that alphabeta:5 visits on average over the positions."""
    rival = make_player("alphabeta:5")
    rival.new_game(1)
    nodes = round(statistics.mean(rival.choose(Board(fen), Limits()).nodes for fen in POSITIONS))
    rival.close()
    results = played(f"engine:tables?nodes={nodes}", "alphabeta:5", number, Conditions(None), concurrency)
    return {"nodes": nodes, **results}


def thread_games(number: int) -> dict[str, Any]:
    """Two threads against one, at equal time."""
    two, one = (f"engine:tables?Threads={count}&Hash=64" for count in (2, 1))
    results = played(two, one, number, Conditions(None, Limits(movetime_s=THREAD_MOVETIME_S)), 1)
    elo = estimate(results["pairs"]).elo
    print(f"two threads by one: {elo.value:+.0f} Elo ({elo.low:+.0f} to {elo.high:+.0f})", flush=True)
    found = {"movetime_s": THREAD_MOVETIME_S, **results}
    return {**found, "elo": elo.value, "low": elo.low, "high": elo.high, "goal": 25}


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
    named = ("bench", "speed", "depth", "threads", "thread-games", "games", "suite")
    parser.add_argument("--only", nargs="+", choices=named)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--games", type=int, default=40)
    parser.add_argument("--concurrency", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--epd", type=Path, help="the positions of the suite; without it there is no such part")
    parser.add_argument("--players", nargs="+", default=["engine:tables"], help="who solves the suite")
    asked = parser.parse_args(given)
    add_players()
    if asked.only and "suite" in asked.only and asked.epd is None:
        parser.error("--only suite: give the positions with --epd FILE")
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "bench": benches,
        "speed": lambda: {"rows": speed(asked.rounds)},
        "depth": lambda: {"stockfish": stockfish_version(), "sides": depths(1.0)},
        "threads": lambda: threads(asked.rounds),
        "games": lambda: games(asked.games, asked.concurrency),
    }
    if asked.only and "thread-games" in asked.only:
        parts["thread-games"] = lambda: thread_games(asked.games)
    if asked.epd is not None:
        parts["suite"] = lambda: suite(asked.epd, asked.players)
    for name in [name for name in parts if asked.only is None or name in asked.only]:
        started = origin()
        file = f"chess_engine_{started['date'][:10]}"
        path = RESULTS / f"{file}.json"
        before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        found = {**before, name: {"origin": started, **parts[name]()}}
        print(f"{name} written to {write_result(file, found).name}", flush=True)


if __name__ == "__main__":
    main()
