"""A toy on-policy workload: recurrent PPO on CartPole, as tensors on the device.

CartPole: Barto, Sutton & Anderson 1983. What happens in an environment is a function of its id, so it
is the same on any number of ranks.
"""

# T steps, B environments, F = 4 features, A = 2 actions, H hidden

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from ranks import Learner, OptimConfig, Run, Summary, World, eval_mode, free, rng
from ranks.rl import Categorical, Collector, PPOConfig, State, Transition, ppo

SHAPE = "on-policy"


@dataclass(frozen=True)
class Config:
    iterations: int = free(6)
    global_batch: int = 64
    """Environments of all ranks together."""
    n_steps: int = 16
    hidden: int = 16
    ppo: PPOConfig = PPOConfig(epochs=2, minibatches=4, gamma=0.98, vf_coef=0.05, target_kl=0.05)
    optim: OptimConfig = OptimConfig(lr=3e-3, clip_norm=0.5, weight_decay=0.0, schedule="constant")


class RecurrentPolicy(nn.Module):
    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.cell = nn.GRUCell(4, hidden)
        self.action = nn.Linear(hidden, 2)
        self.value = nn.Linear(hidden, 1)

    def start_state(self, num_rows: int) -> State:
        return {"h": self.value.weight.new_zeros(num_rows, self.hidden)}

    def act(self, obs_BF: Tensor, state: State) -> tuple[Categorical, Tensor, State]:
        state_BH = self.cell(obs_BF, state["h"])
        return Categorical.from_logits(self.action(state_BH)), self.value(state_BH)[:, 0], {"h": state_BH}

    def unroll(self, obs_TBF: Tensor, state: State, first_TB: Tensor | None) -> tuple[Categorical, Tensor]:
        """The state is reset to zero where an episode starts."""
        assert first_TB is not None
        hidden, state_BH = [], state["h"]
        for obs_BF, first_B in zip(obs_TBF, first_TB.to(obs_TBF.device), strict=True):
            state_BH = self.cell(obs_BF, state_BH * (~first_B)[:, None])
            hidden.append(state_BH)
        hidden_TBH = torch.stack(hidden)
        return Categorical.from_logits(self.action(hidden_TBH)), self.value(hidden_TBH)[..., 0]

    def forward(self, obs_BF: Tensor, state_BH: Tensor) -> tuple[Tensor, Tensor]:
        distribution, _, state = self.act(obs_BF, {"h": state_BH})
        return distribution.mode(), state["h"]


class CartPole:
    """A `VecEnv` of CartPole.

    An episode's initial state is a function of (seed, environment id, episode number).
    """

    episode_steps = None

    def __init__(self, ids: range, seed: int, device: torch.device) -> None:
        self.ids, self.key, self.device = torch.tensor(ids), rng.key(seed, "reset", 0), device
        self.episode_B = torch.zeros(len(ids), dtype=torch.int64)
        self.obs_BF = self._initial_obs()

    def _initial_obs(self) -> Tensor:
        u_BF = rng.uniform(self.key, self.ids * 2**20 + self.episode_B, 4)
        return ((u_BF - 0.5) * 0.1).to(self.device, torch.get_default_dtype())

    def observe(self) -> Tensor:
        return self.obs_BF

    def step(self, action_B: Tensor) -> Transition:
        x, v, a, w = self.obs_BF.unbind(1)
        force = (action_B * 2 - 1) * 10.0
        cos, sin = torch.cos(a), torch.sin(a)
        push = (force + 0.05 * w * w * sin) / 1.1
        angular = (9.8 * sin - cos * push) / (0.5 * (4.0 / 3.0 - 0.1 * cos * cos / 1.1))
        linear = push - 0.05 * angular * cos / 1.1
        obs_BF = torch.stack([x + 0.02 * v, v + 0.02 * linear, a + 0.02 * w, w + 0.02 * angular], 1)
        ended_B = (obs_BF[:, 0].abs() > 2.4) | (obs_BF[:, 2].abs() > 0.2095)
        self.episode_B += ended_B.cpu()
        self.obs_BF = torch.where(ended_B[:, None], self._initial_obs(), obs_BF)
        return Transition(torch.ones_like(x), 1.0 - ended_B.to(x.dtype), ended_B)

    def state_dict(self) -> dict[str, Tensor]:
        return {"episode_B": self.episode_B, "obs_BF": self.obs_BF}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self.episode_B, self.obs_BF = state["episode_B"].cpu(), state["obs_BF"].to(self.device)

    def close(self) -> None:
        pass


def build(cfg: Config) -> RecurrentPolicy:
    return RecurrentPolicy(cfg.hidden)


def train(cfg: Config, world: World) -> Summary:
    policy, loss = build(cfg), partial(ppo.ppo_loss, cfg=cfg.ppo)
    learner = Learner(policy, cfg.optim, world, global_batch=cfg.global_batch)
    poles = partial(CartPole, seed=world.seed, device=world.device)
    collector = Collector(policy, poles, cfg.global_batch, cfg.n_steps, cfg.ppo, world)
    with Run.open(cfg, world, keep=dict(learner=learner, collector=collector)) as run:
        for iteration in run.iterations(cfg.iterations, long=True):
            rollout = collector.collect(policy, iteration)
            run.log(ppo.update(learner, loss, rollout, collector.ids, cfg.ppo, iteration))
            run.log(collector.statistics(), prefix="rollout")
    return run.finish(export=policy)


def evaluate(model: nn.Module, cfg: Config, world: World) -> dict[str, float]:
    """Mean length of 64 episodes with the most likely actions; they are stopped after 500 steps."""
    poles = CartPole(range(64), world.seed + 1, world.device)
    running_B, length_B = torch.ones(64, dtype=torch.bool, device=world.device), torch.zeros(64, device=world.device)
    with eval_mode(model, world):
        state = model.start_state(64)  # type: ignore[operator]
        for _ in range(500):
            distribution, _, state = model.act(poles.observe(), state)  # type: ignore[operator]
            length_B += running_B
            running_B &= ~poles.step(distribution.mode()).ended_B
    return {"episode_length": float(length_B.mean())}
