"""Answers to flags that people bring from other tools, and to flags that have a new name."""

from __future__ import annotations

from typing import NamedTuple


class Advice(NamedTuple):
    """The lines `found` and `do` of the error for one unknown flag."""

    found: str
    do: str
    flags: tuple[str, ...] = ()
    """The flags of a workload that the answer names. It is given only where the command has them."""


RENAMED_FLAGS = {
    "--ppo.clip": "--ppo.clip-range",
    "--ppo.value-clip": "--ppo.clip-range-vf",
    "--ppo.value-weight": "--ppo.vf-coef",
    "--ppo.entropy-weight": "--ppo.ent-coef",
    "--ppo.discount": "--ppo.gamma",
    "--ppo.advantages": "--ppo.normalize-advantage",
    "--horizon": "--n-steps",
    "--environments": "--n-envs",
    "--memory": "--lstm-hidden",
    "--forgiven": "--softening",
    "--lead-in": "--burn-in",
    "--model.reader-width": "--model.encoder-width",
    "--model.reader-rounds": "--model.encoder-rounds",
    "--model.cells": "--model.layers",
    "--data.made-days": "--data.synthetic-days",
    "--data.made-stocks": "--data.synthetic-stocks",
    "--data.made-seed": "--data.synthetic-seed",
    "--market.cost-bps": "--market.commission-bps",
    "--market.ruin-share": "--market.ruin-fraction",
    "--ways": "--solvers",
}
"""Old name -> new name. The answer names the new flag where the command has it."""

RANKS = Advice("the number of processes is given as --ranks", "give --ranks N; without it there is one per GPU")
NUM_GPUS = Advice("GPUs are given as all, a count, a list or none", "give --gpus 2, or --gpus 0,2")

MINIBATCHES = Advice(
    "an update of PPO takes the whole sequences of 1/minibatches of the environments of all GPUs together",
    "give --ppo.minibatches N; with more of them each is smaller",
    ("--ppo.minibatches",),
)
GLOBAL_BATCH = Advice(
    "the batch size here is always the global one: the samples of one update on all GPUs together",
    "give --global-batch N; it stays the same on any number of GPUs (--micro-batch limits one forward pass)",
    ("--global-batch",),
)
MICRO_BATCH = Advice(
    "this workload has no flag for the global batch", "see its Config; --micro-batch limits one forward pass"
)
BATCH = (MINIBATCHES, GLOBAL_BATCH, MICRO_BATCH)
LEARNING_RATE = (Advice("the learning rate belongs to the optimizer", "give --optim.lr X", ("--optim.lr",)),)
ROLLOUTS = Advice(
    "training is counted in iterations: each is one rollout and its updates",
    "give --iterations N: the environment steps of all environments, divided by those of one rollout",
    ("--iterations", "--ppo.epochs"),
)
ITERATIONS = Advice(
    "training is counted in iterations: each is one update with one global batch",
    "give --iterations N",
    ("--iterations",),
)
PPO_EPOCHS = Advice(
    "--ppo.epochs counts the passes over each rollout, --iterations the rollouts",
    "give --ppo.epochs N or --iterations N",
    ("--iterations", "--ppo.epochs"),
)
ENVIRONMENTS = (
    Advice("these are the environments of all GPUs together", "give --n-envs N", ("--n-envs",)),
    Advice(
        "the environments are accounts, of all GPUs together",
        "give --global-batch N",
        ("--global-batch", "--ppo.minibatches"),
    ),
)
RESUME = Advice(
    "a run that exists is resumed without a flag", "run the same command again: the same --name and settings"
)

LAUNCH_ADVICE: dict[str, tuple[Advice, ...]] = {
    "--nproc-per-node": (RANKS,),
    "--nproc": (RANKS,),
    "--num-processes": (RANKS,),
    "--num-gpus": (NUM_GPUS,),
}
TRAIN_ADVICE: dict[str, tuple[Advice, ...]] = {
    **LAUNCH_ADVICE,
    **dict.fromkeys(("--batch-size", "--batch", "--train-batch-size", "--ppo.batch-size", "--minibatch-size"), BATCH),
    **dict.fromkeys(("--lr", "--learning-rate", "--optim.learning-rate"), LEARNING_RATE),
    **dict.fromkeys(("--ppo.lr", "--ppo.learning-rate"), LEARNING_RATE),
    **dict.fromkeys(("--total-timesteps", "--max-steps", "--steps", "--num-steps"), (ROLLOUTS, ITERATIONS)),
    **dict.fromkeys(("--epochs", "--n-epochs", "--num-epochs", "--max-epochs"), (PPO_EPOCHS, ITERATIONS)),
    **dict.fromkeys(("--n-envs", "--num-envs"), ENVIRONMENTS),
    "--resume": (RESUME,),
}
"""Unknown flag -> answers, of which the first that fits the command is given."""
