"""The policy for any environment: one step and whole sequences agree, as it is initialised, in half precision."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box
from torch import Tensor, nn

from ranks.rl.collector import Collector
from ranks.rl.config import PPOConfig
from ranks.rl.gymnasium.spaces import action_space
from ranks.rl.policies.actor_critic import ActorCritic, Pixels
from ranks.rl.spaces import Space
from tests.rl.known import BOX3, Walk, alone, walker

CFG = PPOConfig(minibatches=2)


@pytest.mark.parametrize("memory", [0, 4])
def test_what_acting_said_step_by_step_whole_sequences_say_again(memory: int) -> None:
    """So the first update from a rollout sees ratios of 1; the second rollout begins inside of episodes."""
    with alone(precision="fp64") as world:
        policy = walker(memory)
        collector = Collector(policy, Walk, 8, 7, CFG, world)
        for iteration in range(2):
            rollout = collector.collect(policy, iteration)
            distribution, value_TB = policy.unroll(rollout.obs, rollout.start_state, rollout.first_TB)
            torch.testing.assert_close(distribution.log_prob(rollout.action_TB), rollout.logp_TB)
            torch.testing.assert_close(value_TB, rollout.value_TB)
        assert rollout.first_TB is not None
        assert not rollout.first_TB[0].all()
        if memory:
            forgetful = {name: torch.zeros_like(rows) for name, rows in rollout.start_state.items()}
            _, other_TB = policy.unroll(rollout.obs, forgetful, rollout.first_TB)
            assert not torch.allclose(other_TB, rollout.value_TB)


def test_forward_gives_the_likeliest_action_for_use_elsewhere() -> None:
    policy, obs, state = walker(), torch.randn(5, 3), walker().start_state(5)
    action, value, after = policy(obs, state)
    distribution, same, _ = policy.act(obs, state)
    assert torch.equal(action, distribution.mode())
    assert torch.equal(value, same)
    assert after.keys() == state.keys()


def test_elsewhere_an_action_keeps_to_its_bounds_and_has_none_where_there_is_none() -> None:
    space = Box(np.array([-2.0, -np.inf], np.float32), np.array([0.5, np.inf], np.float32))
    action = json.loads(json.dumps(action_space(space, "a space").to_json()))
    policy = ActorCritic({"x": {"kind": "box", "shape": [3], "sizes": []}}, action)
    with torch.no_grad():
        for bias, held in ((9.0, 0.5), (-9.0, -2.0)):
            policy.action_head.bias.fill_(bias)
            taken_BA = policy(torch.zeros(1, 3), {})[0]
            assert taken_BA[0, 0] == held
            assert taken_BA[0, 1] == pytest.approx(bias, abs=0.5)


def test_it_begins_as_the_37_details_say() -> None:
    policy = walker()
    for name, weight in policy.named_parameters():
        if "bias" in name:
            assert not weight.any(), name
    hidden = policy.actor[2].weight.detach()  # type: ignore[index, union-attr]
    torch.testing.assert_close(hidden @ hidden.T, 2.0 * torch.eye(8))
    (head,) = {round(float(row.norm()), 5) for row in policy.action_head.weight.detach()}
    assert head == 0.01
    assert float(policy.value_head.weight.detach().norm()) == pytest.approx(1.0)
    log_prob = policy.act(torch.randn(50, 3), policy.start_state(50))[0].log_prob(torch.zeros(50))
    torch.testing.assert_close(log_prob.exp(), torch.full((50,), 1 / 3), atol=0.01, rtol=0)


@pytest.mark.parametrize(
    ("size", "layers"), [((84, 84, 4), 3), ((36, 20, 3), 2), ((10, 10, 1), 1), ((5, 40, 3), 1), ((2, 40, 3), 0)]
)
def test_an_image_passes_as_many_convolutions_as_it_is_large_enough_for(
    size: tuple[int, int, int], layers: int
) -> None:
    pixels = Pixels(size, "HWC", 6)
    assert sum(isinstance(layer, nn.Conv2d) for layer in pixels.layers) == layers
    shown = torch.randint(256, (2, 3, *size), dtype=torch.uint8)
    assert pixels(shown).shape == (2, 3, 6)
    torch.testing.assert_close(pixels(shown)[1, 2], pixels(shown[1, 2]))


def test_however_an_image_is_laid_out_the_same_is_seen_and_white_is_1() -> None:
    last, first = Pixels((20, 24, 3), "HWC", 6), Pixels((3, 20, 24), "CHW", 6)
    first.load_state_dict(last.state_dict())
    shown = torch.randint(256, (2, 5, 20, 24, 3), dtype=torch.uint8)
    torch.testing.assert_close(first(shown.movedim(-1, -3)), last(shown))
    white = torch.full((1, 20, 24, 3), 255, dtype=torch.uint8)
    torch.testing.assert_close(last(white), last.layers(torch.ones(1, 3, 20, 24)))
    flat, deep = Pixels((20, 24), "HW", 6), Pixels((20, 24, 1), "HWC", 6)
    flat.load_state_dict(deep.state_dict())
    torch.testing.assert_close(flat(shown[..., 0]), deep(shown[..., :1]))


def test_of_an_observation_only_boxes_are_normalised() -> None:
    spaces = {"a": Space("box", (2,)).to_json(), "kind": Space("discrete", sizes=(3,)).to_json(), "b": Space("box").to_json()}
    encoder = ActorCritic(spaces, Space("box", (2,)).to_json(), 4).encoder
    obs = {"a": torch.tensor([[5.0, 6.0]]), "kind": torch.tensor([2]), "b": torch.tensor([7.0])}
    assert encoder.numbers(obs).tolist() == [[5, 6, 7]]
    encoder.normaliser.mean_F += torch.tensor([5.0, 5.0, 5.0])
    assert encoder(obs).tolist() == [[0, 0, 1, 0, 1, 2]]
    assert encoder.num_features == 6


@pytest.mark.parametrize("memory", [0, 4])
def test_in_half_precision_probabilities_stay_wide(memory: int) -> None:
    with alone(precision="bf16") as world:
        policy = ActorCritic(BOX3, Space("box", (2,)).to_json(), 8, memory)
        collector = Collector(policy, Still, 4, 3, CFG, world)
        rollout = collector.collect(policy, 0)
        again = collector.collect(policy, 1)
    wide: list[Tensor] = [rollout.logp_TB, rollout.value_TB, rollout.advantage_TB, rollout.action_TB]
    assert {tensor.dtype for tensor in wide} == {torch.float32}
    assert {rows.dtype for rows in again.start_state.values()} <= {torch.float32}
    assert math.isfinite(float(again.return_TB.sum()))


class Still(Walk):
    """Any action leaves it where it is."""

    def step(self, action_B: Tensor) -> object:  # type: ignore[override]
        return super().step(torch.ones(len(action_B)))
