"""RecurrentPPO of sb3-contrib with the settings of the task, for both environments of the other sides."""

from __future__ import annotations

import time
from typing import Any

from sb3_contrib import RecurrentPPO
from stable_baselines3.common.callbacks import BaseCallback
from task import CLIP, DISCOUNT, EPOCHS, HIDDEN, LAMBDA, MINIBATCHES, NORM, VALUE_WEIGHT, Task


class Clock(BaseCallback):
    """Measures CPU seconds after the first rollout and its updates."""

    def __init__(self, environments: Any) -> None:
        """`environments`: has `spent_s`, its own CPU seconds."""
        super().__init__()
        self.environments, self.rollouts, self.start = environments, 0, 0.0

    def _on_rollout_start(self) -> None:
        if self.rollouts == 1:
            self.start, self.environments.spent_s = time.process_time(), 0.0
        self.rollouts += 1

    def _on_step(self) -> bool:
        return True


def learn(task: Task, environments: Any) -> tuple[RecurrentPPO, dict[str, Any]]:
    """(the trained model, what it took), from a vectorised environment of Stable-Baselines3 with `spent_s`."""
    model = RecurrentPPO(
        "MlpLstmPolicy",
        environments,
        learning_rate=task.lr,
        n_steps=task.horizon,
        batch_size=task.samples // MINIBATCHES,
        n_epochs=EPOCHS,
        gamma=DISCOUNT,
        gae_lambda=LAMBDA,
        clip_range=CLIP,
        vf_coef=VALUE_WEIGHT,
        max_grad_norm=NORM,
        seed=task.seed,
        device="cpu",
        policy_kwargs={
            "lstm_hidden_size": HIDDEN,
            "net_arch": {"pi": [HIDDEN], "vf": [HIDDEN]},
            "enable_critic_lstm": True,
            "log_std_init": task.log_std,
        },
    )
    clock = Clock(environments)
    model.learn(task.samples * (task.iterations + 1), callback=clock)
    return model, {
        "steps": task.iterations * task.samples,
        "cpu_s": time.process_time() - clock.start,
        "updates": task.updates,
        "parameters": sum(p.numel() for p in model.policy.parameters()),
        "environment_s": environments.spent_s,
    }
