"""`ranks chess ladder`: a round robin of a pool, and the ratings of all."""

from __future__ import annotations

import hashlib
import itertools
import math
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from ranks.chess.match.entry import conditions, entrants, openings_of
from ranks.chess.match.game import MAX_PLIES, GameRecord
from ranks.chess.match.game_text import write_record
from ranks.chess.match.ladder import LadderPlan, play_ladder
from ranks.chess.match.openings import Opening
from ranks.chess.players.program import find_command
from ranks.errors import UserError

POOL = ("random", "greedy", "minimax:2", *(f"alphabeta:{depth}" for depth in range(1, 6)))
"""Who plays where nobody is named; and, where Stockfish is installed, these:"""
LIMITED = "uci:stockfish@5000?UCI_LimitStrength=true&UCI_Elo="
STOCKFISH = (f"{LIMITED}1350", f"{LIMITED}1800", "uci:stockfish@1000", "uci:stockfish@2000")
STOCKFISH_ANCHOR = (STOCKFISH[0], 1350.0)
"""What the first of them says of itself."""
NOBODY: list[str] = []
IN_DIGEST = 16
"""Openings that our own sets are told apart by."""


def ladder(
    folder: Path,
    /,
    *,
    player: list[str] = NOBODY,
    anchor: list[str] = NOBODY,
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
    """Rate a pool: everyone plays everyone, one fit gives Elo with 95 % intervals, FOLDER keeps games and plot.

    Started again with the same settings it plays what is missing; players may join.

    Args:
        folder: Where pairs.jsonl, games.pgn, ladder.json and ladder.png are kept.
        player: Who plays; given several times. Without it: random, greedy, minimax:2, alphabeta:1 to alphabeta:5, and
            where Stockfish is installed four rungs of it, with its own UCI_Elo 1350 as the anchor.
        anchor: PLAYER=ELO, a rating that is given; may be given several times. Without it the mean of the pool is 0.
        games_per_pair: Games of each two players.
        until_separated: Neighbours whose order is not sure play on, up to so many games with each other. The games are
            looked at after each doubling, and the intervals between neighbours are wide enough for all looks together.
        tc: Time control: 10+0.1 (seconds and increment), 40/60+0.5 (40 moves in 60 s).
        nodes: Nodes for each move.
        depth: Plies for each move.
        movetime: Seconds for each move.
        time_margin: Seconds that a flag falls late, for a machine that is busy with other work.
        openings: An .epd or .pgn file; without it, a set of our own that follows from the seed.
        concurrency: Games at the same time.
        seed: Of the openings and of all that players draw.
        max_plies: A longer game is a draw.
    """
    agreed = conditions(tc, nodes, depth, movetime, time_margin)
    anchors = dict(_anchor(text) for text in anchor)
    words = list(player)
    if not words:
        words = list(POOL)
        if _stockfish_is_here():
            words += STOCKFISH
            anchors = anchors or dict([STOCKFISH_ANCHOR])
    most = max(games_per_pair, until_separated or 0) // 2
    own = None if openings else max(most, IN_DIGEST)
    lines = list(itertools.islice(openings_of(openings, seed), own))
    pool = entrants(words)
    names = {entrant.facts["word"]: entrant.name for entrant in pool}
    plan = LadderPlan(
        entrants=pool,
        openings=lines,
        openings_name=_named(lines, openings),
        conditions=agreed,
        games_per_pair=games_per_pair,
        anchors={names.get(word, word): elo for word, elo in anchors.items()},
        until_separated=until_separated,
        seed=seed,
        concurrency=concurrency,
        max_plies=max_plies,
    )
    date = time.strftime("%Y.%m.%d")

    def write_game(stream: TextIO, game: GameRecord) -> None:
        write_record(stream, game, "ladder", date, agreed)

    given = ["FOLDER" if word == str(folder) else word for word in sys.argv[3:]]  # no path of this machine
    command = shlex.join(["ranks", "chess", "ladder", *given])
    play_ladder(plan, folder, command, write_game)
    print(f"games, ratings and plot: {folder}", file=sys.stderr)
    return 0


def _stockfish_is_here() -> bool:
    try:
        find_command("stockfish", STOCKFISH[0])
    except UserError as absent:
        print(f"ranks: the ladder has no Stockfish: {absent.found}; {absent.do}", file=sys.stderr)
        return False
    return True


def _anchor(text: str) -> tuple[str, float]:
    """`NAME=ELO`; a name may hold an equals sign itself."""
    name, _, elo = text.rpartition("=")
    try:
        if math.isfinite(float(elo)):
            return name, float(elo)
    except ValueError:
        pass
    raise UserError(f"--anchor {text}", "not a rating", "write PLAYER=ELO, such as alphabeta:1=1000")


def _named(lines: Sequence[Opening], path: Path | None) -> str:
    """A name for a set of openings that changes with any of a file's, or with the first of our own."""
    told_apart = [(line.fen, line.moves) for line in (lines if path else lines[:IN_DIGEST])]
    digest = hashlib.sha256(repr(told_apart).encode()).hexdigest()[:16]
    return f"{path.name if path else 'our own'}, sha256 {digest}"
