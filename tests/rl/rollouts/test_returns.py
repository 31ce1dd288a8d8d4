"""GAE: worked by hand, special cases, and a slow reference implementation."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from ranks.rl.returns import gae, next_values


def discounted_returns(reward_TB: Tensor, discount_TB: Tensor, last_B: Tensor) -> Tensor:
    """[T, B]: G_t = r_t + discount_t G_{t+1}, from `last_B` after the last step (Sutton & Barto
    2018, eq. 3.9)."""
    return_TB = torch.empty_like(reward_TB)
    running_B = last_B
    for t in reversed(range(len(reward_TB))):
        running_B = reward_TB[t] + discount_TB[t] * running_B
        return_TB[t] = running_B
    return return_TB


def column(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)[:, None]


def ends(*flags: int) -> Tensor:
    return torch.tensor(flags, dtype=torch.bool)[:, None]


# gamma = lambda = 1/2, so that the trace is a quarter
TABLES = {
    # delta = 1 + .5*4 - 2, 2 + .5*6 - 4, 3 + .5*8 - 6
    "no end": ((1, 2, 3), (2, 4, 6), (4, 6, 8), (0.5, 0.5, 0.5), (0, 0, 0), (1.3125, 1.25, 1.0)),
    # the next value (9) and the trace do not count
    "terminated in the middle": ((1, 2, 3), (2, 4, 6), (4, 9, 8), (0.5, 0, 0.5), (0, 1, 0), (0.5, -2.0, 1.0)),
    # V(final observation) = 10 counts, the trace of the next episode does not
    "truncated in the middle": ((1, 2, 3), (2, 4, 6), (4, 10, 8), (0.5, 0.5, 0.5), (0, 1, 0), (1.75, 3.0, 1.0)),
    "terminated at the end": ((1, 2, 3), (2, 4, 6), (4, 6, 99), (0.5, 0.5, 0), (0, 0, 1), (1.0625, 0.25, -3.0)),
    "each step an episode": ((1, 2, 3), (2, 4, 6), (5, 5, 5), (0, 0.5, 0), (1, 1, 1), (-1.0, 0.5, -3.0)),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_worked_by_hand(name: str) -> None:
    reward, value, next_value, discount, ended, advantage = TABLES[name]
    found = gae(column(*reward), column(*value), column(*next_value), column(*discount), ends(*ended), 0.5)
    assert found[:, 0].tolist() == list(advantage)


def randn(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(sum(shape)))


def test_with_lambda_1_it_is_the_discounted_return_less_the_value() -> None:
    reward_TB, value_TB, last_B, discount_TB = randn(9, 4), randn(9, 4), randn(4), randn(9, 4).sigmoid()
    never_TB = torch.zeros(9, 4, dtype=torch.bool)
    found = gae(reward_TB, value_TB, next_values(value_TB, last_B), discount_TB, never_TB, 1.0)
    torch.testing.assert_close(found, discounted_returns(reward_TB, discount_TB, last_B) - value_TB)


def test_the_discounted_return_by_hand() -> None:
    # 3 + .5*8 = 7; the episode ended with step 1: 2; 1 + .5*2 = 2
    assert discounted_returns(column(1, 2, 3), column(0.5, 0, 0.5), column(8)[0])[:, 0].tolist() == [2.0, 2.0, 7.0]


def test_with_lambda_0_it_is_the_error_of_one_step() -> None:
    reward_TB, value_TB, next_TB, discount_TB = randn(9, 4), randn(9, 5)[:, :4], randn(10, 4)[1:], randn(9, 4).sigmoid()
    found = gae(reward_TB, value_TB, next_TB, discount_TB, randn(9, 4) > 0, 0.0)
    torch.testing.assert_close(found, reward_TB + discount_TB * next_TB - value_TB)


def test_a_cut_with_the_right_bootstrap_changes_the_step_error_of_no_step() -> None:
    """With lambda 0, one long episode is two that were cut off and bootstrapped; with a larger one
    the trace is cut."""
    reward_TB, value_TB, last_B = randn(8, 3), randn(8, 3), randn(3)
    next_TB, discount_TB = next_values(value_TB, last_B), torch.full((8, 3), 0.9, dtype=torch.float64)
    whole_TB = torch.zeros(8, 3, dtype=torch.bool)
    cut_TB = whole_TB.clone()
    cut_TB[3] = True
    for gae_lambda in (0.0, 0.8):
        together = gae(reward_TB, value_TB, next_TB, discount_TB, cut_TB, gae_lambda)
        columns = (reward_TB, value_TB, next_TB, discount_TB, whole_TB)
        parts = [gae(*(x[part] for x in columns), gae_lambda=gae_lambda) for part in (slice(0, 4), slice(4, 8))]
        assert torch.equal(together, torch.cat(parts))
        uncut = gae(reward_TB, value_TB, next_TB, discount_TB, whole_TB, gae_lambda)
        assert torch.equal(together[4:], uncut[4:])
        assert torch.equal(together[:4], uncut[:4]) == (gae_lambda == 0.0)


@pytest.mark.parametrize("discount", [0.0, 0.9], ids=["terminated", "truncated"])
def test_nothing_leaks_over_an_end(discount: float) -> None:
    reward_TB, value_TB, next_TB = randn(8, 1), randn(8, 1), randn(9, 1)[1:]
    ended_TB, discount_TB = ends(0, 0, 0, 1, 0, 0, 0, 0), torch.full((8, 1), 0.9, dtype=torch.float64)
    discount_TB[3] = discount
    before = gae(reward_TB, value_TB, next_TB, discount_TB, ended_TB, 0.95)
    changed = [torch.cat([x[:4], x[4:] + 100]) for x in (reward_TB, value_TB, next_TB)]
    after = gae(*changed, discount_TB=discount_TB, ended_TB=ended_TB, gae_lambda=0.95)
    assert torch.equal(before[:4], after[:4])
    assert not torch.isclose(before[4:], after[4:]).any()


@pytest.mark.parametrize("nothing", [float("nan"), float("inf")])
def test_values_after_a_termination_may_be_nan(nothing: float) -> None:
    """The value after a termination, and all values of the next episode."""
    ended_TB, discount_TB = ends(0, 1, 0), column(0.5, 0, 0.5)
    found = gae(column(1, 2, nothing), column(2, 4, 6), column(4, nothing, 8), discount_TB, ended_TB, 0.5)
    assert found[:2, 0].tolist() == [0.5, -2.0]


def slow_gae(reward: Tensor, value: Tensor, following: Tensor, discount: Tensor, ended: Tensor, lam: float) -> Tensor:
    """Equation 16 literally: each advantage is the weighted sum of all later step errors of its
    episode."""
    out = torch.zeros_like(reward)
    for b in range(reward.shape[1]):
        for t in range(len(reward)):
            weight = 1.0
            for u in range(t, len(reward)):
                out[t, b] += weight * (reward[u, b] + discount[u, b] * following[u, b] - value[u, b])
                if ended[u, b]:
                    break
                weight *= float(discount[u, b]) * lam
    return out


@pytest.mark.parametrize("gae_lambda", [0.0, 0.5, 0.95, 1.0])
def test_equals_the_slow_reference(gae_lambda: float) -> None:
    reward, value, following = randn(20, 6), randn(20, 7)[:, :6], randn(21, 6)[1:]
    ended = randn(20, 8)[:, :6] > 0.8
    discount = torch.where(ended & (randn(20, 9)[:, :6] > 0), 0.0, 0.97)
    found = gae(reward, value, following, discount, ended, gae_lambda)
    torch.testing.assert_close(found, slow_gae(reward, value, following, discount, ended, gae_lambda))
    wide = gae(*(x.float() for x in (reward, value, following, discount)), ended_TB=ended, gae_lambda=gae_lambda)
    assert wide.dtype == torch.float32
    torch.testing.assert_close(wide.double(), found, atol=1e-4, rtol=1e-4)
