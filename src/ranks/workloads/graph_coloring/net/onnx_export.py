"""ONNX export; onnxruntime's output is compared with torch before the file is written.

Inputs: `node_features` float32[N, F + K] (raw counts of each node, then K standard normal numbers),
`edge_index` int64[2, D] (both directions), `batch` int64[N] (the graph of each node,
non-decreasing). Outputs: `color_logits` float32[N, K], `chromatic` float32[B], `graph_type_logits`
float32[B, types], `difficulty` float32[B] (log10(1 + TabuCol moves)). N, K, D and B are dynamic
sizes with these names.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import io
import logging
import os
import warnings
from collections.abc import Callable, Generator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from ranks import __version__
from ranks.engine.runs.provenance import source_commit
from ranks.engine.sharding import rng
from ranks.engine.sharding.rng import numpy_generator
from ranks.errors import GaveUp, UserError
from ranks.workloads.graph_coloring.config import Config
from ranks.workloads.graph_coloring.data.families.training import FAMILIES, random_graph
from ranks.workloads.graph_coloring.graphs.features import FEATURES
from ranks.workloads.graph_coloring.graphs.graph import Graph
from ranks.workloads.graph_coloring.net.batch import collate
from ranks.workloads.graph_coloring.net.rows import row_noise, rows_of

INPUTS = {"node_features": ("N", f"{len(FEATURES)} + K"), "edge_index": (2, "D"), "batch": ("N",)}
OUTPUTS = {
    "color_logits": ("N", "K"),
    "chromatic": ("B",),
    "graph_type_logits": ("B", len(FAMILIES)),
    "difficulty": ("B",),
}
"""Names and shapes; a name in a shape is a dynamic size."""
FORMAT = "2"
"""The version of inputs, outputs and metadata. Increase it when they change."""
OPSET = 18
TOLERANCE = 1e-4
"""The largest accepted difference between onnxruntime and torch, relative to the largest output."""
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


def export_extra(model: nn.Module, cfg: Config, folder: Path) -> list[Path]:
    """The additional files of `ranks export`: `model.onnx`; see `write_onnx`."""
    del cfg
    return [write_onnx(model, folder)]


def write_onnx(model: nn.Module, folder: Path, to_onnx: Callable[[nn.Module, str], bytes] | None = None) -> Path:
    """Write `model.onnx` into the folder of `model.safetensors`, with the sha256 of that file.

    Raises GaveUp and writes nothing if onnxruntime and torch disagree. `to_onnx`: by default
    `onnx_bytes`.
    """
    weights_sha256 = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    model = copy.deepcopy(model).to("cpu", torch.float32).eval()
    content = (to_onnx or onnx_bytes)(model, weights_sha256)
    compare(model, content)
    path = folder / "model.onnx"
    temporary = folder / f".model.onnx.tmp-{os.getpid()}"
    temporary.write_bytes(content)
    os.replace(temporary, path)
    return path


def onnx_bytes(model: nn.Module, weights_sha256: str) -> bytes:
    """The model with its weights as an ONNX file.

    Its metadata has the versions, the commit, the names of the features and the sha256 of the
    weights.
    """
    for package in ("onnx", "onnxscript"):
        _import_optional(package)
    any_size = torch.export.Dim.DYNAMIC
    free = ({0: any_size, 1: any_size}, {1: any_size}, {0: any_size})
    with _quiet():
        program: Any = torch.onnx.export(
            model,
            example_inputs(model),
            dynamo=True,
            input_names=list(INPUTS),
            output_names=list(OUTPUTS),
            dynamic_shapes=free,
            opset_version=OPSET,
            external_data=False,
            verbose=False,
        )
    proto: Any = program.model_proto
    _name_sizes(proto)
    commit = source_commit()
    metadata = {
        "ranks.workload": "graph-coloring",
        "ranks.version": __version__,
        **({"ranks.git": commit} if commit else {}),
        "ranks.format": FORMAT,
        "ranks.feature_names": ", ".join([*FEATURES, "then for each colour a standard normal number"]),
        "ranks.num_colours": f"free: the columns of node_features after the first {len(FEATURES)}",
        "ranks.type_names": ", ".join(FAMILIES),
        "ranks.weights_sha256": weights_sha256,
    }
    for key, value in metadata.items():
        entry = proto.metadata_props.add()
        entry.key, entry.value = key, value
    return cast(bytes, proto.SerializeToString())


def _name_sizes(proto: Any) -> None:
    """Replace the generated names of dynamic sizes by those of INPUTS and OUTPUTS."""
    del proto.graph.value_info[:]  # intermediate values have the generated names
    shapes: dict[str, tuple[str | int, ...]] = {**INPUTS, **OUTPUTS}
    for value in (*proto.graph.input, *proto.graph.output):
        for size, name in zip(value.type.tensor_type.shape.dim, shapes[value.name], strict=True):
            if isinstance(name, str):
                size.dim_param = name
            else:
                size.dim_value = name


@contextlib.contextmanager
def _quiet() -> Generator[None, None, None]:
    """Silence the prints, warnings and log lines of torch's exporter."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        nowhere = io.StringIO()
        with warnings.catch_warnings(), contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def compare(model: nn.Module, content: bytes) -> float:
    """The largest relative difference over `SHAPES`.

    Raises GaveUp if it exceeds TOLERANCE or onnxruntime fails.
    """
    runtime = _import_optional("onnxruntime")
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    worst = 0.0
    for item, (shapes, num_colours) in enumerate(SHAPES):
        inputs = random_inputs(shapes, num_colours, item)
        with torch.no_grad():
            expected = model(*inputs)
        feed = {name: value.numpy() for name, value in zip(INPUTS, inputs, strict=True)}
        try:
            answers = session.run(list(OUTPUTS), feed)
        except Exception as error:
            raise GaveUp(f"onnxruntime fails on graphs {shapes} with {num_colours} colours: {error}") from error
        for name, want, got in zip(OUTPUTS, expected, answers, strict=True):
            if want.shape != got.shape or not np.isfinite(got).all():
                raise GaveUp(f"{name} of graphs {shapes} is wrong in onnxruntime: shape {got.shape} or not finite")
            scale = max(1.0, float(want.abs().max()))
            worst = max(worst, float((want - torch.from_numpy(got)).abs().max()) / scale)
            if worst > TOLERANCE:
                raise GaveUp(
                    f"{name} of graphs {shapes} differs by {worst:.1e} between onnxruntime and torch; not written"
                )
    return worst


def _import_optional(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise UserError(
            "an ONNX export", f"the package {name} is not installed", "pip install 'ranks[graph-coloring]'"
        ) from None
