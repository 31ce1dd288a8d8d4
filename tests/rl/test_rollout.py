"""How updates take a rollout: whole sequences, each environment once an epoch, the same minibatches on any deal."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch

from ranks import RunConfig, UserError, World
from ranks.rl import pytree
from ranks.rl.environments import EnvironmentIds
from ranks.rl.rollout import RAW, Rollout, Scaling, advantage_moments, minibatches, scaling_of
from tests.engine.group import run_ranks
from tests.rl.known import alone, sham_rollout

ENVIRONMENTS, MINIBATCHES = 24, 4
DEALS = [RunConfig(shards=6), RunConfig(shards=6, exact=True)]


def environments_of(world: World, epochs: int) -> list[list[list[int]]]:
    """For each epoch and minibatch: ids of this rank's environments."""
    ids = EnvironmentIds(ENVIRONMENTS, MINIBATCHES, world)
    rollout, weight_B = sham_rollout(ids, 3), torch.full((ENVIRONMENTS,), 3.0)

    def passed(epoch: int) -> list[Rollout]:
        batches = minibatches(rollout, ids, epoch, lambda _: RAW, weight_B)
        return [batch.gather(batch.shards.ids) for batch in batches]

    return [[part.env_B.tolist() for part in passed(epoch)] for epoch in range(epochs)]


@pytest.mark.parametrize("config", DEALS, ids=["fast", "exact"])
def test_each_environment_is_in_one_minibatch_of_an_epoch_on_any_deal(config: RunConfig, tmp_path: Path) -> None:
    (one,) = run_ranks(1, environments_of, 3, config=config, tmp_path=tmp_path)
    for epoch in one:
        assert [len(batch) for batch in epoch] == [ENVIRONMENTS // MINIBATCHES] * MINIBATCHES
        assert sorted(env for batch in epoch for env in batch) == list(range(ENVIRONMENTS))
        for batch in epoch:
            assert [env // MINIBATCHES for env in batch] == list(range(6)), "one of each block of neighbours"
    assert one[0] != one[1] != one[2], "the order is new in each epoch"
    for size, shares in ((2, None), (3, None), (3, (4, 1, 1))):
        dealt = RunConfig(shards=6, exact=config.exact, shares=shares)
        ranks = run_ranks(size, environments_of, 3, config=dealt, tmp_path=tmp_path)
        joined = [[[e for r in ranks for e in r[epoch][m]] for m in range(MINIBATCHES)] for epoch in range(3)]
        assert joined == one


def test_the_scaling_of_nothing_and_of_what_never_varies() -> None:
    assert scaling_of(torch.zeros(2, 3, dtype=torch.float64)) == Scaling(0.0, 1e-8)
    assert scaling_of(torch.tensor([[4.0, 12.0, 36.0]], dtype=torch.float64)) == Scaling(3.0, 1e-8)


def test_steps_that_were_none_weigh_nothing() -> None:
    with alone() as world:
        ids = EnvironmentIds(4, 2, world)
        rollout = sham_rollout(ids, 6)
        weight_TB = torch.ones(6, 4)
        weight_TB[2, 1] = weight_TB[5, 3] = 0
        spoilt_TB = torch.where(weight_TB > 0, rollout.advantage_TB, 1e6)
        spoilt = Rollout(**{**vars(rollout), "valid_TB": weight_TB, "advantage_TB": spoilt_TB})
        found = scaling_of(advantage_moments(spoilt, ids))
    kept = rollout.advantage_TB[weight_TB > 0].double()
    assert found.mean == pytest.approx(float(kept.mean()))
    assert found.std == pytest.approx(float(kept.std(correction=0)))


def test_columns_are_taken_whole_and_set_side_by_side() -> None:
    with alone() as world:
        rollout = sham_rollout(EnvironmentIds(4, 2, world), 5)
    left, right = rollout.of(torch.tensor([0, 2])), rollout.of(torch.tensor([3]))
    assert left.env_B.tolist() == [0, 2]
    assert torch.equal(left.start_state["h"], rollout.start_state["h"][[0, 2]])
    both = Rollout.cat([left, right])
    for name, value in vars(both).items():
        other = vars(rollout)[name]
        if isinstance(value, torch.Tensor):
            assert torch.equal(value, other[[0, 2, 3]] if name == "env_B" else other[:, [0, 2, 3]]), name


def test_columns_are_taken_without_waiting_for_the_device() -> None:
    """The meta device has no numbers: whoever asks for one gets an error."""
    with alone() as world:
        rollout = sham_rollout(EnvironmentIds(4, 2, world), 5)
    there = {n: pytree.map_tree(lambda leaf: leaf.to("meta"), v) for n, v in vars(rollout).items() if v is not None}
    taken = replace(rollout, **{**there, "env_B": rollout.env_B, "first_TB": rollout.first_TB}).of(torch.tensor([1, 3]))
    assert taken.env_B.tolist() == [1, 3]
    assert rollout.first_TB is not None
    assert taken.first_TB is not None
    assert torch.equal(taken.first_TB, rollout.first_TB[:, [1, 3]])
    assert (taken.reward_TB.device.type, tuple(taken.reward_TB.shape)) == ("meta", (5, 2))


@pytest.mark.parametrize(
    ("environments", "block", "size"), [(10, 4, 1), (0, 4, 1), (8, 4, 3)], ids=["uneven", "none", "a rank without"]
)
def test_environments_that_do_not_go_round(environments: int, block: int, size: int, tmp_path: Path) -> None:
    found = run_ranks(size, refusal_of, environments, block, config=RunConfig(shards=6), tmp_path=tmp_path)
    assert len(set(found)) == 1
    assert f"{environments} environments in {block} minibatches" in found[0]
    assert "give" in found[0]


def refusal_of(world: World, environments: int, block: int) -> str:
    with pytest.raises(UserError) as caught:
        EnvironmentIds(environments, block, world)
    return str(caught.value)


def environments_on(world: World, environments: int, block: int) -> int:
    return len(EnvironmentIds(environments, block, world).mine)


@pytest.mark.parametrize(
    ("config", "size", "named"),
    [
        (RunConfig(shards=64), 3, 16),
        (RunConfig(shards=6), 3, 12),
        (RunConfig(shards=8, exact=True), 3, 16),
        (RunConfig(shards=8, shares=(6, 1, 1)), 3, 20),
    ],
    ids=["many shards", "few shards", "exact", "shares"],
)
def test_too_few_environments_are_told_the_smallest_number_that_will_do(
    config: RunConfig, size: int, named: int, tmp_path: Path
) -> None:
    run = partial(run_ranks, size, config=config, tmp_path=tmp_path)
    (told,) = set(run(refusal_of, 8, 4))
    assert f"give {named} environments, fewer ranks, or fewer minibatches" in told
    assert min(run(environments_on, named, 4)) >= 4
    assert "a rank has none" in run(refusal_of, named - 4, 4)[0]
