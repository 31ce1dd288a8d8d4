"""Slow, plain versions of what the engine computes: features, evaluation, exchanges, minimax."""

from __future__ import annotations

from collections.abc import Callable

import chess
import numpy as np
from numpy.typing import NDArray

from ranks.chess.board import Board, move_to_uci
from ranks.chess.core.alphabeta_state import MATE
from ranks.chess.engine.nnue.weights import NnueWeights
from ranks.chess.engine.tables import TableValues
from ranks.chess.fen import format_fen

VALUE_CP = {1: 100, 2: 320, 3: 330, 4: 500, 5: 900, 6: 0}
PHASE = {1: 0, 2: 1, 3: 1, 4: 2, 5: 4, 6: 0}
KING_BUCKETS = ["0011", "2233", "4444", "4444", "5555", "5555", "5555", "5555"]
"""Files e to h, from rank 1 to rank 8."""

Evaluate = Callable[[chess.Board], int]


def features(rival: chess.Board, colour: chess.Color) -> set[int]:
    """The active features of one side's view."""
    king = rival.king(colour)
    assert king is not None
    rank, file = chess.square_rank(king), chess.square_file(king)
    rank = rank if colour else 7 - rank
    mirrored = file < 4
    bucket = int(KING_BUCKETS[rank][(7 - file if mirrored else file) - 4])
    found: set[int] = set()
    for square, piece in rival.piece_map().items():
        seen = square if colour else chess.square_mirror(square)
        seen = seen ^ 7 if mirrored else seen
        own = 0 if piece.color == colour else 6
        found.add(bucket * 768 + (own + piece.piece_type - 1) * 64 + seen)
    return found


def accumulator(weights: NnueWeights, rival: chess.Board, colour: chess.Color) -> NDArray[np.int64]:
    """The sum of bias and weights of the active features."""
    rows = sorted(features(rival, colour))
    return weights.feature_bias_H + weights.feature_weights_FH[rows].astype(np.int64).sum(axis=0)


