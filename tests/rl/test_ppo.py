"""PPO: its loss against an independent implementation, its updates the same on any number of
ranks."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ranks import Learner, OptimConfig, RunConfig, World
from ranks.rl import ppo
from ranks.rl.config import PPOConfig
from ranks.rl.environments import EnvironmentIds
from ranks.rl.policies.actor_critic import ActorCritic
from ranks.rl.rollouts.rollout import Rollout
from tests.engine.group import run_ranks
from tests.rl.fixtures import RecordingLoss, single_rank, small_policy, synthetic_rollout

N_ENVS, N_STEPS = 12, 8
SMALL_STEPS = OptimConfig(lr=1e-9, clip_norm=None, weight_decay=0.0, schedule="constant")


# The loss against an independent recurrent PPO ------------------------------------------------------------------------


def reference_loss(policy: ActorCritic, part: Rollout, cfg: PPOConfig) -> dict[str, Tensor]:
    """The loss of CleanRL's ppo_atari_lstm.py (Huang et al. 2022, JMLR 23:274).

    It runs the LSTM step by step from the stored state, with torch.distributions and means over all
    steps of the minibatch. Its value loss has a factor 1/2, which is compensated.
    """
    assert policy.lstm is not None
    assert isinstance(part.obs, Tensor)
    normaliser = policy.encoder.normaliser
    obs = ((part.obs - normaliser.mean_F) / normaliser.std_F).clamp(-10, 10)
    features = torch.cat([policy.actor(obs), policy.critic(obs)], -1)
    h, c = (part.start_state[name].transpose(0, 1) for name in "hc")
    new_hidden = []
    assert part.first_TB is not None
    for x, done in zip(features, part.first_TB.to(obs.dtype), strict=True):
        keep = (1.0 - done).view(1, -1, 1)
        out, (h, c) = policy.lstm(x[None], (keep * h, keep * c))
        new_hidden.append(out[0])
    hidden = torch.stack(new_hidden)
    probs = torch.distributions.Categorical(logits=policy.action_head(hidden))
    newvalue = policy.value_head(hidden).squeeze(-1)

    logratio = probs.log_prob(part.action_TB) - part.logp_TB
    ratio = logratio.exp()
    pg_loss1 = -part.advantage_TB * ratio
    pg_loss2 = -part.advantage_TB * torch.clamp(ratio, 1 - cfg.clip_range, 1 + cfg.clip_range)
    pg_loss = torch.max(pg_loss1, pg_loss2).mean()
    v_loss_unclipped = (newvalue - part.return_TB) ** 2
    v_loss_max = v_loss_unclipped
    if cfg.clip_range_vf is not None:
        v_clipped = part.value_TB + torch.clamp(newvalue - part.value_TB, -cfg.clip_range_vf, cfg.clip_range_vf)
        v_loss_max = torch.max(v_loss_unclipped, (v_clipped - part.return_TB) ** 2)
    v_loss, entropy_loss = 0.5 * v_loss_max.mean(), probs.entropy().mean()
    return {
        "loss": pg_loss - cfg.ent_coef * entropy_loss + v_loss * 2 * cfg.vf_coef,
        "policy_loss": pg_loss,
        "value_loss": 2 * v_loss,
        "entropy": entropy_loss,
        "approx_kl": ((ratio - 1) - logratio).mean(),
        "clip_fraction": ((ratio - 1.0).abs() > cfg.clip_range).double().mean(),
    }


@pytest.mark.parametrize(
    "cfg",
    [
        PPOConfig(clip_range=0.05),
        PPOConfig(clip_range=0.1, clip_range_vf=0.2, vf_coef=0.7, ent_coef=0.03),
        PPOConfig(clip_range=0.2, clip_range_vf=0.05, ent_coef=0.5),
    ],
    ids=["plain", "value clip and entropy", "tight value clip"],
)
@pytest.mark.parametrize(("precision", "tolerance"), [("fp64", 1e-10), ("fp32", 1e-6)])
def test_loss_and_gradients_equal_an_independent_recurrent_ppo(
    cfg: PPOConfig, precision: Any, tolerance: float
) -> None:
    with single_rank(precision=precision) as world:
        policy = small_policy(lstm_hidden=4)
        torch.manual_seed(1)
        for parameter in policy.parameters():
            parameter.data += 0.3 * torch.randn_like(parameter)
        policy.encoder.normaliser.std_F *= 0.5
        part = synthetic_rollout(EnvironmentIds(6, 2, world), 9)
        assert part.first_TB is not None
        assert part.first_TB[0].any()
        assert part.first_TB[1:].any()
        assert not part.first_TB.all(0).any()
        ours, theirs = ppo.ppo_loss(policy, part, cfg=cfg), reference_loss(policy, part, cfg)
        means = {"loss": ours.sum / ours.count, **{k: m.mean() for k, m in ours.metrics.items() if torch.is_tensor(m)}}
        assert means.keys() == theirs.keys()
        for name, value in theirs.items():
            torch.testing.assert_close(means[name], value.to(means[name].dtype), atol=tolerance, rtol=tolerance)
        assert 0 < float(means["clip_fraction"]) < 1
        parameters = dict(policy.named_parameters())
        named = [name for name, p in parameters.items() if p.numel()]
        assert "lstm.weight_hh_l0" in named
        pair = [torch.autograd.grad(x["loss"], [parameters[n] for n in named]) for x in (means, theirs)]
        for name, mine, other in zip(named, *pair, strict=True):
            assert other.abs().max() > 1e-6, name
            torch.testing.assert_close(mine, other, atol=tolerance, rtol=tolerance, msg=lambda m, n=name: f"{n}: {m}")


def test_steps_of_weight_0_change_neither_loss_nor_gradient_nor_metrics() -> None:
    with single_rank(precision="fp64") as world:
        policy, part = small_policy(), synthetic_rollout(EnvironmentIds(4, 2, world), 6)
        weight_TB = torch.ones(6, 4, dtype=torch.float64)
        weight_TB[2, 1] = weight_TB[5, 3] = 0
        found = []
        for value in (0.0, 1e3):
            changed = {n: torch.where(weight_TB > 0, vars(part)[n], value) for n in ("advantage_TB", "return_TB")}
            loss = ppo.ppo_loss(policy, replace(part, **changed, weight_TB=weight_TB), cfg=PPOConfig(clip_range_vf=0.1))
            gradient = torch.autograd.grad(loss.sum, list(policy.actor.parameters()))
            found.append((loss.sum, loss.metrics, gradient))
        torch.testing.assert_close(*found, atol=0, rtol=0)
        total, count = found[0][1]["entropy"]
        assert count == 22
        distribution, _ = policy.unroll(part.obs, part.start_state, part.first_TB)
        torch.testing.assert_close(total / count, distribution.entropy()[weight_TB > 0].mean())


# Ranks ----------------------------------------------------------------------------------------------------------------


def update_of(
    world: World, cfg: PPOConfig, log_ratio: float, optim: OptimConfig, cut_time: bool = False
) -> dict[str, Any]:
    """Make all updates from one rollout and return the metrics, the calls of the loss, the weights,
    and the KL of this rank's environments only. With `cut_time` the policy has no LSTM."""
    ids, lstm_hidden = EnvironmentIds(N_ENVS, cfg.minibatches, world, cut_time=cut_time), 0 if cut_time else 4
    rollout = synthetic_rollout(ids, N_STEPS, lstm_hidden, log_ratio=log_ratio)
    learner, record = Learner(small_policy(lstm_hidden), optim, world), RecordingLoss(cfg)
    assert isinstance(learner.model, ActorCritic)
    with torch.no_grad():
        own: Any = ppo.ppo_loss(learner.model, rollout, cfg=cfg).metrics["approx_kl"]
    metrics = ppo.update(learner, record, rollout, ids, cfg, iteration=5)
    return {
        "metrics": metrics,
        "calls": record.calls,
        "weights": weights_of(learner.model),
        "own_kl": float(own.mean()),
    }


