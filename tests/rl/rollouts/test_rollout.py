"""Rollouts: minibatches of whole sequences and of single steps, the same on any assignment; advantage scaling;
explained variance."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from ranks import RunConfig, UserError, World
from ranks.rl import pytree
from ranks.rl.environments import EnvironmentIds
from ranks.rl.rollouts.minibatches import cut_minibatches, minibatches
from ranks.rl.rollouts.moments import UNSCALED, RolloutMoments, Scaling
from ranks.rl.rollouts.rollout import Rollout
from tests.engine.group import run_ranks
from tests.rl.fixtures import single_rank, synthetic_rollout

N_ENVS, MINIBATCHES = 24, 4
CONFIGS = [RunConfig(shards=6), RunConfig(shards=6, exact=True)]


def minibatch_ids(world: World, epochs: int) -> list[list[list[int]]]:
    """For each epoch and minibatch: the ids of this rank's environments."""
    ids = EnvironmentIds(N_ENVS, MINIBATCHES, world)
    rollout, weight_B = synthetic_rollout(ids, 3), torch.full((N_ENVS,), 3.0)

    def epoch_of(epoch: int) -> list[Rollout]:
        batches = minibatches(rollout, ids, epoch, lambda _: UNSCALED, weight_B)
        return [batch.gather(batch.shards.ids) for batch in batches]

    return [[part.env_B.tolist() for part in epoch_of(epoch)] for epoch in range(epochs)]


