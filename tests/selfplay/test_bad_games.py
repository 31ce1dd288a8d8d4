"""Games, nets, settings and memory that self-play cannot work with are named, before or while games are played."""

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
from ranks.jit import kernel
from ranks.search import LEGAL_MOVES, TICTACTOE
from ranks.search.games import tictactoe
from ranks.search.trees import tree_bytes
from ranks.selfplay import Encoding, Positions, ReplayConfig, SelfPlay, SelfPlayConfig, score_against_random, value_loss
from ranks.selfplay.checks.memory import check_memory
from ranks.selfplay.checks.rules import check_rules
from ranks.selfplay.net.batch_evaluator import BatchMemory, batch_bytes
from ranks.selfplay.net.encoding import largest_move_index
from ranks.selfplay.search_settings import search_config
from tests.selfplay.fixtures import net_of, planes, selfplay, single_rank


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


ONES = torch.ones(8, 9)


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (ONES, r"the net returned a tensor of float32 \[8, 9\]"),
        ((ONES, ONES[:, 0], ONES), r"\[8, 9\] and a tensor of float32 \[8\] and a tensor"),
        ((ONES.long(), ONES[:, 0]), r"the net returned a tensor of int64 \[8, 9\] and"),
        ((ONES, 0.0), "and a float"),
        (None, "the net returned a NoneType"),
    ],
)
def test_a_net_that_returns_something_else_is_refused(returned: Any, said: str) -> None:
    with single_rank() as world, pytest.raises(UserError, match=said):
        selfplay(world, TICTACTOE).play(Returning(returned), 0)


class Returning(nn.Module):
    """Returns the same thing for all planes."""

    def __init__(self, returned: Any) -> None:
        super().__init__()
        self.returned = returned

    def forward(self, planes_B288: torch.Tensor) -> Any:
        return self.returned


@pytest.mark.parametrize(
    ("encoding", "said"),
    [
        (Encoding(lambda positions: None), r"Encoding.planes returned a NoneType"),  # type: ignore[arg-type, return-value]
        (Encoding(planes, lambda p: p.moves_BM.float()), r"Encoding.move_indices returned a tensor of float32"),
        (Encoding(planes, lambda p: p.moves_BM[:, :1]), r"Encoding.move_indices returned .*, 1\](.|\n)*the same shape"),
    ],
)
def test_an_encoding_of_wrong_shapes_or_types_is_refused(encoding: Encoding, said: str) -> None:
    with single_rank() as world, pytest.raises(UserError, match=said):
        SelfPlay(TICTACTOE, encoding, 8, 12, SelfPlayConfig(simulations=2), world).play(net_of(TICTACTOE), 0)


def test_indices_of_32_bits_are_taken() -> None:
    with single_rank() as world:
        encoding = Encoding(planes, lambda p: p.moves_BM.int())
        source = SelfPlay(TICTACTOE, encoding, 8, 12, SelfPlayConfig(simulations=2), world)
        assert len(source.play(net_of(TICTACTOE), 0)) >= 12


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
        (
            lambda world: SelfPlayConfig(full_searches=0.5, fast_simulations=33),
            r"--selfplay.fast-simulations 33\n.*which is 32",
        ),
        (lambda world: SelfPlayConfig(full_searches=0, simulations=4), "--selfplay.full-searches 0"),
        (lambda world: SelfPlayConfig(gumbel_scale=float("inf")), r"--selfplay.gumbel-scale inf\n.*a finite number"),
        (
            lambda world: SelfPlayConfig(progressive_iterations=5, first_simulations=33),
            "--selfplay.first-simulations 33",
        ),
        (lambda world: replace(SelfPlayConfig(), max_plies=0), "--selfplay.max-plies 0"),
        (lambda world: SelfPlayConfig(c_scale=1e307), r"--selfplay.c-scale 1e\+307"),
        (lambda world: ReplayConfig(reuse=0), "--replay.reuse 0"),
        (lambda world: ReplayConfig(reuse=1e308), r"--replay.reuse 1e\+308"),
        (lambda world: ReplayConfig(positions=10, first_positions=11), "the window would drop most of"),
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
