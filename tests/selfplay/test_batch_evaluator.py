"""Encodings, the evaluator and the losses: small cases that can be computed by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from ranks.search import TICTACTOE
from ranks.selfplay import (
    Encoding,
    Positions,
    Targets,
    alphazero_loss,
    expected_outcome,
    policy_and_value,
    policy_loss,
    reinforce_loss,
    value_loss,
)
from ranks.selfplay.net.batch_evaluator import BatchEvaluator, BatchMemory
from ranks.selfplay.random import sample, uniform
from ranks.selfplay.times import PlayTimes, speed
from tests.selfplay.fixtures import ENCODING, net_of

POSITIONS = Positions(
    torch.tensor([[1, 2], [0, 0]]), torch.tensor([[3, 8, 5, 77], [0, 1, 60_000, 9]]), torch.tensor([3, 2])
)


class Fixed(nn.Module):
    """Logits 0, 1, 2, ... and a fixed value."""

    def __init__(self, value: Tensor) -> None:
        super().__init__()
        self.value = nn.Parameter(value)

    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        return torch.arange(9.0).repeat(len(planes), 1), self.value


def test_logits_are_those_of_the_legal_moves_in_their_order() -> None:
    net = Fixed(torch.tensor([0.5, -0.5]))
    logits_BM, value_B = policy_and_value(net, ENCODING, POSITIONS)
    inf = math.inf
    assert logits_BM.tolist() == [[3, 8, 5, -inf], [0, 1, -inf, -inf]]
    assert value_B.tolist() == [0.5, -0.5]
    shifted = Encoding(ENCODING.planes, lambda positions: 8 - positions.moves_BM)
    assert policy_and_value(net, shifted, POSITIONS)[0].tolist() == [[5, 0, 3, -inf], [8, 7, -inf, -inf]]


@pytest.mark.parametrize("shift", [-4, 1])
def test_a_move_whose_index_is_none_of_the_logits_has_nan_and_the_others_keep_theirs(shift: int) -> None:
    shifted = Encoding(ENCODING.planes, lambda positions: positions.moves_BM + shift)
    found = policy_and_value(Fixed(torch.zeros(2)), shifted, POSITIONS)[0].tolist()
    inside = [[index + shift if 0 <= index + shift < 9 else math.nan for index in row] for row in ([3, 8, 5], [0, 1])]
    np.testing.assert_equal(found, [[*inside[0], -math.inf], [*inside[1], -math.inf, -math.inf]])


def test_a_batch_comes_back_as_probabilities_and_expected_outcomes() -> None:
    memory, times = BatchMemory(TICTACTOE, 4, torch.device("cpu")), PlayTimes()
    memory.leaves.moves_BM[1, :2] = [4, 7]
    memory.leaves.num_moves_B[1] = 2
    wdl = torch.tensor([2.0, 1.0, 0.0]).repeat(4, 1)
    with torch.no_grad():
        BatchEvaluator(ENCODING, torch.device("cpu"), times).launch(Fixed(wdl), memory)
    expected = np.exp([4.0, 7.0]) / np.exp([4.0, 7.0]).sum()
    np.testing.assert_allclose(memory.evaluation.priors_BM[1, :2], expected, rtol=1e-6)
    won, drawn, lost = np.exp([2.0, 1.0, 0.0]) / np.exp([2.0, 1.0, 0.0]).sum()
    np.testing.assert_allclose(memory.evaluation.value_B[1], won - lost, rtol=1e-6)
    assert (times.evaluations, times.rows) == (1, 4)
    assert drawn > 0


def test_waits_for_the_device_and_for_ranks_are_two_shares() -> None:
    waited = PlayTimes(wall_s=10.0, waiting_device_s=4.0, waiting_ranks_s=1.0)
    found = speed([waited.numbers(), PlayTimes(wall_s=10.0, waiting_ranks_s=3.0).numbers()])
    assert (found["waiting_device_share"], found["waiting_ranks_share"]) == (0.2, 0.2)


def test_a_wait_for_an_evaluation_is_a_wait_for_the_device() -> None:
    class Evaluated:
        def synchronize(self) -> None:
            clock.append(clock[-1] + 5.0)

    clock = [0.0]
    memory, times = BatchMemory(TICTACTOE, 1, torch.device("cpu")), PlayTimes()
    memory.copied = Evaluated()  # type: ignore[assignment]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("time.perf_counter", lambda: clock[-1])
        BatchEvaluator(ENCODING, torch.device("cpu"), times).wait(memory)
    assert times == PlayTimes(waiting_device_s=5.0)


def targets(**changes: Tensor) -> Targets:
    found = Targets(
        POSITIONS,
        policy_BM=torch.tensor([[0.5, 0.5, 0, 0], [1.0, 0, 0, 0]]),
        outcome_B=torch.tensor([1.0, -1.0]),
        value_B=torch.tensor([1.0, -1.0]),
        value_weight_B=torch.ones(2),
        is_truncated_B=torch.zeros(2, dtype=torch.bool),
    )
    return replace(found, **changes)


def test_the_policy_loss_is_a_cross_entropy_over_legal_moves() -> None:
    logits_BM, _ = policy_and_value(Fixed(torch.zeros(2)), ENCODING, POSITIONS)
    log_pi = np.log(np.exp([3, 8, 5]) / np.exp([3, 8, 5]).sum())
    found = policy_loss(logits_BM, targets().policy_BM)
    np.testing.assert_allclose(found, [-(log_pi[0] + log_pi[1]) / 2, math.log(1 + math.e)], rtol=1e-6)


def test_the_value_loss_of_a_number_and_of_win_draw_and_loss() -> None:
    target_B = torch.tensor([1.0, -0.5, 0.0])
    assert value_loss(torch.tensor([0.5, 0.5, 0.0]), target_B).tolist() == [0.25, 1.0, 0.0]
    wdl_B3 = torch.tensor([[3.0, 0, -1], [0.0, 1, 2], [0.0, 0, 0]])
    log_p = wdl_B3.log_softmax(1)
    expected = [-log_p[0, 0], -(log_p[1, 1] + log_p[1, 2]) / 2, -log_p[2, 1]]
    np.testing.assert_allclose(value_loss(wdl_B3, target_B), torch.stack(expected), rtol=1e-6)
    assert expected_outcome(torch.zeros(2, 3)).tolist() == [0.0, 0.0]


def test_losses_are_sums_and_their_gradients_reach_policy_and_value() -> None:
    net = net_of(TICTACTOE, 0.1)
    found = alphazero_loss(net, targets(), encoding=ENCODING, vf_coef=0.5)
    logits_BM, value_B = policy_and_value(net, ENCODING, POSITIONS)
    by_hand = policy_loss(logits_BM, targets().policy_BM).sum() + 0.5 * (value_B - targets().value_B).square().sum()
    torch.testing.assert_close(found.sum, by_hand)
    assert found.count == 2
    found.sum.backward()
    assert net.weight.grad is not None
    assert (net.weight.grad.abs().sum(1) > 0)[[3, 5, 8, 9]].all()


@pytest.mark.parametrize(("outcome", "sign"), [(1.0, 1), (-1.0, -1)])
def test_reinforce_makes_moves_likelier_that_won(outcome: float, sign: int) -> None:
    net = net_of(TICTACTOE, 0.0)
    batch = targets(policy_BM=torch.tensor([[0, 1.0, 0, 0], [0, 0, 0, 0]]), outcome_B=torch.tensor([outcome, 0.0]))
    reinforce_loss(net, batch, encoding=ENCODING, vf_coef=0.0).sum.backward()
    gradient = net.weight.grad
    assert gradient is not None
    first_square = gradient[[3, 8, 5], 0]
    assert torch.sign(first_square).tolist() == [sign, -sign, sign]


def test_random_numbers_belong_to_seed_game_ply_and_purpose() -> None:
    game_P, ply_P = np.arange(20_000), np.arange(20_000) % 7
    found = uniform(3, game_P, ply_P, 4)
    assert abs(found.mean() - 0.5) < 0.01
    assert 0 < found.min() < found.max() < 1
    np.testing.assert_array_equal(found[::2], uniform(3, game_P[::2], ply_P[::2], 4))
    for other in (uniform(4, game_P, ply_P, 4), uniform(3, game_P + 1, ply_P, 4), uniform(3, game_P, ply_P + 1, 4)):
        assert abs(np.corrcoef(found, other)[0, 1]) < 0.03
    assert abs(np.corrcoef(found, uniform(3, game_P, ply_P, 3))[0, 1]) < 0.03


def test_a_sample_never_has_weight_zero() -> None:
    weights_PM = np.array([[0.0, 1.0, 0.0, 3.0, 0.0]]).repeat(5, 0)
    assert sample(weights_PM, np.array([0.0, 0.2499, 0.2501, 0.9999, 1.0])).tolist() == [1, 1, 3, 3, 3]
