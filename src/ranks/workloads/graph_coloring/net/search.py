"""Many parallel tries on one graph; `solve` and the bench use it.

Dense graphs use a product with the adjacency matrix, sparse graphs sums of rows. Both give the same
sums up to rounding.

Legend: N nodes, S parallel tries, K colours, R = N x S x K rows, T rounds, E undirected edges,
W width of the recurrent layer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ranks.engine.sharding import rng
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints
from ranks.workloads.graph_coloring.net.batch import collate
from ranks.workloads.graph_coloring.net.model import ColouringNet, RowLayout
from ranks.workloads.graph_coloring.net.rows import encode
from ranks.workloads.graph_coloring.net.sums import neighbour_sums, sum_rows

MIN_DENSITY, MAX_DENSE_NODES = 0.04, 4096
"""Graphs with at least this density and at most this number of nodes use the adjacency matrix."""
MAX_ROUNDS_AT_ONCE = 8
MAX_WORK_AT_ONCE = 1_000_000_000
"""Limits between two calls of `stop`: rounds, and their multiplications; at least one round runs."""
MAX_TRIES_AT_ONCE, MAX_ROWS_AT_ONCE = 16, 60_000
"""Limits of one batch of parallel tries."""


@dataclass(frozen=True)
class Tries:
    """The result of S tries."""

    colours_SN: Ints
    """The colouring of the best round of each try."""
    conflicts_S: Ints
    """The number of conflicting edges of these colourings."""
    by_round_TS: Ints
    """The number of conflicting edges of each try after each round."""


class GraphSearch:
    """Encodes a graph once, then colours it in any number of tries with any number of colours.

    `chromatic`, `difficulty`: the network's estimates.
    """

    def __init__(self, model: ColouringNet, graph: Graph, device: torch.device) -> None:
        self.model, self.graph, self.device = model, graph, device
        batch = collate([graph], [0], [0]).to(device)
        with torch.no_grad():
            encoding = encode(model, batch)
            self._context_NV = model.from_encoder(encoding.node_NH)
        self._scale_N1 = encoding.scale_N1
        self._edges_2E = batch.edges_2E
        self.chromatic, self.difficulty = float(encoding.chromatic_B[0]), float(encoding.difficulty_B[0])
        density = 2 * graph.num_edges / max(1, graph.n * (graph.n - 1))
        self._entries = 2 * graph.num_edges
        if density >= MIN_DENSITY and graph.n <= MAX_DENSE_NODES:
            self._entries = graph.n * graph.n
            adjacency_NN = torch.zeros(graph.n, graph.n, dtype=self._scale_N1.dtype, device=device)
            adjacency_NN[batch.edge_index_2D[1], batch.edge_index_2D[0]] = 1.0
            self._aggregate: Callable[[Tensor], Tensor] = lambda x_NF: adjacency_NN @ x_NF
        else:
            sums = neighbour_sums(batch.edge_index_2D, graph.n)
            self._aggregate = lambda x_NF: sum_rows(x_NF, sums)

    def tries_at_once(self, k: int) -> int:
        """The number of tries with k colours in one batch."""
        return max(1, min(MAX_TRIES_AT_ONCE, MAX_ROWS_AT_ONCE // max(1, self.graph.n * k)))

    def rounds_at_once(self, k: int, tries: int) -> int:
        """The number of rounds between two calls of `stop`."""
        width = self.model.width
        work = tries * k * width * (5 * width * self.graph.n + self._entries)  # of the linear layers and of the sums
        return min(MAX_ROUNDS_AT_ONCE, max(1, MAX_WORK_AT_ONCE // max(1, work)))

    def run(self, k: int, seed: int, attempts: range, rounds: int, stop: Callable[[], bool] = lambda: False) -> Tries:
        """Run one try for each number in `attempts`; its noise is keyed by (seed, k, number).

        All tries end when one of them is proper or `stop` returns true.
        """
        n, tries = self.graph.n, len(attempts)
        number_S = torch.tensor(list(attempts), device=self.device)
        noise_SR = rng.normal(rng.key(seed, f"search/{k}", 0), number_S, n * k)
        noise_R = noise_SR.view(tries, n, k).transpose(0, 1).reshape(-1).to(self._scale_N1.dtype)
        # Rows are ordered by node, then try, then colour, so each operation is a view and one
        # product or sum.
        layout = RowLayout(
            aggregate=lambda x: self._aggregate(x.view(n, -1)).view(x.shape),
            to_nodes=lambda x: x.view(n * tries, k, -1).mean(1),
            to_rows=lambda x: x[:, None].expand(-1, k, -1).reshape(n * tries * k, -1),
        )
        context_NV = self._context_NV[:, None].expand(-1, tries, -1).reshape(n * tries, -1)
        scale_R1 = self._scale_N1[:, None].expand(-1, tries * k, -1).reshape(-1, 1)
        colours: Tensor | None = None
        fewest_S, history = torch.full((tries,), self.graph.num_edges + 1, device=self.device), list[Tensor]()
        at_once = self.rounds_at_once(k, tries)
        with torch.no_grad():
            state_RW = self.model.initial_state(noise_R)
            for first in range(0, rounds, at_once):
                now = min(at_once, rounds - first)
                logits_TR, state_RW = self.model.colour(state_RW, context_NV, scale_R1, layout, now, first)
                colours_TNS = logits_TR.view(now, n, tries, k).argmax(-1)
                conflicts_TS = torch.stack([self._conflicts(c_NS) for c_NS in colours_TNS])
                history.append(conflicts_TS)
                # Keep the best round of each try: the first one with the fewest conflicts.
                now_S, best_S = conflicts_TS.min(0)
                found_NS = colours_TNS[best_S, :, torch.arange(tries, device=self.device)].T
                colours = found_NS if colours is None else torch.where(now_S < fewest_S, found_NS, colours)
                fewest_S = torch.minimum(fewest_S, now_S)
                if int(fewest_S.min()) == 0 or stop():
                    break
        assert colours is not None
        by_round: npt.NDArray[np.int64] = torch.cat(history).cpu().numpy()
        return Tries(np.ascontiguousarray(colours.T.cpu().numpy()), fewest_S.cpu().numpy(), by_round)

    def _conflicts(self, colours_NS: Tensor) -> Tensor:
        u_E, v_E = self._edges_2E
        return (colours_NS[u_E] == colours_NS[v_E]).sum(0)
