"""Games that cannot be learned, and rules that break their contract, are named before anything is played."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import psutil
import pytest
import torch
from torch import nn

from ranks import UserError
from ranks.jit import helper, kernel
from ranks.search import DRAWN, LEGAL_MOVES, PLAY, TICTACTOE, Game
from ranks.search.games import tictactoe
from ranks.search.trees import tree_bytes
from ranks.selfplay import Encoding, Positions, ReplayConfig, SelfPlayConfig, score_against_random, value_loss
from ranks.selfplay.checks.memory import check_memory
from ranks.selfplay.checks.rules import check_rules
from ranks.selfplay.net.batch_evaluator import BatchMemory, batch_bytes
from ranks.selfplay.net.encoding import largest_move_index
from ranks.selfplay.search_settings import search_config
from tests.selfplay.fixtures import net_of, planes, selfplay, single_rank

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


def test_two_moves_with_one_logit_are_refused() -> None:
    encoding = Encoding(lambda p: p.states_BW.float(), lambda p: p.moves_BM // 2)
    with pytest.raises(UserError, match=r"the moves 0 and 1(.|\n)*both have the index 0"):
        largest_move_index(encoding, check_rules(TICTACTOE, 9), torch.device("cpu"))


def seldom_wrong(answer: int) -> Any:
    """The rules of tic-tac-toe, but for one position that no random game of `check_rules` meets."""
    rules = tictactoe.legal_moves

    @kernel(LEGAL_MOVES)
    def legal_moves(states: Any, row: int, keys: Any, first: int, end: int, moves: Any, at: int) -> int:
        found = rules(states, row, keys, first, end, moves, at)
        return (
            answer if states[row, 0] == np.uint64(0b001000100) and states[row, 1] == np.uint64(0b100000001) else found
        )

    return legal_moves


@pytest.mark.parametrize("answer", [0, -5, 12, 3_000, 3_000_000])
def test_a_state_that_is_illegal_is_named_while_games_are_played(answer: int) -> None:
    with single_rank() as world:
        game = TICTACTOE._replace(legal_moves=seldom_wrong(answer))
        source, net = selfplay(world, game, slots=32, games=200), net_of(TICTACTOE, 0.0)
        with pytest.raises(UserError, match=rf"legal_moves returned {answer}( for the state 0x44 0x101|$)"):
            source.play(net, 0)


class WrongNet(nn.Module):
    """Outputs of other shapes than self-play takes."""

    def __init__(self, moves: int, value: tuple[int, ...]) -> None:
        super().__init__()
        self.weight, self.moves, self.value = nn.Parameter(torch.zeros(1)), moves, value

    def forward(self, planes_B288: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows = len(planes_B288)
        return self.weight.expand(rows, self.moves), self.weight.expand(rows, *self.value)


@pytest.mark.parametrize(
    ("moves", "value", "said"),
    [
        (9, (1,), r"the value of 8 positions(.|\n)*\[8, 1\](.|\n)*value\[:, 0\]"),
        (9, (2,), r"the value of 8 positions(.|\n)*\[8, 2\]"),
        (5, (), r"indices up to 8(.|\n)*\[8, 5\](.|\n)*an A of 9 or more"),
    ],
)
def test_a_net_with_outputs_of_wrong_shapes_is_refused(moves: int, value: tuple[int, ...], said: str) -> None:
    with single_rank() as world, pytest.raises(UserError, match=said):
        selfplay(world, TICTACTOE).play(WrongNet(moves, value), 0)


@pytest.mark.parametrize("shape", [(4, 1), (4, 2), (3,)])
def test_a_value_loss_does_not_broadcast(shape: tuple[int, ...]) -> None:
    with pytest.raises(UserError, match="the value of 4 positions"):
        value_loss(torch.zeros(shape), torch.zeros(4))


def test_the_memory_of_all_ranks_of_this_host_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    cfg = SelfPlayConfig(simulations=8)
    with single_rank() as world:
        needed = tree_bytes(TICTACTOE, search_config(cfg, world.seed), 8) + batch_bytes(TICTACTOE, 16)
        free = psutil.virtual_memory()._replace(available=3 * needed)
        monkeypatch.setattr(psutil, "virtual_memory", lambda: free)
        for ranks, fits in ((3, True), (4, False)):
            monkeypatch.setattr(world.comm, "gather_objects", lambda mine, ranks=ranks: [mine] * ranks)
            with nullcontext() if fits else pytest.raises(UserError, match="4 ranks on"):
                check_memory(TICTACTOE, 8, 16, search_config(cfg, world.seed), world)


def test_games_of_an_evaluation_that_do_not_fit_are_refused() -> None:
    with single_rank() as world, pytest.raises(UserError, match=r"[0-9,]+ games of an evaluation on a rank"):
        score_against_random(net_of(TICTACTOE, 0.0), TICTACTOE, Encoding(planes), 10**9, SelfPlayConfig(), world)


def test_batches_that_do_not_fit_on_the_device_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    search, free = search_config(SelfPlayConfig(simulations=8), 0), batch_bytes(TICTACTOE, 16)
    monkeypatch.setattr("ranks.selfplay.checks.memory.device_memory_left", lambda device: free)
    with single_rank() as world:
        check_memory(TICTACTOE, 8, 16, search, world)
        with pytest.raises(UserError, match="the batches of rank 0 need"):
            check_memory(TICTACTOE, 8, 17, search, world)


@pytest.mark.parametrize("rows", [1, 5])
def test_the_bytes_of_a_batch_are_those_of_its_arrays(rows: int) -> None:
    memory = BatchMemory(TICTACTOE, rows, torch.device("cpu"))
    arrays = [found for found in vars(memory).values() if isinstance(found, torch.Tensor)]
    assert batch_bytes(TICTACTOE, rows) == sum(array.nbytes for array in arrays)


def test_a_game_that_fits_is_accepted() -> None:
    check_rules(TICTACTOE, 9)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda world: selfplay(world, slots=0), "0 slots"),
        (lambda world: selfplay(world, games=0), "an iteration plays at least one"),
        (lambda world: SelfPlayConfig(simulations=0), "--selfplay.simulations 0"),
        (lambda world: SelfPlayConfig(full_searches=0.5, fast_simulations=33), "--selfplay.fast-simulations 33"),
        (
            lambda world: SelfPlayConfig(progressive_iterations=5, first_simulations=33),
            "--selfplay.first-simulations 33",
        ),
        (lambda world: replace(SelfPlayConfig(), max_plies=0), "--selfplay.max-plies 0"),
        (lambda world: ReplayConfig(reuse=0), "--replay.reuse 0"),
        (lambda world: ReplayConfig(root_value=2.0), "--replay.root-value 2.0"),
        (lambda world: ReplayConfig().check_search("none"), "--replay.no-on-policy --replay.reuse 4\n"),
        (lambda world: ReplayConfig(on_policy=True).check_search("none"), "give --replay.on-policy --replay.reuse 1"),
    ],
)
def test_settings_out_of_range_are_refused(make: Callable[[Any], object], said: str) -> None:
    with single_rank() as world, pytest.raises(UserError, match=said):
        make(world)


def test_search_and_on_policy_games_without_search_are_accepted() -> None:
    ReplayConfig().check_search("gumbel")
    ReplayConfig(reuse=1.0, on_policy=True).check_search("none")


def test_more_trees_than_memory_are_refused_before_they_are_allocated(monkeypatch: pytest.MonkeyPatch) -> None:
    class Memory:
        available = 1_000_000

    with single_rank() as world:
        selfplay(world, TICTACTOE, slots=4)
        monkeypatch.setattr("psutil.virtual_memory", Memory)
        with pytest.raises(UserError, match=r"their trees and batches need \d+\.\d GiB"):
            selfplay(world, TICTACTOE, slots=1000, simulations=200)
        selfplay(world, TICTACTOE, slots=4)


def rare_index(index: int) -> Encoding:
    """A move's index is its square. That of square 8 is another one where at most six moves are left."""

    def indices(positions: Positions) -> torch.Tensor:
        is_rare_BM = (positions.moves_BM == 8) & (positions.num_moves_B <= 6)[:, None]
        return torch.where(is_rare_BM, index, positions.moves_BM)

    return Encoding(planes, indices)


@pytest.mark.parametrize("index", [9, 70_000, -1])
def test_a_rare_move_without_a_logit_is_named_in_self_play_and_in_games(index: int) -> None:
    said = rf"move 8 of tic-tac-toe\n(.|\n)*its index is {index}, and the net returned 9 logits\n(.|\n)*from 0 to 8"
    net = net_of(TICTACTOE, 0.0)
    with single_rank() as world:
        source = selfplay(world, TICTACTOE, slots=32, games=200)
        source.encoding = rare_index(index)
        with pytest.raises(UserError, match=said):
            source.play(net, 0)
        with pytest.raises(UserError, match=said):
            score_against_random(net, TICTACTOE, rare_index(index), 20, SelfPlayConfig(simulations=8), world)


def test_a_net_that_returns_no_numbers_is_named() -> None:
    with single_rank() as world:
        net = net_of(TICTACTOE)
        net.weight.data.fill_(float("nan"))
        with pytest.raises(UserError, match=r"the net.s output in self-play, iteration 1"):
            selfplay(world, TICTACTOE).play(net, 0)
        net.weight.data.fill_(0.0)
        selfplay(world, TICTACTOE).play(net, 0)