def weights_of(model: nn.Module) -> list[float]:
    return [number for p in model.parameters() for number in p.flatten().tolist()]


@pytest.mark.parametrize("over", ["rollout", "minibatch"])
@pytest.mark.parametrize("precision", ["fp32", "fp64"])
def test_advantages_are_normalised_over_all_ranks_bit_for_bit(over: Any, precision: Any, tmp_path: Path) -> None:
    cfg, config = PPOConfig(epochs=2, minibatches=2, normalize_advantage=over), RunConfig(shards=6, precision=precision)
    run = partial(run_ranks, config=config, tmp_path=tmp_path)
    one = run(1, update_of, cfg, 0.0, SMALL_STEPS)[0]["calls"]
    assert [len(call) for call in one] == [6] * 4
    for columns in one if over == "minibatch" else [[*one[0], *one[1]]]:
        numbers = torch.tensor([column for _, column in columns], dtype=torch.float64)
        assert abs(float(numbers.mean())) < 1e-6
        assert abs(float(numbers.std(correction=0)) - 1) < 1e-6
    for size in (2, 3):
        ranks = [rank["calls"] for rank in run(size, update_of, cfg, 0.0, SMALL_STEPS)]
        assert [list(chain(*calls)) for calls in zip(*ranks, strict=True)] == one
        own = [torch.tensor([column for call in calls for _, column in call]).mean() for calls in ranks]
        assert max(map(abs, own)) > 0.1, "a rank by itself would have given something else"


