"""FEN: what is read is written again, and every refusal says what is wrong."""

from __future__ import annotations

import random

import chess
import pytest

from ranks.chess.board import Board
from ranks.chess.fen import START_FEN, format_fen, parse_fen
from ranks.errors import UserError
from tests.chess.suites import perft_suites

REFUSED = {
    "nothing": ("", "0 fields"),
    "words": ("startpos", "1 fields"),
    "five fields": ("8/8/8/8/8/8/8/8 w - - 0", "5 fields"),
    "seven ranks": ("8/8/8/8/8/8/8 w - - 0 1", "the board has 7 ranks"),
    "nine ranks": ("8/8/8/8/8/8/8/8/8 w - - 0 1", "the board has 9 ranks"),
    "short rank": ("k7/8/8/8/8/8/7/K7 w - - 0 1", "the rank '7' has 7 squares"),
    "long rank": ("k7/8/8/8/8/8/7pp/K7 w - - 0 1", "'p' in the rank '7pp'"),
    "long count": ("k7/8/8/8/8/8/p8/K7 w - - 0 1", "the rank 'p8' has 9 squares"),
    "empty rank": ("k7/8/8/8/8/8//K7 w - - 0 1", "the rank '' has 0 squares"),
    "unknown piece": ("k7/8/8/8/8/8/x7/K7 w - - 0 1", "'x' in the rank 'x7'"),
    "count of nine": ("k7/8/8/8/8/8/9/K7 w - - 0 1", "'9' in the rank '9'"),
    "side": ("k7/8/8/8/8/8/8/K7 white - - 0 1", "'white' is not a side to move"),
    "castling letters": ("k7/8/8/8/8/8/8/K7 w x - 0 1", "'x' as castling rights"),
    "castling twice": ("r3k2r/8/8/8/8/8/8/R3K2R w KK - 0 1", "'KK' as castling rights"),
    "castling without a king": ("r3k2r/8/8/8/8/8/8/R2K3R w K - 0 1", "the right K, but king or rook"),
    "castling without a rook": ("4k2r/8/8/8/8/8/8/R3K2R w q - 0 1", "the right q, but king or rook"),
    "castling of Chess960": ("k7/8/8/8/8/8/8/1RK4R w HB - 0 1", "'HB' as castling rights"),
    "en passant square": ("k7/8/8/8/8/8/8/K7 w - e9 0 1", "'e9' as en passant square"),
    "en passant rank": ("k7/8/8/3pP3/8/8/8/K7 w - d3 0 1", "'d3' as en passant square"),
    "en passant without a pawn": ("k7/8/8/4P3/8/8/8/K7 w - d6 0 1", "no pawn can have made a double push over d6"),
    "en passant behind a piece": ("k7/3n4/8/3pP3/8/8/8/K7 w - d6 0 1", "no pawn can have made a double push over d6"),
    "en passant on a piece": ("k7/8/3n4/3pP3/8/8/8/K7 w - d6 0 1", "no pawn can have made a double push over d6"),
    "half moves": ("k7/8/8/8/8/8/8/K7 w - - x 1", "'x' as a move counter"),
    "negative half moves": ("k7/8/8/8/8/8/8/K7 w - - -1 1", "'-1' as a move counter"),
    "full moves": ("k7/8/8/8/8/8/8/K7 w - - 0 70000", "'70000' as a move counter"),
    "Arabic numerals": ("k7/8/8/8/8/8/8/K7 w - - ٣ 1", "as a move counter"),
    "no white king": ("k7/8/8/8/8/8/8/8 w - - 0 1", "white has 0 kings"),
    "two black kings": ("kk6/8/8/8/8/8/8/K7 w - - 0 1", "black has 2 kings"),
    "nine pawns": ("k7/8/8/8/8/P7/PPPPPPPP/K7 w - - 0 1", "white has 9 pawns"),
    "too many queens": ("k7/8/8/8/8/qq6/pppppppp/7K w - - 0 1", "black has 8 pawns and at least 1 promoted"),
    "pawn on the last rank": ("k6P/8/8/8/8/8/8/K7 w - - 0 1", "a pawn on the first or last rank"),
    "pawn on the first rank": ("k7/8/8/8/8/8/8/K6p w - - 0 1", "a pawn on the first or last rank"),
    "adjacent kings": ("8/8/8/8/8/8/kK6/8 w - - 0 1", "the two kings are on adjacent squares"),
    "king left in check": ("k7/8/8/8/8/8/8/K6r b - - 0 1", "the side that is not to move is in check"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    fen, found = REFUSED[case]
    with pytest.raises(UserError) as refusal:
        parse_fen(fen)
    assert refusal.value.asked == f"the position '{fen}'"
    assert found in refusal.value.found
    assert len(refusal.value.do) > 5


def test_positions_of_the_suites_are_written_as_they_were_read() -> None:
    for fen, _ in perft_suites():
        assert format_fen(parse_fen(fen)[0]) == chess.Board(fen).fen()


def test_the_clocks_may_be_left_out() -> None:
    assert format_fen(parse_fen(START_FEN.removesuffix(" 0 1"))[0]) == START_FEN
    assert format_fen(parse_fen(START_FEN.replace(" 0 1", " 0 0"))[0]) == START_FEN
    long = START_FEN.replace(" 0 1", " 9999 9999")
    assert format_fen(parse_fen(long)[0]) == long


@pytest.mark.parametrize(
    ("fen", "kept"),
    [
        ("k7/8/8/3pP3/8/8/8/K7 w - d6 0 1", True),
        ("k7/8/8/3p4/8/8/8/K7 w - d6 0 1", False),  # no pawn can capture
        ("k3r3/8/8/3pP3/8/8/8/4K3 w - d6 0 1", False),  # the taking pawn is pinned
        ("k7/8/8/K2pP2r/8/8/8/8 w - d6 0 1", False),  # both pawns leave the rank
        ("7k/8/8/r2pP2K/8/8/8/8 w - d6 0 1", False),
    ],
)
def test_en_passant_is_kept_only_if_it_is_legal(fen: str, kept: bool) -> None:
    assert (Board(fen).fen() == fen) == kept
    assert Board(fen).fen() == chess.Board(fen).fen()


def test_randomly_edited_fens_are_refused_or_read() -> None:
    """Random edits: either a UserError, or a position that python-chess takes for the same one."""
    rng = random.Random(3)
    fens = [fen for fen, _ in perft_suites()]
    read = 0
    for _ in range(2500):
        text = list(rng.choice(fens))
        for _ in range(rng.randint(1, 2)):
            place = rng.randrange(len(text))
            text[place] = rng.choice("pnbrqkPNBRQK12345678/ wb-abcdefgh0" + text[place])
        try:
            words = parse_fen("".join(text))[0]
        except UserError:
            continue
        fen = format_fen(words)
        assert parse_fen(fen)[0].tolist() == words.tolist()
        assert chess.Board(fen).fen() == fen
        read += 1
    assert read > 100


def test_the_most_moves_that_a_position_can_have() -> None:
    assert len(Board("R6R/3Q4/1Q4Q1/4Q3/2Q4Q/Q4Q2/pp1Q4/kBNN1KB1 w - - 0 1").legal_moves()) == 218
