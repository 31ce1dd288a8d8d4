"""How much a run may search in matches: a share of all that it searches.

Nodes stand for time, because they are the same on every machine: a run that is repeated plays the same matches.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LABEL_START_NODES = 1000
"""What it costs Stockfish to forget everything before a position, in nodes of our engine: 1.4 ms."""
LABEL_NODES_AT_DEPTH_0, GROWTH = 10, 2
"""Stockfish 15.1 needs about 10 x 2^depth nodes for a position: 2,700 at depth 8, 10,400 at depth 10."""


@dataclass
class NodeBudget:
    """`share`: of all nodes that matches may have, from 0 to 1."""

    share: float
    worked: int = 0
    """Nodes of games and labels so far; cached labels count as if they were searched."""
    spent: int = 0
    """Nodes of matches so far."""

    @property
    def left(self) -> float:
        """Nodes that matches may still search."""
        if self.share >= 1:
            return float("inf")
        return self.share / (1 - self.share) * self.worked - self.spent


def nodes_of_label(limit: str) -> int:
    """Nodes of a position that is labelled with `nodes:N` or `depth:D`."""
    match = re.fullmatch(r"(nodes|depth):(\d+)", limit)
    assert match is not None
    number = int(match[2])
    searched = number if match[1] == "nodes" else LABEL_NODES_AT_DEPTH_0 * GROWTH ** min(number, 40)
    return LABEL_START_NODES + searched