def test_advantages_are_not_normalised_if_it_is_turned_off() -> None:
    with single_rank() as world:
        cfg = PPOConfig(epochs=1, minibatches=2, normalize_advantage="none")
        found = update_of(world, cfg, 0.0, SMALL_STEPS)["calls"]
        rollout = synthetic_rollout(EnvironmentIds(N_ENVS, 2, world), N_STEPS)
    columns = dict(chain(*found))
    assert columns == dict(enumerate(rollout.advantage_TB.T.tolist()))


@pytest.mark.parametrize("exact", [False, True], ids=["fast", "exact"])
def test_all_ranks_stop_early_by_the_mean_kl_mean_kl_ranks(exact: bool, tmp_path: Path) -> None:
    """The log ratio is large in the second half of the environments only.

    So ranks that decided by their own environments would decide differently. All must decide by the
    mean.
    """
    config, cfg = RunConfig(shards=3, exact=exact, precision="fp64"), PPOConfig(epochs=2, minibatches=2)
    run = partial(run_ranks, config=config, tmp_path=tmp_path)
    (unlimited,) = run(1, update_of, cfg, 1.0, SMALL_STEPS)
    assert unlimited["metrics"]["num_updates"] == 4
    mean_kl = unlimited["metrics"]["approx_kl"]
    for factor, epochs_made in ((0.9, 1), (1.1, 2)):
        stopping = replace(cfg, target_kl=mean_kl * factor)
        (one,) = run(1, update_of, stopping, 1.0, SMALL_STEPS)
        for size in (2, 3):
            ranks = run(size, update_of, stopping, 1.0, SMALL_STEPS)
            own = [rank["own_kl"] for rank in ranks]
            assert min(own) < mean_kl * 0.9 < mean_kl * 1.1 < max(own), "ranks by themselves would decide differently"
            assert [rank["metrics"]["num_updates"] for rank in [one, *ranks]] == [2 * epochs_made] * (size + 1)
            for rank in ranks:
                assert rank["weights"] == (one if exact else ranks[0])["weights"]
                assert rank["weights"] == pytest.approx(one["weights"], rel=0, abs=1e-15)


@pytest.mark.parametrize("cut_time", [False, True], ids=["sequences", "cut time"])
@pytest.mark.parametrize("exact", [False, True], ids=["fast", "exact"])
def test_updates_are_the_same_on_any_assignment(exact: bool, cut_time: bool, tmp_path: Path) -> None:
    cfg, optim = PPOConfig(epochs=2, minibatches=2, clip_range_vf=0.2), OptimConfig(lr=1e-2, schedule="constant")
    config = RunConfig(shards=3, exact=exact, precision="fp64")
    (one,) = run_ranks(1, update_of, cfg, 0.1, optim, cut_time, config=config, tmp_path=tmp_path)
    assert one["weights"] != pytest.approx(weights_of(small_policy(0 if cut_time else 4)), abs=1e-2)
    for size in (2, 3):
        for rank in run_ranks(size, update_of, cfg, 0.1, optim, cut_time, config=config, tmp_path=tmp_path):
            assert rank["weights"] == (one["weights"] if exact else pytest.approx(one["weights"], rel=0, abs=1e-10))
            assert rank["metrics"] == (one["metrics"] if exact else pytest.approx(one["metrics"], rel=1e-9))


def test_logged_metrics_are_the_means_mean_kl_updates(tmp_path: Path) -> None:
    with single_rank() as world:
        ids, cfg = EnvironmentIds(8, 2, world), PPOConfig(epochs=3, minibatches=2)
        rollout, optim = synthetic_rollout(ids, 5), OptimConfig(lr=1e-2, schedule="constant")
        learner = Learner(small_policy(), optim, world)
        record = RecordingLoss(cfg)
        metrics = ppo.update(learner, record, rollout, ids, cfg, iteration=0)
    losses = record.losses
    assert len(losses) == metrics["num_updates"] == learner.updates == 6
    assert metrics["loss"] == pytest.approx(sum(losses) / 6, rel=1e-5)
    assert min(losses) < metrics["loss"] < max(losses)
    assert set(metrics) == {
        *(
            "loss",
            "policy_loss",
            "value_loss",
            "entropy",
            "approx_kl",
            "clip_fraction",
            "grad_norm",
            "num_updates",
            "explained_variance",
        ),
    }
