"""Running mean and standard deviation: equal to numpy, and bit-identical on any number of ranks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from ranks import RunConfig, World
from ranks.rl.environments import EnvironmentIds
from ranks.rl.running_mean_std import Normaliser, RunningMeanStd, sum_over_steps
from tests.engine.group import run_ranks
from tests.rl.fixtures import single_rank

B, F = 12, 3


@pytest.fixture
def ids() -> Iterator[EnvironmentIds]:
    with single_rank() as world:
        yield EnvironmentIds(B, 2, world)


def rows(num_steps: int, seed: int = 0) -> Tensor:
    """Numbers far from zero, where a naive sum of squares loses all precision."""
    return 1e4 + torch.randn(num_steps, B, F, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_one_update_and_many_updates_equal_numpy(ids: EnvironmentIds) -> None:
    rows_TBF = rows(40)
    at_once, merged = RunningMeanStd(F), RunningMeanStd(F)
    at_once.update(rows_TBF, ids)
    for part in rows_TBF.split([1, 2, 30, 7]):
        merged.update(part, ids)
    every = rows_TBF.numpy().reshape(-1, F)
    for moments in (at_once, merged):
        assert moments.count == len(every)
        np.testing.assert_allclose(moments.mean_F.numpy(), every.mean(0), rtol=1e-14)
        np.testing.assert_allclose(moments.std_F.numpy(), np.sqrt(every.var(0) + 1e-8), rtol=1e-10)


def test_float32_rows_are_accumulated_in_float64(ids: EnvironmentIds) -> None:
    moments, narrow_TBF = RunningMeanStd(F), rows(300).float()
    moments.update(narrow_TBF, ids)
    variance = narrow_TBF.double().numpy().reshape(-1, F).var(0)
    np.testing.assert_allclose(moments.std_F.numpy(), np.sqrt(variance + 1e-8), rtol=1e-10)


def test_std_is_1_without_rows_and_without_variance(ids: EnvironmentIds) -> None:
    moments = RunningMeanStd(F)
    assert moments.std_F.tolist() == [1.0, 1.0, 1.0]
    moments.update(torch.full((4, B, F), 7.0), ids)
    assert (moments.mean_F.tolist(), moments.std_F.tolist()) == ([7.0] * 3, [1.0] * 3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_std_is_1_for_a_feature_that_varies_by_rounding_alone(ids: EnvironmentIds, dtype: torch.dtype) -> None:
    """The float32 mean of fifty times 0.1 is not 0.1, and its neighbouring floats are rounding."""
    moments, normaliser = RunningMeanStd(F), Normaliser(F).to(dtype)
    rows_TBF = torch.full((50, B, F), 0.1, dtype=dtype)
    rows_TBF[7] = torch.tensor(0.1).nextafter(torch.tensor(1.0))
    for _ in range(3):
        moments.update(rows_TBF, ids)
    assert 0 < float(moments.square_F.max()) < 1e-9
    assert moments.std_F.tolist() == [1.0] * F
    normaliser.set_statistics(moments.mean_F, moments.std_F)
    assert float(normaliser(rows_TBF).abs().max()) < 1e-6


def test_epsilon_bounds_the_scale_of_tiny_variations(ids: EnvironmentIds) -> None:
    moments, tiny_TBF = RunningMeanStd(F), 1e-9 * torch.randn(50, B, F, dtype=torch.float64)
    moments.update(tiny_TBF, ids)
    np.testing.assert_allclose(moments.std_F.numpy(), 1e-4, rtol=1e-6)


def weights(num_steps: int) -> Tensor:
    """float[T, B]: 0 for some steps, and for all steps of the first environment."""
    weights_TB = torch.full((num_steps, B), 1.25)
    weights_TB[1::3, ::2] = weights_TB[:, 0] = 0
    return weights_TB


def test_rows_of_weight_0_are_left_out(ids: EnvironmentIds) -> None:
    weighted, moments, every = RunningMeanStd(F), RunningMeanStd(F), list[Tensor]()
    for num_steps in (16, 5, 1):
        rows_TBF, weight_TB = rows(num_steps, seed=num_steps), weights(num_steps)
        weighted.update(torch.where(weight_TB[..., None] > 0, rows_TBF, 1e9), ids, weight_TB)
        every.append(rows_TBF[weight_TB > 0])
    weighted.update(rows(4), ids, torch.zeros(4, B))
    kept = torch.cat(every).numpy()
    assert weighted.count == len(kept) < 22 * B
    np.testing.assert_allclose(weighted.mean_F.numpy(), kept.mean(0), rtol=1e-14)
    np.testing.assert_allclose(weighted.std_F.numpy(), np.sqrt(kept.var(0) + 1e-8), rtol=1e-10)
    moments.update(rows(4), ids, torch.zeros(4, B))
    assert (moments.count, moments.std_F.tolist()) == (0, [1.0] * F), "no rows"


def test_state_dict_round_trip(ids: EnvironmentIds) -> None:
    uninterrupted, resumed = RunningMeanStd(F), RunningMeanStd(F)
    uninterrupted.update(rows(5), ids)
    resumed.load_state_dict(uninterrupted.state_dict())
    for moments in (uninterrupted, resumed):
        moments.update(rows(6, seed=1), ids)
    assert torch.equal(uninterrupted.square_F, resumed.square_F)
    assert (uninterrupted.count, uninterrupted.mean_F.tolist()) == (resumed.count, resumed.mean_F.tolist())


@pytest.mark.parametrize("num_steps", [1, 2, 3, 8, 13, 64])
def test_sum_over_steps_of_a_column_does_not_depend_on_the_other_columns(num_steps: int) -> None:
    rows_TBF = rows(num_steps)
    together = sum_over_steps(rows_TBF)
    torch.testing.assert_close(together, rows_TBF.sum(0))
    for first, last in ((0, 1), (0, 5), (3, 12)):
        assert torch.equal(sum_over_steps(rows_TBF[:, first:last].contiguous()), together[first:last])


def moments_of(world: World) -> tuple[list[float], list[float]]:
    ids, moments = EnvironmentIds(B, 2, world), RunningMeanStd(F)
    mine = slice(ids.local.start, ids.local.stop)
    for num_steps, weight_TB in ((16, None), (5, weights(5)[:, mine])):
        moments.update(rows(num_steps)[:, mine], ids, weight_TB)
    return moments.mean_F.tolist(), moments.square_F.tolist()


def test_statistics_are_bit_identical_on_any_number_of_ranks(tmp_path: Path) -> None:
    config = RunConfig(shards=6)
    (one,) = run_ranks(1, moments_of, config=config, tmp_path=tmp_path)
    for size in (2, 3):
        assert run_ranks(size, moments_of, config=config, tmp_path=tmp_path) == [one] * size


def test_the_normaliser_uses_the_statistics_it_was_given_and_clips(ids: EnvironmentIds) -> None:
    normaliser, moments, rows_TBF = Normaliser(F, clip=2.0), RunningMeanStd(F), rows(50)
    unchanged = torch.tensor([[-1.0, 0.5, 9.0]])
    assert normaliser(unchanged).tolist() == [[-1.0, 0.5, 2.0]]
    moments.update(rows_TBF, ids)
    assert normaliser(unchanged).tolist() == [[-1.0, 0.5, 2.0]], "it changes only in set_statistics"
    normaliser.set_statistics(moments.mean_F, moments.std_F)
    normalised = normaliser.double()(rows_TBF)
    assert float(normalised.abs().max()) == 2.0
    inner = (rows_TBF - moments.mean_F) / moments.std_F
    torch.testing.assert_close(normalised, inner.clamp(-2, 2), atol=1e-2, rtol=0)
    assert {"mean_F", "std_F"} == set(normaliser.state_dict()), "it is exported with the policy"
    assert list(normaliser.parameters()) == []
