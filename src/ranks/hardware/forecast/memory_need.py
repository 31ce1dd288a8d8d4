"""The memory of a rank as a line over the items of a pass.

The peak is what a rank always holds (parameters, gradients, optimizer, data, libraries) and what grows with the items
of a pass (activations and their temporaries):

    peak = fixed + items * bytes_per_item

An evaluation or a save may need more than that. Their peak is measured apart, as it does not grow with the items of a
pass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

TIGHT = 0.9
"""Share of the memory above which a run has little room."""


@dataclass(frozen=True)
class MemoryNeed:
    """Of one rank."""

    pass_items: int
    """Of its largest pass."""
    fixed_bytes: float
    bytes_per_item: float
    evaluation_bytes: float = 0.0
    """The peak of a run with small passes that evaluates and saves."""

    @property
    def peak_bytes(self) -> float:
        return max(self.fixed_bytes + self.pass_items * self.bytes_per_item, self.evaluation_bytes)

    def largest_pass(self, memory_bytes: float) -> int:
        """The most items of a pass that fit; 0 where not even one does."""
        if self.evaluation_bytes > memory_bytes:
            return 0
        if self.bytes_per_item <= 0:
            return self.pass_items if self.fixed_bytes <= memory_bytes else 0
        return max(0, math.floor((memory_bytes - self.fixed_bytes) / self.bytes_per_item))

    def share_that_fits(self, memory_bytes: float, global_batch: int, most_pass: int | None = None) -> float:
        """The largest share of a global batch that a rank with so much memory can carry, from 0 to 1. `most_pass`: the
        items of a pass at most, where the settings split a rank's items; None: a rank takes them in one pass."""
        largest = self.largest_pass(memory_bytes)
        if largest and (self.bytes_per_item <= 0 or (most_pass is not None and largest >= most_pass)):
            return 1.0
        return min(1.0, largest / global_batch)
