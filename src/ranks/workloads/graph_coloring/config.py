"""Settings of graph-coloring. This module imports no torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from ranks.engine.config import OptimConfig, free
from ranks.errors import UserError

MIN_NODES, MAX_NODES = 10, 1000
"""Sizes of the graphs that are generated for training and validation."""


@dataclass(frozen=True)
class DataConfig:
    """The graphs to train on. They are generated once; runs with equal settings share them."""

    seed: int = 0
    """Seed of the generated graphs. The run's --seed does not change them."""
    train_graphs: int = 12_000
    validation_graphs: int = 3_000
    unseen_graphs: int = 600
    """Graphs of families and sizes that are not in training; only `ranks evaluate` uses them."""
    max_nodes: int = 1000
    """Largest graph. By default 30 % have 10-50 nodes, 40 % up to 200, 25 % up to 500, 5 % more."""
    min_nodes: int = MIN_NODES
    """Smallest graph."""
    threshold_share: float = 0.25
    """Share of graphs near the 3-colouring threshold, the hardest ones; other families get the rest."""
    labels: Literal["full", "bounds"] = "full"
    """full: chromatic numbers by search, difficulty by TabuCol. bounds: only bounds, in less time."""
    folder: Path | None = free(None)
    """Train on the graph files in this folder instead; a fifth of them is the validation set."""

    def __post_init__(self) -> None:
        counts = {name: vars(self)[name] for name in ("train_graphs", "validation_graphs", "unseen_graphs")}
        for name, count in counts.items():
            if count < 1:
                raise UserError(
                    f"--data.{name.replace('_', '-')} {count}", "the set would have no graphs", "give 1 or more"
                )
        if not MIN_NODES <= self.min_nodes <= self.max_nodes <= MAX_NODES:
            asked = f"--data.min-nodes {self.min_nodes} --data.max-nodes {self.max_nodes}"
            found = f"generated graphs have {MIN_NODES} to {MAX_NODES:,} nodes"
            raise UserError(asked, found, "give two numbers in this range, the smaller first")
        if not 0 <= self.threshold_share <= 1:
            raise UserError(
                f"--data.threshold-share {self.threshold_share}",
                "a share is between 0 and 1",
                "give a number from 0 to 1",
            )


@dataclass(frozen=True)
class ModelConfig:
    """The size of the network."""

    width: int = 64
    """Width of the recurrent layer: the size of the state of one node in one colour."""
    rounds: int = 16
    """Rounds in one call of the exported network. `solve` and the tables run more rounds."""
    damping: float = 0.85
    """Factor on messages in evaluation. Below 1 the states settle less, so the search continues."""
    encoder_width: int = 512
    """Width of the graph encoder: the size of the state of one node."""
    encoder_rounds: int = 8
    """Rounds of message passing in the graph encoder."""
    layers: int = 1
    """Recurrent layers; the rounds use them in turn. With 1, all rounds share the same weights."""

    def __post_init__(self) -> None:
        sizes = self.width, self.rounds, self.encoder_width, self.encoder_rounds, self.layers
        if min(sizes) < 1 or self.damping <= 0:
            asked = (
                f"--model.width {self.width} --model.rounds {self.rounds} --model.encoder-width {self.encoder_width} "
                f"--model.encoder-rounds {self.encoder_rounds} --model.layers {self.layers} "
                f"--model.damping {self.damping}"
            )
            raise UserError(asked, "sizes must be 1 or more, damping above 0", "raise them")


@dataclass(frozen=True)
class TaskWeights:
    """Factors of the task losses. The encoder's tasks share no weights with the recurrent layer."""

    colours: float = 1.0
    chromatic: float = 0.1
    type: float = 0.02
    difficulty: float = 0.02

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 <= value < float("inf"):
                raise UserError(f"--weights.{name} {value}", "weights are not negative", "give 0 or more")


