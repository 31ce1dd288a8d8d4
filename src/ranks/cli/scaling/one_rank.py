"""`ranks scale --micro-batch` and `--global-batch`: one rank with other batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ranks.cli.columns import aligned
from ranks.cli.flags.settings import Settings
from ranks.cli.scaling.measure import Case, Measurement
from ranks.cli.units import short_s, size
from ranks.engine.config import OptimConfig
from ranks.errors import UserError
from ranks.hardware.scale.split import Parts, ShortRun
from ranks.hardware.units import rate

Kind = Literal["micro-batch", "global-batch"]
ANOTHER = (
    "a larger global batch is another training: fewer updates for as many items, less noise in the gradient, "
    "often another learning rate. Compare results after the same number of items before you choose one"
)
SAME = (
    "the micro-batch changes speed and memory, not the result beyond rounding (batch normalisation is an exception), "
    "so the learning rate stays. A larger global batch is another training: ranks scale ... --global-batch 64,128"
)


@dataclass(frozen=True)
class BatchPoint:
    """One size of a batch on one rank."""

    batch: int
    iteration_s: float
    items_per_s: Mapping[str, float]
    peak_bytes: int
    learning_rate: float | None = None
    """By the rule of the optimizer's settings for the global batch; None where one of them is not known."""


def measure_batches(
    measurement: Measurement, settings: Settings, kind: Kind, sizes: Sequence[int]
) -> tuple[list[BatchPoint], str]:
    """One point for each size, and the name of the device. Raises UserError."""
    rates = learning_rates(settings.config, kind, sizes)
    cases = [Case(f"--{kind} {size}", 1, (f"--{kind}", str(size))) for size in sizes]
    runs = measurement.run(cases)
    points = [_point(size, runs[case.label], rates[size]) for size, case in zip(sizes, cases, strict=True)]
    return points, runs[cases[0].label][0].devices[0]


def learning_rates(config: Any, kind: Kind, sizes: Sequence[int]) -> dict[int, float | None]:
    """The learning rate of each size. A micro-batch leaves the global batch, and so the rate, as it is. Raises
    UserError where the rule has no base batch."""
    same = getattr(config, "global_batch", None)
    return {size: learning_rate(config, size if kind == "global-batch" else same) for size in sizes}


def learning_rate(config: Any, global_batch: int | None) -> float | None:
    """What the rule of the settings gives for a global batch; None where Config has no optimizer's settings, or where
    the rule needs a batch that is not known. Raises UserError where the rule has no base batch."""
    optim = getattr(config, "optim", None)
    if not isinstance(optim, OptimConfig):
        return None
    if global_batch is None:
        return optim.lr if optim.lr_rule == "none" else None
    return optim.resolve(global_batch=global_batch, updates=1).lr


def check_sizes(kind: Kind, sizes: Sequence[int]) -> list[int]:
    """The sizes, increasing. Raises UserError."""
    if not sizes or min(sizes) < 1:
        asked = f"--{kind} {','.join(map(str, sizes))}"
        raise UserError(asked, "numbers from 1 on are needed", f"give --{kind} 64,128,256, for example")
    return sorted(set(sizes))


def _point(batch: int, rounds: Sequence[ShortRun], learning_rate: float | None) -> BatchPoint:
    seconds = Parts.mean([run.parts for run in rounds]).total
    items = {kind: sum(run.items[kind] for run in rounds) / len(rounds) / seconds for kind in rounds[0].items}
    return BatchPoint(batch, seconds, items, max(run.peak_bytes for run in rounds), learning_rate)


def batch_table(kind: Kind, points: Sequence[BatchPoint], rule: str | None) -> str:
    """One line for each size, and what it means for the result."""
    item = next(iter(points[0].items_per_s), "")
    with_rates = points[0].learning_rate is not None
    head = [kind.replace("-", " "), "iteration", f"{item or 'iterations'}/s", "memory"]
    lines = [[*head, *([f"learning rate ({rule})"] if with_rates else [])]]
    for p in points:
        speed = p.items_per_s[item] if item else 1 / p.iteration_s
        cells = [str(p.batch), short_s(p.iteration_s), rate(speed), size(p.peak_bytes)]
        lines.append([*cells, *([f"{p.learning_rate:.3g}"] if with_rates else [])])
    return f"{aligned(lines, left=[])}\n\n{ANOTHER if kind == 'global-batch' else SAME}"


def rule_of(config: Any) -> str | None:
    """The name of the rule of the learning rate."""
    optim = getattr(config, "optim", None)
    if not isinstance(optim, OptimConfig):
        return None
    return "no rule" if optim.lr_rule == "none" else f"{optim.lr_rule} from batch {optim.base_batch}"
