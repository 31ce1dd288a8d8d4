"""Running means and deviations: all at once, bit by bit, and as numpy has them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from ranks import RunConfig, World
from ranks.rl.environments import EnvironmentIds
from ranks.rl.running_mean_std import Normaliser, RunningMoments, freeze, sum_over_steps
from tests.engine.group import run_ranks
from tests.rl.known import alone

B, F = 12, 3


@pytest.fixture
def ids() -> Iterator[EnvironmentIds]:
    with alone() as world:
        yield EnvironmentIds(B, 2, world)


def rows(num_steps: int, seed: int = 0) -> Tensor:
    """Far from zero, where a naive sum of squares would lose all that matters."""
    return 1e4 + torch.randn(num_steps, B, F, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_at_once_in_many_parts_and_as_numpy(ids: EnvironmentIds) -> None:
    rows_TBF = rows(40)
    at_once, merged = RunningMoments(F), RunningMoments(F)
    at_once.update(rows_TBF, ids)
    for part in rows_TBF.split([1, 2, 30, 7]):
        merged.update(part, ids)
    every = rows_TBF.numpy().reshape(-1, F)
    for moments in (at_once, merged):
        assert moments.count == len(every)
        np.testing.assert_allclose(moments.mean_F.numpy(), every.mean(0), rtol=1e-14)
        np.testing.assert_allclose(moments.std_F.numpy(), np.sqrt(every.var(0) + 1e-8), rtol=1e-10)


def test_float32_is_taken_in_as_float64(ids: EnvironmentIds) -> None:
    moments, narrow_TBF = RunningMoments(F), rows(300).float()
    moments.update(narrow_TBF, ids)
    variance = narrow_TBF.double().numpy().reshape(-1, F).var(0)
    np.testing.assert_allclose(moments.std_F.numpy(), np.sqrt(variance + 1e-8), rtol=1e-10)


def test_the_deviation_of_nothing_and_of_what_never_varies_is_1(ids: EnvironmentIds) -> None:
    moments = RunningMoments(F)
    assert moments.std_F.tolist() == [1.0, 1.0, 1.0]
    moments.update(torch.full((4, B, F), 7.0), ids)
    assert (moments.mean_F.tolist(), moments.std_F.tolist()) == ([7.0] * 3, [1.0] * 3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_varies_by_rounding_alone_does_not_vary(ids: EnvironmentIds, dtype: torch.dtype) -> None:
    """The mean of fifty times 0.1 is not 0.1, and float32's neighbours of 0.1 are no signal."""
    moments, normaliser = RunningMoments(F), Normaliser(F).to(dtype)
    rows_TBF = torch.full((50, B, F), 0.1, dtype=dtype)
    rows_TBF[7] = torch.tensor(0.1).nextafter(torch.tensor(1.0))
    for _ in range(3):
        moments.update(rows_TBF, ids)
    assert 0 < float(moments.square_F.max()) < 1e-9
    assert moments.std_F.tolist() == [1.0] * F
    freeze(moments, into=normaliser)
    assert float(normaliser(rows_TBF).abs().max()) < 1e-6


def test_a_tremor_is_not_blown_up_to_the_clip(ids: EnvironmentIds) -> None:
    moments, tremor_TBF = RunningMoments(F), 1e-9 * torch.randn(50, B, F, dtype=torch.float64)
    moments.update(tremor_TBF, ids)
    np.testing.assert_allclose(moments.std_F.numpy(), 1e-4, rtol=1e-6)


def some(num_steps: int) -> Tensor:
    """float[T, B]: 0 where a step was none; the first environment made none at all."""
    weights_TB = torch.full((num_steps, B), 1.25)
    weights_TB[1::3, ::2] = weights_TB[:, 0] = 0
    return weights_TB


