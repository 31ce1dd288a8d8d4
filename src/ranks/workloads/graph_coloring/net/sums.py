"""Sums of rows whose gradient is a sum of rows too: no atomic addition, hence the same bits every time, and L3.

Legend: M summands, R output rows, N input rows, F features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F


@dataclass(frozen=True)
class Sums:
    """Which rows are added up into each output row: row r sums the rows index_M[starts[r]:starts[r + 1]].

    `back_index_M`, `back_starts`: the same of the transposed relation, for the gradient. All int64.
    """

    index_M: Tensor
    starts: Tensor
    back_index_M: Tensor
    back_starts: Tensor

    @property
    def transposed(self) -> Sums:
        return Sums(self.back_index_M, self.back_starts, self.index_M, self.starts)


def _at_least_float32(x_NF: Tensor) -> Tensor:
    """Sums are made in float32 or wider, also where the layers around them are narrower."""
    return (x_NF.float() if x_NF.dtype.itemsize < 4 else x_NF).contiguous()


class _SumRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_NF: Tensor, sums: Sums) -> Tensor:
        ctx.sums, ctx.dtype = sums, x_NF.dtype
        return F.embedding_bag(sums.index_M, _at_least_float32(x_NF), sums.starts[:-1], mode="sum")

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        sums: Sums = ctx.sums
        grad_NF = F.embedding_bag(sums.back_index_M, _at_least_float32(grads[0]), sums.back_starts[:-1], mode="sum")
        return grad_NF.to(ctx.dtype), None


def sum_rows(x_NF: Tensor, sums: Sums) -> Tensor:
    """float[R, F] from float[N, F]."""
    out: Tensor = _SumRows.apply(x_NF, sums)  # pyright: ignore[reportAssignmentType]
    return out


def row_starts(sorted_M: Tensor, num_rows: int) -> Tensor:
    """int64[num_rows + 1]: where each row's entries begin in a sorted list of row numbers."""
    return torch.searchsorted(sorted_M, torch.arange(num_rows + 1, device=sorted_M.device))


def neighbour_sums(edge_index_2D: Tensor, num_nodes: int) -> Sums:
    """For `edge_index_2D` sorted by target and holding both directions of each edge: it is its own transpose."""
    source_D, target_D = edge_index_2D
    starts = row_starts(target_D, num_nodes)
    return Sums(source_D, starts, source_D, starts)


def group_sums(group_M: Tensor, num_groups: int) -> Sums:
    """Adds up rows by their group, int64[M] in rising order. Transposed, it copies a group's row to each."""
    each = torch.arange(len(group_M) + 1, device=group_M.device)
    return Sums(each[:-1], row_starts(group_M, num_groups), group_M, each)


def sum_by_graph(x_MF: Tensor, graph_M: Tensor, num_graphs: int) -> Tensor:
    """float[B, F]: rows added up by their graph; `graph_M` int64[M] is in rising order."""
    return sum_rows(x_MF, group_sums(graph_M, num_graphs))
