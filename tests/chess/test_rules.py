"""The rules: known counts, an independent library, and a rule broken on purpose."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ranks.chess.core
from ranks.chess.board import Board, move_to_uci
from ranks.chess.core.perft import divide, perft
from ranks.chess.core.rules import START, full_key, random_games
from ranks.chess.fen import parse_fen
from ranks.cli.main import main
from tests.chess.oracle import Keys, check_games, check_placements
from tests.chess.suites import perft_suites

QUICK_NODES = 5_000_000
QUICK = [(fen, depth, n) for fen, counts in perft_suites() for depth, n in counts.items() if n <= QUICK_NODES]
KIWIPETE = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"
CORE = Path(ranks.chess.core.__file__).parent


@pytest.mark.parametrize(("fen", "depth", "nodes"), QUICK)
def test_perft_equals_published_counts(fen: str, depth: int, nodes: int) -> None:
    assert perft(parse_fen(fen), depth) == nodes


def test_perft_is_the_sum_of_divide() -> None:
    start = parse_fen(KIWIPETE)
    for depth in (1, 2, 3):
        parts = dict(divide(start, depth))
        assert len(parts) == 48
        assert sum(parts.values()) == perft(start, depth)
    assert perft(start, 0) == 1


def test_random_positions_of_games_against_python_chess() -> None:
    ends = check_games(seed=1, num_positions=15_000, keys=Keys())
    endings = {"checkmate", "stalemate", "insufficient material", "fifty moves", "threefold repetition"}
    assert endings <= set(ends), "the games must reach every ending"


def test_random_placements_against_python_chess() -> None:
    assert check_placements(seed=2, num_positions=2_750, keys=Keys()) > 250


BROKEN = """
import sys
import numba, numpy as np
from ranks.chess.fen import parse_fen
from core.moves import MOST_WORDS, generate, list_moves, room_for_sets
from core.position import load, make, store

@numba.njit
def moves_of(rows, row, moves):
    sets = numba.carray(room_for_sets(), MOST_WORDS)
    return list_moves(sets, generate(load(rows, row), sets)[0], moves, 0)

@numba.njit("int64(uint64[:, ::1], uint16[:, ::1], int64[::1])", error_model="numpy")
def perft(rows, moves, left):
    depth, level, total = len(left), 0, 0
    left[0] = moves_of(rows, 0, moves[0])
    while level >= 0:
        if left[level] == 0:
            level -= 1
        elif level == depth - 1:
            total += left[level]
            left[level] = 0
        else:
            left[level] -= 1
            store(rows, level + 1, make(load(rows, level), np.uint64(moves[level, left[level]])))
            level += 1
            left[level] = moves_of(rows, level, moves[level])
    return total

for fen in sys.argv[1:]:
    rows = np.concatenate([parse_fen(fen)] * 4)
    print(perft(rows, np.empty((4, 218), np.uint16), np.zeros(4, np.int64)))
