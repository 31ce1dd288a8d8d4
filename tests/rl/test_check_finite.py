"""NaN and infinity from an environment end the run with the environment, the value and the step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ranks import RunConfig, UserError, World
from ranks.rl.collector import Collector
from ranks.rl.config import PPOConfig
from ranks.rl.environments import Transition
from ranks.rl.policies.distributions import Categorical
from ranks.rl.pytree import State
from tests.engine.group import run_ranks
from tests.rl.fixtures import Walk, single_rank

N_STEPS = 6
NAN, INF = float("nan"), float("inf")


class NonFinite(Walk):
    """One value of environment 5 is `number`: at step 4 the observation, or at step 3 the reward or
    final observation.

    An episode of environment 5 ends with step 3: truncated if `truncated`, else terminated. `part`:
    which value.
    """

    def __init__(self, ids: range, part: str, number: float, truncated: bool = True) -> None:
        super().__init__(ids)
        self.part, self.number, self.truncated, self.steps = part, number, truncated, 0

    def replace_number(self, part: str, rows: Tensor) -> Tensor:
        rows, chosen_B = rows.clone(), self.id_B == 5
        if part == self.part and self.steps == 4:
            rows[chosen_B] = self.number
        return rows

    def observe(self) -> dict[str, Tensor]:  # type: ignore[override]
        kind_B = torch.full((len(self.id_B),), 2**40)  # integers are not checked
        return {"place": self.replace_number("observation place", super().observe()), "kind": kind_B}

    def step(self, action_B: Tensor) -> Transition:
        transition = super().step(action_B)
        self.steps += 1
        reward_B = self.replace_number("reward", transition.reward_B)
        if self.steps != 4:
            return replace(transition, reward_B=reward_B, final_obs=None)
        ended_B = self.id_B == 5
        discount_B = torch.where(ended_B & (not self.truncated), 0.0, 1.0)
        last = {"place": self.replace_number("last observation place", self.at_B3), "kind": torch.zeros_like(self.id_B)}
        return Transition(reward_B, discount_B, ended_B, last)


class Uniform(nn.Module):
    """Uniform actions; the value is the sum of the observation."""

    def start_state(self, num_rows: int) -> State:
        return {}

    def act(self, obs: Mapping[str, Tensor], state: State) -> tuple[Categorical, Tensor, State]:
        return Categorical.from_logits(torch.zeros(len(obs["place"]), 3)), obs["place"].sum(-1), {}

    def unroll(self, obs: Mapping[str, Tensor], state: State, first_TB: Tensor | None) -> tuple[Categorical, Tensor]:
        raise NotImplementedError


def collector_of(world: World, part: str, number: float, n_steps: int = N_STEPS, truncated: bool = True) -> Collector:
    cfg = PPOConfig(minibatches=2, scale_rewards=True)
    return Collector(
        Uniform(), partial(NonFinite, part=part, number=number, truncated=truncated), 8, n_steps, cfg, world
    )


@pytest.mark.parametrize("number", [NAN, INF, -INF])
@pytest.mark.parametrize(
    ("part", "step"), [("reward", 3), ("observation place", 4), ("last observation place", 3), ("nothing", 0)]
)
def test_a_non_finite_number_is_named_and_reaches_no_statistics(part: str, step: int, number: float) -> None:
    with single_rank() as world:
        collector = collector_of(world, part, number)
        if part == "nothing":
            collector.collect(Uniform(), 7)
            assert collector.rewards.count == 8 * N_STEPS
            return
        with pytest.raises(UserError) as caught:
            collector.collect(Uniform(), 7)
        assert caught.value.asked == "to learn from environment 5"
        assert caught.value.found == f"its {part} at step {step} of iteration 7 is not finite"
        assert collector.rewards.state_dict()["count"] == 0


def test_the_observation_after_the_last_step_is_checked() -> None:
    """Its value is the bootstrap of the last step."""
    with single_rank() as world, pytest.raises(UserError, match="its observation place at step 4 of iteration 0"):
        collector_of(world, "observation place", NAN, n_steps=4).collect(Uniform(), 0)


def test_the_last_observation_of_a_terminated_episode_is_not_checked() -> None:
    with single_rank() as world:
        rollout = collector_of(world, "last observation place", NAN, truncated=False).collect(Uniform(), 0)
    assert rollout.next_value_TB[3, 5].isnan()
    assert rollout.advantage_TB.isfinite().all()


def error_of(world: World) -> dict[str, Any]:
    with pytest.raises(UserError) as caught:
        collector_of(world, "reward", NAN).collect(Uniform(), 0)
    return {"asked": caught.value.asked, "found": caught.value.found}


@pytest.mark.parametrize("exact", [False, True], ids=["fast", "exact"])
def test_every_rank_raises_the_same_error(exact: bool, tmp_path: Path) -> None:
    config = RunConfig(shards=4, exact=exact)
    errors = run_ranks(2, error_of, config=config, tmp_path=tmp_path)
    found = "its reward at step 3 of iteration 0 is not finite"
    assert errors == [{"asked": "to learn from environment 5", "found": found}] * 2