def net_score(weights: NnueWeights, rival: chess.Board) -> int:
    """The integer net's score in centipawns for the side to move."""
    sides = [accumulator(weights, rival, colour) for colour in (rival.turn, not rival.turn)]
    inputs = np.concatenate(sides).clip(0, 127)
    bucket = min((len(rival.piece_map()) - 1) // 4, 7)
    hidden = weights.hidden_bias_BO[bucket] + weights.hidden_weights_BOI[bucket].astype(np.int64) @ inputs
    hidden = (hidden >> 6).clip(0, 127)
    total = int(weights.output_bias_B[bucket]) + int(weights.output_weights_BO[bucket].astype(np.int64) @ hidden)
    return total * 640 // (127 * 128)


def float_score(weights: NnueWeights, rival: chess.Board) -> float:
    """The same net in floating point, where nothing is rounded between the layers."""
    sides = [accumulator(weights, rival, colour) / 127 for colour in (rival.turn, not rival.turn)]
    inputs = np.concatenate(sides).clip(0, 1)
    bucket = min((len(rival.piece_map()) - 1) // 4, 7)
    hidden = weights.hidden_bias_BO[bucket] / (127 * 64) + weights.hidden_weights_BOI[bucket] / 64 @ inputs
    logit = weights.output_bias_B[bucket] / (127 * 128) + weights.output_weights_BO[bucket] / 128 @ hidden.clip(0, 1)
    return float(logit * 640)


def tables_score(values: TableValues, rival: chess.Board) -> int:
    """Tapered piece-square tables in centipawns for the side to move."""
    sums, phase = [0, 0], 0
    for square, piece in rival.piece_map().items():
        seen = square if piece.color else chess.square_mirror(square)
        for part in (0, 1):
            sums[part] += (1 if piece.color else -1) * int(values[part, piece.piece_type - 1, seen])
        phase += PHASE[piece.piece_type]
    phase = min(phase, 24)
    score = (sums[0] * phase + sums[1] * (24 - phase)) // 24
    return score if rival.turn else -score


def gain(rival: chess.Board, move: chess.Move) -> int:
    """What a move wins at once."""
    captured = 1 if rival.is_en_passant(move) else rival.piece_type_at(move.to_square)
    won = VALUE_CP[captured] if captured else 0
    return won + (VALUE_CP[move.promotion] - VALUE_CP[1] if move.promotion else 0)


def exchange(rival: chess.Board, move: chess.Move) -> int:
    """What a move wins by the exchanges on its target square; pins are ignored."""
    after = rival.copy(stack=False)
    piece = rival.piece_type_at(move.from_square)
    assert piece is not None
    if rival.is_en_passant(move):
        after.remove_piece_at(move.to_square + (-8 if rival.turn else 8))
    after.remove_piece_at(move.from_square)
    return gain(rival, move) - recapture(after, move.to_square, not rival.turn, move.promotion or piece)


def recapture(rival: chess.Board, square: int, colour: chess.Color, on_square: int) -> int:
    """The most that a side wins by capturing a piece of a kind on a square, with the least valuable piece first."""
    attackers = rival.attackers(colour, square)
    if not attackers:
        return 0
    least = min(attackers, key=lambda origin: (rival.piece_type_at(origin), origin))
    kind = rival.piece_type_at(least)
    assert kind is not None
    after = rival.copy(stack=False)
    after.remove_piece_at(least)
    if kind == chess.KING and after.attackers(not colour, square):
        return 0
    return max(0, VALUE_CP[on_square] - recapture(after, square, not colour, kind))


def minimax(rival: chess.Board, evaluate: Evaluate, depth: int, level: int = 0, root_depth: int | None = None) -> int:
    """The value of trying everything, with the engine's check extension and quiescence search."""
    root_depth = depth if root_depth is None else root_depth
    if level and is_drawn(rival, level):
        return 0
    check = rival.is_check()
    if check and level and level < 2 * root_depth:
        depth += 1
    if depth <= 0:
        return quiescence(rival, evaluate, level, -MATE, MATE)
    best = level - MATE if check else 0
    for number, move in enumerate(list(rival.legal_moves)):
        rival.push(move)
        value = -minimax(rival, evaluate, depth - 1, level + 1, root_depth)
        best = value if number == 0 else max(best, value)
        rival.pop()
    return best


def quiescence(rival: chess.Board, evaluate: Evaluate, level: int, alpha: int, beta: int) -> int:
    """The quiescence search of a position, which may not be drawn: captures and promotions, in check all moves.

    Textbook alpha-beta, because without cutoffs it takes hours in some positions."""
    check = rival.is_check()
    moves = list(rival.legal_moves)
    if check and not moves:
        return level - MATE
    if not check:
        alpha = max(alpha, evaluate(rival))
        moves = [move for move in moves if is_quiescent(rival, move)]
    for move in sorted(moves, key=lambda move: -gain(rival, move)):
        if alpha >= beta:
            break
        rival.push(move)
        drawn = is_drawn(rival, level + 1)
        alpha = max(alpha, 0 if drawn else -quiescence(rival, evaluate, level + 1, -beta, -alpha))
        rival.pop()
    return alpha


def is_quiescent(rival: chess.Board, move: chess.Move) -> bool:
    """Whether the quiescence search tries a move: a capture or a promotion to a queen that loses nothing."""
    if move.promotion not in (None, chess.QUEEN) or gain(rival, move) == 0:
        return False
    return exchange(rival, move) >= 0


def is_drawn(rival: chess.Board, level: int) -> bool:
    """Draws by rule, or by repeating a position after the root."""
    if rival.halfmove_clock >= 100 and (not rival.is_check() or any(rival.legal_moves)):
        return True
    return rival.is_insufficient_material() or repeats(rival, level)


def repeats(rival: chess.Board, level: int) -> bool:
    """Whether a position after the root has occurred before, or one up to the root twice."""
    key = rival._transposition_key()  # pyright: ignore[reportPrivateUsage]
    reach = min(rival.halfmove_clock, len(rival.move_stack))
    if reach < 4:
        return False
    before, seen = rival.copy(stack=reach), 0
    for back in range(1, reach + 1):
        before.pop()
        if before._transposition_key() == key:  # pyright: ignore[reportPrivateUsage]
            seen += 2 if back < level else 1
    return seen >= 2


def rival_of(board: Board) -> chess.Board:
    """The same game for python-chess."""
    rival = chess.Board(format_fen(board.rows[0]))
    for move in board.moves:
        rival.push_uci(move_to_uci(move))
    return rival
