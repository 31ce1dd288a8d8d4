"""Small environments, policies and rollouts, of which it is known what they do."""

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
from ranks.rl.environments import EnvironmentIds, MakeEnvironment, Transition
from ranks.rl.policies.actor_critic import ActorCritic
from ranks.rl.policies.distributions import Categorical
from ranks.rl.policy import Policy
from ranks.rl.ppo import ppo_loss
from ranks.rl.pytree import State
from ranks.rl.rollout import Rollout
from ranks.rl.spaces import Space

BOX3 = {"observation": Space("box", (3,)).plain()}


@contextmanager
def alone(**settings: Any) -> Iterator[World]:
    """A world of one rank in this process; float32 is the default again after it."""
    world = World.join(RunConfig(threads=1, **settings), device="cpu", workload="test")
    try:
        yield world
    finally:
        world.leave()
        torch.set_default_dtype(torch.float32)


class Walk:
    """Environments on a line: actions 0, 1, 2 step to -1, 0, +1, and the place is the reward. They show place, steps
    and number of the episode. Episode n of environment e has 3 + (e + n) % 4 steps; where e + n is odd it is cut off,
    else it ends in a terminal state."""

    episode_steps = None

    def __init__(self, ids: range) -> None:
        self.id_B, self.at_B3 = torch.tensor(ids), torch.zeros(len(ids), 3)

    def observe(self) -> Tensor:
        return self.at_B3.clone()

    def step(self, action_B: Tensor) -> Transition:
        self.at_B3[:, 0] += action_B - 1
        self.at_B3[:, 1] += 1
        place_B, step_B, episode_B = self.at_B3.clone().unbind(1)
        turn_B = self.id_B + episode_B
        ended_B = step_B >= 3 + turn_B % 4
        cut_B = ended_B & (turn_B % 2 == 1)
        final_B3 = self.at_B3.clone()
        self.at_B3[ended_B] = torch.stack([0 * place_B, 0 * place_B, episode_B + 1], 1)[ended_B]
        return Transition(place_B, 1.0 - (ended_B & ~cut_B).float(), ended_B, final_B3 if cut_B.any() else None)

    def state_dict(self) -> dict[str, Tensor]:
        return {"at_B3": self.at_B3}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self.at_B3 = state["at_B3"].clone()

    def close(self) -> None:
        pass


class Clock(nn.Module):
    """A policy that draws evenly, and whose value tells what it saw: the first number shown, plus 100 for each step
    that its state has counted."""

    def __init__(self, num_actions: int = 3) -> None:
        super().__init__()
        self.num_actions = num_actions

    def start_state(self, num_rows: int) -> State:
        return {"n": torch.zeros(num_rows, 1)}

    def act(self, obs: Tensor, state: State) -> tuple[Categorical, Tensor, State]:
        logits_BK = torch.zeros(len(obs), self.num_actions)
        return Categorical.of(logits_BK), 100 * state["n"][:, 0] + obs[:, 0], {"n": state["n"] + 1}


def walker(memory: int = 4) -> ActorCritic:
    """The same net each time; with an LSTM where `memory` is not 0."""
    torch.manual_seed(3)
    return ActorCritic(BOX3, Space("discrete", sizes=(3,)).plain(), hidden=8, memory=memory)


def sham_rollout(ids: EnvironmentIds, horizon: int, memory: int = 4, surprise: float = 0.0) -> Rollout:
    """Experience that nobody made, for `walker`; each column belongs to its environment's id, to the last bit. The
    second half of all environments was drawn with log-probabilities larger by `surprise`."""
    env_B, dtype = torch.tensor(ids.mine), torch.get_default_dtype()
    u_BTK = rng.uniform(rng.key(7, "sham", 0), env_B, horizon * 12).view(len(env_B), horizon, 12)
    u_TBK = (u_BTK.transpose(0, 1) - 0.5).to(dtype).contiguous()
    ended_TB = u_TBK[..., 0] > 0.3
    state_BLH = rng.uniform(rng.key(7, "state", 0), env_B, memory).to(dtype).view(-1, 1, memory)
    second_B = (env_B >= ids.num_blocks * ids.block // 2).to(dtype)
    return Rollout(
        env_B=env_B,
        start_state={"h": state_BLH, "c": -state_BLH} if memory else {},
        obs=u_TBK[..., 1:4],
        first_TB=torch.cat([u_TBK[:1, :, 4] > 0, ended_TB[:-1]]),
        action_TB=((u_TBK[..., 5] + 0.5) * 3).long(),
        logp_TB=u_TBK[..., 6] * 0.2 - 1.1 + surprise * second_B,
        value_TB=u_TBK[..., 7],
        next_value_TB=u_TBK[..., 8],
        reward_TB=u_TBK[..., 9],
        discount_TB=torch.ones_like(u_TBK[..., 0]),
        ended_TB=ended_TB,
        valid_TB=None,
        advantage_TB=u_TBK[..., 10] + env_B * 0.1,
        return_TB=u_TBK[..., 11],
    )


@dataclass
class Recorder:
    """`ppo_loss`, which writes down its mean, and which columns it was given: (environment id, advantages) of each."""

    cfg: PPOConfig
    calls: list[list[tuple[int, list[float]]]] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)

    def __call__(self, policy: ActorCritic, part: Rollout) -> Loss:
        self.calls.append(list(zip(part.env_B.tolist(), part.advantage_TB.T.tolist(), strict=True)))
        found = ppo_loss(policy, part, cfg=self.cfg)
        self.losses.append(float(found.sum.detach()) / found.count)
        return found


# Acting on ranks, and through checkpoints ----------------------------------------------------------------------------

Cast = Callable[[World], tuple[Policy, MakeEnvironment]]
ACTORS = 12


def columns(rollout: Rollout) -> dict[int, str]:
    """By environment id: a hash of all that it brought."""
    out: dict[int, str] = {}
    for place, env in enumerate(rollout.env_B.tolist()):
        one = rollout.of(torch.tensor([place]))
        tensors, _ = split_state({name: value for name, value in vars(one).items() if value is not None})
        out[env] = fingerprint(tensors, {})
    return out


def acts(world: World, cast: Cast, path: str, begin: int, save: int | None, end: int) -> dict[str, Any]:
    """Iterations `begin` to `end - 1`, from the checkpoint in `path` where they do not begin at 0, which is written
    before iteration `save`: what each environment brought, statistics, and the state at the end."""
    policy, make = cast(world)
    cfg = PPOConfig(minibatches=2, discount=0.9, scale_rewards=True)
    collector = Collector(policy, make, ACTORS, 8, cfg, world)
    if begin:
        collector.load_state_dict(torch.load(path, weights_only=True))
    told: dict[str, Any] = {}
    for iteration in range(begin, end):
        if iteration == save:
            state = collector.state_dict()
            if world.rank == 0:
                torch.save(state, path)
        told[f"columns {iteration}"] = columns(collector.collect(policy, iteration))
        told[f"episodes {iteration}"] = collector.statistics()
    told["state"] = fingerprint(*split_state(collector.state_dict()))
    return told


def joined(ranks: list[dict[str, Any]]) -> dict[str, Any]:
    """What all ranks told: each of its own environments, and the same of everything else."""
    out = dict(ranks[0])
    for name in out:
        if name.startswith("columns"):
            out[name] = {env: column for rank in ranks for env, column in rank[name].items()}
            assert sum(len(rank[name]) for rank in ranks) == len(out[name]) == len(set(out[name].values())) == ACTORS
        else:
            assert all(rank[name] == out[name] for rank in ranks), name
    return out
