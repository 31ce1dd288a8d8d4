"""benchmarks/chess_value/tables.py: the sums of tables by hand, and tables that are found again from their scores."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from benchmarks.chess_value import tables
from ranks.chess.board import Board
from ranks.chess.engine.nnue.weights import ENGINE_CP_PER_LOGIT
from ranks.chess.engine.tables import KIND_PHASE, MAX_PHASE, default_values
from ranks.chess.fen import PIECES, parse_fen, piece_letters
from ranks.workloads.chess_value.labels.units import LABEL_CP_PER_LOGIT

FENS = (
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R b KQkq - 0 1",
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
)


def by_hand(fen: str) -> float:
    """Centipawns of the default tables for the side to move, square by square."""
    values, sums, phase = default_values(), np.zeros(2), 0
    for square, letter in enumerate(piece_letters(parse_fen(fen)[0])):
        if letter:
            kind = PIECES.index(letter.lower())
            seen, sign = (square, 1) if letter.isupper() else (square ^ 56, -1)
            sums += sign * values[:, kind, seen]
            phase += int(KIND_PHASE[kind])
    share = min(phase, MAX_PHASE) / MAX_PHASE
    score = sums[0] * share + sums[1] * (1 - share)
    return score if fen.split()[1] == "w" else -score


def test_scores_are_those_of_the_tables() -> None:
    boards_N13 = np.concatenate([parse_fen(fen) for fen in FENS])
    found = tables.scores(torch.from_numpy(default_values()).float(), boards_N13)
    np.testing.assert_allclose(found.numpy(), [by_hand(fen) for fen in FENS], atol=1e-2)
    assert abs(by_hand(FENS[1])) > 20, "a position of equal sums shows no wrong sign"


def test_tables_are_found_again_from_their_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    generator, boards = np.random.default_rng(5), list[np.ndarray]()
    while len(boards) < 3000:
        board = Board()
        while board.outcome() is None and board.ply < 120:
            boards.append(board.rows[-1].copy())
            board.push(int(generator.choice(sorted(board.legal_moves()))))
    hidden = default_values().copy()
    hidden[:, 1] += 60  # knights are worth more than by default
    boards_N13 = np.stack(boards)
    in_engine_N = tables.scores(torch.from_numpy(hidden).float(), boards_N13)
    cp_N = (in_engine_N * LABEL_CP_PER_LOGIT / ENGINE_CP_PER_LOGIT).round().short().numpy()
    for name, value in (("BATCH", 256), ("PASSES", 10)):
        monkeypatch.setattr(tables, name, value)
    found = tables.Scored(boards_N13, cp_N)
    values = tables.tuned(found)
    before, after = (float(tables.loss_of(torch.from_numpy(v).float(), found)) for v in (default_values(), values))
    assert after < before / 5
