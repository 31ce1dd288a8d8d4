"""The network as an ONNX file.

Inputs: `node_features` float32[N, F + K] (raw counts of each node, then K standard normal numbers),
`edge_index` int64[2, D] (both directions), `batch` int64[N] (the graph of each node,
non-decreasing). Outputs: `color_logits` float32[N, K], `chromatic` float32[B], `graph_type_logits`
float32[B, types], `difficulty` float32[B] (log10(1 + TabuCol moves)). N, K, D and B are free
sizes with these names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from ranks.engine.sharding import rng
from ranks.engine.sharding.rng import numpy_generator
from ranks.onnx_export.layout import OnnxLayout
from ranks.onnx_export.write import write_onnx
from ranks.workloads.graph_coloring.config import Config
from ranks.workloads.graph_coloring.data.families.training import FAMILIES, random_graph
from ranks.workloads.graph_coloring.graphs.features import FEATURES
from ranks.workloads.graph_coloring.graphs.graph import Graph
from ranks.workloads.graph_coloring.net.batch import collate
from ranks.workloads.graph_coloring.net.rows import row_noise, rows_of

FORMAT = "2"
"""The version of inputs, outputs and metadata. Increase it when they change."""
LAYOUT = OnnxLayout(
    {"node_features": ("N", f"{len(FEATURES)} + K"), "edge_index": (2, "D"), "batch": ("N",)},
    {
        "color_logits": ("N", "K"),
        "chromatic": ("B",),
        "graph_type_logits": ("B", len(FAMILIES)),
        "difficulty": ("B",),
    },
    {
        "ranks.workload": "graph-coloring",
        "ranks.format": FORMAT,
        "ranks.feature_names": ", ".join([*FEATURES, "then for each colour a standard normal number"]),
        "ranks.num_colours": f"free: the columns of node_features after the first {len(FEATURES)}",
        "ranks.type_names": ", ".join(FAMILIES),
    },
)
SHAPES: tuple[tuple[tuple[tuple[int, int], ...], int], ...] = (
    (((7, 9),), 3),
    (((5, 4), (50, 100), (120, 260)), 3),
    (((1, 0), (1, 0)), 2),
    (((1, 0),), 4),
    (((30, 120), (12, 0), (20, 60)), 7),
    (((300, 900),), 5),
)
"""The batches of the comparison: (nodes, edges) of each graph, and the number of colours."""

Inputs = tuple[Tensor, Tensor, Tensor]


def random_inputs(shapes: Sequence[tuple[int, int]], num_colours: int, item: int) -> Inputs:
    """The model's three inputs, in float32, for random graphs with the given (nodes, edges)."""
    graphs: list[Graph] = []
    for i, (n, num_edges) in enumerate(shapes):
        graphs.append(random_graph(numpy_generator(0, f"onnx/{item}", i, n), n, num_edges))
    batch = collate(graphs, [num_colours] * len(graphs), range(len(graphs)))
    noise_NK = row_noise(rng.key(0, "onnx/noise", item), batch, rows_of(batch)).view(-1, num_colours)
    features = torch.cat([batch.features_NF, noise_NK], 1).to(torch.float32)
    return features, batch.edge_index_2D, batch.node_graph_N


def example_inputs(model: nn.Module) -> Inputs:
    """A batch of three graphs with three colours, for the export and for speed measurements."""
    del model
    return random_inputs(SHAPES[1][0], SHAPES[1][1], 0)


def export_onnx(
    model: nn.Module, cfg: Config, folder: Path, to_onnx: Callable[[nn.Module, str], bytes] | None = None
) -> Path:
    """Write `model.onnx` after a comparison on batches of all `SHAPES`; see `write_onnx`."""
    del cfg
    return write_onnx(model, folder, LAYOUT, [example_inputs(model), *examples()], to_onnx)


def examples() -> list[Inputs]:
    """The inputs of the comparison."""
    return [random_inputs(shapes, num_colours, item) for item, (shapes, num_colours) in enumerate(SHAPES)]
