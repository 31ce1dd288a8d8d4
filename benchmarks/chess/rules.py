"""Correctness of the rules of chess, at a length that tests have no time for.

    python -m benchmarks.chess.rules [--positions 100000] [--games 10000]      about three minutes on one core

Three checks: all counts of tests/chess/perft.epd; random positions compared with python-chess, if
it is installed (pip install chess); and a PGN file of our own games, each of which must be equal
after it is written, read and written again. Writes benchmarks/results/chess_rules_DATE.json and
exits with 1 if anything differs.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.measure import origin, write_result
from ranks.chess.board import Board
from ranks.chess.core.perft import perft
from ranks.chess.fen import parse_fen
from ranks.chess.pgn import PgnGame, SkippedGame, read_games, write_game
from tests.chess.suites import perft_suites

HAS_RIVAL = importlib.util.find_spec("chess") is not None
PLIES = 300
VALUES = (1, 3, 3, 5, 9)
"""Of pawn, knight, bishop, rook and queen."""


def suites() -> dict[str, Any]:
    """Every known count, and ours."""
    wrong: list[dict[str, Any]] = []
    nodes, counts, start = 0, 0, time.perf_counter()
    for fen, known in perft_suites():
        for depth, number in known.items():
            found = perft(parse_fen(fen), depth)
            nodes, counts = nodes + found, counts + 1
            if found != number:
                wrong.append({"fen": fen, "depth": depth, "known": number, "found": found})
        print(f"{fen}: depth {max(known)}, {known[max(known)]} nodes", flush=True)
    elapsed_s = time.perf_counter() - start
    return {"counts": counts, "wrong": wrong, "nodes": nodes, "nodes_per_second": round(nodes / elapsed_s)}


def positions(number: int) -> dict[str, Any]:
    """Random positions against python-chess: three in four from games, the others from random
    placements of pieces."""
    if not HAS_RIVAL:
        return {"python_chess": None, "wrong": None}
    from tests.chess.oracle import Keys, check_games, check_placements

    found: dict[str, Any] = {"python_chess": version("chess"), "positions": number, "wrong": None}
    try:
        ends = check_games(seed=10, num_positions=number * 3 // 4, keys=Keys())
        found["endings"] = {end or "cut off": times for end, times in ends.items()}
        found["placements_in_check"] = check_placements(seed=11, num_positions=number - number * 3 // 4, keys=Keys())
    except AssertionError as difference:
        found["wrong"] = str(difference)
    return found


def victim(board: Board, move: int) -> int:
    """The value of what a move captures or promotes to."""
    to = move >> 6 & 63
    captured = next((value for kind, value in enumerate(VALUES) if int(board.words[kind]) >> to & 1), 0)
    return captured + (VALUES[move >> 12] if move >> 12 else 0)


def own_games(number: int) -> Iterator[tuple[PgnGame, str]]:
    """Games by uniformly random moves, by the richest capture, and without captures where that is
    possible; each with how it ended."""
    rng = random.Random(12)
    starts = [fen for fen, _ in perft_suites()]
    for game in range(number):
        fen = rng.choice(starts) if game % 4 == 0 else None
        greed = ("random", "greedy", "peaceful")[game % 3]
        board, comments = Board(fen), dict[int, str]()
        while (outcome := board.outcome()) is None and board.ply < PLIES:
            moves = board.legal_moves()
            if greed != "random" and rng.random() < 0.8:
                worth = [victim(board, move) for move in moves]
                wanted = max(worth) if greed == "greedy" else min(worth)
                moves = [move for move, value in zip(moves, worth, strict=True) if value == wanted]
            board.push(rng.choice(moves))
            if game % 2:
                comments[board.ply] = f"{rng.uniform(-9, 9):+.2f}/{rng.randint(1, 20)} {rng.random():.3f}s"
        headers = {"Event": "Own games", "Round": str(game + 1), "White": greed, "Black": greed}
        result = outcome.result if outcome else "*"
        yield PgnGame(headers, fen, tuple(board.moves), comments, result), outcome.reason if outcome else "cut off"


def round_trip(number: int) -> dict[str, Any]:
    """Write, read and write again; a sample also through python-chess."""
    pairs = list(own_games(number))
    games = [game for game, _ in pairs]
    skipped: list[SkippedGame] = []
    with tempfile.TemporaryDirectory(prefix="ranks-benchmark-") as folder:
        path = Path(folder) / "own.pgn"
        start = time.perf_counter()
        with path.open("w", encoding="utf-8") as stream:
            for game in games:
                write_game(stream, game)
        written_s = time.perf_counter() - start
        start = time.perf_counter()
        again = list(read_games(path, skipped.append))
        read_s = time.perf_counter() - start
        text = path.read_text(encoding="utf-8")
    second = io.StringIO()
    for game in again:
        write_game(second, game)
    plies = sum(len(game.moves) for game in games)
    return {
        "games": number,
        "plies": plies,
        "bytes": len(text.encode()),
        "endings": dict(Counter(end for _, end in pairs)),
        "promotions": sum(move >> 12 > 0 for game in games for move in game.moves),
        "damaged": [str(damage) for damage in skipped],
        "unequal": sum(a != b for a, b in zip(games, again, strict=False)) + abs(len(games) - len(again)),
        "second_text_equal": second.getvalue() == text,
        "written_games_per_second": round(number / written_s),
        "read_games_per_second": round(number / read_s),
        "read_plies_per_second": round(plies / read_s),
        **(_sample(text, games[: min(number, 500)]) if HAS_RIVAL else {}),
    }


def _sample(text: str, games: list[PgnGame]) -> dict[str, Any]:
    """The first games as python-chess reads them."""
    import chess.pgn

    from tests.chess.oracle import as_ours

    stream = io.StringIO(text)
    start = time.perf_counter()
    theirs = [game for game in islice(iter(lambda: chess.pgn.read_game(stream), None), len(games)) if game]
    read_s = time.perf_counter() - start
    unequal = sum(
        bool(theirs.errors) or tuple(map(as_ours, theirs.mainline_moves())) != ours.moves
        for ours, theirs in zip(games, theirs, strict=True)
    )
    plies_per_second = round(sum(len(game.moves) for game in games) / read_s)
    return {"sample": len(games), "sample_unequal": unequal, "python_chess_read_plies_per_second": plies_per_second}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--positions", type=int, default=100_000)
    parser.add_argument("--games", type=int, default=10_000)
    asked = parser.parse_args()
    result: dict[str, Any] = origin()
    result["versions"] |= {"numba": version("numba")}
    result["perft"] = suites()
    result["random_positions"] = positions(asked.positions)
    result["round_trip"] = trip = round_trip(asked.games)
    print(json.dumps({key: result[key] for key in ("perft", "random_positions", "round_trip")}, indent=2))
    result["right"] = not (
        result["perft"]["wrong"]
        or result["random_positions"]["wrong"]
        or trip["damaged"]
        or trip["unequal"]
        or not trip["second_text_equal"]
        or trip.get("sample_unequal")
    )
    path = write_result(f"chess_rules_{result['date'][:10]}", result)
    print(f"{'right' if result['right'] else 'WRONG'}: {path}")
    return 0 if result["right"] else 1


if __name__ == "__main__":
    sys.exit(main())
