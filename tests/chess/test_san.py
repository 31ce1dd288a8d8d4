"""Standard algebraic notation: the shortest that is right, and everything that people write
instead."""

from __future__ import annotations

import chess
import pytest

from ranks.chess.board import Board, move_to_uci
from ranks.chess.fen import START_FEN
from ranks.chess.san import format_line, format_san, parse_line, parse_san
from tests.chess.oracle import as_ours
from tests.chess.suites import perft_suites

WRITTEN = {
    "pawn": (START_FEN, "e2e4", "e4"),
    "knight": (START_FEN, "g1f3", "Nf3"),
    "pawn takes": ("4k3/8/8/3p4/4P3/8/8/4K3 w - - 0 1", "e4d5", "exd5"),
    "en passant": ("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1", "e5d6", "exd6"),
    "promotion": ("8/P3k3/8/8/8/8/8/4K3 w - - 0 1", "a7a8r", "a8=R"),
    "promotion with check": ("4k3/P7/8/8/8/8/8/4K3 w - - 0 1", "a7a8q", "a8=Q+"),
    "promotion that takes": ("1n6/P3k3/8/8/8/8/8/4K3 w - - 0 1", "a7b8n", "axb8=N"),
    "mate": ("7k/8/6K1/8/8/8/8/R7 w - - 0 1", "a1a8", "Ra8#"),
    "castling short": ("4k3/8/8/8/8/8/8/4K2R w K - 0 1", "e1g1", "O-O"),
    "castling long with check": ("3k4/8/8/8/8/8/8/R3K3 w Q - 0 1", "e1c1", "O-O-O+"),
    "by file": ("4k3/8/8/8/8/8/8/RN2KN2 w - - 0 1", "b1d2", "Nbd2"),
    "by rank": ("4k3/8/8/R7/8/8/8/R3K3 w - - 0 1", "a1a3", "R1a3"),
    "by file first": ("4k3/8/8/N7/8/8/8/N3K3 w - - 0 1", "a5b3", "N5b3"),
    "by both": ("8/8/7k/8/Q2Q4/8/8/Q3K3 w - - 0 1", "a4d1", "Qa4d1"),
    "not of a pinned knight": ("4r2k/8/8/8/8/8/4N3/N3K3 w - - 0 1", "a1c2", "Nc2"),
    "of a rook pinned along its line": ("4r2k/8/8/8/4R3/8/8/R3K3 w - - 0 1", "a1a4", "Ra4"),
    "of two queens of one rank": ("7k/8/8/8/8/8/8/KQ1Q4 w - - 0 1", "b1c1", "Qbc1"),
}


@pytest.mark.parametrize("case", WRITTEN)
def test_written(case: str) -> None:
    fen, uci, text = WRITTEN[case]
    board = Board(fen)
    move = board.parse_uci(uci)
    assert format_san(board, move) == text == chess.Board(fen).san(chess.Move.from_uci(uci))
    assert parse_san(board, text) == move


MIDDLE = "r3k2r/1P3ppp/5n2/3pP3/8/1b3N2/P1B2PPP/RN2K2R w KQkq d6 0 1"
READ = {
    "check not written": ("7k/8/6K1/8/8/8/8/R7 w - - 0 1", "Ra8", "a1a8"),
    "mate as check": ("7k/8/6K1/8/8/8/8/R7 w - - 0 1", "Ra8+", "a1a8"),
    "mate as double check": ("7k/8/6K1/8/8/8/8/R7 w - - 0 1", "Ra8++", "a1a8"),
    "check where there is none": (MIDDLE, "Nbd2+", "b1d2"),
    "annotation": (MIDDLE, "Nbd2!?", "b1d2"),
    "mate and annotation": ("7k/8/6K1/8/8/8/8/R7 w - - 0 1", "Ra8#!!", "a1a8"),
    "superfluous file": (START_FEN, "Ngf3", "g1f3"),
    "superfluous rank": (START_FEN, "N1f3", "g1f3"),
    "superfluous square": (START_FEN, "Ng1f3", "g1f3"),
    "long algebraic": (START_FEN, "Ng1-f3", "g1f3"),
    "long algebraic pawn": (START_FEN, "e2-e4", "e2e4"),
    "UCI": (START_FEN, "e2e4", "e2e4"),
    "UCI of a piece": (START_FEN, "g1f3", "g1f3"),
    "UCI of castling": (MIDDLE, "e1g1", "e1g1"),
    "UCI of a promotion": (MIDDLE, "b7b8q", "b7b8q"),
    "takes not written": (MIDDLE, "Bb3", "c2b3"),
    "takes with a colon": (MIDDLE, "B:b3", "c2b3"),
    "takes written where none": (START_FEN, "Nxf3", "g1f3"),
    "pawn takes without x": (MIDDLE, "ab3", "a2b3"),
    "castling with zeros": (MIDDLE, "0-0", "e1g1"),
    "castling with small letters": (MIDDLE, "o-o", "e1g1"),
    "castling as a king's move": (MIDDLE, "Kg1", "e1g1"),
    "promotion without =": (MIDDLE, "b8Q", "b7b8q"),
    "promotion in small letters": (MIDDLE, "b8=n", "b7b8n"),
    "promotion in brackets": (MIDDLE, "bxa8(R)", "b7a8r"),
    "promotion with check": (MIDDLE, "bxa8=Q+", "b7a8q"),
    "en passant written": (MIDDLE, "exd6e.p.", "e5d6"),
    "pawn letter": (START_FEN, "Pe4", "e2e4"),
}


