"""`ranks chess match`: a match of two players in pairs of games, reported as cutechess does."""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ranks.chess.match import MAX_PLIES
from ranks.errors import UserError

if TYPE_CHECKING:
    from ranks.chess.match.game import GameRecord


def match(
    *,
    player: list[str],
    tc: str | None = None,
    nodes: int | None = None,
    depth: int | None = None,
    movetime: float | None = None,
    time_margin: float = 0.0,
    rounds: int = 50,
    openings: Path | None = None,
    concurrency: int = 1,
    sprt: str | None = None,
    pgnout: Path | None = None,
    seed: int = 0,
    max_plies: int = MAX_PLIES,
) -> int:
    """Play a match of two players: each opening twice, with colours reversed.

    Games are not adjudicated. Ctrl-C prints the report of the finished pairs and ends with exit
    code 130.

    Args:
        player: A player; give the flag twice: random, greedy, minimax:2, alphabeta:4, mcts:100, uci:stockfish, ...
        tc: Time control: 10+0.1 (seconds and increment), 40/60+0.5 (40 moves in 60 s).
        nodes: Nodes for each move, instead of a time control.
        depth: Plies for each move, instead of a time control.
        movetime: Seconds for each move, instead of a time control.
        time_margin: Seconds that a clock may run below zero, for busy machines.
        rounds: Pairs of games; with --sprt the maximum.
        openings: An .epd or .pgn file; the default is a built-in set that follows from the seed.
        concurrency: Games played at the same time.
        sprt: Sequential test that ends the match: elo0=0,elo1=10[,alpha=0.05,beta=0.05].
        pgnout: File to which each finished game is appended.
        seed: Seed of the openings and of the players' random choices.
        max_plies: A game of this many plies is a draw.
    """
    from ranks.chess.commands.match_options import conditions, openings_of, participants
    from ranks.chess.match.game_pgn import write_record
    from ranks.chess.match.match import MatchPlan, play_match
    from ranks.chess.pgn import open_pgn
    from ranks.rating.sprt import parse_sprt

    if len(player) != 2:
        found = f"{len(player)} players"
        raise UserError("ranks chess match", found, "give --player twice; for more players use ranks chess ladder")
    game_conditions = conditions(tc, nodes, depth, movetime, time_margin)
    test = parse_sprt(sprt) if sprt else None
    if max_plies < 1:
        raise UserError(f"--max-plies {max_plies}", "no game is that short", "give 1 or more")
    lines = openings_of(openings, seed)
    first, second = participants(player)
    plan = MatchPlan(first, second, lines, game_conditions, rounds, seed, concurrency, test, max_plies)
    date = time.strftime("%Y.%m.%d")
    with contextlib.ExitStack() as stack:
        pgn = stack.enter_context(open_pgn(pgnout)) if pgnout else None

        def save(game: GameRecord) -> None:
            if pgn:
                write_record(pgn, game, f"{first.name} vs {second.name}", date, game_conditions)

        play_match(plan, save)
    if pgnout:
        print(f"games: {pgnout}", file=sys.stderr)
    return 0
