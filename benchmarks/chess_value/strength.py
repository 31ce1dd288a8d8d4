"""How strong a net of chess-value is on the clock: against Stockfish, and against the same search without the net.

    python -m benchmarks.chess_value.strength [PLAYER] [--games 400] [--only ladder search] [--tables FOLDER]

PLAYER is `chess-value` (the net that the package ships, the default) or `engine:FOLDER` (what `ranks chess-value
weights` has written). About three hours of two cores with 400 games; nothing else should run.

- ladder: the player with 100 ms a move against Stockfish with 1,000 and with 2,000 nodes a move, whose Elo on the
  committed ladder is known, and against Stockfish with UCI_Elo 1900 and 50,000 nodes, which is no player of the
  ladder: there only the score is reported. Also with 10 ms a move (`--movetimes` names others), and with a depth of 1:
  with one node the engine has looked at one move only.
- search: the player against the same engine, both with 100 ms a move: with its tables, with material, and with tables
  that are tuned on the same labels (`--tables`, see tables.py).

All players have one thread. Pairs of games begin with the same opening and are played with both colours. A game of 400
plies is drawn. Each match is written to benchmarks/results/chess_value_strength_DATE.json when it has ended; a second
call continues a file with those that are missing (`--again` plays all; `--date` names the file of another day). A file
holds matches of one net only.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.measure import RESULTS, origin, write_result
from ranks.chess.board import Board
from ranks.chess.commands.players import make_player
from ranks.chess.engine.evaluator import Evaluator
from ranks.chess.engine.player import EnginePlayer, EngineSettings
from ranks.chess.match.net_rating import LADDER, NET, rate_nets
from ranks.chess.match.schedule import Participant
from ranks.chess.players.player import Choice, Limits, Player
from ranks.cli.main import add_players
from ranks.engine.files.jsonl import strict
from ranks.errors import UserError
from ranks.rating.elo import estimate
from ranks.workloads.chess_value.strength_table import material_values, play

MOVETIME_S = 0.1
STOCKFISH = (
    "uci:stockfish@1000?Threads=1&Hash=16",
    "uci:stockfish@2000?Threads=1&Hash=16",
    "uci:stockfish@50000?Threads=1&Hash=16&UCI_LimitStrength=true&UCI_Elo=1900",
)
WEAK = ("alphabeta:1", "alphabeta:2", "alphabeta:3", "alphabeta:4")
"""Opponents of the player with a depth of 1."""
BARS = {"engine:tables": 120.0, "material": 250.0, "tuned tables": 120.0}
"""The Elo over the same search that the project wants."""


class LimitedPlayer:
    """A player with a limit of its own for each move. `taken_s`: gets the seconds that each move took."""

    def __init__(self, player: Player, limits: Limits, taken_s: list[float]) -> None:
        self.name, self._player, self._limits, self._taken_s = player.name, player, limits, taken_s

    def new_game(self, seed: int) -> None:
        self._player.new_game(seed)

    def choose(self, board: Board, limits: Limits) -> Choice:
        began_s, mine = time.perf_counter(), self._limits
        choice = self._player.choose(board, replace(limits, movetime_s=mine.movetime_s, depth=mine.depth))
        self._taken_s.append(time.perf_counter() - began_s)
        return choice

    def close(self) -> None:
        self._player.close()


@dataclass
class Limited:
    """How a thread opens a player with limits of its own, and how long its moves took."""

    open_player: Callable[[], Player]
    limits: Limits
    taken_s: list[float] = field(default_factory=list[float])

    def __call__(self) -> Player:
        return LimitedPlayer(self.open_player(), self.limits, self.taken_s)

    @property
    def mean_ms(self) -> float:
        """Of a move. The engine looks at the clock every 2,048 nodes, so a move takes longer than its limit."""
        return 1000 * statistics.mean(self.taken_s)


def match(first: Limited, others: dict[str, Callable[[], Player]], games: int) -> list[dict[str, Any]]:
    """A row for each opponent, and one for the rating on the ladder where they are players of it."""
    crosstable, pairs = play(Participant(NET, first), others, games // 2)
    rows: list[dict[str, Any]] = []
    for name in others:
        found, played = estimate(crosstable.pentanomial(NET, name)), crosstable.games(NET, name)
        row = {"against": name, "won": played.wins, "drawn": played.draws, "lost": played.losses}
        elo = {"elo": found.elo.value, "low": found.elo.low, "high": found.elo.high}
        rows.append(row | {"score": found.score.value} | elo)
    known = [pair for pair in pairs if pair.opponent in LADDER]
    ratings = rate_nets(known, [], LADDER) if known else None
    if ratings is not None:
        rating = ratings.rating(NET)
        found = {"rating": rating.value, "low": rating.low, "high": rating.high, "games": 2 * len(known)}
        rows.append(found)
    print(json.dumps(rows, indent=1), flush=True)
    for row in rows:
        other = others.get(row.get("against", ""))
        if isinstance(other, Limited):
            row["its_move_ms"] = other.mean_ms
    return [*rows, {"move_ms": first.mean_ms}]


def ladder(player: str, games: int, limits: Limits, others: Sequence[str]) -> list[dict[str, Any]]:
    """The player with limits of its own against fixed players."""
    first = Limited(partial(make_player, player), limits)
    return match(first, {word: partial(make_player, word) for word in others}, games)


def same_search(player: str, games: int, tables: Path | None) -> list[dict[str, Any]]:
    """The player against the same engine with other evaluations, each with MOVETIME_S for a move."""
    limits = Limits(movetime_s=MOVETIME_S)
    material = Evaluator.of_tables(material_values())
    others: dict[str, Callable[[], Player]] = {
        "engine:tables": partial(make_player, "engine:tables"),
        "material": lambda: EnginePlayer("material", material, EngineSettings()),
    }
    if tables is not None:
        others["tuned tables"] = partial(make_player, f"engine:{tables}")
    timed = {name: Limited(opener, limits) for name, opener in others.items()}
    rows = match(Limited(partial(make_player, player), limits), {**timed}, games)
    return [row | {"bar": BARS[row["against"]]} if "against" in row else row for row in rows]


def evaluator_sha256(word: str) -> str:
    """The hash of the weights that a player evaluates with. Raises UserError where it is not the engine."""
    player = make_player(word)
    player.close()
    if not isinstance(player, EnginePlayer):
        raise UserError(f"the player '{word}'", "it is not the alpha-beta engine", "name chess-value or engine:FOLDER")
    return player.weights_sha256


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("player", nargs="?", default="chess-value")
    parser.add_argument("--games", type=int, default=400, help="with each opponent")
    parser.add_argument("--only", nargs="+", choices=("ladder", "search"), default=["ladder", "search"])
    parser.add_argument("--movetimes", nargs="+", type=float, default=[0.1, 0.01], help="seconds a move, of the ladder")
    parser.add_argument("--tables", type=Path, help="a folder with tuned tables")
    parser.add_argument("--date", default=time.strftime("%Y-%m-%d", time.gmtime()), help="of the result file")
    parser.add_argument("--again", action="store_true", help="play matches again that the file holds")
    asked = parser.parse_args()
    if asked.games < 2 or asked.games % 2 or min(asked.movetimes) <= 0:
        parser.error("--games is an even number, and a move takes time")
    matches: dict[str, Callable[[], list[dict[str, Any]]]] = {}
    if "ladder" in asked.only:
        for seconds in asked.movetimes:
            limits = Limits(movetime_s=seconds)
            matches[f"{seconds * 1000:g} ms a move"] = partial(ladder, asked.player, asked.games, limits, STOCKFISH)
        matches["depth 1"] = partial(ladder, asked.player, asked.games, Limits(depth=1), WEAK)
    if "search" in asked.only:
        matches["the same search"] = partial(same_search, asked.player, asked.games, asked.tables)
    add_players()
    try:
        sha256 = evaluator_sha256(asked.player)
        file = f"chess_value_strength_{asked.date}"
        path = RESULTS / f"{file}.json"
        for name, play in matches.items():
            before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
            if any(match["sha256"] != sha256 for match in before.values()):
                raise UserError(f"to continue {path.name}", f"it is of another net than {asked.player}", "move it away")
            if name in before and not asked.again:
                print(f"{name}: in {path.name}, {before[name]['games']} games with each opponent")
                continue
            print(name, flush=True)
            about = {"origin": origin(), "player": asked.player, "sha256": sha256, "games": asked.games}
            rows = play()
            write_result(file, {**before, name: about | {"rows": strict(rows), "load_after": [*os.getloadavg()]}})
    except UserError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