def test_rows_of_steps_that_were_none_are_left_out(ids: EnvironmentIds) -> None:
    weighed, moments, every = RunningMoments(F), RunningMoments(F), list[Tensor]()
    for num_steps in (16, 5, 1):
        rows_TBF, valid_TB = rows(num_steps, seed=num_steps), some(num_steps)
        weighed.update(torch.where(valid_TB[..., None] > 0, rows_TBF, 1e9), ids, valid_TB)
        every.append(rows_TBF[valid_TB > 0])
    weighed.update(rows(4), ids, torch.zeros(4, B))
    kept = torch.cat(every).numpy()
    assert weighed.count == len(kept) < 22 * B
    np.testing.assert_allclose(weighed.mean_F.numpy(), kept.mean(0), rtol=1e-14)
    np.testing.assert_allclose(weighed.std_F.numpy(), np.sqrt(kept.var(0) + 1e-8), rtol=1e-10)
    moments.update(rows(4), ids, torch.zeros(4, B))
    assert (moments.count, moments.std_F.tolist()) == (0, [1.0] * F), "no step at all"


def test_a_checkpoint_brings_them_back(ids: EnvironmentIds) -> None:
    straight, resumed = RunningMoments(F), RunningMoments(F)
    straight.update(rows(5), ids)
    resumed.load_state_dict(straight.state_dict())
    for moments in (straight, resumed):
        moments.update(rows(6, seed=1), ids)
    assert torch.equal(straight.square_F, resumed.square_F)
    assert (straight.count, straight.mean_F.tolist()) == (resumed.count, resumed.mean_F.tolist())


@pytest.mark.parametrize("num_steps", [1, 2, 3, 8, 13, 64])
def test_a_sum_over_steps_is_the_same_bits_in_any_company(num_steps: int) -> None:
    rows_TBF = rows(num_steps)
    together = sum_over_steps(rows_TBF)
    torch.testing.assert_close(together, rows_TBF.sum(0))
    for first, last in ((0, 1), (0, 5), (3, 12)):
        assert torch.equal(sum_over_steps(rows_TBF[:, first:last].contiguous()), together[first:last])


def moments_of(world: World) -> tuple[list[float], list[float]]:
    ids, moments = EnvironmentIds(B, 2, world), RunningMoments(F)
    mine = slice(ids.mine.start, ids.mine.stop)
    for num_steps, valid_TB in ((16, None), (5, some(5)[:, mine])):
        moments.update(rows(num_steps)[:, mine], ids, valid_TB)
    return moments.mean_F.tolist(), moments.square_F.tolist()


def test_on_any_number_of_ranks_to_the_last_bit(tmp_path: Path) -> None:
    config = RunConfig(shards=6)
    (one,) = run_ranks(1, moments_of, config=config, tmp_path=tmp_path)
    for size in (2, 3):
        assert run_ranks(size, moments_of, config=config, tmp_path=tmp_path) == [one] * size


def test_the_normaliser_sees_by_what_it_was_given_and_holds_the_rest_within_bounds(ids: EnvironmentIds) -> None:
    normaliser, moments, rows_TBF = Normaliser(F, clip=2.0), RunningMoments(F), rows(50)
    unchanged = torch.tensor([[-1.0, 0.5, 9.0]])
    assert normaliser(unchanged).tolist() == [[-1.0, 0.5, 2.0]]
    moments.update(rows_TBF, ids)
    assert normaliser(unchanged).tolist() == [[-1.0, 0.5, 2.0]], "it sees otherwise only from `freeze` on"
    freeze(moments, into=normaliser)
    seen = normaliser.double()(rows_TBF)
    assert float(seen.abs().max()) == 2.0
    inner = (rows_TBF - moments.mean_F) / moments.std_F
    torch.testing.assert_close(seen, inner.clamp(-2, 2), atol=1e-2, rtol=0)
    assert {"mean_F", "std_F"} == set(normaliser.state_dict()), "it is exported with the policy"
    assert list(normaliser.parameters()) == []