@pytest.mark.parametrize("case", READ)
def test_read(case: str) -> None:
    fen, text, uci = READ[case]
    assert move_to_uci(parse_san(Board(fen), text)) == uci


def test_a_small_b_is_a_file_and_a_capital_one_a_bishop() -> None:
    board = Board("4k3/8/8/2p5/1P6/B7/8/4K3 w - - 0 1")
    assert move_to_uci(parse_san(board, "bxc5")) == "b4c5"
    with pytest.raises(ValueError, match="no bishop can go to c5"):
        parse_san(board, "Bxc5")


REFUSED = {
    "empty": (START_FEN, "", "'' is not a move in algebraic notation"),
    "words": (START_FEN, "resigns", "is not a move in algebraic notation"),
    "small piece letter": (START_FEN, "nf3", "is not a move in algebraic notation"),
    "off the board": (START_FEN, "Nf9", "is not a move in algebraic notation"),
    "null move": (START_FEN, "--", "is not a move in algebraic notation"),
    "mixed castling": (START_FEN, "O-0", "is not a move in algebraic notation"),
    "promotion to a king": ("8/P3k3/8/8/8/8/8/4K3 w - - 0 1", "a8=K", "is not a move in algebraic notation"),
    "ambiguous": ("4k3/8/8/8/8/8/8/RN2KN2 w - - 0 1", "Nd2", "'Nd2' is ambiguous: Nbd2 or Nfd2"),
    "ambiguous by rank": ("4k3/8/8/R7/8/8/8/R3K3 w - - 0 1", "Raa3", "'Raa3' is ambiguous: R1a3 or R5a3"),
    "out of reach": (START_FEN, "Nf4", "'Nf4' is not legal: no knight can go to f4"),
    "blocked": (START_FEN, "Ra3", "no rook can go to a3"),
    "pawn blocked": ("4k3/8/8/8/8/4n3/4P3/4K3 w - - 0 1", "e4", "no pawn can go to e4"),
    "pawn takes nothing": (START_FEN, "exd3", "no pawn can go to d3"),
    "own piece": (START_FEN, "Bf1e2", "e2 holds a piece of the same side"),
    "no such piece": ("4k3/8/8/8/8/8/8/4K3 w - - 0 1", "Qd5", "white has no queen"),
    "no such piece of black": ("4k3/8/8/8/8/8/8/4K3 b - - 0 1", "a6", "black has no pawn"),
    "not there": (START_FEN, "Ng3f5", "white has no knight there"),
    "empty square": (START_FEN, "e3e4", "white has no piece there"),
    "in check": ("4k3/8/8/8/4r3/8/8/3QK3 w - - 0 1", "Qd8", "it does not end the check"),
    "pinned": ("4k3/8/8/8/4r3/8/4N3/4K3 w - - 0 1", "Nc3", "the king would be in check"),
    "king into check": ("4k3/8/8/8/8/8/3r4/5K2 w - - 0 1", "Ke2", "the king would be in check"),
    "pinned en passant": ("k3r3/8/8/3pP3/8/8/8/4K3 w - d6 0 1", "exd6", "no pawn can go to d6"),
    "promotion piece missing": ("8/P3k3/8/8/8/8/8/4K3 w - - 0 1", "a8", "the promotion piece is missing"),
    "promotion too early": (START_FEN, "e4=Q", "only a pawn on the last rank promotes"),
    "promotion of a piece": (START_FEN, "Nf3=Q", "only a pawn on the last rank promotes"),
    "castling blocked": (START_FEN, "O-O", "a piece is between king and rook"),
    "castling right lost": ("4k3/8/8/8/8/8/8/R3K2R w Q - 0 1", "O-O", "the right to castle on that side is lost"),
    "castling in check": ("4k3/8/8/8/4r3/8/8/R3K2R w KQ - 0 1", "O-O", "the king is in check"),
    "castling through check": ("4k3/8/8/8/3r4/8/8/R3K3 w Q - 0 1", "O-O-O", "the king would pass through check"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    fen, text, reason = REFUSED[case]
    with pytest.raises(ValueError, match="is") as refusal:
        parse_san(Board(fen), text)
    assert reason in str(refusal.value)


def test_every_move_of_the_suites_against_python_chess() -> None:
    for fen, _ in perft_suites():
        board, rival = Board(fen), chess.Board(fen)
        for move in rival.legal_moves:
            assert format_san(board, as_ours(move)) == rival.san(move)
            assert parse_san(board, rival.san(move)) == as_ours(move)
            assert parse_san(board, rival.lan(move)) == as_ours(move)
            assert parse_san(board, move.uci()) == as_ours(move)


def test_lines_stop_where_a_move_cannot_be_read() -> None:
    start = Board().rows
    moves = parse_line(start, ["e4", "e5", "Nf3", "Nf3", "Bc4"])
    assert [move_to_uci(move) for move in moves] == ["e2e4", "e7e5", "g1f3"]
    assert format_line(start, moves) == ["e4", "e5", "Nf3"]
    assert parse_line(start, []) == []
    assert format_line(start, []) == []
    with pytest.raises(ValueError, match="move 2 of the line is not legal"):
        format_line(start, [moves[0], moves[0]])
    with pytest.raises(ValueError, match="is not legal"):
        format_san(Board(), 0)
