"""Slow, obvious versions of what chess-spiking computes, and chess positions to compute it for."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import chess
import numpy as np
import torch
from torch import Tensor

from ranks.chess.board import Board
from ranks.search.evaluation import Leaves
from ranks.selfplay import Positions
from tests.chess.oracle import as_ours

MAX_MOVES = 218
UNUSUAL = (
    "r3k2r/8/8/8/8/8/8/R3K2R b Kq - 12 30",
    "4k3/8/8/8/3pP3/8/8/4K3 b - e3 0 1",
    "4k3/P6P/8/8/8/8/p6p/4K3 w - - 0 1",
    "4k3/P6P/8/8/8/8/p5Np/4K3 b - - 99 80",
    "8/8/8/8/8/k7/8/K6R w - - 100 90",
)


def positions() -> list[chess.Board]:
    """Unusual positions, and every seventh position of three random games."""
    found = [chess.Board(fen) for fen in UNUSUAL]
    shuffling = chess.Board()
    for uci in ("g1f3", "g8f6", "f3g1", "f6g8"):
        shuffling.push_uci(uci)
    found.append(shuffling)
    for seed in range(3):
        rng, board = random.Random(seed), chess.Board()
        for ply in range(90):
            if board.is_game_over():
                break
            if ply % 7 == seed:
                found.append(board.copy())
            board.push(rng.choice(list(board.legal_moves)))
    return [board for board in found if any(board.legal_moves)]


def ours(rival: chess.Board) -> Board:
    """The same position with its history. Asking for the outcome counts the repetitions, as the search does."""
    board = Board(rival.root().fen())
    for move in rival.move_stack:
        board.push(as_ours(move))
    board.outcome()
    return board


def leaves(rivals: list[chess.Board]) -> Leaves:
    """The positions as a batch of the search; the room behind the moves is filled with rubbish."""
    boards = [ours(rival) for rival in rivals]
    moves_BM = np.full((len(boards), MAX_MOVES), 0xFFFF, np.uint16)
    num_moves_B = np.zeros(len(boards), np.int32)
    for row, board in enumerate(boards):
        moves = board.legal_moves()
        moves_BM[row, : len(moves)] = moves
        num_moves_B[row] = len(moves)
    return Leaves(np.stack([board.words for board in boards]), moves_BM, num_moves_B)


def planes_of(board: chess.Board) -> Tensor:
    """float64[20, 8, 8]: the input planes, by python-chess from the board turned to the side to move."""
    repeated = board.is_repetition(2)
    seen = board if board.turn == chess.WHITE else board.mirror()
    planes = torch.zeros(20, 64, dtype=torch.float64)
    for square, piece in seen.piece_map().items():
        planes[piece.piece_type - 1 + (0 if piece.color == chess.WHITE else 6), square] = 1
    for plane, side, castles in (
        (12, chess.WHITE, seen.has_kingside_castling_rights),
        (13, chess.WHITE, seen.has_queenside_castling_rights),
        (14, chess.BLACK, seen.has_kingside_castling_rights),
        (15, chess.BLACK, seen.has_queenside_castling_rights),
    ):
        planes[plane] = float(castles(side))
    if seen.has_legal_en_passant():
        assert seen.ep_square is not None
        planes[16, seen.ep_square] = 1
    planes[17] = min(board.halfmove_clock / 100, 1)
    planes[18] = float(repeated)
    planes[19] = 1
    return planes.view(20, 8, 8)


def origin_planes_of(board: chess.Board) -> Tensor:
    """float64[13, 8, 8]: own pieces, the other side's, destinations of legal moves; nothing is mirrored."""
    planes = torch.zeros(13, 64, dtype=torch.float64)
    for square, piece in board.piece_map().items():
        planes[piece.piece_type - 1 + (0 if piece.color == board.turn else 6), square] = 1
    for move in board.legal_moves:
        planes[12, move.to_square] = 1
    return planes.view(13, 8, 8)


class SurrogateStep(torch.autograd.Function):
    """A step forwards, the slope of a smooth step backwards."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, alpha: float) -> Tensor:
        ctx.save_for_backward(x)
        ctx.alpha = alpha
        return (x >= 0).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            (slope,) = torch.autograd.grad(smooth_step(x, ctx.alpha).sum(), x)
        return grad_outputs[0] * slope, None


def smooth_step(x: Tensor, alpha: float) -> Tensor:
    """Fang et al. 2021: arctan(pi/2 alpha x) / pi + 1/2."""
    return torch.arctan(torch.pi / 2 * alpha * x) / torch.pi + 0.5


def neuron_by_neuron(
    current_TB: Tensor,
    tau: float,
    threshold: float,
    reset: str,
    detach_reset: bool,
    alpha: float,
    step: Callable[[Tensor, float], Tensor] | None = None,
) -> Tensor:
    """`lif_scan` as a loop over neurons and time steps, with autograd through single numbers."""
    fire: Any = step or SurrogateStep.apply
    flat_TN = current_TB.flatten(1)
    columns: list[Tensor] = []
    for neuron in range(flat_TN.shape[1]):
        v, spikes = torch.zeros((), dtype=current_TB.dtype), list[Tensor]()
        for x in flat_TN[:, neuron]:
            u = v + (x - v) / tau
            spike = fire(u - threshold, alpha)
            spikes.append(spike)
            fired = spike.detach() if detach_reset else spike
            v = u * (1 - fired) if reset == "hard" else u - threshold * fired
        columns.append(torch.stack(spikes))
    return torch.stack(columns, 1).view(current_TB.shape)


def positions_of(batch: Leaves) -> Positions:
    """A batch of the search as the net's encoding gets it, with as many columns as the longest list of moves."""
    moves_BM = torch.from_numpy(batch.moves_BM[:, : int(batch.num_moves_B.max())].astype(np.int64))
    return Positions(
        torch.from_numpy(batch.states_BW.view(np.int64)), moves_BM, torch.from_numpy(batch.num_moves_B).long()
    )
