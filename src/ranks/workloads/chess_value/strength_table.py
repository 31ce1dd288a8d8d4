"""`ranks prove table chess-value`: the shipped net against the same search with other evaluations, and rated.

Every player has one thread and fixed nodes. In the matches at equal time each side has the nodes that it searches in
EQUAL_S on one core of this machine. So other work on the machine changes these numbers, but not the games.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ranks.chess.board import Board
from ranks.chess.engine.evaluator import Evaluator
from ranks.chess.engine.nnue.inference import net_arrays
from ranks.chess.engine.nnue.weights import NnueWeights
from ranks.chess.engine.player import EnginePlayer, EngineSettings
from ranks.chess.engine.tables import TableValues, default_values
from ranks.chess.match.game import Conditions
from ranks.chess.match.match import points
from ranks.chess.match.net_rating import LADDER, NET, Pair, rate_nets
from ranks.chess.match.openings import seeded_openings
from ranks.chess.match.schedule import Participant, pair_tasks, play_pairs
from ranks.chess.players.player import Limits, Player
from ranks.engine.distributed.rendezvous.process_env import available_cores
from ranks.errors import UserError
from ranks.progress import ProgressBar
from ranks.rating.crosstable import Crosstable
from ranks.rating.elo import estimate
from ranks.workloads.chess_value.matches.rungs import has_stockfish, nearest_rungs, rung_players
from ranks.workloads.chess_value.players.saved_net import SHIPPED, from_files

ASKED = "the table of chess-value"
PAIRS, QUICK_PAIRS = 200, 15
NODES = 2000
EQUAL_S = 0.01
"""CPU seconds of a move in the matches at equal time."""
SPEED_NODES, SPEED_GAMES, SPEED_PLIES, SPEED_ROUNDS = 10_000, 4, (10, 30, 50, 70), 5
"""How speed is measured: nodes of a position, positions at these plies of some games of SPEED_GAME_NODES, and rounds in
which the evaluations take turns."""
SPEED_GAME_NODES = 200
OPENING_SEED, MAX_PLIES = 23, 400
TRAINED_RATING = 1800.0
BARS: Mapping[str, float] = {"tables": 120.0, "material": 250.0}
"""The Elo of the net over the same search at equal time that the project wants; the interval must be above the half."""


def material_values() -> TableValues:
    """The means of the tables over their squares: what a piece is worth, on any square."""
    values_PKS = default_values()
    means_PK1 = np.rint(values_PKS[:, :, 8:56].mean(2, keepdims=True)).astype(np.int32)
    means_PK1[:, 5] = 0
    return np.ascontiguousarray(np.broadcast_to(means_PK1, values_PKS.shape))


def opener(name: str, evaluator: Evaluator, nodes: int) -> Callable[[], Player]:
    """How a thread opens the engine with an evaluator and fixed nodes for each move."""
    return lambda: EnginePlayer(name, evaluator, EngineSettings(nodes=nodes, threads=1))


def nodes_per_s(evaluators: Mapping[str, Evaluator]) -> dict[str, float]:
    """Nodes a second of CPU time with each evaluation: medians of rounds in which they take turns, over positions of
    whole games."""
    boards = game_boards(next(iter(evaluators.values())))
    players = {name: opener(name, evaluator, SPEED_NODES)() for name, evaluator in evaluators.items()}
    found: dict[str, list[float]] = {name: [] for name in players}
    for turn in range(SPEED_ROUNDS + 1):
        for name, player in players.items():
            started_s = time.thread_time()
            nodes = sum(player.choose(board, Limits()).nodes for board in boards)
            if turn:  # the first round compiles
                found[name].append(nodes / (time.thread_time() - started_s))
    return {name: statistics.median(speeds) for name, speeds in found.items()}


def game_boards(evaluator: Evaluator) -> list[Board]:
    """Positions of games of the engine with itself, from the opening to the endgame."""
    player, boards = opener("game", evaluator, SPEED_GAME_NODES)(), list[Board]()
    for opening in itertools.islice(seeded_openings(OPENING_SEED), SPEED_GAMES):
        board = opening.board()
        while board.outcome() is None and board.ply <= max(SPEED_PLIES):
            if board.ply in SPEED_PLIES:
                boards.append(Board(board.fen()))
            board.push(player.choose(board, Limits()).move)
    return boards


def table(quick: bool = False) -> Mapping[str, Any]:
    """The Elo of the shipped net over the same search with tables and with material, at equal nodes and equal time, and
    its rating on the ladder. Raises UserError where the package has no trained net."""
    shipped = from_files(SHIPPED, ASKED)
    pairs = QUICK_PAIRS if quick else PAIRS
    others = {"tables": Evaluator.of_tables(default_values()), "material": Evaluator.of_tables(material_values())}
    rows = compare(shipped.weights, others, pairs)
    rating = rated(Evaluator.of_net(net_arrays(shipped.weights)), pairs)
    facts = {"weights": shipped.source, "sha256": shipped.sha256, "rating": rating}
    passed = all(row["passed"] is not False for row in rows)
    return {"tables": {"Elo of the net over the same search": rows}, "passed": passed, "facts": facts}


def compare(weights: NnueWeights, others: Mapping[str, Evaluator], pairs: int) -> list[dict[str, Any]]:
    """A row for each other evaluation, at equal nodes and at equal time; only the latter have a bar."""
    net = Evaluator.of_net(net_arrays(weights))
    speeds = nodes_per_s({NET: net, **others})
    rows: list[dict[str, Any]] = []
    for name, evaluator in others.items():
        timed = max(1, round(EQUAL_S * speeds[NET])), max(1, round(EQUAL_S * speeds[name]))
        for kind, (ours, theirs) in (("equal nodes", (NODES, NODES)), ("equal time", timed)):
            first = Participant(NET, opener(NET, net, ours))
            crosstable = play(first, {name: opener(name, evaluator, theirs)}, pairs)[0]
            elo = estimate(crosstable.pentanomial(NET, name)).elo
            games, bar = crosstable.games(NET, name), BARS[name]
            judged = kind == "equal time"
            rows.append(
                {"against": name, "kind": kind, "nodes": ours, "its nodes": theirs}
                | {"won": games.wins, "drawn": games.draws, "lost": games.losses}
                | {"Elo": f"{elo.value:+.0f} ({elo.low:+.0f} to {elo.high:+.0f})"}
                | {"bar": f">= {bar:+.0f}, above {bar / 2:+.0f}" if judged else "-"}
                | {"passed": (elo.value >= bar and elo.low > bar / 2) if judged else None}
            )
    return rows


def rated(evaluator: Evaluator, pairs: int, nodes: int = NODES, guess: float = TRAINED_RATING) -> dict[str, Any]:
    """The rating of the engine with `nodes` a move, from games with the four fixed players nearest to `guess`."""
    rungs = rung_players(with_stockfish=has_stockfish())
    near = nearest_rungs(guess, rungs)
    player = Participant(NET, opener(NET, evaluator, nodes))
    played = play(player, {word: rungs[word] for word in near}, max(1, pairs // len(near)))[1]
    ratings = rate_nets(played, [], LADDER)
    if ratings is None:
        return {"nodes": nodes, "games": 2 * len(played), "value": None}
    found = ratings.rating(NET)
    return {"nodes": nodes, "games": 2 * len(played), "value": found.value, "low": found.low, "high": found.high}


def play(first: Participant, others: Mapping[str, Callable[[], Player]], pairs: int) -> tuple[Crosstable, list[Pair]]:
    """Pairs of games of a player against each of the others, on all cores. Raises UserError where a player failed in a
    game: that is no win."""
    encounters = [(first, Participant(name, each), pairs) for name, each in others.items()]
    tasks = [*pair_tasks(encounters, [*itertools.islice(seeded_openings(OPENING_SEED), pairs)])]
    crosstable, found = Crosstable(), list[Pair]()
    cores = available_cores()
    with ProgressBar(len(tasks), unit="pairs") as bar:
        for record in play_pairs(tasks, Conditions(None, Limits()), 0, cores, lambda game: None, MAX_PLIES):
            for game in (record.with_white, record.with_black):
                if game.forfeited:
                    fault = f"{game.loser} could not go on: {game.reason}"
                    raise UserError(
                        f"a game of {first.name} with {record.task.second.name}", fault, "run the command again"
                    )
            with_white, with_black = points(record)
            crosstable.add(first.name, record.task.second.name, with_white, with_black)
            found.append(Pair(record.task.second.name, with_white, with_black))
            bar.advance()
    return crosstable, found
