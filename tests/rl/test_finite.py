"""A number that is not finite is refused where it comes in, by its environment, part and step; nothing keeps it."""

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
from ranks.rl.distributions import Categorical
from ranks.rl.pytree import State
from tests.engine.group import run_ranks
from tests.rl.known import Walk, alone

HORIZON = 6
NAN, INF = float("nan"), float("inf")


class Spoilt(Walk):
    """What environment 5 shows at step 4, brings with it, or shows last of an episode that ends with it, is `number`;
    an episode of environment 5 ends with step 3."""

    def __init__(self, ids: range, part: str, number: float, cut: bool = True) -> None:
        super().__init__(ids)
        self.part, self.number, self.cut, self.steps = part, number, cut, 0

    def spoil(self, part: str, rows: Tensor) -> Tensor:
        rows, hit_B = rows.clone(), self.id_B == 5
        if part == self.part and self.steps == 4:
            rows[hit_B] = self.number
        return rows

    def observe(self) -> dict[str, Tensor]:  # type: ignore[override]
        kind_B = torch.full((len(self.id_B),), 2**40)  # a whole number, whatever it is
        return {"place": self.spoil("observation place", super().observe()), "kind": kind_B}

    def step(self, action_B: Tensor) -> Transition:
        moved = super().step(action_B)
        self.steps += 1
        reward_B = self.spoil("reward", moved.reward_B)
        if self.steps != 4:
            return replace(moved, reward_B=reward_B, final_obs=None)
        ended_B = self.id_B == 5
        discount_B = torch.where(ended_B & (not self.cut), 0.0, 1.0)
        last = {"place": self.spoil("last observation place", self.at_B3), "kind": torch.zeros_like(self.id_B)}
        return Transition(reward_B, discount_B, ended_B, last)


class Even(nn.Module):
    """Draws evenly, and values what it sees."""

    def start_state(self, num_rows: int) -> State:
        return {}

    def act(self, obs: Mapping[str, Tensor], state: State) -> tuple[Categorical, Tensor, State]:
        return Categorical.from_logits(torch.zeros(len(obs["place"]), 3)), obs["place"].sum(-1), {}


def collector_of(world: World, part: str, number: float, horizon: int = HORIZON, cut: bool = True) -> Collector:
    cfg = PPOConfig(minibatches=2, scale_rewards=True)
    return Collector(Even(), partial(Spoilt, part=part, number=number, cut=cut), 8, horizon, cfg, world)


@pytest.mark.parametrize("number", [NAN, INF, -INF])
@pytest.mark.parametrize(
    ("part", "step"), [("reward", 3), ("observation place", 4), ("last observation place", 3), ("nothing", 0)]
)
def test_it_is_named_and_reaches_no_statistics(part: str, step: int, number: float) -> None:
    with alone() as world:
        collector = collector_of(world, part, number)
        if part == "nothing":
            collector.collect(Even(), 7)
            assert collector.rewards.count == 8 * HORIZON
            return
        with pytest.raises(UserError) as refused:
            collector.collect(Even(), 7)
        assert refused.value.asked == "to learn from environment 5"
        assert refused.value.found == f"its {part} at step {step} of iteration 7 is not finite"
        assert collector.rewards.state_dict()["count"] == 0


def test_so_is_the_observation_after_the_last_step() -> None:
    """It is learned from too: its value is the last step's bootstrap."""
    with alone() as world, pytest.raises(UserError, match="its observation place at step 4 of iteration 0"):
        collector_of(world, "observation place", NAN, horizon=4).collect(Even(), 0)


def test_what_a_terminated_episode_shows_last_may_be_any_number() -> None:
    with alone() as world:
        rollout = collector_of(world, "last observation place", NAN, cut=False).collect(Even(), 0)
    assert rollout.next_value_TB[3, 5].isnan()
    assert rollout.advantage_TB.isfinite().all()


def refusal_of(world: World) -> dict[str, Any]:
    with pytest.raises(UserError) as refused:
        collector_of(world, "reward", NAN).collect(Even(), 0)
    return {"asked": refused.value.asked, "found": refused.value.found}


@pytest.mark.parametrize("exact", [False, True], ids=["fast", "exact"])
def test_every_rank_refuses_it_alike(exact: bool, tmp_path: Path) -> None:
    config = RunConfig(shards=4, exact=exact)
    told = run_ranks(2, refusal_of, config=config, tmp_path=tmp_path)
    found = "its reward at step 3 of iteration 0 is not finite"
    assert told == [{"asked": "to learn from environment 5", "found": found}] * 2
