"""The search: equal to plain minimax without pruning, and sensible with it."""

from __future__ import annotations

import random

import chess
import numpy as np
import pytest

from ranks.chess.board import Board, move_to_uci
from ranks.chess.commands.bench import bench
from ranks.chess.commands.players import make_player
from ranks.chess.core.alphabeta_state import MATE, UNKNOWN
from ranks.chess.engine.evaluator import Evaluator
from ranks.chess.engine.nnue.inference import net_arrays
from ranks.chess.engine.nnue.weights import random_weights
from ranks.chess.engine.player import EnginePlayer, EngineSettings
from ranks.chess.engine.search.search import run_search
from ranks.chess.engine.search.state import MOVES, new_state, set_root, start
from ranks.chess.engine.search.transpositions import new_table, table_entries
from ranks.chess.engine.tables import default_values
from ranks.chess.players.player import Choice, Info, Limits
from tests.chess.engine.reference import exchange, minimax, net_score, rival_of, tables_score
from tests.chess.positions import MATES, random_boards

NODES_OF_BENCH = 34874
WEIGHTS = random_weights(32, seed=4)
NET = Evaluator.of_net(net_arrays(WEIGHTS))
VALUES = default_values()
TABLES = Evaluator.of_tables(VALUES)


def score_of(choice: Choice) -> int:
    """The score of a choice as minimax has it, mates included."""
    if choice.mate_in is None:
        assert choice.score_cp is not None
        return choice.score_cp
    return MATE + 1 - 2 * choice.mate_in if choice.mate_in > 0 else -MATE - 2 * choice.mate_in


@pytest.mark.parametrize(("pieces", "depth", "number"), [(32, 2, 1), (16, 1, 6), (10, 2, 6)])
def test_without_pruning_the_score_is_that_of_minimax(pieces: int, depth: int, number: int) -> None:
    """Both evaluations; the engine keeps its table and histories from position to position."""
    engines = {
        EnginePlayer("net", NET, EngineSettings(depth=depth, sound=True)): lambda rival: net_score(WEIGHTS, rival),
        EnginePlayer("tables", TABLES, EngineSettings(depth=depth, sound=True)): lambda rival: tables_score(
            VALUES, rival
        ),
    }
    plies = (10, 60) if pieces == 32 else (60, 150)
    boards = random_boards(number, seed=depth, plies=plies, max_pieces=pieces)
    for board in boards:
        for engine, evaluate in engines.items():
            value = minimax(rival_of(board), evaluate, depth)
            assert score_of(engine.choose(board, Limits())) == value, (engine.name, board.fen())


def test_without_pruning_windows_and_depth_change_nothing() -> None:
    """From depth 5 on the engine searches narrow windows first."""
    engine = EnginePlayer("tables", TABLES, EngineSettings(depth=6, sound=True))
    for fen in ("8/8/8/p7/P7/k7/8/K7 w - - 0 1", "7k/7p/5K1P/8/8/8/8/8 b - - 0 1"):
        value = minimax(chess.Board(fen), lambda rival: tables_score(VALUES, rival), 6)
        assert score_of(engine.choose(Board(fen), Limits())) == value, fen


def test_without_pruning_repetitions_and_fifty_moves_count() -> None:
    engine = EnginePlayer("tables", TABLES, EngineSettings(depth=4, sound=True))
    rng, drawn = random.Random(5), 0
    for number in range(8):
        board = Board(f"7k/8/8/8/8/8/1p6/K7 w - - {0 if number % 2 else 94 + number % 5} 80")
        for _ in range(number % 3):  # there and back, so that positions have occurred before
            board.push(there := rng.choice(board.legal_moves()))
            board.push(answer := rng.choice(board.legal_moves()))
            for move in (reverse(there), reverse(answer)):
                if move in board.legal_moves():
                    board.push(move)
        value = minimax(rival_of(board), lambda rival: tables_score(VALUES, rival), 4)
        assert score_of(engine.choose(board, Limits())) == value, (board.fen(), board.moves)
        drawn += value == 0
    assert drawn


@pytest.mark.parametrize(
    "fen",
    [
        "6rk/1pp2Qrp/3p1B2/1pb1p2R/3n1q2/3P4/PPP3PP/R6K w - - 0 1",
        "r1b2rk1/ppbn1ppp/4p3/1QP4q/3P4/N4N2/5PPP/R1B2RK1 w - - 0 1",
        "5k2/6pp/p1qN4/1p1p4/3P4/2PKP2Q/PP3r2/3R4 b - - 0 1",
    ],
)
def test_without_pruning_the_score_does_not_depend_on_the_table(fen: str) -> None:
    """A best move of an earlier search may be a capture that loses material, which the quiescence search leaves out."""
    engine = EnginePlayer("tables", TABLES, EngineSettings(sound=True))
    cold = score_of(engine.choose(Board(fen), Limits(depth=2)))
    engine.choose(Board(fen), Limits(depth=4))
    assert score_of(engine.choose(Board(fen), Limits(depth=2))) == cold


def test_scores_near_the_end_of_fifty_moves_are_not_those_of_a_low_clock() -> None:
    engine = make_player("engine:tables")
    late = engine.choose(Board("8/8/8/3k4/8/8/4Q3/4K3 w - - 94 100"), Limits(depth=14))
    early = engine.choose(Board("8/8/8/3k4/8/8/4Q3/4K3 w - - 0 1"), Limits(depth=6))
    assert late.score_cp == 0
    assert (early.score_cp or 0) > 500


