"""An environment that takes a step to begin an episode: that step weighs nothing, anywhere, over several iterations."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from ranks import Learner, OptimConfig, RunConfig, World, rng
from ranks.rl import ppo
from ranks.rl.collector import Collector
from ranks.rl.config import PPOConfig
from ranks.rl.environments import EnvironmentIds, MakeEnvironment, Transition
from ranks.rl.running_mean_std import RunningMoments
from ranks.rl.rollout import weighed
from tests.engine.group import run_ranks
from tests.rl.known import Clock, Walk, alone, sham_rollout, walker

# Three ways to begin an episode --------------------------------------------------------------------------------------


def two_iterations(make: MakeEnvironment, horizon: int) -> dict[str, list[float]]:
    """What the second one was scaled by and learned from, and what both were seen to show."""
    cfg, seen = PPOConfig(minibatches=2, gamma=0.9, scale_rewards=True), RunningMoments(4)
    with alone(precision="fp64") as world:
        collector = Collector(Clock(1), make, 4, horizon, cfg, world)
        for iteration in range(2):
            deviation, rollout = float(collector.rewards.std_F), collector.collect(Clock(1), iteration)
            assert isinstance(rollout.obs, Tensor)
            seen.update(rollout.obs, collector.ids, rollout.valid_TB)
    valid_TB = torch.ones_like(rollout.value_TB) if rollout.valid_TB is None else rollout.valid_TB
    assert float(valid_TB.mean()) == pytest.approx(1)
    assert int((valid_TB > 0).sum()) == 4 * 18
    assert deviation != 1
    columns_TBX = torch.stack([rollout.reward_TB, rollout.advantage_TB, rollout.return_TB, rollout.value_TB], -1)
    return {
        "scaled by": [deviation, float(collector.rewards.std_F), collector.rewards.count],
        "learned from": columns_TBX.transpose(0, 1)[valid_TB.T > 0].flatten().tolist(),
        "seen": [seen.count, *seen.mean_F.tolist(), *seen.std_F.tolist()],
    }


def test_however_episodes_begin_anew_the_statistics_are_the_same() -> None:
    """Episodes of 3, 4, 5 and 6 steps: a rollout is all four, and four steps longer where each is begun by one."""
    pytest.importorskip("gymnasium")
    from gymnasium.vector import AutoresetMode, SyncVectorEnv

    from ranks.rl.gymnasium.environments import VectorEnvironments, from_gymnasium
    from tests.rl.games import CPU, counting

    def vector(ids: range, mode: Any) -> VectorEnvironments:
        made = SyncVectorEnv([counting] * len(ids), autoreset_mode=mode)
        return VectorEnvironments(made, ids, 0, CPU)

    ours = two_iterations(from_gymnasium(counting, 0, CPU), 18)
    for mode, horizon in ((AutoresetMode.SAME_STEP, 18), (AutoresetMode.NEXT_STEP, 22)):
        found = two_iterations(partial(vector, mode=mode), horizon)
        for name, numbers in ours.items():
            assert found[name] == pytest.approx(numbers, rel=1e-9), (mode, name)


class Paid(Walk):
    """The step after the end of an episode is none, and pays for it all the same."""

    def __init__(self, ids: range, pay: float) -> None:
        super().__init__(ids)
        self.pay, self.over_B = pay, torch.zeros(len(ids), dtype=torch.bool)

    def step(self, action_B: Tensor) -> Transition:
        before_B3, valid_B = self.at_B3.clone(), ~self.over_B
        moved = super().step(action_B)
        self.at_B3 = torch.where(valid_B[:, None], self.at_B3, before_B3)
        self.over_B = moved.ended_B & valid_B
        reward_B = torch.where(valid_B, moved.reward_B, self.pay)
        discount_B = torch.where(valid_B, moved.discount_B, 1.0)
        return Transition(reward_B, discount_B, self.over_B, moved.final_obs, valid_B)


def test_what_such_a_step_pays_counts_for_nothing() -> None:
    cfg, found = PPOConfig(minibatches=2, scale_rewards=True), list[Any]()
    for pay in (0.0, 99.0):
        with alone() as world:
            collector = Collector(Clock(), partial(Paid, pay=pay), 4, 20, cfg, world)
            rollout = collector.collect(Clock(), 0)
            assert rollout.valid_TB is not None
            kept_TB = rollout.valid_TB > 0
            assert not kept_TB.all()
            found.append([rollout.advantage_TB[kept_TB], collector.statistics(), float(collector.rewards.std_F)])
            found[-1].append(collector.groups[0].discounted_B)
    torch.testing.assert_close(*found, rtol=0, atol=0)


# The loss -------------------------------------------------------------------------------------------------------------

CFG = PPOConfig(epochs=1, minibatches=2, ent_coef=0.3, vf_coef=0.7)
HORIZON, ENVIRONMENTS = 8, 12


def updated(world: World) -> dict[str, Any]:
    """What updates say from a rollout in which environments made few steps, or none; how many each made."""
    ids = EnvironmentIds(ENVIRONMENTS, CFG.minibatches, world)
    rollout, loss = sham_rollout(ids, HORIZON), partial(ppo.ppo_loss, cfg=CFG)
    luck_BT = rng.uniform(rng.key(7, "valid", 0), rollout.env_B, HORIZON)
    valid_TB = (rollout.env_B < luck_BT.T * 12).to(rollout.value_TB.dtype).contiguous()
    rollout = type(rollout)(**{**vars(rollout), "valid_TB": weighed(valid_TB, ids)})
    learner = Learner(walker(), OptimConfig(lr=1e-9, clip_norm=None, schedule="constant"), world)
    said = ppo.update(learner, loss, rollout, ids, CFG, iteration=0)
    return {"said": said, "valid": ids.gather(valid_TB.T.contiguous()).sum(1).tolist()}


def test_the_logged_loss_is_its_formula_from_the_logged_metrics_on_any_deal(tmp_path: Path) -> None:
    config = RunConfig(shards=6, precision="fp64")
    (one,) = run_ranks(1, updated, config=config, tmp_path=tmp_path)
    said = one["said"]
    assert 0 == min(one["valid"]) < max(one["valid"]) == HORIZON
    formula = CFG.vf_coef * said["value_loss"] - said["policy_gain"] - CFG.ent_coef * said["entropy"]
    assert said["loss"] == pytest.approx(formula, rel=1e-9)
    for size in (2, 3):
        for rank in run_ranks(size, updated, config=config, tmp_path=tmp_path):
            assert rank["said"] == pytest.approx(said, rel=1e-7)


def test_a_rollout_straight_from_the_collector_is_weighed_too() -> None:
    """The loss of the whole of it is the mean over steps that were some, as its metrics are."""
    with alone(precision="fp64") as world:
        ids = EnvironmentIds(4, 2, world)
        part = sham_rollout(ids, HORIZON)
        valid_TB = torch.ones(HORIZON, 4)
        valid_TB[1::2, :3] = 0
        part = type(part)(**{**vars(part), "valid_TB": weighed(valid_TB, ids)})
        with torch.no_grad():
            loss = ppo.ppo_loss(walker(), part, cfg=CFG)
    means = {name: float(pair[0] / pair[1]) for name, pair in loss.metrics.items() if isinstance(pair, tuple)}
    formula = CFG.vf_coef * means["value_loss"] - means["policy_gain"] - CFG.ent_coef * means["entropy"]
    assert float(loss.sum) / loss.count == pytest.approx(formula, rel=1e-9)
