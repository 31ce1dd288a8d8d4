from __future__ import annotations

from collections.abc import Callable

import chess
import pytest
import torch
from torch import Tensor

from ranks.search.evaluation import Leaves
from ranks.selfplay.net.encoding import largest_move_index
from ranks.workloads.chess_spiking.config import PRESETS, Config
from ranks.workloads.chess_spiking.encoding import encoding_of
from ranks.workloads.chess_spiking.moves import (
    KNIGHT_STEPS,
    NUM_INDICES,
    index_table,
    move_indices,
    plane_of,
)
from ranks.workloads.chess_spiking.planes import black_to_move, input_planes, origin_planes
from tests.chess.oracle import as_ours
from tests.chess_spiking.net.reference import leaves, origin_planes_of, planes_of, positions, positions_of

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def rivals() -> list[chess.Board]:
    return positions()


@pytest.fixture(scope="module")
def batch(rivals: list[chess.Board]) -> Leaves:
    return leaves(rivals)


def test_planes_are_those_of_python_chess(rivals: list[chess.Board], batch: Leaves) -> None:
    found = input_planes(positions_of(batch).states_BW, torch.float64)
    wanted = torch.stack([planes_of(board) for board in rivals])
    assert torch.equal(found, wanted)
    assert {board.turn for board in rivals} == {True, False}
    assert all(bool(wanted[:, plane].any()) for plane in range(20)), "some plane was never used"


def test_planes_of_the_origin(rivals: list[chess.Board], batch: Leaves) -> None:
    p = positions_of(batch)
    found = origin_planes(p.states_BW, p.moves_BM, p.num_moves_B, torch.float64)
    assert torch.equal(found, torch.stack([origin_planes_of(board) for board in rivals]))


def test_a_position_and_its_mirror_image_are_the_same_to_the_net(rivals: list[chess.Board]) -> None:
    mirrored = [board.mirror() for board in rivals]
    here, there = (positions_of(leaves(boards)) for boards in ([b.copy(stack=False) for b in rivals], mirrored))
    assert torch.equal(input_planes(here.states_BW, torch.float32), input_planes(there.states_BW, torch.float32))
    for row in range(len(rivals)):
        indices = [
            set(
                move_indices(
                    p.moves_BM[row : row + 1, : p.num_moves_B[row]], black_to_move(p.states_BW)[row : row + 1]
                )[0].tolist()
            )
            for p in (here, there)
        ]
        assert indices[0] == indices[1]
        assert len(indices[0]) == here.num_moves_B[row], "two moves share an index"


def test_there_are_1858_possible_moves() -> None:
    """Queen and knight moves on the empty board, and promotions to other pieces from the seventh rank."""
    plain = [(f, t) for f in range(64) for t in range(64) if plane_of(f, t, 0) >= 0]
    promotions = [(f, t, p) for f in range(48, 56) for t in range(56, 64) for p in (1, 2, 3) if plane_of(f, t, p) >= 0]
    assert (len(plain), len(promotions)) == (1792, 66)
    used = {64 * plane_of(f, t, 0) + f for f, t in plain} | {64 * plane_of(f, t, p) + f for f, t, p in promotions}
    assert len(used) == 1858
    assert max(used) < NUM_INDICES == 4672


@pytest.mark.parametrize(
    ("fen", "uci", "plane", "square"),
    [
        (chess.STARTING_FEN, "e2e4", 1, chess.E2),  # north, two squares
        (chess.STARTING_FEN, "g1f3", 56 + KNIGHT_STEPS.index((-1, 2)), chess.G1),
        ("rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1", "e7e5", 1, chess.E2),  # seen from black
        ("4k3/P7/8/8/8/8/8/4K3 w - - 0 1", "a7a8q", 0, chess.A7),  # as a step north
        ("1n2k3/P7/8/8/8/8/8/4K3 w - - 0 1", "a7b8n", 64 + 2, chess.A7),
        ("4k3/8/8/8/8/8/7p/4K1N1 b - - 0 1", "h2g1r", 64 + 3 * 2, chess.H7),
        ("r3k3/8/8/8/8/8/8/4K3 b q - 0 1", "e8c8", 7 * 6 + 1, chess.E1),  # castling: west, two squares
    ],
)
def test_known_indices(fen: str, uci: str, plane: int, square: int) -> None:
    board = chess.Board(fen)
    move = torch.tensor([[as_ours(board.parse_uci(uci))]])
    black = torch.tensor([int(board.turn == chess.BLACK)])
    assert move_indices(move, black).item() == 64 * plane + square


@pytest.mark.parametrize("preset", [Config, *PRESETS.values()])
def test_each_legal_move_has_a_logit_of_its_own(preset: Callable[[], Config], batch: Leaves) -> None:
    """Promotions of both sides included, also where the net does not see the board from the side to move."""
    assert 0 < largest_move_index(encoding_of(preset().net, seed=0), batch, CPU) < NUM_INDICES


def test_rubbish_behind_the_moves_has_an_index_too(batch: Leaves) -> None:
    moves_BM = torch.tensor([[0xFFFF, 0x7FFF, 5 << 12, 0]])
    assert move_indices(moves_BM, torch.tensor([1])).max() < NUM_INDICES
    assert index_table(CPU).max() < NUM_INDICES
    assert index_table(CPU).min() == 0


def test_half_precision_planes_are_exact_but_for_the_clock(batch: Leaves) -> None:
    states_BW: Tensor = positions_of(batch).states_BW
    half, full = input_planes(states_BW, torch.bfloat16).float(), input_planes(states_BW, torch.float32)
    others = [plane for plane in range(20) if plane != 17]
    assert torch.equal(half[:, others], full[:, others])
    assert float((half - full).abs().max()) < 0.01
