"""Positions to move in, and a player asked for one move."""

from __future__ import annotations

import random

from ranks.chess.board import Board
from ranks.chess.commands.players import make_player
from ranks.chess.players.player import Choice, Limits

HANGING_QUEEN = "rnb1kbnr/ppp2ppp/8/3q4/8/2N5/PPPP1PPP/R1BQKBNR w KQkq - 0 5"
MATES = {
    1: [
        "6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - 0 1",
        "r1bqkbnr/pppp1ppp/2n5/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR w KQkq - 0 1",
        "rnbqkbnr/pppp1ppp/8/4p3/6P1/5P2/PPPPP2P/RNBQKBNR b KQkq - 0 2",
        "6rk/6pp/8/6N1/8/8/8/7K w - - 0 1",
        "5k2/5p2/4p2r/4P3/1P5P/PRP1Pq1B/5P2/3bK3 b - - 1 37",
        "3k4/p1p2p2/6BQ/1Pp5/P5qp/2p3PP/n1P4K/1R5R b - - 10 47",
        "rn2r3/pb3pBp/4q3/1pp4B/4Pk2/P2P4/2P1Q1PP/RN3K1R w - - 2 24",
        "r5nr/5b1k/p6p/1Pn1pP1P/2Q3P1/1PP5/1RK4R/2B5 w - - 3 28",
    ],
    2: [
        "kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1",
        "6k1/pp4p1/2p5/2bp4/8/P5Pb/1P3rrP/2BRRN1K b - - 0 1",
        "r2qkb1r/pp2nppp/3p4/2pNN1B1/2BnP3/3P4/PPP2PPP/R2bK2R w KQkq - 1 1",
        "2k4r/7p/4P2P/2p5/5q2/7K/8/2b5 b - - 2 37",
        "2r1b2k/8/8/8/1B5P/5P2/4r3/7K b - - 8 53",
        "8/7k/3p4/3P1p2/5N2/5BQ1/P3P3/4K3 w - - 1 46",
        "4R3/7k/8/7B/3N4/4PK1P/8/8 w - - 1 50",
        "6k1/8/P6K/8/5N2/6P1/5R2/8 w - - 27 70",
    ],
    3: [
        "3nK3/8/8/5k2/3p4/1p6/8/3r4 b - - 11 72",
        "8/2N5/3p4/1P3k2/2QP4/2N5/4P3/5K2 w - - 3 35",
        "2k5/p1p4n/p1P5/6p1/8/K7/6rr/8 b - - 5 59",
        "5k2/8/1p1r4/3r3p/8/8/8/1K6 b - - 63 78",
        "8/8/8/2k5/8/2K1p3/3p4/4r3 b - - 1 78",
        "8/8/p5N1/P7/1k6/5n2/6p1/2K5 b - - 1 65",
        "6R1/8/4P3/K7/p7/P7/8/7k w - - 27 81",
        "7k/8/8/6K1/8/P4R2/8/8 w - - 21 61",
    ],
}
"""Positions by the moves to mate; that it is forced, and none is shorter, is checked by trying
everything."""


def random_boards(number: int, seed: int, plies: tuple[int, int], max_pieces: int = 32) -> list[Board]:
    """Positions of unfinished random games, with all their moves. If few pieces are wanted, about
    every second move takes one if it can."""
    rng = random.Random(seed)
    boards: list[Board] = []
    while len(boards) < number:
        board = Board()
        for _ in range(rng.randint(*plies)):
            moves = board.legal_moves()
            pieces = int(board.words[6] | board.words[7])
            captures = [move for move in moves if pieces >> (move >> 6 & 63) & 1]
            board.push(
                rng.choice(captures if captures and pieces.bit_count() > max_pieces and rng.random() < 0.5 else moves)
            )
            if board.outcome():
                break
        else:
            if int(board.words[6] | board.words[7]).bit_count() <= max_pieces:
                boards.append(board)
    return boards


def choose(spec: str, board: Board, limits: Limits | None = None) -> Choice:
    player = make_player(spec)
    player.new_game(1)
    choice = player.choose(board, limits or Limits())
    player.close()
    return choice
