"""Small environments, policies and rollouts whose behaviour the tests can compute by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from ranks import Loss, RunConfig, World, rng
from ranks.engine.state import fingerprint, split_state
from ranks.rl.collector import Collector
from ranks.rl.config import PPOConfig
from ranks.rl.environments import EnvironmentIds, MakeVecEnv, Transition
from ranks.rl.policies.actor_critic import ActorCritic
from ranks.rl.policies.distributions import Categorical
from ranks.rl.policies.policy import Policy
from ranks.rl.ppo import ppo_loss
from ranks.rl.pytree import State
from ranks.rl.rollouts.rollout import Rollout
from ranks.rl.spaces import Space

BOX3 = {"observation": Space("box", (3,)).to_json()}


@contextmanager
def single_rank(**settings: Any) -> Iterator[World]:
    """A `World` of one rank in this process; the default dtype is float32 again afterwards."""
    world = World.join(RunConfig(threads=1, **settings), device="cpu", workload="test")
    try:
        yield world
    finally:
        world.leave()
        torch.set_default_dtype(torch.float32)


class Walk:
    """Environments on a line: actions 0, 1, 2 move by -1, 0, +1, and the position is the reward.

    An observation is (position, steps of the episode, number of the episode). Episode n of
    environment e has 3 + (e + n) % 4 steps. If e + n is odd it is truncated, otherwise it
    terminates.
    """

    episode_steps = None

    def __init__(self, ids: range) -> None:
        self.id_B, self.at_B3 = torch.tensor(ids), torch.zeros(len(ids), 3)

    def observe(self) -> Tensor:
        return self.at_B3.clone()

    def step(self, action_B: Tensor) -> Transition:
        self.at_B3[:, 0] += action_B - 1
        self.at_B3[:, 1] += 1
        position_B, step_B, episode_B = self.at_B3.clone().unbind(1)
        turn_B = self.id_B + episode_B
        ended_B = step_B >= 3 + turn_B % 4
        truncated_B = ended_B & (turn_B % 2 == 1)
        final_B3 = self.at_B3.clone()
        self.at_B3[ended_B] = torch.stack([0 * position_B, 0 * position_B, episode_B + 1], 1)[ended_B]
        return Transition(
            position_B, 1.0 - (ended_B & ~truncated_B).float(), ended_B, final_B3 if truncated_B.any() else None
        )

    def state_dict(self) -> dict[str, Tensor]:
        return {"at_B3": self.at_B3}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self.at_B3 = state["at_B3"].clone()

    def close(self) -> None:
        pass


class StepCounter(nn.Module):
    """A policy with uniform actions and the value 100 n + obs[0], where its recurrent state n
    counts its steps."""

    def __init__(self, num_actions: int = 3) -> None:
        super().__init__()
        self.num_actions = num_actions

    def start_state(self, num_rows: int) -> State:
        return {"n": torch.zeros(num_rows, 1)}

    def act(self, obs: Tensor, state: State) -> tuple[Categorical, Tensor, State]:
        logits_BK = torch.zeros(len(obs), self.num_actions)
        return Categorical.from_logits(logits_BK), 100 * state["n"][:, 0] + obs[:, 0], {"n": state["n"] + 1}

    def unroll(self, obs: Tensor, state: State, first_TB: Tensor | None) -> tuple[Categorical, Tensor]:
        raise NotImplementedError


def small_policy(lstm_hidden: int = 4) -> ActorCritic:
    """An `ActorCritic` with the same weights each time; with an LSTM unless `lstm_hidden` is 0."""
    torch.manual_seed(3)
    return ActorCritic(BOX3, Space("discrete", sizes=(3,)).to_json(), hidden=8, lstm_hidden=lstm_hidden)


def synthetic_rollout(ids: EnvironmentIds, n_steps: int, lstm_hidden: int = 4, log_ratio: float = 0.0) -> Rollout:
    """A random rollout for `small_policy`; the bits of a column are a function of its environment
    id.

    Log-probabilities of the second half of all environments are larger by `log_ratio`.
    """
    env_B, dtype = torch.tensor(ids.local), torch.get_default_dtype()
    u_BTK = rng.uniform(rng.key(7, "sham", 0), env_B, n_steps * 12).view(len(env_B), n_steps, 12)
    u_TBK = (u_BTK.transpose(0, 1) - 0.5).to(dtype).contiguous()
    ended_TB = u_TBK[..., 0] > 0.3
    state_BLH = rng.uniform(rng.key(7, "state", 0), env_B, lstm_hidden).to(dtype).view(len(env_B), 1, lstm_hidden)
    second_B = (env_B >= ids.num_blocks * ids.block // 2).to(dtype)
    return Rollout(
        env_B=env_B,
        start_state={"h": state_BLH, "c": -state_BLH} if lstm_hidden else {},
        obs=u_TBK[..., 1:4],
        first_TB=torch.cat([u_TBK[:1, :, 4] > 0, ended_TB[:-1]]),
        action_TB=((u_TBK[..., 5] + 0.5) * 3).long(),
        logp_TB=u_TBK[..., 6] * 0.2 - 1.1 + log_ratio * second_B,
        value_TB=u_TBK[..., 7],
        next_value_TB=u_TBK[..., 8],
        reward_TB=u_TBK[..., 9],
        discount_TB=torch.ones_like(u_TBK[..., 0]),
        ended_TB=ended_TB,
        weight_TB=None,
        advantage_TB=u_TBK[..., 10] + env_B * 0.1,
        return_TB=u_TBK[..., 11],
    )


@dataclass
class RecordingLoss:
    """`ppo_loss` that records each call: its mean, and (environment id, advantages) of each column
    it was given."""

    cfg: PPOConfig
    calls: list[list[tuple[int, list[float]]]] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)

    def __call__(self, policy: ActorCritic, part: Rollout) -> Loss:
        self.calls.append(list(zip(part.env_B.tolist(), part.advantage_TB.T.tolist(), strict=True)))
        loss = ppo_loss(policy, part, cfg=self.cfg)
        self.losses.append(float(loss.sum.detach()) / loss.count)
        return loss


# Collecting on several ranks, and across checkpoints ------------------------------------------------------------------

Scenario = Callable[[World], tuple[Policy, MakeVecEnv]]
N_ENVS = 12


def column_hashes(rollout: Rollout) -> dict[int, str]:
    """By environment id: a hash of all values of its column."""
    out: dict[int, str] = {}
    for column, env in enumerate(rollout.env_B.tolist()):
        one = rollout.select(torch.tensor([column]))
        tensors, _ = split_state({name: value for name, value in vars(one).items() if value is not None})
        out[env] = fingerprint(tensors, {})
    return out


def run_collector(
    world: World, scenario: Scenario, path: str, begin: int, save: int | None, end: int
) -> dict[str, Any]:
    """Collect in iterations `begin` to `end - 1` and return column hashes, statistics, and a
    fingerprint of the state.

    It loads the checkpoint `path` unless `begin` is 0, and writes it before iteration `save`.
    """
    policy, make = scenario(world)
    cfg = PPOConfig(minibatches=2, gamma=0.9, scale_rewards=True)
    collector = Collector(policy, make, N_ENVS, 8, cfg, world)
    if begin:
        collector.load_state_dict(torch.load(path, weights_only=True))
    result: dict[str, Any] = {}
    for iteration in range(begin, end):
        if iteration == save:
            state = collector.state_dict()
            if world.rank == 0:
                torch.save(state, path)
        result[f"columns {iteration}"] = column_hashes(collector.collect(policy, iteration))
        result[f"episodes {iteration}"] = collector.statistics()
    result["state"] = fingerprint(*split_state(collector.state_dict()))
    return result


def merge_ranks(ranks: list[dict[str, Any]]) -> dict[str, Any]:
    """Merge the results of all ranks: columns of different environments; everything else must be
    equal."""
    out = dict(ranks[0])
    for name in out:
        if name.startswith("columns"):
            out[name] = {env: column for rank in ranks for env, column in rank[name].items()}
            assert sum(len(rank[name]) for rank in ranks) == len(out[name]) == len(set(out[name].values())) == N_ENVS
        else:
            assert all(rank[name] == out[name] for rank in ranks), name
    return out
