"""Observation and action spaces of gymnasium: those that are supported, and the messages for the
others."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from ranks import UserError
from ranks.rl.collector import Collector
from ranks.rl.config import PPOConfig
from ranks.rl.policies.distributions import DiagonalGaussian
from ranks.rl.ppo import ppo_loss
from ranks.rl.rollouts.rollout import Rollout
from ranks.rl.spaces import Space
from tests.rl.fixtures import single_rank

gymnasium = pytest.importorskip("gymnasium")
import numpy as np  # noqa: E402
from gymnasium import spaces  # noqa: E402

from ranks.rl.gymnasium.env_pools import InProcessEnvs  # noqa: E402
from ranks.rl.gymnasium.environments import ReplayedVecEnv, from_gymnasium, make_env  # noqa: E402
from ranks.rl.gymnasium.spaces import action_space, observation_spaces, to_tensors  # noqa: E402
from tests.rl.environments.gymnasium_envs import (  # noqa: E402
    ACTION_SPACES,
    BOX,
    CPU,
    IMAGE,
    INF,
    Game,
    RandomObservations,
    policy_of,
)

OBSERVATION_SPACES: dict[str, tuple[Any, dict[str, tuple[Space, tuple[int, ...], torch.dtype]]]] = {
    "box": (BOX, {"observation": (Space("box", (3,)), (3,), torch.float32)}),
    "scalar": (spaces.Box(-1, 1, ()), {"observation": (Space("box", ()), (), torch.float32)}),
    "matrix": (spaces.Box(0, 9, (2, 3), np.int32), {"observation": (Space("box", (2, 3)), (2, 3), torch.int64)}),
    "image": (IMAGE, {"observation": (Space("image", (12, 10, 3)), (12, 10, 3), torch.uint8)}),
    "frames": (
        spaces.Box(0, 255, (4, 84, 84), np.uint8),
        {"observation": (Space("image", (4, 84, 84), dims="CHW"), (4, 84, 84), torch.uint8)},
    ),
    "one channel": (
        spaces.Box(0, 255, (20, 16), np.uint8),
        {"observation": (Space("image", (20, 16), dims="HW"), (20, 16), torch.uint8)},
    ),
    "board": (spaces.Box(0, 2, (8, 8), np.uint8), {"observation": (Space("box", (8, 8)), (8, 8), torch.uint8)}),
    "bytes": (spaces.Box(0, 255, (4,), np.uint8), {"observation": (Space("box", (4,)), (4,), torch.uint8)}),
    "discrete": (spaces.Discrete(4), {"observation": (Space("discrete", sizes=(4,)), (), torch.int64)}),
    "multi-discrete": (
        spaces.MultiDiscrete([2, 5]),
        {"observation": (Space("multi-discrete", sizes=(2, 5)), (2,), torch.int64)},
    ),
    "multi-binary": (spaces.MultiBinary(3), {"observation": (Space("multi-binary", sizes=(3,)), (3,), torch.int64)}),
    "dict": (
        spaces.Dict({"items": IMAGE, "goal": spaces.Dict({"observation": BOX, "kind": spaces.Discrete(2)})}),
        {
            "items": (Space("image", (12, 10, 3)), (12, 10, 3), torch.uint8),
            "goal.observation": (Space("box", (3,)), (3,), torch.float32),
            "goal.kind": (Space("discrete", sizes=(2,)), (), torch.int64),
        },
    ),
    "tuple": (
        spaces.Tuple((BOX, spaces.MultiBinary(2))),
        {
            "0": (Space("box", (3,)), (3,), torch.float32),
            "1": (Space("multi-binary", sizes=(2,)), (2,), torch.int64),
        },
    ),
}


def learn_in(env: Any) -> Rollout:
    """Collect a rollout with an ActorCritic and compute finite gradients from it."""
    cfg = PPOConfig(minibatches=2)
    with single_rank() as world:
        policy = policy_of(env(), lstm_hidden=3)
        rollout = Collector(policy, from_gymnasium(env, 0, CPU), 4, 7, cfg, world).collect(policy, 0)
        loss = ppo_loss(policy, rollout, cfg=cfg)
    loss.sum.backward()
    for name, parameter in policy.named_parameters():
        assert parameter.grad is None or bool(torch.isfinite(parameter.grad).all()), name
        assert parameter.grad is not None or parameter.numel() == 0, name
    return rollout


@pytest.mark.parametrize("name", OBSERVATION_SPACES)
def test_supported_observation_spaces(name: str) -> None:
    space, expected = OBSERVATION_SPACES[name]
    assert observation_spaces(space, "the test") == {part: found for part, (found, _, _) in expected.items()}
    rollout = learn_in(partial(RandomObservations, space, spaces.Discrete(2)))
    observed = {"observation": rollout.obs} if isinstance(rollout.obs, Tensor) else rollout.obs
    assert {part: (tuple(leaf.shape), leaf.dtype) for part, leaf in observed.items()} == {
        part: ((7, 4, *shape), dtype) for part, (_, shape, dtype) in expected.items()
    }
    batch = gymnasium.vector.utils.batch_space(space, 2).sample()
    tree = to_tensors(batch, CPU)
    leaves = [tree] if isinstance(tree, Tensor) else tree.values()
    assert [leaf.tolist() for leaf in leaves] == [array.tolist() for array in arrays(batch)]


def arrays(observation: Any) -> list[Any]:
    if isinstance(observation, dict | tuple):
        parts = observation.values() if isinstance(observation, dict) else observation
        return [array for part in parts for array in arrays(part)]
    return [observation]


@pytest.mark.parametrize("name", ACTION_SPACES)
def test_supported_action_spaces(name: str) -> None:
    """`RandomObservations` itself asserts that an action is in its space."""
    space, shape = ACTION_SPACES[name]
    assert learn_in(partial(RandomObservations, BOX, space)).action_TB.shape == (7, 4, *shape)


@pytest.mark.parametrize(
    "space",
    [
        spaces.Text(4),
        spaces.Sequence(BOX),
        spaces.Discrete(3, start=1),
        spaces.MultiDiscrete([2, 2], start=[1, 0]),
        spaces.MultiBinary((2, 2)),
        spaces.Dict({"fine": BOX, "not": spaces.Graph(BOX, None)}),
    ],
    ids=lambda space: type(space).__name__,
)
def test_unsupported_observation_spaces_are_rejected(space: Any) -> None:
    with pytest.raises(UserError, match=r"asked: the environment X\nfound: the space .*\n   do: convert it to Box"):
        observation_spaces(space, "the environment X")


def test_stacked_images_and_duplicate_names_are_rejected() -> None:
    with pytest.raises(UserError, match=r"\(4, 84, 84, 3\), as of several images\n   do: stack the frames"):
        observation_spaces(spaces.Box(0, 255, (4, 84, 84, 3), np.uint8), "the environment X")
    twice = spaces.Dict({"a.b": spaces.Discrete(2), "a": spaces.Dict({"b": spaces.Discrete(5)})})
    with pytest.raises(UserError, match=r"two parts of its observation are called a\.b"):
        observation_spaces(twice, "the environment X")


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (spaces.Box(-1, 1, (2, 2)), r"shape \(2, 2\)"),
        (spaces.Box(-1, 1, ()), r"shape \(\)"),
        (spaces.Box(-1, 1, (0,)), r"shape \(0,\)"),
        (IMAGE, "use MultiDiscrete"),
        (spaces.Box(-5, 5, (2,), np.int32), "use MultiDiscrete"),
        (spaces.Dict({"a": BOX}), "convert it"),
    ],
)
def test_unsupported_action_spaces_are_rejected(space: Any, message: str) -> None:
    with pytest.raises(UserError, match=f"(?s)asked: the environment X.*{message}"):
        action_space(space, "the environment X")


@pytest.mark.parametrize(("bound", "far"), [(0.01, True), (0.5, False), (10, False), (255, True), (INF, False)])
def test_action_bounds_far_from_1_warn(bound: float, far: bool) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action_space(spaces.Box(np.array([-1, -bound], np.float32), np.array([1, bound], np.float32)), "X")
    assert ["action 1" in str(line.message) and "RescaleAction" in str(line.message) for line in caught] == [True] * far


def test_actions_are_clipped_for_the_environment_and_keep_the_log_prob_of_the_sample() -> None:
    env = partial(Game, spaces.Box(-0.25, 0.5, (2,), np.float32))
    with single_rank() as world:
        policy = policy_of(env())
        collector = Collector(policy, from_gymnasium(env, 0, CPU), 4, 6, PPOConfig(minibatches=2), world)
        rollout = collector.collect(policy, 0)
        (group,) = collector.groups
        distribution, _ = policy.unroll(rollout.obs, {}, rollout.first_TB)
    assert isinstance(group.environment, ReplayedVecEnv)
    assert isinstance(group.environment.pool, InProcessEnvs)
    games: list[Any] = [single.env for single in group.environment.pool.envs]
    executed_TBA = torch.tensor(np.stack([game.actions for game in games], 1))
    assert float(rollout.action_TB.min()) < -0.25 < 0.5 < float(rollout.action_TB.max())
    assert torch.equal(executed_TBA, rollout.action_TB.clamp(-0.25, 0.5))
    assert isinstance(distribution, DiagonalGaussian)
    torch.testing.assert_close(rollout.logp_TB, distribution.log_prob(rollout.action_TB))
    assert not torch.allclose(rollout.logp_TB, distribution.log_prob(executed_TBA))


@pytest.mark.parametrize("name", ["NoSuch-v0", "CartPole-v99", "no_such_module:Env-v0", "what is this"])
def test_an_unknown_environment_id_is_rejected(name: str) -> None:
    with pytest.raises(UserError) as caught:
        make_env(name)
    assert caught.value.asked == f"the environment {name}"
    assert len(str(caught.value).splitlines()) == 3
