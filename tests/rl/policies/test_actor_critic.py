"""ActorCritic: act equals unroll; initialisation; images; half precision."""

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
from ranks.rl.environments import Transition
from ranks.rl.gymnasium.spaces import action_space
from ranks.rl.policies.actor_critic import ActorCritic, NatureCNN
from ranks.rl.spaces import Space
from tests.rl.fixtures import BOX3, Walk, single_rank, small_policy

CFG = PPOConfig(minibatches=2)


@pytest.mark.parametrize("lstm_hidden", [0, 4])
def test_unroll_equals_act_step_by_step(lstm_hidden: int) -> None:
    """So the probability ratios are 1 in the first update.

    The second rollout starts inside episodes.
    """
    with single_rank(precision="fp64") as world:
        policy = small_policy(lstm_hidden)
        collector = Collector(policy, Walk, 8, 7, CFG, world)
        for iteration in range(2):
            rollout = collector.collect(policy, iteration)
            distribution, value_TB = policy.unroll(rollout.obs, rollout.start_state, rollout.first_TB)
            torch.testing.assert_close(distribution.log_prob(rollout.action_TB), rollout.logp_TB)
            torch.testing.assert_close(value_TB, rollout.value_TB)
        assert rollout.first_TB is not None
        assert not rollout.first_TB[0].all()
        if lstm_hidden:
            zero_state = {name: torch.zeros_like(rows) for name, rows in rollout.start_state.items()}
            _, other_TB = policy.unroll(rollout.obs, zero_state, rollout.first_TB)
            assert not torch.allclose(other_TB, rollout.value_TB)


def test_forward_returns_the_most_likely_action() -> None:
    policy, obs, state = small_policy(), torch.randn(5, 3), small_policy().start_state(5)
    action, value, after = policy(obs, state)
    distribution, same, _ = policy.act(obs, state)
    assert torch.equal(action, distribution.mode())
    assert torch.equal(value, same)
    assert after.keys() == state.keys()


def test_forward_clips_actions_to_their_bounds() -> None:
    space = Box(np.array([-2.0, -np.inf], np.float32), np.array([0.5, np.inf], np.float32))
    action = json.loads(json.dumps(action_space(space, "a space").to_json()))
    policy = ActorCritic({"x": {"kind": "box", "shape": [3], "sizes": []}}, action)
    with torch.no_grad():
        for bias, clipped in ((9.0, 0.5), (-9.0, -2.0)):
            policy.action_head.bias.fill_(bias)
            action_BA = policy(torch.zeros(1, 3), {})[0]
            assert action_BA[0, 0] == clipped
            assert action_BA[0, 1] == pytest.approx(bias, abs=0.5)


def test_initialisation_follows_the_37_details() -> None:
    policy = small_policy()
    for name, weight in policy.named_parameters():
        if "bias" in name:
            assert not weight.any(), name
    hidden = policy.actor[2].weight.detach()  # type: ignore[union-attr]
    torch.testing.assert_close(hidden @ hidden.T, 2.0 * torch.eye(8))
    (head,) = {round(float(row.norm()), 5) for row in policy.action_head.weight.detach()}
    assert head == 0.01
    assert float(policy.value_head.weight.detach().norm()) == pytest.approx(1.0)
    log_prob = policy.act(torch.randn(50, 3), policy.start_state(50))[0].log_prob(torch.zeros(50))
    torch.testing.assert_close(log_prob.exp(), torch.full((50,), 1 / 3), atol=0.01, rtol=0)


@pytest.mark.parametrize(
    ("size", "layers"), [((84, 84, 4), 3), ((36, 20, 3), 2), ((10, 10, 1), 1), ((5, 40, 3), 1), ((2, 40, 3), 0)]
)
def test_convolutions_that_do_not_fit_an_image_are_omitted(size: tuple[int, int, int], layers: int) -> None:
    pixels = NatureCNN(size, "HWC", 6)
    assert sum(isinstance(layer, nn.Conv2d) for layer in pixels.layers) == layers
    images = torch.randint(256, (2, 3, *size), dtype=torch.uint8)
    assert pixels(images).shape == (2, 3, 6)
    torch.testing.assert_close(pixels(images)[1, 2], pixels(images[1, 2]))


def test_image_layouts_give_the_same_features_and_white_is_1() -> None:
    last, first = NatureCNN((20, 24, 3), "HWC", 6), NatureCNN((3, 20, 24), "CHW", 6)
    first.load_state_dict(last.state_dict())
    images = torch.randint(256, (2, 5, 20, 24, 3), dtype=torch.uint8)
    torch.testing.assert_close(first(images.movedim(-1, -3)), last(images))
    white = torch.full((1, 20, 24, 3), 255, dtype=torch.uint8)
    torch.testing.assert_close(last(white), last.layers(torch.ones(1, 3, 20, 24)))
    flat, deep = NatureCNN((20, 24), "HW", 6), NatureCNN((20, 24, 1), "HWC", 6)
    flat.load_state_dict(deep.state_dict())
    torch.testing.assert_close(flat(images[..., 0]), deep(images[..., :1]))


def test_only_boxes_are_normalised() -> None:
    spaces = {
        "a": Space("box", (2,)).to_json(),
        "kind": Space("discrete", sizes=(3,)).to_json(),
        "b": Space("box").to_json(),
    }
    encoder = ActorCritic(spaces, Space("box", (2,)).to_json(), 4).encoder
    obs = {"a": torch.tensor([[5.0, 6.0]]), "kind": torch.tensor([2]), "b": torch.tensor([7.0])}
    assert encoder.box_features(obs).tolist() == [[5, 6, 7]]
    encoder.normaliser.mean_F += torch.tensor([5.0, 5.0, 5.0])
    assert encoder(obs).tolist() == [[0, 0, 1, 0, 1, 2]]
    assert encoder.num_features == 6


@pytest.mark.parametrize("lstm_hidden", [0, 4])
def test_in_half_precision_probabilities_are_float32(lstm_hidden: int) -> None:
    with single_rank(precision="bf16") as world:
        policy = ActorCritic(BOX3, Space("box", (2,)).to_json(), 8, lstm_hidden)
        collector = Collector(policy, Still, 4, 3, CFG, world)
        rollout = collector.collect(policy, 0)
        again = collector.collect(policy, 1)
    tensors: list[Tensor] = [rollout.logp_TB, rollout.value_TB, rollout.advantage_TB, rollout.action_TB]
    assert {tensor.dtype for tensor in tensors} == {torch.float32}
    assert {rows.dtype for rows in again.start_state.values()} <= {torch.float32}
    assert math.isfinite(float(again.return_TB.sum()))


class Still(Walk):
    """Actions have no effect."""

    def step(self, action_B: Tensor) -> Transition:
        return super().step(torch.ones(len(action_B)))
