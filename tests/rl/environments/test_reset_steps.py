"""A step that only resets (NEXT_STEP autoreset) has weight 0 in the loss, the metrics and all
statistics."""

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
from ranks.rl.environments import EnvironmentIds, MakeVecEnv, Transition
from ranks.rl.rollouts.moments import normalised_weights
from ranks.rl.running_mean_std import RunningMeanStd
from tests.engine.group import run_ranks
from tests.rl.fixtures import StepCounter, Walk, single_rank, small_policy, synthetic_rollout

# The three autoreset modes --------------------------------------------------------------------------------------------


def two_iterations(make: MakeVecEnv, n_steps: int) -> dict[str, list[float]]:
    """The reward scale and the columns of the second rollout, and the observation statistics of
    both."""
    cfg, observations = PPOConfig(minibatches=2, gamma=0.9, scale_rewards=True), RunningMeanStd(4)
    with single_rank(precision="fp64") as world:
        collector = Collector(StepCounter(1), make, 4, n_steps, cfg, world)
        for iteration in range(2):
            std, rollout = float(collector.rewards.std_F), collector.collect(StepCounter(1), iteration)
            assert isinstance(rollout.obs, Tensor)
            observations.update(rollout.obs, collector.ids, rollout.weight_TB)
    weight_TB = torch.ones_like(rollout.value_TB) if rollout.weight_TB is None else rollout.weight_TB
    assert float(weight_TB.mean()) == pytest.approx(1)
    assert int((weight_TB > 0).sum()) == 4 * 18
    assert std != 1
    columns_TBX = torch.stack([rollout.reward_TB, rollout.advantage_TB, rollout.return_TB, rollout.value_TB], -1)
    return {
        "reward scale": [std, float(collector.rewards.std_F), collector.rewards.count],
        "columns": columns_TBX.transpose(0, 1)[weight_TB.T > 0].flatten().tolist(),
        "observations": [observations.count, *observations.mean_F.tolist(), *observations.std_F.tolist()],
    }


def test_all_autoreset_modes_give_the_same_statistics() -> None:
    """A rollout has episodes of 3, 4, 5 and 6 steps; with NEXT_STEP it has four more steps, which
    reset."""
    pytest.importorskip("gymnasium")
    from gymnasium.vector import AutoresetMode, SyncVectorEnv

    from ranks.rl.gymnasium.environments import GymnasiumVecEnv, from_gymnasium
    from tests.rl.environments.gymnasium_envs import CPU, counting

    def vector(ids: range, mode: Any) -> GymnasiumVecEnv:
        made = SyncVectorEnv([counting] * len(ids), autoreset_mode=mode)
        return GymnasiumVecEnv(made, ids, 0, CPU)

    ours = two_iterations(from_gymnasium(counting, 0, CPU), 18)
    for mode, n_steps in ((AutoresetMode.SAME_STEP, 18), (AutoresetMode.NEXT_STEP, 22)):
        found = two_iterations(partial(vector, mode=mode), n_steps)
        for name, numbers in ours.items():
            assert found[name] == pytest.approx(numbers, rel=1e-9), (mode, name)


class PaidReset(Walk):
    """The step after the end of an episode only resets, but has the reward `pay`."""

    def __init__(self, ids: range, pay: float) -> None:
        super().__init__(ids)
        self.pay, self.over_B = pay, torch.zeros(len(ids), dtype=torch.bool)

    def step(self, action_B: Tensor) -> Transition:
        before_B3, valid_B = self.at_B3.clone(), ~self.over_B
        transition = super().step(action_B)
        self.at_B3 = torch.where(valid_B[:, None], self.at_B3, before_B3)
        self.over_B = transition.ended_B & valid_B
        reward_B = torch.where(valid_B, transition.reward_B, self.pay)
        discount_B = torch.where(valid_B, transition.discount_B, 1.0)
        return Transition(reward_B, discount_B, self.over_B, transition.final_obs, valid_B)


def test_the_reward_of_a_reset_step_is_ignored() -> None:
    cfg, found = PPOConfig(minibatches=2, scale_rewards=True), list[Any]()
    for pay in (0.0, 99.0):
        with single_rank() as world:
            collector = Collector(StepCounter(), partial(PaidReset, pay=pay), 4, 20, cfg, world)
            rollout = collector.collect(StepCounter(), 0)
            assert rollout.weight_TB is not None
            kept_TB = rollout.weight_TB > 0
            assert not kept_TB.all()
            found.append([rollout.advantage_TB[kept_TB], collector.statistics(), float(collector.rewards.std_F)])
            found[-1].append(collector.groups[0].discounted_B)
    torch.testing.assert_close(*found, rtol=0, atol=0)


# The loss -------------------------------------------------------------------------------------------------------------

CFG = PPOConfig(epochs=1, minibatches=2, ent_coef=0.3, vf_coef=0.7)
N_STEPS, N_ENVS = 8, 12


def updated(world: World) -> dict[str, Any]:
    """The metrics of updates from a rollout in which many steps have weight 0, and the valid steps
    of each environment."""
    ids = EnvironmentIds(N_ENVS, CFG.minibatches, world)
    rollout, loss = synthetic_rollout(ids, N_STEPS), partial(ppo.ppo_loss, cfg=CFG)
    uniform_BT = rng.uniform(rng.key(7, "valid", 0), rollout.env_B, N_STEPS)
    weight_TB = (rollout.env_B < uniform_BT.T * 12).to(rollout.value_TB.dtype).contiguous()
    rollout = type(rollout)(**{**vars(rollout), "weight_TB": normalised_weights(weight_TB, ids)})
    learner = Learner(small_policy(), OptimConfig(lr=1e-9, clip_norm=None, schedule="constant"), world)
    metrics = ppo.update(learner, loss, rollout, ids, CFG, iteration=0)
    return {"metrics": metrics, "valid": ids.gather(weight_TB.T.contiguous()).sum(1).tolist()}


def test_the_logged_loss_is_its_formula_of_the_logged_terms_on_any_assignment(tmp_path: Path) -> None:
    config = RunConfig(shards=6, precision="fp64")
    (one,) = run_ranks(1, updated, config=config, tmp_path=tmp_path)
    metrics = one["metrics"]
    assert 0 == min(one["valid"]) < max(one["valid"]) == N_STEPS
    formula = CFG.vf_coef * metrics["value_loss"] + metrics["policy_loss"] - CFG.ent_coef * metrics["entropy"]
    assert metrics["loss"] == pytest.approx(formula, rel=1e-9)
    for size in (2, 3):
        for rank in run_ranks(size, updated, config=config, tmp_path=tmp_path):
            assert rank["metrics"] == pytest.approx(metrics, rel=1e-7)


def test_the_loss_of_a_whole_rollout_is_a_mean_over_valid_steps() -> None:
    """Its loss and its metrics are means over valid steps."""
    with single_rank(precision="fp64") as world:
        ids = EnvironmentIds(4, 2, world)
        part = synthetic_rollout(ids, N_STEPS)
        weight_TB = torch.ones(N_STEPS, 4)
        weight_TB[1::2, :3] = 0
        part = type(part)(**{**vars(part), "weight_TB": normalised_weights(weight_TB, ids)})
        with torch.no_grad():
            loss = ppo.ppo_loss(small_policy(), part, cfg=CFG)
    means = {name: float(pair[0] / pair[1]) for name, pair in loss.metrics.items() if isinstance(pair, tuple)}
    formula = CFG.vf_coef * means["value_loss"] + means["policy_loss"] - CFG.ent_coef * means["entropy"]
    assert float(loss.sum) / loss.count == pytest.approx(formula, rel=1e-9)
