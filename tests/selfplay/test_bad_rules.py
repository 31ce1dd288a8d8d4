"""Rules of a game that break their contract, and games that cannot be learned, are named before anything is played."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ranks import UserError
from ranks.jit import helper, kernel
from ranks.search import DRAWN, LEGAL_MOVES, PLAY, TICTACTOE, Game
from ranks.search.games import tictactoe
from ranks.selfplay.checks.rules import check_rules

RULES = tictactoe.legal_moves


@kernel(LEGAL_MOVES)
def too_many(states: Any, row: int, keys: Any, first: int, end: int, moves: Any, at: int) -> int:
    for move in range(12):
        moves[at + move] = move
    return 12


@kernel(LEGAL_MOVES)
def twice(states: Any, row: int, keys: Any, first: int, end: int, moves: Any, at: int) -> int:
    moves[at], moves[at + 1], moves[at + 2] = 1, 2, 1
    return 3


@kernel(LEGAL_MOVES)
def impossible(states: Any, row: int, keys: Any, first: int, end: int, moves: Any, at: int) -> int:
    return 0


@kernel(LEGAL_MOVES)
def always_at_0(states: Any, row: int, keys: Any, first: int, end: int, moves: Any, at: int) -> int:
    return RULES(states, row, keys, first, end, moves, 0)


@kernel(LEGAL_MOVES)
def of_row_0(states: Any, row: int, keys: Any, first: int, end: int, moves: Any, at: int) -> int:
    return RULES(states, 0, keys, first, end, moves, at)


@kernel(PLAY)
def reads_after_writing(from_states: Any, from_row: int, to_states: Any, to_row: int, move: Any) -> None:
    to_states[to_row, 0] = from_states[from_row, 1]
    to_states[to_row, 1] = from_states[from_row, 0] | (np.uint64(1) << np.uint64(move))


@kernel(PLAY)
def writes_one_word(from_states: Any, from_row: int, to_states: Any, to_row: int, move: Any) -> None:
    to_states[to_row, 0] = from_states[from_row, 0] | (np.uint64(1) << np.uint64(move))


@kernel(PLAY)
def overwrites(from_states: Any, from_row: int, to_states: Any, to_row: int, move: Any) -> None:
    from_states[from_row, 0] = np.uint64(7)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"num_players": 3}, "it has 3 players"),
        ({"has_chance": True}, "it has chance or hidden information"),
        ({"has_hidden_information": True}, "it has chance or hidden information"),
        ({"legal_moves": too_many}, "at ply 0 legal_moves returned 12"),
        ({"legal_moves": impossible}, "legal_moves returned 0"),
        ({"legal_moves": twice}, r"wrote a move twice: \[1, 2, 1\]"),
        ({"play": overwrites}, "play changed another state than its target"),
        ({"legal_moves": always_at_0}, "at ply 0 legal_moves gives other answers for the same state in another row"),
        ({"legal_moves": of_row_0}, "legal_moves (gives other answers|returned)"),
        ({"play": reads_after_writing}, "play gives another state when it writes in place of the state itself"),
        ({"play": writes_one_word}, "play gives another state when it writes over a state with other words"),
    ],
)
def test_a_game_that_does_not_fit_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        check_rules(TICTACTOE._replace(**changes), 100)


def test_rules_that_are_not_compiled_and_states_of_another_type_are_refused() -> None:
    plain: Any = tictactoe.legal_moves
    with pytest.raises(UserError, match=r"its rule legal_moves is plain Python(.|\n)*@kernel\(LEGAL_MOVES\)"):
        check_rules(TICTACTOE._replace(legal_moves=plain.py_func), 100)
    with pytest.raises(UserError, match=r"its first state is int64\[2\]"):
        check_rules(TICTACTOE._replace(initial=np.zeros(2, np.int64)), 100)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"history": -1}, "its history is -1"),
        ({"key_word": 2}, "its key_word is 2(.|\n)*from 0 to 1"),
        ({"max_moves": "9"}, "its max_moves is '9'"),
        ({"max_moves": 70_000}, "its max_moves is 70000"),
        ({"edges_per_node": 2.5}, "its edges_per_node is 2.5(.|\n)*from 1 to 9"),
        ({"edges_per_node": -1}, "its edges_per_node is -1"),
        ({"initial": [0, 0]}, "its first state is list"),
        ({"draw_kind": lambda state_W: 1, "draw_kinds": ("full",)}, "draw_kind returned 1, and there are 1 draw_kinds"),
        ({"draw_kind": lambda state_W: None}, "draw_kind returned None"),
    ],
)
def test_fields_that_a_game_cannot_have_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        check_rules(TICTACTOE._replace(**changes), 100)


def test_rules_that_raise_are_refused() -> None:
    rules = tictactoe.legal_moves

    @kernel(LEGAL_MOVES)
    def raising(states: Any, row: int, keys: Any, first: int, end: int, moves: Any, at: int) -> int:
        if states[row, 0] > np.uint64(1 << 20):
            raise ValueError("an odd state")
        return rules(states, row, keys, first, end, moves, at)

    with pytest.raises(UserError, match="its rule legal_moves has a raise or an assert, which"):
        check_rules(TICTACTOE._replace(legal_moves=raising), 100)


def test_rules_whose_helper_raises_are_refused() -> None:
    rules = tictactoe.legal_moves

    @helper
    def landing(word: int) -> int:
        if word > np.uint64(1 << 20):
            raise ValueError("an odd state")
        return 0

    @helper
    def calling(word: int) -> int:
        return landing(word)

    @kernel(LEGAL_MOVES)
    def raising(states: Any, row: int, keys: Any, first: int, end: int, moves: Any, at: int) -> int:
        return rules(states, row, keys, first, end, moves, at) + calling(states[row, 0])

    with pytest.raises(UserError, match="its rule legal_moves has a raise or an assert in landing, which it calls"):
        check_rules(TICTACTOE._replace(legal_moves=raising), 100)


@kernel(LEGAL_MOVES)
def drawn_where_repeated(states: Any, row: int, keys: Any, first: int, end: int, moves: Any, at: int) -> int:
    """A walk on a ring of four squares, to either side."""
    for index in range(first, end):
        if keys[index] == states[row, 0]:
            return DRAWN
    moves[at], moves[at + 1] = 1, 3
    return 2


@kernel(PLAY)
def walk(from_states: Any, from_row: int, to_states: Any, to_row: int, move: Any) -> None:
    to_states[to_row, 0] = (from_states[from_row, 0] + np.uint64(move)) & np.uint64(3)


def test_a_history_that_is_too_short_is_named() -> None:
    ring = Game("ring", np.zeros(1, np.uint64), 2, 0, 0, walk, drawn_where_repeated)
    with pytest.raises(UserError, match=r"gives another answer with all . earlier keys(.|\n)*a history above 0"):
        check_rules(ring, 100)
    check_rules(ring._replace(history=4), 100)


def test_columns_behind_the_moves_hold_moves() -> None:
    leaves = check_rules(TICTACTOE, 9)
    assert int(leaves.moves_BM.max()) == 8