"""


def test_a_broken_rule_changes_perft(tmp_path: Path) -> None:
    """Break one rule, so that castling rights survive the capture of the rook: perft counts must
    differ."""
    table = "kept[rook] ^= np.uint64(1 << rook)"
    shutil.copytree(CORE, tmp_path / "core", ignore=shutil.ignore_patterns("__pycache__"))
    for path in (tmp_path / "core").glob("*.py"):
        text = path.read_text(encoding="utf-8").replace("ranks.chess.core", "core")
        assert (table in text) == (path.name == "tables.py")
        path.write_text(text.replace(table, "pass"), encoding="utf-8")
    expected = {fen: counts[4] for fen, counts in perft_suites() if counts.get(4, QUICK_NODES) < QUICK_NODES}
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run([sys.executable, "-c", BROKEN, *expected], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    wrong = [fen for fen, n in zip(expected, done.stdout.split(), strict=True) if int(n) != expected[fen]]
    assert KIWIPETE in wrong
    assert all(fen.split()[2] != "-" for fen in wrong)


def splitmix64(state: int) -> tuple[int, int]:
    """The next state and draw (Steele, Lea & Flood 2014), in Python integers."""
    mask = (1 << 64) - 1
    state = (state + 0x9E3779B97F4A7C15) & mask
    word = ((state ^ state >> 30) * 0xBF58476D1CE4E5B9) & mask
    word = ((word ^ word >> 27) * 0x94D049BB133111EB) & mask
    return state, word ^ word >> 31


def test_random_games_equal_those_of_a_reference_in_python() -> None:
    num_games, cap = 12, 150
    rng_state, ends = np.array([7], np.uint64), np.zeros(3, np.int64)
    plies = random_games(START, num_games, cap, rng_state, ends)

    state, expected_plies, expected_ends = 7, 0, [0, 0, 0]
    for _ in range(num_games):
        board = Board()
        while board.ply < cap and board.outcome() is None:
            state, word = splitmix64(state)
            moves = board.legal_moves()
            board.push(moves[(word >> 32) * len(moves) >> 32])
        end = board.outcome() if board.ply < cap else None
        expected_ends[2 if end is None else 0 if end.reason == "checkmate" else 1] += 1
        expected_plies += board.ply
    assert (plies, ends.tolist(), int(rng_state[0])) == (expected_plies, expected_ends, state)


def test_a_position_is_104_bytes_and_its_key_follows_from_them() -> None:
    board = Board(KIWIPETE)
    for text in ("e1g1", "h3g2", "f3f6", "g2f1q"):
        board.push(board.parse_uci(text))
        assert board.words.nbytes == 104
        assert board.words[12] == full_key(board.rows, board.ply)


def test_repetitions_are_counted_in_the_clocks() -> None:
    board = Board()
    seen: list[int] = []
    for _ in range(4):
        board.outcome()
        seen.append(int(board.words[11]) >> 32)
        for text in ("g1f3", "g8f6", "f3g1", "f6g8"):
            board.push(board.parse_uci(text))
    assert seen == [0, 1, 2, 3]


ENDINGS = {
    "checkmate": ("7k/6Q1/6K1/8/8/8/8/8 b - - 0 1", "1-0"),
    "stalemate": ("7k/8/6Q1/8/8/8/8/K7 b - - 0 1", "1/2-1/2"),
    "fifty moves": ("7k/8/8/8/8/8/8/KR6 w - - 100 90", "1/2-1/2"),
    "insufficient material": ("7k/8/8/8/8/8/8/KB6 w - - 0 1", "1/2-1/2"),
}


@pytest.mark.parametrize("reason", ENDINGS)
def test_endings(reason: str) -> None:
    fen, result = ENDINGS[reason]
    outcome = Board(fen).outcome()
    assert outcome is not None
    assert (outcome.result, outcome.reason) == (result, reason)


def test_mate_comes_before_the_fifty_moves() -> None:
    outcome = Board("7k/6Q1/6K1/8/8/8/8/8 b - - 100 90").outcome()
    assert outcome is not None
    assert outcome.reason == "checkmate"


@pytest.mark.parametrize(
    ("fen", "dead"),
    [
        ("7k/8/8/8/8/8/8/K7 w - - 0 1", True),
        ("7k/8/8/8/8/8/8/KN6 w - - 0 1", True),
        ("6bk/8/8/8/8/8/8/KB6 w - - 0 1", True),
        ("5b1k/8/8/8/8/8/8/KB6 w - - 0 1", False),
        ("6nk/8/8/8/8/8/8/KN6 w - - 0 1", False),
        ("7k/8/8/8/8/8/8/KNN5 w - - 0 1", False),
        ("7k/7p/8/8/8/8/8/K7 w - - 0 1", False),
    ],
)
def test_insufficient_material(fen: str, dead: bool) -> None:
    assert (Board(fen).outcome() is not None) == dead


def test_pop_and_copy() -> None:
    board = Board()
    start = board.fen()
    for text in ("e2e4", "c7c5", "g1f3"):
        board.push(board.parse_uci(text))
    other = board.copy()
    assert move_to_uci(board.pop()) == "g1f3"
    other.push(other.parse_uci("d7d6"))
    assert (board.ply, other.ply) == (2, 4)
    while board.moves:
        board.pop()
    assert board.fen() == start
    assert [move_to_uci(move) for move in other.moves] == ["e2e4", "c7c5", "g1f3", "d7d6"]


def test_push_and_parse_refuse_illegal_moves() -> None:
    board = Board()
    with pytest.raises(ValueError, match="e2e5 is not legal in rnbq"):
        board.push(12 | 36 << 6)
    with pytest.raises(ValueError, match="'e2e5' is not a legal move"):
        board.parse_uci("e2e5")
    assert board.moves == []


def test_perft_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chess", "perft", "3", "--fen", KIWIPETE, "--divide"]) == 0
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert lines[-1] == "97862"
    assert len(lines) == 49
    assert sum(int(line.split(": ")[1]) for line in lines[:-1]) == 97862
    assert "97862 nodes in" in shown.err
    assert "nodes/s" in shown.err
    assert main(["chess", "perft", "0"]) == 0
    assert capsys.readouterr().out == "1\n"


def test_ctrl_c_ends_perft() -> None:
    command = [sys.executable, "-m", "ranks", "chess", "perft", "7", "--divide"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "a2a3: 106743106\n"
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
    assert process.returncode == -signal.SIGINT
    assert rest.count("\n") < 19  # not all 20 moves
