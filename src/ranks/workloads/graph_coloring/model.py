"""The net: recurrent message passing with one state for each node and each colour.

The same weights serve every round, every node and every colour. So the net runs for any number of rounds and any K,
renaming colours renames its answer, and renumbering nodes renumbers it. Random numbers per node and colour are its
input: they break the symmetry between equal nodes (Li et al. 2022, arXiv 2208.06975). It imports only torch.

Legend: N nodes, K colours, D directed edges (each edge in both directions), B graphs, T rounds, W width, V = 2W.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Gather = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Sums:
    """Which rows are added up into each output row. Row i sums the rows index_M[starts[i]:starts[i + 1]].

    `back_index_M`, `back_starts`: the same of the transposed relation, for the gradient. All int64.
    """

    index_M: Tensor
    starts: Tensor
    back_index_M: Tensor
    back_starts: Tensor


class _SumRows(torch.autograd.Function):
    """Sums of rows with a gradient that is a sum of rows too: no atomic addition, hence the same bits every time."""

    @staticmethod
    def forward(ctx: Any, x_NF: Tensor, sums: Sums) -> Tensor:
        ctx.sums = sums
        return F.embedding_bag(sums.index_M, x_NF.contiguous(), sums.starts[:-1], mode="sum")

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        sums: Sums = ctx.sums
        return F.embedding_bag(sums.back_index_M, grads[0].contiguous(), sums.back_starts[:-1], mode="sum"), None


def sum_rows(x_NF: Tensor, sums: Sums) -> Tensor:
    """float[rows, F] from float[N, F]."""
    out: Tensor = _SumRows.apply(x_NF, sums)  # pyright: ignore[reportAssignmentType]
    return out


def _starts(sorted_M: Tensor, num_rows: int) -> Tensor:
    """int64[num_rows + 1]: where each row's entries begin in a sorted list of row numbers."""
    return torch.searchsorted(sorted_M, torch.arange(num_rows + 1, device=sorted_M.device))


def neighbour_sums(edge_index_2D: Tensor, num_nodes: int) -> Sums:
    """For `edge_index_2D` sorted by target and holding both directions of each edge: it is its own transpose."""
    source_D, target_D = edge_index_2D
    starts = _starts(target_D, num_nodes)
    return Sums(source_D, starts, source_D, starts)


def group_sums(group_M: Tensor, num_groups: int) -> Sums:
    """Adds up rows by their group; `group_M` int64[M] is in rising order."""
    each = torch.arange(len(group_M) + 1, device=group_M.device)
    return Sums(each[:-1], _starts(group_M, num_groups), group_M, each)


