"""Answers to flags that people bring from other tools, and to flags that have a new name."""

from __future__ import annotations

from typing import NamedTuple


class Advice(NamedTuple):
    """The lines `found` and `do` of the error for one unknown flag."""

    found: str
    do: str


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

BATCH = Advice(
    "the batch size here is always the global one: the samples of one update on all GPUs together",
    "give --global-batch N; it stays the same on any number of GPUs (--micro-batch limits one forward pass)",
)
RANKS = Advice("the number of processes is given as --ranks", "give --ranks N; without it there is one per GPU")
NUM_GPUS = Advice("GPUs are given as all, a count, a list or none", "give --gpus 2, or --gpus 0,2")

LAUNCH_ADVICE = {
    "--nproc-per-node": RANKS,
    "--nproc": RANKS,
    "--num-processes": RANKS,
    "--num-gpus": NUM_GPUS,
}
TRAIN_ADVICE = {
    **LAUNCH_ADVICE,
    "--batch-size": BATCH,
    "--batch": BATCH,
    "--lr": Advice("the optimizer's flags start with --optim", "give --optim.lr X"),
    "--learning-rate": Advice("the optimizer's flags start with --optim", "give --optim.lr X"),
    "--epochs": Advice(
        "training is counted in iterations: each is one global batch, or one rollout", "give --iterations N"
    ),
    "--resume": Advice(
        "a run that exists is resumed without a flag", "run the same command again: the same --name and settings"
    ),
}
