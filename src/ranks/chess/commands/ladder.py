"""`ranks chess ladder`: a round robin of a pool, and a rating of each player."""

from __future__ import annotations

import hashlib
import itertools
import math
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ranks.chess.match import MAX_PLIES
from ranks.errors import UserError

if TYPE_CHECKING:
    from ranks.chess.match.game import GameRecord
    from ranks.chess.match.openings import Opening

POOL = ("random", "greedy", "minimax:2", *(f"alphabeta:{depth}" for depth in range(1, 6)))
"""The players if none are given; if Stockfish is installed, these too:"""
LIMITED = "uci:stockfish@5000?UCI_LimitStrength=true&UCI_Elo="
STOCKFISH = (f"{LIMITED}1350", f"{LIMITED}1800", "uci:stockfish@1000", "uci:stockfish@2000")
STOCKFISH_ANCHOR = (STOCKFISH[0], 1350.0)
"""The UCI_Elo of the first of them."""
NONE_GIVEN: list[str] = []
IN_DIGEST = 16
"""The number of openings that identify a built-in set."""


def ladder(
    folder: Path,
    /,
    *,
    player: list[str] = NONE_GIVEN,
    anchor: list[str] = NONE_GIVEN,
    games_per_pair: int = 100,
    until_separated: int | None = None,
    tc: str | None = None,
    nodes: int | None = None,
    depth: int | None = None,
    movetime: float | None = None,
    time_margin: float = 0.0,
    openings: Path | None = None,
    concurrency: int = 1,
    seed: int = 0,
    max_plies: int = MAX_PLIES,
) -> int:
    """Rate a pool in a round robin: Elo with 95 % intervals. FOLDER keeps games, ratings and plot.

    The same command resumes a ladder. Players may be added.

    Args:
        folder: The folder for pairs.jsonl, games.pgn, ladder.json and ladder.png.
        player: A player; give the flag several times. The default is random, greedy, minimax:2, alphabeta:1 to
            alphabeta:5 and, if Stockfish is installed, four strengths of it, with its UCI_Elo 1350 as the anchor.
        anchor: PLAYER=ELO, a fixed rating; may be given several times. Without it the mean of the pool is 0.
        games_per_pair: Games between each two players.
        until_separated: Neighbours that are not separated play more games, up to this many with each other. The ratings
            are checked after each doubling; the intervals between neighbours account for all checks together.
        tc: Time control: 10+0.1 (seconds and increment), 40/60+0.5 (40 moves in 60 s).
        nodes: Nodes for each move.
        depth: Plies for each move.
        movetime: Seconds for each move.
        time_margin: Seconds that a clock may run below zero, for busy machines.
        openings: An .epd or .pgn file; the default is a built-in set that follows from the seed.
        concurrency: Games played at the same time.
        seed: Seed of the openings and of the players' random choices.
        max_plies: A game of this many plies is a draw.
    """
    from ranks.chess.commands.match_options import conditions, openings_of, participants
    from ranks.chess.match.game_pgn import write_record
    from ranks.chess.match.ladder import LadderPlan, play_ladder

    game_conditions = conditions(tc, nodes, depth, movetime, time_margin)
    anchors = dict(_anchor(text) for text in anchor)
    specs = list(player)
    if not specs:
        specs = list(POOL)
        if _stockfish_is_installed():
            specs += STOCKFISH
            anchors = anchors or dict([STOCKFISH_ANCHOR])
    most = max(games_per_pair, until_separated or 0) // 2
    own = None if openings else max(most, IN_DIGEST)
    lines = list(itertools.islice(openings_of(openings, seed), own))
    pool = participants(specs)
    names = {participant.identity["word"]: participant.name for participant in pool}
    plan = LadderPlan(
        participants=pool,
        openings=lines,
        openings_name=_named(lines, openings),
        conditions=game_conditions,
        games_per_pair=games_per_pair,
        anchors={names.get(player, player): elo for player, elo in anchors.items()},
        until_separated=until_separated,
        seed=seed,
        concurrency=concurrency,
        max_plies=max_plies,
    )
    date = time.strftime("%Y.%m.%d")

    def write_game(stream: TextIO, game: GameRecord) -> None:
        write_record(stream, game, "ladder", date, game_conditions)

    given = ["FOLDER" if argument == str(folder) else argument for argument in sys.argv[3:]]  # no path of this machine
    command = shlex.join(["ranks", "chess", "ladder", *given])
    play_ladder(plan, folder, command, write_game)
    print(f"games, ratings and plot: {folder}", file=sys.stderr)
    return 0


def _stockfish_is_installed() -> bool:
    from ranks.chess.uci.player import find_command

    try:
        find_command("stockfish", STOCKFISH[0])
    except UserError as absent:
        print(f"ranks: the ladder is played without Stockfish: {absent.found}; {absent.do}", file=sys.stderr)
        return False
    return True


def _anchor(text: str) -> tuple[str, float]:
    """Parse `NAME=ELO`. The name may contain an equals sign."""
    name, _, elo = text.rpartition("=")
    try:
        if math.isfinite(float(elo)):
            return name, float(elo)
    except ValueError:
        pass
    raise UserError(f"--anchor {text}", "this is not a rating", "write PLAYER=ELO, e.g. alphabeta:1=1000")


def _named(lines: Sequence[Opening], path: Path | None) -> str:
    """A name that identifies openings: all those of a file, or the first of a built-in set."""
    identifying = [(line.fen, line.moves) for line in (lines if path else lines[:IN_DIGEST])]
    digest = hashlib.sha256(repr(identifying).encode()).hexdigest()[:16]
    return f"{path.name if path else 'our own'}, sha256 {digest}"