def test_discovered_checks_are_known() -> None:
    """Of the last child of the root, whose moves were listed: the pieces without which a piece behind gives check."""
    found = 0
    for board in random_boards(250, seed=8, plies=(30, 120)):
        state = new_state(VALUES, net_arrays(WEIGHTS), new_table(table_entries(1024)), use_net=False)
        set_root(state, board.rows, board.in_check)
        state.control["sound"] = True
        start(state, board.legal_moves(), 2, -UNKNOWN, UNKNOWN, all_moves=True)
        assert run_search(state, 1 << 40)
        rival = rival_of(board)
        rival.push_uci(move_to_uci(int(state.moves[int(state.frames["num_tried"][0]) - 1])))
        if state.frames["stage"][1] != MOVES:
            continue
        expected = discoverers(rival)
        assert set(chess.SquareSet(int(state.frames["discoverers"][1]))) == expected, rival.fen()
        found += len(expected)
    assert found >= 5


def discoverers(rival: chess.Board) -> set[int]:
    """The pieces of the side to move that stand alone between a piece of theirs and the other king."""
    king = rival.king(not rival.turn)
    assert king is not None
    before, squares = set(rival.attackers(rival.turn, king)), set[int]()
    for square in chess.SquareSet(rival.occupied_co[rival.turn]):
        without = rival.copy(stack=False)
        without.remove_piece_at(square)
        if set(without.attackers(rival.turn, king)) - before:
            squares.add(square)
    return squares


def reverse(move: int) -> int:
    """The move back."""
    return (move >> 6 & 63) | (move & 63) << 6


@pytest.mark.parametrize("moves", MATES)
def test_mates_are_found(moves: int) -> None:
    """Without pruning the shortest mate, with pruning any."""
    sound = make_player(f"engine:tables?pruning=off&depth={2 * moves - 1}")
    pruning = make_player("engine:tables?depth=16")
    for fen in MATES[moves]:
        assert sound.choose(Board(fen), Limits()).mate_in == moves, fen
        pruning.new_game(0)
        choice, board = pruning.choose(Board(fen), Limits()), Board(fen)
        assert choice.mate_in is not None, fen
        assert moves <= choice.mate_in, fen
        for move in choice.pv:
            board.push(move)
        outcome = board.outcome()
        assert len(choice.pv) < 2 * choice.mate_in - 1 or (outcome is not None and outcome.reason == "checkmate")


def test_a_move_is_a_function_of_position_nodes_and_weights() -> None:
    boards = random_boards(6, seed=9, plies=(10, 80))
    for evaluator in (NET, TABLES):
        fixed = EnginePlayer("fixed", evaluator, EngineSettings(nodes=3000))
        first = [fixed.choose(board, Limits()) for board in boards]
        assert [fixed.choose(board, Limits()) for board in reversed(boards)] == first[::-1]
        fresh = EnginePlayer("fresh", evaluator, EngineSettings())
        for board, choice in zip(boards, first, strict=True):
            fresh.new_game(1)
            assert fresh.choose(board, Limits(nodes=3000)).nodes == choice.nodes == 3000


def test_the_bench_has_its_number_of_nodes(capsys: pytest.CaptureFixture[str]) -> None:
    """A change of this number is a change of the search: say so in the commit."""
    assert bench(depth=6) == 0
    assert int(capsys.readouterr().out) == NODES_OF_BENCH


def test_lines_and_searchmoves() -> None:
    board, infos = Board(), list[Info]()
    player = make_player("engine:tables")
    allowed = tuple(board.parse_uci(text) for text in ("a2a3", "h2h3", "g2g4"))
    choice = player.choose(board, Limits(depth=5, multipv=5, searchmoves=allowed, on_info=infos.append))
    assert {info.pv[0] for info in infos} == set(allowed)
    assert max(info.multipv for info in infos) == 3
    last = [info for info in infos if info.depth == 5]
    assert [info.multipv for info in last] == [1, 2, 3]
    scores = [info.score_cp or 0 for info in last]
    assert scores == sorted(scores, reverse=True)
    assert choice.move == last[0].pv[0]


def test_the_winning_side_avoids_a_repetition() -> None:
    """Rook and king against king: a third occurrence of the position would be a draw."""
    board = Board("8/8/8/8/8/4k3/R7/4K3 w - - 0 1")
    for text in ("a2b2", "e3d3", "b2a2", "d3e3", "a2b2", "e3d3"):
        board.push(board.parse_uci(text))
    choice = make_player("engine:tables").choose(board, Limits(depth=6))
    assert move_to_uci(choice.move) != "b2a2"
    assert choice.score_cp is None or choice.score_cp > 300


def test_exchanges_of_the_reference() -> None:
    """Two positions from chessprogramming.org, "SEE - The Swap Algorithm", with their values."""
    rival = chess.Board("1k1r4/1pp4p/p7/4p3/8/P5P1/1PP4P/2K1R3 w - - 0 1")
    assert exchange(rival, chess.Move.from_uci("e1e5")) == 100
    rival = chess.Board("1k1r3q/1ppn3p/p4b2/4p3/8/P2N2P1/1PP1R1BP/2K1Q3 w - - 0 1")
    assert exchange(rival, chess.Move.from_uci("d3e5")) == -220


def test_threads_give_a_legal_move_and_end() -> None:
    player = make_player("engine:tables?Threads=3")
    for board in random_boards(3, seed=2, plies=(10, 60)):
        assert player.choose(board, Limits(depth=7)).move in board.legal_moves()
    player.close()


def test_tuned_tables_change_the_score() -> None:
    values = default_values()
    values[:, 0] += 50
    board = Board("4k3/8/8/8/8/8/PPP5/4K3 w - - 0 1")
    scores = [
        EnginePlayer("x", Evaluator.of_tables(table), EngineSettings(depth=1)).choose(board, Limits()).score_cp or 0
        for table in (default_values(), values)
    ]
    assert scores[1] - scores[0] == 150
    assert np.array_equal(default_values(), VALUES)
