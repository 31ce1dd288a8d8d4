"""Sums of rows with a deterministic gradient, on the CPU and on CUDA.

The gradient of a sum over index lists is again such a sum, over the transposed lists. So neither
pass uses atomic additions, and both give the same bits every time. Level L3 needs this.

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
    """Which input rows are summed into each output row: row r sums index_M[starts[r]:starts[r +
    1]]."""

    index_M: Tensor
    """int64[M]: the input row of each summand, ordered by output row."""
    starts: Tensor
    """int64[R + 1]: the first summand of each output row, then M."""
    back_index_M: Tensor
    """int64[M]: the output row of each summand, ordered by input row; for the gradient."""
    back_starts: Tensor
    """int64[N + 1]: the first summand of each input row, then M; for the gradient."""

    @property
    def transposed(self) -> Sums:
        """The sums with input rows and output rows exchanged."""
        return Sums(self.back_index_M, self.back_starts, self.index_M, self.starts)


def _at_least_float32(x_NF: Tensor) -> Tensor:
    """Sums are computed in float32 or wider, even if the layers use bfloat16."""
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
    """The sums float[R, F] of the rows of float[N, F]."""
    out: Tensor = _SumRows.apply(x_NF, sums)  # pyright: ignore[reportAssignmentType]
    return out


def row_starts(sorted_M: Tensor, num_rows: int) -> Tensor:
    """int64[num_rows + 1]: the first entry of each row in a sorted list of row numbers."""
    return torch.searchsorted(sorted_M, torch.arange(num_rows + 1, device=sorted_M.device))


def neighbour_sums(edge_index_2D: Tensor, num_nodes: int) -> Sums:
    """The sum over the neighbours of each node.

    `edge_index_2D` has both directions of each edge and is sorted by target, then by source. So the
    relation is symmetric, and the transposed lists are the same lists.
    """
    source_D, target_D = edge_index_2D
    starts = row_starts(target_D, num_nodes)
    return Sums(source_D, starts, source_D, starts)


def group_sums(group_M: Tensor, starts: Tensor) -> Sums:
    """The sum over the rows of each group. Transposed, it copies the row of a group to its members.

    `group_M`: int64[M], the group of each row, non-decreasing. `starts`: the first row of each
    group, then M.
    """
    each = torch.arange(len(group_M) + 1, device=group_M.device)
    return Sums(each[:-1], starts, group_M, each)


def sum_by_graph(x_MF: Tensor, graph_M: Tensor, num_graphs: int) -> Tensor:
    """float[B, F]: the sum over the rows of each graph; `graph_M` int64[M] is non-decreasing."""
    return sum_rows(x_MF, group_sums(graph_M, row_starts(graph_M, num_graphs)))
