"""Settings of graph-coloring. Imports no torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from ranks.engine.config import OptimConfig, free
from ranks.errors import UserError

MIN_NODES, MAX_NODES = 10, 1000
"""Sizes of the graphs that are made for training and validation."""


@dataclass(frozen=True)
class DataConfig:
    """The graphs to train on: made once, kept in the cache, the same for every run that asks for the same."""

    seed: int = 0
    """Which graphs are made; the run's own --seed has no part in it."""
    train_graphs: int = 12_000
    validation_graphs: int = 3_000
    unseen_graphs: int = 600
    """Graphs of families and sizes that training and validation never show: `ranks evaluate` makes and reports them."""
    max_nodes: int = 1000
    """Of 100 graphs 30 have 10-50 nodes, 40 up to 200, 25 up to 500, 5 up to 1000; what lies above this is left out."""
    min_nodes: int = MIN_NODES
    threshold_share: float = 0.25
    """Share of graphs at the 3-colouring threshold, the hardest of their size; the other families share the rest."""
    labels: Literal["full", "bounds"] = "full"
    """full: chromatic numbers by search, difficulty by TabuCol. bounds: what NumPy alone can tell, in less time."""
    folder: Path | None = free(None)
    """Train on the graph files in this folder instead; a fifth of them is kept for validation."""

    def __post_init__(self) -> None:
        counts = {name: vars(self)[name] for name in ("train_graphs", "validation_graphs", "unseen_graphs")}
        for name, count in counts.items():
            if count < 1:
                raise UserError(f"--data.{name.replace('_', '-')} {count}", "no graph at all", "give 1 or more")
        if not MIN_NODES <= self.min_nodes <= self.max_nodes <= MAX_NODES:
            asked = f"--data.min-nodes {self.min_nodes} --data.max-nodes {self.max_nodes}"
            found = f"the graphs that are made have {MIN_NODES} to {MAX_NODES:,} nodes"
            raise UserError(asked, found, "give numbers between them, the smaller first")
        if not 0 <= self.threshold_share <= 1:
            raise UserError(f"--data.threshold-share {self.threshold_share}", "no share", "give a number from 0 to 1")


@dataclass(frozen=True)
class ModelConfig:
    """The size of the net."""

    width: int = 64
    """Numbers that describe one node in one colour."""
    rounds: int = 16
    """Rounds of the exported net in one call (solve and the tables run more); many rounds amplify rounding."""
    damping: float = 0.85
    """Strength of messages in evaluation, against training: below 1 the net goes on searching where it would settle."""
    reader_width: int = 512
    """Numbers that describe one node, whatever its colour."""
    reader_rounds: int = 8
    """Rounds of message passing before a graph is judged."""
    cells: int = 1
    """Different sets of weights that take turns in the rounds; 1 is a recurrent net."""

    def __post_init__(self) -> None:
        sizes = self.width, self.rounds, self.reader_width, self.reader_rounds, self.cells
        if min(sizes) < 1 or self.damping <= 0:
            asked = (
                f"--model.width {self.width} --model.rounds {self.rounds} --model.reader-width {self.reader_width} "
                f"--model.reader-rounds {self.reader_rounds} --model.cells {self.cells} --model.damping {self.damping}"
            )
            raise UserError(asked, "sizes are 1 or more, damping is above 0", "raise them")


@dataclass(frozen=True)
class TaskWeights:
    """What each task's loss is multiplied by. The reader's tasks share no weights with the colours' cell."""

    colours: float = 1.0
    chromatic: float = 0.1
    type: float = 0.02
    difficulty: float = 0.02

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 <= value < float("inf"):
                raise UserError(f"--weights.{name} {value}", "weights are not negative", "give 0 or more")


@dataclass(frozen=True)
class Config:
    """Everything that shapes a training run of graph-coloring."""

    data: DataConfig = DataConfig()
    model: ModelConfig = ModelConfig()
    weights: TaskWeights = TaskWeights()
    optim: OptimConfig = OptimConfig(lr=1e-3, weight_decay=1e-4, warmup_updates=100)
    global_batch: int = 256
    """Graphs of one update, all ranks together."""
    iterations: int = free(4700)
    """Updates of the whole run."""
    rounds: int = 16
    """Rounds of message passing that an update learns from."""
    lead_in: int = 48
    """Before them run up to so many rounds without gradients, another number in each update."""
    discount: float = 0.95
    """Weight of a round against the next one in the loss."""
    forgiven: float = 5.0
    """Conflicts of a graph, as surprise in nats, above which the loss grows slowly."""
    max_colours: int = 32
    """Graphs that need more colours are read, but not coloured: time and memory grow with the colours."""
    colour_loss: Literal["conflicts", "one-colouring"] = "conflicts"
    """conflicts needs no reference; one-colouring imitates the stored colouring (for the ablation)."""
    node_ids: bool = True
    """Random numbers for each node and colour; without them only for each colour (for the ablation)."""
    eval_every: int = free(500)
    """Iterations between validations."""
    eval_graphs: int = 3000
    """Validation graphs that a validation takes."""
    eval_rounds: int = 64

    def __post_init__(self) -> None:
        counts = self.global_batch, self.iterations, self.eval_every, self.eval_graphs, self.eval_rounds
        if min(counts) < 1:
            raise UserError("--global-batch, --iterations or --eval-*", "a number below 1", "give 1 or more")
        if self.rounds < 1 or self.lead_in < 0 or self.forgiven <= 0 or self.max_colours < 1:
            asked = (
                f"--rounds {self.rounds} --lead-in {self.lead_in} --forgiven {self.forgiven} "
                f"--max-colours {self.max_colours}"
            )
            found = "rounds and max-colours are 1 or more, lead-in 0 or more, forgiven above 0"
            raise UserError(asked, found, "raise them")
        if not 0 < self.discount <= 1:
            raise UserError(f"--discount {self.discount}", "it lies in (0, 1]", "give 0.95, say")


def small() -> Config:
    """About 15 minutes on 2 CPU cores, besides making the graphs: the net that ships with the package."""
    return replace(
        Config(),
        data=DataConfig(
            train_graphs=8000, validation_graphs=1000, unseen_graphs=200, max_nodes=120, threshold_share=0.6
        ),
        model=ModelConfig(width=32, reader_width=64, reader_rounds=6),
        optim=OptimConfig(lr=3e-3, weight_decay=1e-4, warmup_updates=30),
        global_batch=32,
        iterations=6000,
        max_colours=8,
        eval_graphs=256,
    )


def demo() -> Config:
    """About 3 minutes on 2 CPU cores, making the graphs included."""
    data = DataConfig(train_graphs=800, validation_graphs=100, unseen_graphs=60, max_nodes=60, threshold_share=0.5)
    return replace(small(), data=data, iterations=600, eval_every=150, eval_graphs=100)


PRESETS: dict[str, Callable[[], Config]] = {"full": Config, "small": small, "demo": demo}
"""full: about 2.5 million parameters, 100 epochs of 12,000 graphs of up to 1,000 nodes, for a GPU."""
