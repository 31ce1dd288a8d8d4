"""What a graph costs in an update, so that ranks get equal work and micro-batches fit in memory.

A recurrent layer of width w works on each node (the encoder) or on each row, which is a node with
one of its colours. A round multiplies each state by 5 w^2 weights, does about thirty elementwise
operations on it, and adds up the messages of its neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ranks.workloads.graph_coloring.config import Config

MESSAGE_AND_GATES = 5
"""Weights of a round, divided by w^2: `message` has w^2, `from_self` and `from_neighbours` 2 w^2."""
WITH_GRADIENT = 3
"""A round with its backward pass costs as much as this many rounds without one."""
ELEMENTWISE, NEIGHBOUR = 480.0, 8.0
"""The time of the elementwise operations on one number of a state, and of adding one number of a
neighbour's message, in multiply-adds of a linear layer. Fitted on one CPU thread (481 and 7.8):
benchmarks/results/coloring_cost_2026-11-22.json, from `python -m benchmarks.graph_coloring.cost`."""


@dataclass(frozen=True)
class UpdateCost:
    """The cost of each part of a graph, in multiply-adds."""

    node: float
    edge: float
    row: float
    """Of a node in one colour."""
    entry: float
    """Of an edge in one colour."""

    @classmethod
    def of(cls, cfg: Config, elementwise: float = ELEMENTWISE, neighbour: float = NEIGHBOUR) -> UpdateCost:
        """The costs in an update with these settings and a burn-in of average length."""

        def state(width: int) -> float:
            return MESSAGE_AND_GATES * width**2 + elementwise * width

        encoder_rounds = WITH_GRADIENT * cfg.model.encoder_rounds
        rounds = WITH_GRADIENT * cfg.rounds + cfg.burn_in / 2
        encoder_width, width = cfg.model.encoder_width, cfg.model.width
        return cls(
            node=encoder_rounds * state(encoder_width),
            edge=encoder_rounds * 2 * neighbour * encoder_width,
            row=rounds * state(width),
            entry=rounds * 2 * neighbour * width,
        )

    def of_graphs(self, nodes_G: Tensor, edges_G: Tensor, colours_G: Tensor) -> Tensor:
        """float64[G]: the cost of each graph."""
        of_node = self.node + self.row * colours_G.to(torch.float64)
        of_edge = self.edge + self.entry * colours_G.to(torch.float64)
        return nodes_G * of_node + edges_G * of_edge