@pytest.mark.parametrize("config", CONFIGS, ids=["fast", "exact"])
def test_each_environment_is_in_one_minibatch_of_an_epoch_on_any_assignment(config: RunConfig, tmp_path: Path) -> None:
    (one,) = run_ranks(1, minibatch_ids, 3, config=config, tmp_path=tmp_path)
    for epoch in one:
        assert [len(batch) for batch in epoch] == [N_ENVS // MINIBATCHES] * MINIBATCHES
        assert sorted(env for batch in epoch for env in batch) == list(range(N_ENVS))
        for batch in epoch:
            assert [env // MINIBATCHES for env in batch] == list(range(6)), "one of each block of consecutive ids"
    assert one[0] != one[1] != one[2], "each epoch has another order"
    for size, shares in ((2, None), (3, None), (3, (4, 1, 1))):
        assigned = RunConfig(shards=6, exact=config.exact, shares=shares)
        ranks = run_ranks(size, minibatch_ids, 3, config=assigned, tmp_path=tmp_path)
        merged = [[[e for r in ranks for e in r[epoch][m]] for m in range(MINIBATCHES)] for epoch in range(3)]
        assert merged == one


# Minibatches of single steps ------------------------------------------------------------------------------------------


def cut_columns(world: World, epochs: int) -> list[list[dict[int, list[list[float]]]]]:
    """For each epoch and minibatch: by item, the steps of its column as [reward, advantage]."""
    ids = EnvironmentIds(N_ENVS, MINIBATCHES, world, cut_time=True)
    rollout = synthetic_rollout(ids, 3, lstm_hidden=0)

    def columns(part: Rollout) -> dict[int, list[list[float]]]:
        pairs_CT2 = torch.stack([part.reward_TB, part.advantage_TB], 2).transpose(0, 1)
        return dict(zip(part.env_B.tolist(), pairs_CT2.tolist(), strict=True))

    batches = [cut_minibatches(rollout, ids, epoch, Scaling(0.5, 2.0)) for epoch in range(epochs)]
    return [[columns(batch.gather(batch.shards.ids)) for batch in some] for some in batches]


def steps_of(columns: dict[int, list[list[float]]]) -> list[list[float]]:
    return [step for column in columns.values() for step in column]


@pytest.mark.parametrize("config", CONFIGS, ids=["fast", "exact"])
def test_each_step_is_in_one_cut_minibatch_of_an_epoch_on_any_assignment(config: RunConfig, tmp_path: Path) -> None:
    (one,) = run_ranks(1, cut_columns, 2, config=config, tmp_path=tmp_path)
    with single_rank() as world:
        rollout = synthetic_rollout(EnvironmentIds(N_ENVS, MINIBATCHES, world), 3, lstm_hidden=0)
    scaled_TB = (rollout.advantage_TB - 0.5) / 2.0
    every = torch.stack([rollout.reward_TB, scaled_TB], 2).flatten(0, 1).tolist()
    for epoch in one:
        assert sorted(step for batch in epoch for step in steps_of(batch)) == sorted(every)
        assert [len(steps_of(batch)) for batch in epoch] == [len(every) // MINIBATCHES] * MINIBATCHES
        for batch in epoch:
            assert list(batch) == list(range(0, N_ENVS, MINIBATCHES)), "a column for each block of consecutive ids"
            for first, column in batch.items():
                block = every_of(scaled_TB, rollout.reward_TB, first)
                assert all(step in block for step in column), "its steps are of environments of the block"
    assert one[0] != one[1], "each epoch has another order"
    reward_TB = rollout.reward_TB.tolist()
    times = [{t for t in range(3) for r in column if r[0] in reward_TB[t]} for column in one[0][0].values()]
    assert any(len(found) > 1 for found in times), "and a minibatch cuts time"
    for size, shares in ((2, None), (3, None), (3, (4, 1, 1))):
        assigned = RunConfig(shards=6, exact=config.exact, shares=shares)
        ranks = run_ranks(size, cut_columns, 2, config=assigned, tmp_path=tmp_path)
        merged = [[{k: c for r in ranks for k, c in r[e][m].items()} for m in range(MINIBATCHES)] for e in range(2)]
        assert merged == one


def every_of(scaled_TB: Tensor, reward_TB: Tensor, first: int) -> list[list[float]]:
    """All [reward, advantage] of a block of environments."""
    block = slice(first, first + MINIBATCHES)
    return torch.stack([reward_TB[:, block], scaled_TB[:, block]], 2).flatten(0, 1).tolist()


def test_a_cut_minibatch_keeps_the_fields_of_a_step_together() -> None:
    with single_rank() as world:
        ids = EnvironmentIds(8, 2, world, cut_time=True)
        rollout = synthetic_rollout(ids, 5, lstm_hidden=0)
        rollout = replace(rollout, weight_TB=rollout.reward_TB + 7)
        batches = list(cut_minibatches(rollout, ids, 0, UNSCALED))
    by_reward = {float(r): (t, b) for t, row in enumerate(rollout.reward_TB) for b, r in enumerate(row)}
    for batch in batches:
        part = batch.gather(batch.shards.ids[1:3])  # two of four blocks, as a shard or a micro-batch
        assert part.env_B.tolist() == [2, 4]
        assert part.first_TB is not None
        assert part.first_TB.all()
        assert part.start_state == {}
        for row, column in product(range(5), range(2)):
            t, b = by_reward[float(part.reward_TB[row, column])]
            for name in ("obs", "action_TB", "logp_TB", "advantage_TB", "return_TB", "weight_TB", "ended_TB"):
                assert torch.equal(getattr(part, name)[row, column], getattr(rollout, name)[t, b]), name


def test_advantage_scaling_without_steps_and_without_variance() -> None:
    def scaling(*rows: list[float]) -> Scaling:
        none = torch.zeros(len(rows), 2, dtype=torch.float64)
        return RolloutMoments(torch.tensor(rows, dtype=torch.float64), none, none).advantage_scaling()

    assert scaling([0.0] * 3, [0.0] * 3) == Scaling(0.0, 1e-8)
    assert scaling([4.0, 12.0, 36.0]) == Scaling(3.0, 1e-8)


def test_steps_of_weight_0_do_not_change_the_advantage_scaling() -> None:
    with single_rank() as world:
        ids = EnvironmentIds(4, 2, world)
        rollout = synthetic_rollout(ids, 6)
        weight_TB = torch.ones(6, 4)
        weight_TB[2, 1] = weight_TB[5, 3] = 0
        changed_TB = torch.where(weight_TB > 0, rollout.advantage_TB, 1e6)
        changed = Rollout(**{**vars(rollout), "weight_TB": weight_TB, "advantage_TB": changed_TB})
        found = RolloutMoments.of(changed, ids).advantage_scaling()
    kept = rollout.advantage_TB[weight_TB > 0].double()
    assert found.mean == pytest.approx(float(kept.mean()))
    assert found.std == pytest.approx(float(kept.std(correction=0)))


def test_select_and_cat_keep_whole_columns() -> None:
    with single_rank() as world:
        rollout = synthetic_rollout(EnvironmentIds(4, 2, world), 5)
    left, right = rollout.select(torch.tensor([0, 2])), rollout.select(torch.tensor([3]))
    assert left.env_B.tolist() == [0, 2]
    assert torch.equal(left.start_state["h"], rollout.start_state["h"][[0, 2]])
    both = Rollout.cat([left, right])
    for name, value in vars(both).items():
        other = vars(rollout)[name]
        if isinstance(value, torch.Tensor):
            assert torch.equal(value, other[[0, 2, 3]] if name == "env_B" else other[:, [0, 2, 3]]), name


def test_select_does_not_synchronise_with_the_device() -> None:
    """The meta device has no values: reading one raises an error."""
    with single_rank() as world:
        rollout = synthetic_rollout(EnvironmentIds(4, 2, world), 5)
    there = {n: pytree.tree_map(lambda leaf: leaf.to("meta"), v) for n, v in vars(rollout).items() if v is not None}
    taken = replace(rollout, **{**there, "env_B": rollout.env_B, "first_TB": rollout.first_TB}).select(
        torch.tensor([1, 3])
    )
    assert taken.env_B.tolist() == [1, 3]
    assert rollout.first_TB is not None
    assert taken.first_TB is not None
    assert torch.equal(taken.first_TB, rollout.first_TB[:, [1, 3]])
    assert (taken.reward_TB.device.type, tuple(taken.reward_TB.shape)) == ("meta", (5, 2))


@pytest.mark.parametrize(
    ("n_envs", "block", "size"), [(10, 4, 1), (0, 4, 1), (8, 4, 3)], ids=["uneven", "none", "a rank without"]
)
def test_a_number_of_environments_that_does_not_fit_is_rejected_on_every_rank(
    n_envs: int, block: int, size: int, tmp_path: Path
) -> None:
    found = run_ranks(size, error_of, n_envs, block, config=RunConfig(shards=6), tmp_path=tmp_path)
    assert len(set(found)) == 1
    assert f"{n_envs} environments in {block} minibatches" in found[0]
    assert "give" in found[0]


def error_of(world: World, n_envs: int, block: int) -> str:
    with pytest.raises(UserError) as caught:
        EnvironmentIds(n_envs, block, world)
    return str(caught.value)


def local_environments(world: World, n_envs: int, block: int) -> int:
    return len(EnvironmentIds(n_envs, block, world).local)


@pytest.mark.parametrize(
    ("config", "size", "sufficient"),
    [
        (RunConfig(shards=64), 3, 16),
        (RunConfig(shards=6), 3, 12),
        (RunConfig(shards=8, exact=True), 3, 16),
        (RunConfig(shards=8, shares=(6, 1, 1)), 3, 20),
    ],
    ids=["many shards", "few shards", "exact", "shares"],
)
def test_too_few_environments_are_rejected_with_the_smallest_sufficient_number(
    config: RunConfig, size: int, sufficient: int, tmp_path: Path
) -> None:
    run = partial(run_ranks, size, config=config, tmp_path=tmp_path)
    (message,) = set(run(error_of, 8, 4))
    assert f"give {sufficient} environments, fewer ranks, or fewer minibatches" in message
    assert min(run(local_environments, sufficient, 4)) >= 4
    assert "a rank has none" in run(error_of, sufficient - 4, 4)[0]


# Explained variance ---------------------------------------------------------------------------------------------------


def reference_explained_variance(value: Tensor, target: Tensor) -> float:
    """As stable_baselines3.common.utils.explained_variance has it."""
    return float(1 - np.var((target - value).numpy()) / np.var(target.numpy()))


def explained_variance_of(world: World) -> float:
    ids = EnvironmentIds(N_ENVS, MINIBATCHES, world)
    return RolloutMoments.of(synthetic_rollout(ids, 9), ids).explained_variance()


@pytest.mark.parametrize("config", CONFIGS, ids=["fast", "exact"])
def test_explained_variance_is_that_of_stable_baselines3_on_any_assignment(config: RunConfig, tmp_path: Path) -> None:
    with single_rank() as world:
        rollout = synthetic_rollout(EnvironmentIds(N_ENVS, MINIBATCHES, world), 9)
    (one,) = run_ranks(1, explained_variance_of, config=config, tmp_path=tmp_path)
    reference = reference_explained_variance(rollout.value_TB.double(), rollout.return_TB.double())
    assert one == pytest.approx(reference, rel=1e-9)
    assert one < 0, "random values are worse than a constant"
    for size, shares in ((2, None), (3, (4, 1, 1))):
        assigned = RunConfig(shards=6, exact=config.exact, shares=shares)
        assert run_ranks(size, explained_variance_of, config=assigned, tmp_path=tmp_path) == [one] * size


@pytest.mark.parametrize(("error", "explained"), [(0.0, 1.0), (0.5, 0.75), (1.0, 0.0)])
def test_explained_variance_by_hand(error: float, explained: float) -> None:
    """The value is the return times (1 - error), so the variance of the error is error^2 of that of the return."""
    with single_rank(precision="fp64") as world:
        ids = EnvironmentIds(4, 2, world)
        rollout = synthetic_rollout(ids, 6)
        found = RolloutMoments.of(replace(rollout, value_TB=rollout.return_TB * (1 - error)), ids)
    assert found.explained_variance() == pytest.approx(explained, abs=1e-12)


def test_explained_variance_ignores_steps_of_weight_0_and_is_nan_for_constant_returns() -> None:
    with single_rank(precision="fp64") as world:
        ids = EnvironmentIds(4, 2, world)
        rollout = synthetic_rollout(ids, 6)
        weight_TB = torch.ones(6, 4)
        weight_TB[2, 1] = weight_TB[5, 3] = 0
        changed_TB = torch.where(weight_TB > 0, rollout.return_TB, 1e6)
        weighted = RolloutMoments.of(replace(rollout, weight_TB=weight_TB, return_TB=changed_TB), ids)
        constant = RolloutMoments.of(replace(rollout, return_TB=torch.full((6, 4), 0.1)), ids)
    kept_TB = weight_TB > 0
    reference = reference_explained_variance(rollout.value_TB[kept_TB], rollout.return_TB[kept_TB])
    assert weighted.explained_variance() == pytest.approx(reference)
    assert math.isnan(constant.explained_variance())