class ColouringNet(nn.Module):
    """A gated recurrent cell (Cho et al. 2014, without its reset gate) for each node and colour.

    One round: each state sends a message along its edges, within its colour; what arrives is divided by the square
    root of the degree; the mean over a node's colours tells each colour of its rivals; the gate mixes old and new.

    In evaluation mode what arrives is multiplied by `damping`. Training makes the net settle; a net that settles a
    little less keeps on searching, and finds more proper colourings within its rounds.
    """

    def __init__(self, width: int = 32, rounds: int = 16, damping: float = 0.85) -> None:
        super().__init__()
        self.width, self.rounds, self.damping = width, rounds, damping
        self.start = nn.Linear(1, width)
        self.message = nn.Linear(width, width)
        self.from_self = nn.Linear(width, 2 * width)
        self.from_neighbours = nn.Linear(width, 2 * width, bias=False)
        self.from_colours = nn.Linear(width, 2 * width, bias=False)
        self.read_colour = nn.Linear(width, 1, bias=False)
        self.read_graph = nn.Sequential(nn.Linear(width + 3, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, node_features: Tensor, edge_index: Tensor, batch: Tensor) -> tuple[Tensor, Tensor]:
        """`node_features` float[N, K] (standard normal noise), `edge_index` int64[2, D] (both directions, any order),
        `batch` int64[N] (the graph of each node, rising) -> colour logits float[N, K], chromatic number float[B].

        Written with the operations that ONNX gets right; `unroll` is the fast twin for training.
        """
        source_D, target_D = edge_index
        num_graphs = int(batch.max()) + 1

        def neighbours(x_NF: Tensor) -> Tensor:
            # one edge more, to a row that is cut off: onnxruntime refuses to scatter nothing
            index_D = torch.cat([target_D, target_D.new_full((1,), len(x_NF))])
            sent_DF = F.pad(x_NF[source_D], (0, 0, 0, 1))
            padded = x_NF.new_zeros(len(x_NF) + 1, x_NF.shape[1])
            return padded.scatter_add(0, index_D[:, None].expand(-1, x_NF.shape[1]), sent_DF)[:-1]

        def graphs(x_NF: Tensor) -> Tensor:
            index = batch[:, None].expand(-1, x_NF.shape[1])
            return x_NF.new_zeros(num_graphs, x_NF.shape[1]).scatter_add(0, index, x_NF)

        logits_TNK, chromatic_B = self._run(node_features, neighbours, graphs, self.rounds)
        return logits_TNK[-1], chromatic_B

    def unroll(
        self,
        noise_NK: Tensor,
        edge_index_2D: Tensor,
        node_graph_N: Tensor,
        num_graphs: int,
        rounds: int,
        lead_in: int = 0,
    ) -> tuple[Tensor, Tensor]:
        """Like `forward`, with the logits of all rounds float[T, N, K]; `edge_index_2D` is sorted by target.

        `lead_in`: rounds before the first of the T, without gradients and without logits.
        """
        near, graph = neighbour_sums(edge_index_2D, len(noise_NK)), group_sums(node_graph_N, num_graphs)
        return self._run(noise_NK, lambda x: sum_rows(x, near), lambda x: sum_rows(x, graph), rounds, lead_in)

    def _run(
        self, noise_NK: Tensor, neighbours: Gather, graphs: Gather, rounds: int, lead_in: int = 0
    ) -> tuple[Tensor, Tensor]:
        ones_N1 = torch.ones_like(noise_NK[:, :1])
        degree_N1 = neighbours(ones_N1)
        scale_N11 = degree_N1.clamp(min=1).rsqrt()[:, :, None] * (1.0 if self.training else self.damping)
        state_NKW = torch.tanh(self.start(noise_NK[:, :, None]))
        logits: list[Tensor] = []
        if lead_in:
            with torch.no_grad():
                for _ in range(lead_in):
                    state_NKW = self._round(state_NKW, neighbours, scale_N11)
        for _ in range(rounds):
            state_NKW = self._round(state_NKW, neighbours, scale_N11)
            logits.append(self.read_colour(state_NKW)[:, :, 0])
        return torch.stack(logits), self._chromatic(state_NKW.detach(), degree_N1, graphs)

    def _round(self, state_NKW: Tensor, neighbours: Gather, scale_N11: Tensor) -> Tensor:
        sent_NKW = F.silu(self.message(state_NKW))
        heard_NKW = neighbours(sent_NKW.flatten(1)).view(state_NKW.shape) * scale_N11
        rivals_N1V = self.from_colours(state_NKW.mean(1, keepdim=True))
        mixed_NKV = self.from_self(state_NKW) + self.from_neighbours(heard_NKW) + rivals_N1V
        keep_NKW, new_NKW = mixed_NKV.chunk(2, -1)
        return torch.lerp(torch.tanh(new_NKW), state_NKW, torch.sigmoid(keep_NKW))

    def _chromatic(self, state_NKW: Tensor, degree_N1: Tensor, graphs: Gather) -> Tensor:
        """float[B], at least 1. Reads the final states without steering them: they are detached."""
        num_nodes_B1 = graphs(torch.ones_like(degree_N1))
        state_BW = graphs(state_NKW.mean(1)) / num_nodes_B1
        degree_B1 = graphs(degree_N1) / num_nodes_B1
        colours_B1 = torch.full_like(num_nodes_B1, float(state_NKW.shape[1]))
        facts_BF = torch.cat([state_BW, num_nodes_B1.log(), torch.log1p(degree_B1), colours_B1.log()], 1)
        return 1 + F.softplus(self.read_graph(facts_BF)[:, 0])


def sum_by_graph(x_MF: Tensor, graph_M: Tensor, num_graphs: int) -> Tensor:
    """float[B, F]: rows added up by their graph; `graph_M` int64[M] is in rising order."""
    return sum_rows(x_MF, group_sums(graph_M, num_graphs))
