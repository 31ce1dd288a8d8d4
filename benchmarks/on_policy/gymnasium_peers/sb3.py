"""The Stable-Baselines3 side of gymnasium_curves.py: PPO of Stable-Baselines3, RecurrentPPO of sb3-contrib."""

from __future__ import annotations

import task
from sb3_contrib import RecurrentPPO
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
from task import Game, Record, main, maker
from torch import nn


def learn(game: Game, record: Record, seed: int) -> nn.Module:
    """Observations are normalised and rewards scaled as on our side.

    The recurrent policy is that of RecurrentPPO: separate LSTMs for actor and critic before the two
    layers (ours is one LSTM behind them).
    """
    environments = DummyVecEnv([maker(game, record)] * game.n_envs)
    sizes = {
        "net_arch": {"pi": [task.HIDDEN, task.HIDDEN], "vf": [task.HIDDEN, task.HIDDEN]},
        "optimizer_kwargs": {"eps": task.EPS},
    }
    model = (RecurrentPPO if game.recurrent else PPO)(
        "MlpLstmPolicy" if game.recurrent else "MlpPolicy",
        VecNormalize(environments, clip_obs=10.0, gamma=game.gamma),
        learning_rate=lambda remaining: game.lr * remaining,
        n_steps=game.n_steps,
        batch_size=game.n_envs * game.n_steps // task.MINIBATCHES,
        n_epochs=task.EPOCHS,
        gamma=game.gamma,
        gae_lambda=task.GAE_LAMBDA,
        clip_range=task.CLIP_RANGE,
        ent_coef=task.ENT_COEF,
        vf_coef=task.VF_COEF,
        max_grad_norm=task.NORM,
        seed=seed,
        device="cpu",
        policy_kwargs=sizes | ({"lstm_hidden_size": task.MEMORY} if game.recurrent else {}),
    )
    model.learn(game.samples)
    return model.policy


if __name__ == "__main__":
    main(learn)
