"""Games that cannot be learned, and rules that break their contract, are named before anything is played."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ranks import UserError
from ranks.search import TICTACTOE
from ranks.selfplay import ReplayConfig, SelfPlayConfig
from ranks.selfplay.check_rules import check_rules
from tests.selfplay.fixtures import net_of, selfplay, single_rank


def too_many(states: Any, row: int, keys: Any, first: int, end: int, moves: Any, at: int) -> int:
    moves[at : at + 12] = np.arange(12)
    return 12


def twice(states: Any, row: int, keys: Any, first: int, end: int, moves: Any, at: int) -> int:
    moves[at : at + 3] = [1, 2, 1]
    return 3


def impossible(states: Any, row: int, keys: Any, first: int, end: int, moves: Any, at: int) -> int:
    return 0


def overwrites(from_states: Any, from_row: int, to_states: Any, to_row: int, move: Any) -> None:
    from_states[from_row, 0] = 7


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
    ],
)
def test_a_game_that_does_not_fit_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        check_rules(TICTACTOE._replace(**changes), 100)


def test_a_game_that_fits_is_accepted() -> None:
    check_rules(TICTACTOE, 9)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda world: selfplay(world, slots=0), "0 slots"),
        (lambda world: selfplay(world, games=0), "an iteration plays at least one"),
        (lambda world: SelfPlayConfig(simulations=0), "--selfplay.simulations 0"),
        (lambda world: SelfPlayConfig(full_searches=0.5, fast_simulations=33), "--selfplay.fast-simulations 33"),
        (lambda world: replace(SelfPlayConfig(), max_plies=0), "--selfplay.max-plies 0"),
        (lambda world: ReplayConfig(reuse=0), "--replay.reuse 0"),
        (lambda world: ReplayConfig(root_value=2.0), "--replay.root-value 2.0"),
    ],
)
def test_settings_out_of_range_are_refused(make: Callable[[Any], object], said: str) -> None:
    with single_rank() as world, pytest.raises(UserError, match=said):
        make(world)


def test_more_trees_than_memory_are_refused_before_they_are_allocated(monkeypatch: pytest.MonkeyPatch) -> None:
    class Memory:
        available = 1_000_000

    with single_rank() as world:
        selfplay(world, TICTACTOE, slots=4)
        monkeypatch.setattr("psutil.virtual_memory", Memory)
        with pytest.raises(UserError, match=r"their trees need \d+\.\d GiB"):
            selfplay(world, TICTACTOE, slots=1000, simulations=200)
        selfplay(world, TICTACTOE, slots=4)


def test_a_net_that_returns_no_numbers_is_named() -> None:
    with single_rank() as world:
        net = net_of(TICTACTOE)
        net.weight.data.fill_(float("nan"))
        with pytest.raises(UserError, match="priors from nan"):
            selfplay(world, TICTACTOE).play(net, 0)
        net.weight.data.fill_(0.0)
        selfplay(world, TICTACTOE).play(net, 0)
