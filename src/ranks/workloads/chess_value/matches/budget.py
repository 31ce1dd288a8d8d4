"""How much a run may search in matches: a share of all that it searches.

Nodes of our engine stand for time, because they are the same on every machine: a run that is repeated plays the same
matches. So nothing here may depend on a clock, or on what a label cache holds: a cached label counts as if it were
searched. Else a resumed run, whose labels are cached, would play other matches and train another net.
"""

from __future__ import annotations

from dataclasses import dataclass

from ranks.workloads.chess_value.config import STATIC, Config, ValueNetConfig
from ranks.workloads.chess_value.net.planes import CNN_PLANES, RESNET_PLANES

LABEL_START_NODES = 1000
"""What it costs Stockfish to forget everything before a position, in nodes of our engine: 1.4 ms."""
STATIC_NODES = 200
"""A static evaluation of Stockfish: 0.2 ms, most of it the table that its command `eval` writes."""
LABEL_NODES_AT_DEPTH_0, GROWTH = 10, 2
"""Stockfish 15.1 needs about 10 x 2^depth nodes for a position: 2,700 at depth 8, 10,400 at depth 10."""
UPDATE_NODES = 8
"""A position of an update of an nnue, in nodes that all cores search in that time. An estimate, not measured; a cnn or
a resnet takes longer, so their matches then have less than their share."""
PASS_NODES, MULTIPLICATIONS_OF_A_NODE = 800, 10_000
"""What a simulation with its forward pass costs on one core, in nodes of our engine of 1.4 us: the calls, and the
multiplications. Measured on a busy core: 6.9 ms for the default cnn, 6.4 ms for the default resnet, 1.3 ms for a cnn of
4 channels. A GPU needs less, so matches then take less than their share."""


@dataclass
class NodeBudget:
    """`share`: of all nodes that matches may have, from 0 to 1."""

    share: float
    worked: int = 0
    """Nodes of games, labels and updates so far."""
    spent: int = 0
    """Nodes of matches so far."""

    @property
    def whole(self) -> float:
        """Nodes that all matches so far may have searched."""
        return float("inf") if self.share >= 1 else self.share / (1 - self.share) * self.worked

    @property
    def left(self) -> float:
        """Nodes that matches may still search."""
        return self.whole - self.spent


def nodes_of_labels(cfg: Config, positions: int, *, by_net: bool) -> int:
    """Nodes of the labels of so many positions whose sources gave no score. `by_net`: whether the net itself searches
    for `--labels search`, and not the engine's tables."""
    if cfg.labels == "outcome":
        return 0
    limit = cfg.label
    searched = LABEL_NODES_AT_DEPTH_0 * GROWTH ** min(limit.depth, 40) if limit.depth is not None else limit.nodes or 0
    if cfg.labels == "stockfish":
        if limit.limit == STATIC:
            return positions * STATIC_NODES
        return positions * (LABEL_START_NODES + searched)
    return positions * searched * (cost_of_node(cfg.net) if by_net else 1)


def cost_of_node(net: ValueNetConfig) -> int:
    """What a node of the net's player costs, in nodes of our engine: 1 for nnue, which plays in it. A node of a cnn or
    a resnet is a simulation of the tree search with one forward pass."""
    if net.kind == "nnue":
        return 1
    return PASS_NODES + multiplications(net) // MULTIPLICATIONS_OF_A_NODE


def multiplications(net: ValueNetConfig) -> int:
    """Of a forward pass of one position through a cnn or a resnet, without the few of its last layers."""
    if net.kind == "cnn":
        first, second, third = net.channels
        linear = 64 * third * net.hidden[0] + net.hidden[0] * net.hidden[1]
        return 64 * 9 * (CNN_PLANES * first + first * second + second * third) + linear
    width = net.block_channels
    return 64 * 9 * (RESNET_PLANES * width + 2 * net.blocks * width * width)
