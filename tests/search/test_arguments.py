"""Invalid arguments raise UserError and change nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ranks.errors import UserError
from ranks.search.config import SearchConfig
from ranks.search.evaluation import uniform_evaluator
from ranks.search.games.connect_four import CONNECT_FOUR
from ranks.search.search import Search

WORDS = CONNECT_FOUR.initial
MASK: Any = np.ones(4, np.bool_)
HALF: Any = 0.5
FLOATS: Any = WORDS.astype(np.float64)
INVALID: dict[str, Callable[[Search], Any]] = {
    **{
        f"{name} of slot {slot}": lambda search, call=call, slot=slot: call(search, slot)
        for slot in (4, -1, 2**40, 2**64, 0.5)
        for name, call in {
            "set_root": lambda search, slot: search.set_root(slot, 0),
            "clear": lambda search, slot: search.clear(slot),
            "begin": lambda search, slot: search.begin([0, slot]),
            "play": lambda search, slot: search.play([3, 3], [0, slot]),
            "result": lambda search, slot: search.result([slot]),
            "outcome": lambda search, slot: search.outcome([slot]),
            "state": lambda search, slot: search.state(slot),
            "legal_moves": lambda search, slot: search.legal_moves(slot),
            "principal_variation": lambda search, slot: search.principal_variation(slot),
        }.items()
    },
    "a mask in place of slots": lambda search: search.result(MASK),
    "slots in two dimensions": lambda search: search.result(np.zeros((1, 1), np.int64)),
    "a game_id below 0": lambda search: search.set_root(0, -1),
    "a game_id of 65 bits": lambda search: search.set_root(0, 2**64),
    "a move of 17 bits": lambda search: search.set_root(0, 0, [70000]),
    "a move below 0": lambda search: search.set_root(0, 0, [-1]),
    "half a move": lambda search: search.set_root(0, 0, [HALF]),
    "to play a move of 17 bits": lambda search: search.play([70000], [0]),
    "to play a move below 0": lambda search: search.play([-1], [0]),
    "one move for all slots": lambda search: search.play([3]),
    "a start of no words": lambda search: search.set_root(0, 0, start=WORDS[:0]),
    "a start of too few words": lambda search: search.set_root(0, 0, start=WORDS[:1]),
    "a start of too many words": lambda search: search.set_root(0, 0, start=np.tile(WORDS, 2)),
    "two starts": lambda search: search.set_root(0, 0, start=np.tile(WORDS, (2, 1))),
    "a start of one column": lambda search: search.set_root(0, 0, start=WORDS[:, None]),
    "a start in three dimensions": lambda search: search.set_root(0, 0, start=WORDS[None, None]),
    "a start of floats": lambda search: search.set_root(0, 0, start=FLOATS),
    "too many simulations": lambda search: search.begin(simulations=21),
    "simulations below 0": lambda search: search.begin(simulations=-1),
    "simulations for other slots": lambda search: search.begin([0, 1, 2], np.array([3, 4])),
}


@pytest.mark.parametrize("call", INVALID.values(), ids=INVALID)
def test_invalid_arguments_are_rejected_and_nothing_is_written(call: Callable[[Search], Any]) -> None:
    search = Search(CONNECT_FOUR, SearchConfig(simulations=20), 4)
    for slot in range(4):
        search.set_root(slot, slot, [slot])
    search.run(uniform_evaluator)
    before = [array.tobytes() for array in search.trees]
    with pytest.raises(UserError):
        call(search)
    assert [array.tobytes() for array in search.trees] == before


START = np.array([5, 1 << 63 | 2], np.uint64)


@pytest.mark.parametrize("start", [START, START[None], START.view(np.int64), np.repeat(START, 2)[::2]])
def test_a_start_has_one_dimension_or_is_one_row(start: Any) -> None:
    search = Search(CONNECT_FOUR, SearchConfig(simulations=1), 2)
    numbers: dict[str, Any] = dict(slot=np.int64(1), game_id=np.uint64(2**64 - 1))
    search.set_root(**numbers, start=start)
    assert search.state(1).tolist() == START.tolist()
    assert search.state(0).tolist() == [0, 0]
    assert search.trees.slots_G["game_id"].tolist() == [0, 2**64 - 1]


def test_invalid_settings_are_rejected() -> None:
    invalid: dict[str, Any]
    for invalid in (
        {"simulations": 0},
        {"num_considered": 0},
        {"leaves_per_game": 0},
        {"edges_per_node": 0},
        {"dirichlet_fraction": 1.5},
        {"dirichlet_alpha": 0.0},
        {"dirichlet_alpha": 1e-310},
        {"c_base": 0.0},
        {"seed": 2**63},
    ):
        with pytest.raises(UserError):
            SearchConfig(**invalid)
    for games, threads, groups in ((0, 1, None), (1, 0, None), (1, 1, 3)):
        with pytest.raises(UserError):
            Search(CONNECT_FOUR, SearchConfig(), games, threads, groups)
    with pytest.raises(UserError, match="31 bits"):
        Search(CONNECT_FOUR, SearchConfig(simulations=10_000_000), 1000)
