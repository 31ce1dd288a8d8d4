"""Settings of graph-coloring. Imports no torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ranks.engine.config import OptimConfig, free
from ranks.errors import UserError


@dataclass(frozen=True)
class DataConfig:
    """The graphs that are made for training and validation."""

    num_graphs: int = 1 << 18
    """Different training graphs; they are made when needed and never stored."""
    min_nodes: int = 40
    max_nodes: int = 120
    min_degree: float = 3.5
    """Least average degree of the graphs near the 3-colouring threshold (which lies at about 4.69)."""
    max_degree: float = 4.6
    planted_share: float = 0.08
    """Share of graphs with a hidden colouring of 3 to `planted_colours` colours."""
    planted_colours: int = 6
    small_share: float = 0.04
    """Share of small graphs whose chromatic number is computed exactly."""
    small_nodes: int = 18

    def __post_init__(self) -> None:
        if not 2 <= self.min_nodes <= self.max_nodes:
            raise UserError(
                f"--data.min-nodes {self.min_nodes}", f"max-nodes is {self.max_nodes}", "give 2 <= min <= max"
            )
        if not 0 < self.min_degree <= self.max_degree <= self.min_nodes - 1:
            raise UserError(
                f"--data.min-degree {self.min_degree} --data.max-degree {self.max_degree}",
                f"graphs of {self.min_nodes} nodes have average degrees up to {self.min_nodes - 1}",
                "give 0 < min-degree <= max-degree <= min-nodes - 1",
            )
        if min(self.planted_share, self.small_share) < 0 or self.planted_share + self.small_share > 1:
            raise UserError(
                f"--data.planted-share {self.planted_share} --data.small-share {self.small_share}",
                "shares are not negative and add up to at most 1",
                "lower one of them",
            )
        if self.planted_colours < 3 or self.small_nodes < 4 or self.num_graphs < 1:
            raise UserError(
                f"--data.planted-colours {self.planted_colours} --data.small-nodes {self.small_nodes}",
                "planted graphs have 3 colours or more, small graphs 4 nodes or more",
                "raise them",
            )


@dataclass(frozen=True)
class ModelConfig:
    """The size of the net."""

    width: int = 32
    """Numbers that describe one node in one colour."""
    rounds: int = 16
    """Rounds of the exported net in one call (solve and the table run more); many rounds amplify rounding."""
    damping: float = 0.85
    """Strength of messages in evaluation, against training: below 1 the net goes on searching where it would settle."""

    def __post_init__(self) -> None:
        if self.width < 1 or self.rounds < 1 or self.damping <= 0:
            asked = f"--model.width {self.width} --model.rounds {self.rounds} --model.damping {self.damping}"
            raise UserError(asked, "width and rounds are 1 or more, damping is above 0", "raise them")


@dataclass(frozen=True)
class Config:
    """Everything that shapes a training run of graph-coloring."""

    data: DataConfig = DataConfig()
    model: ModelConfig = ModelConfig()
    optim: OptimConfig = OptimConfig(lr=3e-3, weight_decay=1e-4, warmup_updates=30)
    global_batch: int = 32
    """Graphs of one update, all ranks together."""
    iterations: int = free(4500)
    """Updates of the whole run."""
    rounds: int = 16
    """Rounds of message passing that an update learns from."""
    lead_in: int = 48
    """Before them run up to so many rounds without gradients, another number in each update."""
    discount: float = 0.95
    """Weight of a round against the next one in the loss."""
    forgiven: float = 5.0
    """Conflicts of a graph, as surprise in nats, above which the loss grows slowly."""
    chromatic_weight: float = 0.02
    """Weight of the chromatic number's loss beside the conflicts'."""
    eval_every: int = free(400)
    """Iterations between validations."""
    eval_graphs: int = 64
    """Hard 3-colourable graphs that a validation colours."""
    eval_nodes: int = 70
    eval_tries: int = 3
    """Different random starts per validation graph."""
    eval_rounds: int = 64

    def __post_init__(self) -> None:
        if (
            min(
                self.global_batch, self.iterations, self.eval_every, self.eval_graphs, self.eval_tries, self.eval_rounds
            )
            < 1
        ):
            raise UserError("--global-batch, --iterations or --eval-*", "a number below 1", "give 1 or more")
        if self.eval_nodes < 4:
            raise UserError(
                f"--eval-nodes {self.eval_nodes}", "fewer than 4 nodes are always 3-colourable", "give 4 or more"
            )
        if self.rounds < 1 or self.lead_in < 0 or self.forgiven <= 0:
            asked = f"--rounds {self.rounds} --lead-in {self.lead_in} --forgiven {self.forgiven}"
            raise UserError(asked, "rounds are 1 or more, lead-in 0 or more, forgiven above 0", "raise them")
        if not 0 < self.discount <= 1:
            raise UserError(f"--discount {self.discount}", "it lies in (0, 1]", "give 0.95, say")


def demo() -> Config:
    """About 3 minutes on 2 CPU cores."""
    return replace(Config(), iterations=900, eval_every=150, eval_graphs=32)


def hard() -> Config:
    """About ten minutes on 2 CPU cores: the net of the table."""
    return replace(Config(), eval_every=500)


PRESETS: dict[str, Callable[[], Config]] = {"demo": demo, "hard": hard}
