"""The net: features, incremental accumulators, quantised inference, files."""

from __future__ import annotations

from pathlib import Path

import chess
import numpy as np
import pytest
import safetensors.numpy

from ranks.chess.board import Board
from ranks.chess.commands.players import make_player
from ranks.chess.engine.nnue.features import MAX_ACTIVE, NUM_FEATURES, active_features, output_bucket
from ranks.chess.engine.nnue.inference import net_arrays
from ranks.chess.engine.nnue.weights import (
    ENGINE_CP_PER_LOGIT,
    FEATURE_SCALE,
    OUTPUT_SCALE,
    NnueWeights,
    load_weights,
    random_weights,
    save_weights,
    to_bytes,
    weight_shapes,
)
from ranks.chess.engine.search.search import run_search
from ranks.chess.engine.search.state import EngineState, new_state, set_root, start
from ranks.chess.engine.search.transpositions import NO_EVAL, new_table
from ranks.chess.engine.tables import default_values
from ranks.chess.fen import format_fen
from ranks.errors import UserError
from tests.chess.engine.reference import accumulator, features, float_score, net_score
from tests.chess.positions import random_boards

WIDTH = 32
SPECIAL = (
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",  # castling
    "8/PPP2k2/8/8/3Pp3/8/4Kppp/5N1N b - d3 0 1",  # promotions, en passant
    "4k3/8/8/8/3K4/8/8/3R4 w - - 0 1",  # kings that change their bucket and half of the board
)


def searched(board: Board, nodes: int, state: EngineState) -> None:
    """Search a board until so many nodes are visited, and stop in the middle."""
    set_root(state, board.rows, board.in_check)
    moves = board.legal_moves()
    for depth in range(1, 6):
        start(state, moves, depth, -(1 << 20), 1 << 20, all_moves=True)
        if not run_search(state, nodes):
            break


def test_features_are_those_of_the_definition() -> None:
    boards = random_boards(40, seed=3, plies=(0, 120)) + [Board(fen) for fen in SPECIAL]
    found_N2A = active_features(np.stack([board.words for board in boards]))
    assert found_N2A.shape == (len(boards), 2, MAX_ACTIVE)
    for board, found_2A in zip(boards, found_N2A, strict=True):
        rival = chess.Board(board.fen())
        for view, colour in enumerate((rival.turn, not rival.turn)):
            active = found_2A[view][found_2A[view] >= 0]
            assert set(active.tolist()) == features(rival, colour)
            assert len(active) == len(rival.piece_map())
    assert found_N2A.max() < NUM_FEATURES
    assert output_bucket(np.stack([Board().words, Board("8/8/8/4k3/8/8/8/K7 w - - 0 1").words])).tolist() == [7, 0]


def test_incremental_accumulators_equal_fresh_ones_within_searches() -> None:
    """The search stops in the middle of many lines; each accumulator that is up to date is computed again."""
    weights = random_weights(WIDTH, seed=1)
    state = new_state(default_values(), net_arrays(weights), new_table(1024), use_net=True)
    boards = random_boards(25, seed=5, plies=(4, 140)) + [Board(fen) for fen in SPECIAL]
    compared = 0
    for number, board in enumerate(boards):
        for nodes in (40 + number, 700 + 7 * number):
            searched(board, nodes, state)
            for level in range(int(state.control["level"][0]) + 1):
                if not state.frames["accumulated"][level]:
                    continue
                rival = chess.Board(format_fen(state.rows[level]))
                for side, colour in enumerate((chess.WHITE, chess.BLACK)):
                    assert (state.accumulators[level, side] == accumulator(weights, rival, colour)).all(), rival.fen()
                compared += level > 0
    assert compared > 100


def test_the_score_is_that_of_the_integer_formula_and_close_to_the_float_net() -> None:
    """The hidden layer rounds down by less than one step of each unit, and the score by less than a centipawn."""
    weights = random_weights(WIDTH, seed=2)
    state = new_state(default_values(), net_arrays(weights), new_table(1024), use_net=True)
    step_cp = ENGINE_CP_PER_LOGIT / (FEATURE_SCALE * OUTPUT_SCALE)
    checked = 0
    for board in random_boards(30, seed=8, plies=(2, 120)):
        searched(board, 300, state)
        for level in range(1, int(state.control["level"][0]) + 1):
            if not state.frames["accumulated"][level] or state.frames["static_eval"][level] == NO_EVAL:
                continue  # in check no position is evaluated
            rival = chess.Board(format_fen(state.rows[level]))
            score = net_score(weights, rival)
            assert state.frames["static_eval"][level] == score
            bucket = min((len(rival.piece_map()) - 1) // 4, 7)
            bound_cp = np.abs(weights.output_weights_BO[bucket].astype(int)).sum() * step_cp + 1
            assert abs(score - float_score(weights, rival)) <= bound_cp
            checked += 1
    assert checked > 20


def test_files_of_weights(tmp_path: Path) -> None:
    weights, path = random_weights(WIDTH, seed=3), tmp_path / "nnue.safetensors"
    save_weights(path, weights)
    for loaded, saved in zip(load_weights(path), weights, strict=True):
        assert loaded.dtype == saved.dtype
        assert (loaded == saved).all()
    content = path.read_bytes()
    wrong = {
        "damaged.safetensors": content[: len(content) // 2],
        "text.safetensors": b"1. e4 e5",
        "shape.safetensors": content.replace(b'"shape":[8,16]', b'"shape":[16,8]', 1),
    }
    for name, bad in wrong.items():
        (tmp_path / name).write_bytes(bad)
        with pytest.raises(UserError, match=name):
            load_weights(tmp_path / name)
    with pytest.raises(UserError, match="missing"):
        load_weights(tmp_path / "missing.safetensors")
    with pytest.raises(ValueError, match="width of 8"):
        to_bytes(weights._replace(feature_bias_H=np.zeros(8, np.int16)))


def weights_of(**feature_weights: int) -> NnueWeights:
    """A net of zeros, except weights of the first accumulator: `f5=9` is that of feature 5, `bias=9` its bias."""
    arrays = {name: np.zeros(shape, kind) for name, (kind, shape) in weight_shapes(16).items()}
    for name, value in feature_weights.items():
        if name == "bias":
            arrays["feature_bias_H"][0] = value
        else:
            arrays["feature_weights_FH"][int(name[1:]), 0] = value
    return NnueWeights(**arrays)


@pytest.mark.parametrize("sign", [1, -1])
def test_weights_whose_sums_do_not_fit_in_the_accumulator_are_refused(sign: int, tmp_path: Path) -> None:
    """32 pieces on squares of their own, in one bucket: features 0, 64, 128, ... are pieces on one square."""
    path = tmp_path / "nnue.safetensors"
    squares = {f"f{square}": sign * 1000 for square in range(40)}
    weights = weights_of(**squares, bias=sign * 767)
    save_weights(path, weights)
    assert (load_weights(path).feature_weights_FH == weights.feature_weights_FH).all()
    one_square = {f"f{64 * piece}": sign * 32000 for piece in range(12)}
    to_bytes(weights_of(**one_square, f768=sign * 32000, f1=-sign * 32000))
    wrong = weights_of(**squares, bias=sign * 769)
    with pytest.raises(ValueError, match=f"sum reaches {sign * 32769}, and the accumulator is int16"):
        save_weights(path, wrong)
    path.write_bytes(safetensors.numpy.save(wrong._asdict()))
    with pytest.raises(UserError, match=f"sum reaches {sign * 32769}") as refused:
        make_player(f"engine:{tmp_path}?nodes=1")
    assert f"engine:{tmp_path}" in refused.value.asked
