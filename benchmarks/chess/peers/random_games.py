"""Random games with a library of chess rules: `python random_games.py LIBRARY --cores 0 [--seed
1]`.

Each game starts from the initial position and plays uniformly random legal moves. It ends by mate,
stalemate, 50 moves, threefold repetition, insufficient material, or after 1,000 plies. If a library
lacks one of these, the result says so, and its games end later. Each library is used in the fastest
way that its public interface allows, as far as we know.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Mapping
from itertools import islice

from worker import Prepared, keep_to, serve, version

CAP_PLIES = 1000
GAMES = 4
"""Played before looking at the clock again."""
Play = Callable[[], int]
"""Plays one game and returns its number of plies."""


def python_chess(uniform: Callable[[], float]) -> tuple[Play, str]:
    import chess

    def play() -> int:
        board = chess.Board()
        for ply in range(CAP_PLIES):
            moves = list(board.generate_legal_moves())
            repeated = board.halfmove_clock >= 8 and board.is_repetition(3)
            over = repeated or board.halfmove_clock >= 100 or board.is_insufficient_material()
            if not moves or over:
                return ply
            board.push(moves[int(uniform() * len(moves))])
        return CAP_PLIES

    return play, ""


def open_spiel(uniform: Callable[[], float]) -> tuple[Play, str]:
    import pyspiel

    game = pyspiel.load_game("chess")
    bots = [pyspiel.make_uniform_random_bot(player, int(uniform() * 2**31)) for player in range(2)]

    def play() -> int:
        state = game.new_initial_state()
        pyspiel.evaluate_bots(state, bots, int(uniform() * 2**31))  # the loop over plies runs in C++
        return state.move_number()

    return play, "the cap on plies"


def rust_chess(uniform: Callable[[], float]) -> tuple[Play, str]:
    import rust_chess as rules

    def play() -> int:
        board = rules.Board()
        for ply in range(CAP_PLIES):
            moves, num_moves = board.generate_legal_moves(), board.get_generator_num_remaining()
            over = board.is_fifty_moves() or board.is_insufficient_material() or board.is_threefold_repetition()
            if not num_moves or over:
                return ply
            board.make_move(next(islice(moves, int(uniform() * num_moves), None)), check_legality=False)
        return CAP_PLIES

    return play, ""


def bulletchess(uniform: Callable[[], float]) -> tuple[Play, str]:
    from bulletchess import INSUFFICIENT_MATERIAL, THREEFOLD_REPETITION, Board

    def play() -> int:
        board = Board()
        for ply in range(CAP_PLIES):
            moves = board.legal_moves()
            repeated = board.halfmove_clock >= 8 and board in THREEFOLD_REPETITION
            over = repeated or board.halfmove_clock >= 100 or board in INSUFFICIENT_MATERIAL
            if not moves or over:
                return ply
            board.apply(moves[int(uniform() * len(moves))])
        return CAP_PLIES

    return play, ""


def spooky_chess(uniform: Callable[[], float]) -> tuple[Play, str]:
    import spooky_chess as rules

    def play() -> int:
        game = rules.Game.standard()
        for ply in range(CAP_PLIES):
            actions = game.legal_alphazero_action_indices()
            if not actions or game.halfmove_clock() >= 100 or game.is_insufficient_material():
                return ply
            game.apply_alphazero_action(actions[int(uniform() * len(actions))])
        return CAP_PLIES

    return play, "repetition"


def cozy_chess(uniform: Callable[[], float]) -> tuple[Play, str]:
    import cozy_chess as rules

    def play() -> int:
        board = rules.Board()
        times_seen: dict[int, int] = {}
        for ply in range(CAP_PLIES):
            moves = board.generate_moves()
            key = board.hash()
            times_seen[key] = times_seen.get(key, 0) + 1
            if not moves or board.halfmove_clock >= 100 or times_seen[key] == 3:
                return ply
            board.play_unchecked(moves[int(uniform() * len(moves))])
        return CAP_PLIES

    return play, "insufficient material; repetition is counted here in Python"


def fastchess(uniform: Callable[[], float]) -> tuple[Play, str]:
    import fastchess as rules

    def play() -> int:
        board = rules.Board()
        for ply in range(CAP_PLIES):
            moves = board.legal_moves_uci()
            if not moves or board.halfmove >= 100:
                return ply
            board.push_uci(moves[int(uniform() * len(moves))])
        return CAP_PLIES

    return play, "repetition, insufficient material"


def pyrust_chess(uniform: Callable[[], float]) -> tuple[Play, str]:
    import pyrust_chess as rules

    def play() -> int:
        board = rules.Board()
        for ply in range(CAP_PLIES):
            moves = list(board.legal_moves)
            repeated = board.halfmove_clock >= 8 and board.is_repetition(3)
            over = repeated or board.halfmove_clock >= 100 or board.is_insufficient_material()
            if not moves or over:
                return ply
            board.push(moves[int(uniform() * len(moves))])
        return CAP_PLIES

    return play, ""


LIBRARIES: Mapping[str, Callable[[Callable[[], float]], tuple[Play, str]]] = {
    "chess": python_chess,
    "open-spiel": open_spiel,
    "rust-chess": rust_chess,
    "bulletchess": bulletchess,
    "spooky-chess": spooky_chess,
    "cozy-chess-py": cozy_chess,
    "fastchess": fastchess,
    "pyrust-chess": pyrust_chess,
}
"""By the name on PyPI."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", choices=sorted(LIBRARIES))
    parser.add_argument("--cores", default="0")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    keep_to(asked.cores)

    def prepare() -> Prepared:
        play, lacks = LIBRARIES[asked.library](random.Random(asked.seed).random)

        def work() -> Mapping[str, float]:
            return {"done": GAMES, "plies": sum(play() for _ in range(GAMES))}

        return work, {"version": version(asked.library), "lacks": lacks}

    serve(prepare)


if __name__ == "__main__":
    main()
