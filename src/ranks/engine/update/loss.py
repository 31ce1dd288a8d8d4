"""What a loss function returns: a sum over items and their count, not a mean.

The learner divides once, by the count of all ranks. So neither the number of ranks nor the size of
a micro-batch changes the gradient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from numbers import Real
from typing import cast

from torch import Tensor

from ranks.errors import UserError

Metric = Tensor | tuple[Tensor, Tensor | int]


@dataclass(frozen=True, init=False)
class Loss:
    """`sum`: 0-d, the sum over items of each item's loss. `count`: the number of items.

    A metric is a tensor with one value per item, or a pair (sum, count) where it counts something
    else (nodes, steps). Raises UserError for another shape.
    """

    sum: Tensor
    count: int
    metrics: dict[str, Metric] = field(default_factory=dict[str, Metric])

    def __init__(self, sum: Tensor, count: int, **metrics: Metric) -> None:
        if sum.ndim != 0:
            do = "return the sum over the items: loss_B.sum()"
            raise UserError("the sum of a Loss", f"a tensor of shape {list(sum.shape)}, not 0-d", do)
        _check_count(count)
        for name, metric in metrics.items():
            _check_shape(name, metric, count)
        object.__setattr__(self, "sum", sum)
        object.__setattr__(self, "count", count)
        object.__setattr__(self, "metrics", metrics)

    def parts(self) -> tuple[list[str], list[Tensor], list[Tensor | int]]:
        """Names, 0-d sums and counts: the loss first, then the metrics in the order of the
        arguments."""
        names, sums, counts = ["loss"], [self.sum.detach()], [self.count]
        out_counts: list[Tensor | int] = list(counts)
        for name, metric in self.metrics.items():
            total, count = metric if isinstance(metric, tuple) else (metric.sum(), metric.numel())
            names.append(name)
            sums.append(total.detach())
            out_counts.append(count)
        return names, sums, out_counts


def _check_shape(name: str, metric: object, count: int) -> None:
    """Raises UserError where a metric neither has one value per item nor is a pair of single values."""
    if isinstance(metric, Tensor) and metric.shape == (count,):
        return
    asked = f"the metric {name} of a Loss over {count} items"
    if isinstance(metric, tuple):
        parts = cast("tuple[object, ...]", metric)
        shapes = [str(list(part.shape)) for part in parts if isinstance(part, Tensor) and part.ndim]
        if shapes:
            do = "give two single numbers: (values.sum(), values.numel())"
            raise UserError(asked, f"a pair with tensors of shape {', '.join(shapes)}", do)
        return
    found = f"a tensor of shape {list(metric.shape)}" if isinstance(metric, Tensor) else f"a {type(metric).__name__}"
    raise UserError(asked, found, f"give one value per item, shape [{count}], or a pair (sum, count)")


def _check_count(count: object) -> None:
    """Raises UserError for a count that is no number of items."""
    if isinstance(count, Tensor):
        raise UserError("Loss.count", "it is a tensor", "give a Python number: it must be known without the device")
    if not isinstance(count, Real) or not 0 <= float(count) < math.inf:
        raise UserError("Loss.count", f"it is {count!r}", "give the number of items that the sum covers, 0 or more")


def check_total_count(count: float, max_count: float, update: int) -> None:
    """Raises UserError for a count of a whole update that cannot be divided by, or that the type of the
    gradients, in which it is summed, does not hold exactly."""
    if count <= 0:
        found = f"at update {update} it is zero on all ranks together"
        raise UserError("Loss.count", found, "give every update at least one item, or leave this update out")
    if count > max_count:
        found = f"at update {update} it adds up to {count:.4g}; it is exact up to {max_count:,.0f} in this precision"
        raise UserError("Loss.count", found, "count larger units (sequences, not tokens), or use a smaller batch")


def returned(value: object) -> Loss:
    """The Loss that a loss function returned. Raises UserError where it returned something else."""
    if isinstance(value, Loss):
        return value
    raise UserError(
        "a Loss from the loss function",
        f"it returned a {type(value).__name__}",
        "return Loss(sum over the items, their number); the learner divides by the number of all ranks' items",
    )
