"""A toy workload: recurrent PPO balances a pole. On-policy; environments and their luck belong to ids, not to ranks.

CartPole: Barto, Sutton & Anderson 1983. PPO: Schulman et al. 2017, arXiv 1707.06347. GAE: arXiv 1506.02438.
"""

# T steps, B environments, F = 4 features, A = 2 actions, H hidden

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from ranks import Learner, Loss, OptimConfig, Run, ShardItems, StepBatch, Summary, World, acting, draws, free

SHAPE = "on-policy"


@dataclass(frozen=True)
class Config:
    iterations: int = free(6)
    global_batch: int = 64
    """Environments."""
    horizon: int = 16
    epochs: int = 2
    minibatches: int = 4
    hidden: int = 16
    discount: float = 0.98
    gae_lambda: float = 0.95
    clip: float = 0.2
    target_kl: float = 0.05
    optim: OptimConfig = OptimConfig(lr=3e-3, clip_norm=0.5, weight_decay=0.0, schedule="constant")


class RecurrentPolicy(nn.Module):
    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.cell = nn.GRUCell(4, hidden)
        self.action = nn.Linear(hidden, 2)
        self.value = nn.Linear(hidden, 1)

    def forward(self, obs_BF: Tensor, state_BH: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        state_BH = self.cell(obs_BF, state_BH)
        return self.action(state_BH), self.value(state_BH)[:, 0], state_BH

    def unroll(self, obs_TBF: Tensor, state_BH: Tensor, first_TB: Tensor) -> tuple[Tensor, Tensor]:
        """The whole sequence; the state is reset where an episode begins."""
        logits, values = [], []
        for obs_BF, first_B in zip(obs_TBF, first_TB, strict=True):
            logits_BA, value_B, state_BH = self(obs_BF, state_BH * (1.0 - first_B[:, None]))
            logits.append(logits_BA)
            values.append(value_B)
        return torch.stack(logits), torch.stack(values)


@dataclass(frozen=True)
class Rollout:
    """`env_B`: environment ids. `first_TB`: 1 where an episode begins. `discount_TB`: 0 where it ended."""

    env_B: Tensor
    start_state_BH: Tensor
    obs_TBF: Tensor
    first_TB: Tensor
    action_TB: Tensor
    logp_TB: Tensor
    reward_TB: Tensor
    discount_TB: Tensor
    advantage_TB: Tensor
    return_TB: Tensor

    def columns(self, index_B: Tensor) -> Rollout:
        rows = {n: getattr(self, n)[index_B] for n in ("env_B", "start_state_BH")}
        rest = {n: v[:, index_B] for n, v in vars(self).items() if n not in rows}
        return Rollout(**rows, **rest)


def cat(rollouts: list[Rollout]) -> Rollout:
    dims = {n: 0 if n in ("env_B", "start_state_BH") else 1 for n in vars(rollouts[0])}
    return Rollout(**{n: torch.cat([getattr(r, n) for r in rollouts], dim) for n, dim in dims.items()})


class CartPole:
    """Some environments, stepped at once; what happens to one depends on its id and its episode alone."""

    def __init__(self, ids: range, seed: int, hidden: int, device: torch.device) -> None:
        self.ids, self.key, self.device = torch.tensor(ids), draws.key(seed, "reset", 0), device
        self.episode_B = torch.zeros(len(ids), dtype=torch.int64)
        self.obs_BF = self._fresh().to(device)
        self.first_B = torch.ones(len(ids), device=device)
        self.state_BH = torch.zeros(len(ids), hidden, device=device)

    def _fresh(self) -> Tensor:
        u_BF = draws.uniform(self.key, self.ids * 2**20 + self.episode_B, 4)
        return ((u_BF - 0.5) * 0.1).to(torch.get_default_dtype())

    def step(self, action_B: Tensor) -> tuple[Tensor, Tensor]:
        """(reward, discount); an ended episode begins again at once."""
        x, v, a, w = self.obs_BF.unbind(1)
        force = (action_B * 2 - 1) * 10.0
        cos, sin = torch.cos(a), torch.sin(a)
        push = (force + 0.05 * w * w * sin) / 1.1
        angular = (9.8 * sin - cos * push) / (0.5 * (4.0 / 3.0 - 0.1 * cos * cos / 1.1))
        linear = push - 0.05 * angular * cos / 1.1
        obs_BF = torch.stack([x + 0.02 * v, v + 0.02 * linear, a + 0.02 * w, w + 0.02 * angular], 1)
        ended_B = (obs_BF[:, 0].abs() > 2.4) | (obs_BF[:, 2].abs() > 0.2095)
        self.episode_B += ended_B.cpu()
        self.obs_BF = torch.where(ended_B[:, None], self._fresh().to(self.device), obs_BF)
        self.first_B = ended_B.to(obs_BF.dtype)
        return torch.ones_like(x), 1.0 - self.first_B


class Collector:
    """Acts in this rank's environments: shard by shard under --exact, all at once otherwise.

    Environments are dealt in whole blocks of `cfg.minibatches`, so that every minibatch is local to its rank.
    """

    TENSORS = ("episode_B", "obs_BF", "first_B", "state_BH")

    def __init__(self, cfg: Config, world: World) -> None:
        self.cfg, self.world = cfg, world
        self.num_blocks = cfg.global_batch // cfg.minibatches
        mine = [b for _, b in world.shard_items(self.num_blocks)] if world.exact else [world.items(self.num_blocks)]
        ids = [range(b.start * cfg.minibatches, b.stop * cfg.minibatches) for b in mine]
        self.groups = [CartPole(group, world.seed, cfg.hidden, world.device) for group in ids]

    def gather(self, rows_B: Tensor) -> Tensor:
        """One row of each environment, from all ranks, in id order."""
        size = self.cfg.minibatches
        blocks = rows_B.reshape(len(rows_B) // size, size, *rows_B.shape[1:])
        return self.world.gather_rows(blocks, self.num_blocks).flatten(0, 1)

    def collect(self, policy: RecurrentPolicy, iteration: int) -> Rollout:
        """[T, B] of experience with advantages, normalised over all environments of all ranks."""
        with acting(policy, self.world):
            rollout = cat([self._collect(policy, group, iteration) for group in self.groups])
        self.world.check_stop()
        moments_B2 = torch.stack(
            [rollout.advantage_TB.double().sum(0), rollout.advantage_TB.double().square().sum(0)], 1
        )
        total_2 = self.gather(moments_B2).cpu().cumsum(0)[-1]
        mean, square = (total_2 / (self.cfg.horizon * self.cfg.global_batch)).tolist()
        return replace(rollout, advantage_TB=(rollout.advantage_TB - mean) / (square - mean * mean + 1e-8) ** 0.5)

    def _collect(self, policy: RecurrentPolicy, env: CartPole, iteration: int) -> Rollout:
        start_state_BH, steps = env.state_BH, list[tuple[Tensor, ...]]()
        for t in range(self.cfg.horizon):
            obs_BF, first_B = env.obs_BF, env.first_B
            logits_BA, value_B, env.state_BH = policy(obs_BF, env.state_BH * (1.0 - first_B[:, None]))
            key = draws.key(self.world.seed, "act", iteration * self.cfg.horizon + t)
            noise_BA = draws.gumbel(key, env.ids, 2).to(logits_BA)
            action_B = (logits_BA + noise_BA).argmax(1)
            logp_B = logits_BA.log_softmax(1).gather(1, action_B[:, None])[:, 0]
            steps.append((obs_BF, first_B, action_B, logp_B, value_B, *env.step(action_B)))
        obs, first, action, logp, value_TB, reward, discount = (torch.stack(x) for x in zip(*steps, strict=True))
        _, last_B, _ = policy(env.obs_BF, env.state_BH * (1.0 - env.first_B[:, None]))
        advantage = gae(reward, value_TB, discount * self.cfg.discount, last_B, self.cfg.gae_lambda)
        return Rollout(
            env.ids, start_state_BH, obs, first, action, logp, reward, discount, advantage, advantage + value_TB
        )

    def state_dict(self) -> dict[str, Any]:
        """By environment id, gathered from all ranks."""
        own = {n: torch.cat([getattr(g, n).to(self.world.device) for g in self.groups]) for n in self.TENSORS}
        return {n: self.gather(rows) for n, rows in own.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for group in self.groups:
            for n in self.TENSORS:
                device = "cpu" if n == "episode_B" else self.world.device
                setattr(group, n, state[n][group.ids].to(device))


def gae(reward_TB: Tensor, value_TB: Tensor, discount_TB: Tensor, last_B: Tensor, lam: float) -> Tensor:
    """A_t = delta_t + discount_t * lambda * A_{t+1}; delta_t = r_t + discount_t * V_{t+1} - V_t (eq. 16 there)."""
    next_TB = torch.cat([value_TB[1:], last_B[None]])
    delta_TB = reward_TB + discount_TB * next_TB - value_TB
    out, running = [], torch.zeros_like(last_B)
    for delta_B, discount_B in zip(delta_TB.flip(0), discount_TB.flip(0), strict=True):
        running = delta_B + discount_B * lam * running
        out.append(running)
    return torch.stack(out).flip(0)


def minibatches(
    rollout: Rollout, cfg: Config, world: World, iteration: int, epoch: int
) -> Iterator[StepBatch[Rollout]]:
    """Each takes one environment from every block of `cfg.minibatches` consecutive ids: alike on any deal."""
    blocks = cfg.global_batch // cfg.minibatches
    key = draws.key(world.seed, "minibatch", iteration * cfg.epochs + epoch)
    order_KM = draws.bits(key, torch.arange(blocks), cfg.minibatches).argsort(1)
    first = int(rollout.env_B[0]) if len(rollout.env_B) else 0
    for m in range(cfg.minibatches):
        env_K = torch.arange(blocks) * cfg.minibatches + order_KM[:, m]
        shards = tuple(ShardItems(s, env_K[items.start : items.stop]) for s, items in world.shard_items(blocks))
        yield StepBatch(shards, lambda ids: rollout.columns(ids - first))


def ppo_loss(policy: RecurrentPolicy, part: Rollout, clip: float = 0.2) -> Loss:
    logits_TBA, value_TB = policy.unroll(part.obs_TBF, part.start_state_BH, part.first_TB)
    all_TBA = logits_TBA.log_softmax(-1)
    logp_TB = all_TBA.gather(-1, part.action_TB[..., None])[..., 0]
    ratio_TB = (logp_TB - part.logp_TB).exp()
    gain_TB = torch.minimum(ratio_TB * part.advantage_TB, ratio_TB.clamp(1 - clip, 1 + clip) * part.advantage_TB)
    entropy_TB = -(all_TBA.exp() * all_TBA).sum(-1)
    miss_TB = (value_TB - part.return_TB).square()
    loss_B = (-gain_TB + 0.5 * 0.1 * miss_TB - 0.01 * entropy_TB).mean(0)
    return Loss(loss_B.sum(), len(loss_B), approx_kl=(ratio_TB - 1 - (logp_TB - part.logp_TB)).mean(0).detach())


def build(cfg: Config) -> nn.Module:
    return RecurrentPolicy(cfg.hidden)


def train(cfg: Config, world: World) -> Summary:
    policy = RecurrentPolicy(cfg.hidden)
    learner = Learner(policy, cfg.optim.resolve(global_batch=cfg.global_batch, updates=1), world)
    collector = Collector(cfg, world)
    with Run.open(cfg, world, keep=dict(learner=learner, collector=collector)) as run:
        run.plan(global_batch=cfg.global_batch, iterations=cfg.iterations)
        for iteration in run.iterations(cfg.iterations, long=True):
            rollout = collector.collect(policy, iteration)
            for epoch in range(cfg.epochs):
                steps = [learner.step(ppo_loss, batch) for batch in minibatches(rollout, cfg, world, iteration, epoch)]
                learner.drain()
                if steps[-1].read().values["approx_kl"] > cfg.target_kl:
                    break
            run.log(steps[-1])
            ended = collector.gather((1.0 - rollout.discount_TB).sum(0)).double().sum()
            run.log({"ep_len_mean": cfg.horizon * cfg.global_batch / max(1.0, float(ended))}, prefix="rollout")
    return run.finish(export=policy)


def evaluate(model: nn.Module, cfg: Config, world: World) -> dict[str, float]:
    """Mean length of the stretches between falls, over one long rollout from fresh environments."""
    collector = Collector(replace(cfg, horizon=200), world)
    rollout = collector.collect(model, 10**6)  # type: ignore[arg-type]
    ended = collector.gather((1.0 - rollout.discount_TB).sum(0)).double().sum()
    return {"ep_len_mean": 200 * cfg.global_batch / max(1.0, float(ended))}
