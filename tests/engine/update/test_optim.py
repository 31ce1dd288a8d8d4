"""Schedules, the learning-rate rule, and AdamW against torch's own."""

from __future__ import annotations

from typing import Any, Literal

import pytest
import torch

from ranks import OptimConfig, UserError
from ranks.engine.update.optimizer import AdamW, learning_rate


def test_warmup_then_cosine_to_zero() -> None:
    config = OptimConfig(lr=2.0, warmup_updates=10, schedule="cosine").resolve(global_batch=8, updates=110)
    assert learning_rate(config, 0) == pytest.approx(0.2)
    assert learning_rate(config, 9) == pytest.approx(2.0)
    assert learning_rate(config, 60) == pytest.approx(1.0)
    assert learning_rate(config, 110) == pytest.approx(0.0, abs=1e-12)
    assert learning_rate(config, 500) == pytest.approx(0.0, abs=1e-12)


def test_linear_and_constant() -> None:
    assert learning_rate(OptimConfig(lr=1.0, schedule="linear", schedule_updates=100), 25) == pytest.approx(0.75)
    assert learning_rate(OptimConfig(lr=1.0, schedule="constant"), 10**6) == 1.0


@pytest.mark.parametrize(("rule", "rate"), [("none", 0.1), ("linear", 0.4), ("sqrt", 0.2)])
def test_the_rate_follows_the_batch_by_the_stated_rule(rule: str, rate: float) -> None:
    config = OptimConfig(lr=0.1, lr_rule=rule, base_batch=32)  # type: ignore[arg-type]
    assert config.resolve(global_batch=128, updates=1).lr == pytest.approx(rate)


def test_a_rule_without_a_base_batch_is_refused() -> None:
    with pytest.raises(UserError, match="no base batch"):
        OptimConfig(lr_rule="linear").resolve(global_batch=1, updates=1)


@pytest.mark.parametrize(
    ("config", "do"),
    [
        (OptimConfig(schedule="cosine"), r"Learner\(\.\.\., updates=N\)"),
        (OptimConfig(schedule="constant", lr_rule="sqrt", base_batch=8), r"Learner\(\.\.\., global_batch=N\)"),
    ],
)
def test_what_a_schedule_or_a_rule_needs_is_asked_for(config: OptimConfig, do: str) -> None:
    with pytest.raises(UserError, match=do):
        config.resolve()


def test_a_constant_schedule_has_no_end_that_could_differ() -> None:
    assert OptimConfig(schedule="constant").resolve(global_batch=1, updates=7).schedule_updates is None
    assert OptimConfig().resolve(global_batch=1, updates=7).schedule_updates == 7
    assert OptimConfig(schedule_updates=3).resolve(global_batch=1, updates=7).schedule_updates == 3


@pytest.mark.parametrize("decay_only", [None, "matrices"])
def test_adamw_equals_torchs_and_skips_on_the_device(decay_only: Literal["matrices"] | None) -> None:
    config = OptimConfig(lr=0.1, weight_decay=0.1, decay_only=decay_only)
    generator = torch.Generator().manual_seed(0)
    ours = [torch.randn(5, 3, generator=generator), torch.randn(4, generator=generator)]
    theirs = [torch.nn.Parameter(p.clone()) for p in ours]
    groups = [{"params": theirs[:1]}, {"params": theirs[1:], "weight_decay": 0.0 if decay_only else 0.1}]
    optimizer = torch.optim.AdamW(groups, lr=0.1, weight_decay=0.1, betas=config.betas, eps=config.eps)
    mine = AdamW(ours, config)
    for step in range(6):
        gradients = [torch.randn(p.shape, generator=generator) for p in ours]
        skip = torch.tensor(float(step == 3))
        mine.update([g.clone() for g in gradients], 0.1, skip)
        if step != 3:
            for p, g in zip(theirs, gradients, strict=True):
                p.grad = g
            optimizer.step()
    assert float(mine.step) == 5.0
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b.detach(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "bad",
    [
        {"lr": 0.0},
        {"lr": float("nan")},
        {"clip_norm": 0.0},
        {"betas": (0.9, 1.0)},
        {"eps": -1.0},
        {"warmup_updates": -1},
        {"schedule_updates": 0},
        {"base_batch": -2},
        {"weight_decay": -0.1},
    ],
)
def test_settings_that_cannot_train_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="--optim"):
        OptimConfig(**bad)