@dataclass(frozen=True)
class LossSettings:
    """What the training and validation losses need; the fields of `Config` explain each of them."""

    weights: TaskWeights
    rounds: int
    discount: float
    softening: float
    colour_loss: Literal["conflicts", "one-colouring"]
    node_ids: bool


@dataclass(frozen=True)
class Config:
    """Settings of a graph-coloring run."""

    data: DataConfig = DataConfig()
    model: ModelConfig = ModelConfig()
    weights: TaskWeights = TaskWeights()
    optim: OptimConfig = OptimConfig(lr=1e-3, weight_decay=1e-4, warmup_updates=100)
    global_batch: int = 256
    """Graphs per update, on all ranks together."""
    iterations: int = free(4700)
    """Updates of the whole run."""
    rounds: int = 16
    """Rounds of message passing with gradients in each update."""
    burn_in: int = 48
    """Most rounds without gradients before them; the number is random in each update."""
    discount: float = 0.95
    """Weight of a round in the loss, relative to the next round."""
    softening: float = 5.0
    """Negative log-likelihood of a graph in nats; the loss grows only slowly above it."""
    max_colours: int = 32
    """Graphs that need more colours train only the encoder. Time and memory grow with it."""
    colour_loss: Literal["conflicts", "one-colouring"] = "conflicts"
    """conflicts: needs no reference. one-colouring: imitate a stored colouring, for the ablation."""
    node_ids: bool = True
    """Start from random numbers per node and colour; off: only per colour (for the ablation)."""
    eval_every: int = free(500)
    """Iterations between validations."""
    eval_graphs: int = 3000
    """Graphs per validation."""
    eval_rounds: int = 64
    """Rounds per graph in validation."""

    def __post_init__(self) -> None:
        counts = self.global_batch, self.iterations, self.eval_every, self.eval_graphs, self.eval_rounds
        if min(counts) < 1:
            raise UserError("--global-batch, --iterations or --eval-*", "a number below 1", "give 1 or more")
        if self.rounds < 1 or self.burn_in < 0 or self.softening <= 0 or self.max_colours < 1:
            asked = (
                f"--rounds {self.rounds} --burn-in {self.burn_in} --softening {self.softening} "
                f"--max-colours {self.max_colours}"
            )
            found = "rounds and max-colours are 1 or more, burn-in 0 or more, softening above 0"
            raise UserError(asked, found, "raise them")
        if not 0 < self.discount <= 1:
            raise UserError(f"--discount {self.discount}", "it must be above 0 and at most 1", "give 0.95, say")

    @property
    def loss_settings(self) -> LossSettings:
        """The part of the settings that the losses need."""
        return LossSettings(self.weights, self.rounds, self.discount, self.softening, self.colour_loss, self.node_ids)


def small() -> Config:
    """The shipped weights: 15 minutes on 2 CPU cores, plus the time to generate the graphs."""
    return replace(
        Config(),
        data=DataConfig(
            train_graphs=8000, validation_graphs=1000, unseen_graphs=200, max_nodes=120, threshold_share=0.6
        ),
        model=ModelConfig(width=32, encoder_width=64, encoder_rounds=6),
        optim=OptimConfig(lr=3e-3, weight_decay=1e-4, warmup_updates=30),
        global_batch=32,
        iterations=6000,
        max_colours=8,
        eval_graphs=256,
    )


def demo() -> Config:
    """About 3 minutes on 2 CPU cores, including the time to generate the graphs."""
    data = DataConfig(train_graphs=800, validation_graphs=100, unseen_graphs=60, max_nodes=60, threshold_share=0.5)
    return replace(small(), data=data, iterations=600, eval_every=150, eval_graphs=100)


PRESETS: dict[str, Callable[[], Config]] = {"full": Config, "small": small, "demo": demo}
"""full: 2.5 million parameters, 100 epochs of 12,000 graphs of up to 1,000 nodes, for a GPU."""
