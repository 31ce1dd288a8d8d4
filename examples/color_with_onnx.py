"""Colour a DIMACS graph with an exported model. Needs only onnxruntime and NumPy.

    ranks export RUN                                          # writes model.onnx and other files
    python examples/color_with_onnx.py model.onnx graph.col > graph.sol

Inputs of model.onnx: `node_features` float32[N, F + K] (F counts of each node, then K standard
normal numbers), `edge_index` int64[2, D] (each edge in both directions), `batch` int64[N] (the
graph of each node). Outputs: `color_logits` [N, K], `chromatic` [B], `graph_type_logits` [B,
types], `difficulty` [B].

Legend: N nodes, D directed edges, K colours, F features, B graphs (here one).
"""

from __future__ import annotations

import argparse
import gzip
import os
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
FEATURES = "degree, core number, triangles, clique"
"""The features that this program computes. The metadata of the model names those that it needs."""
WALK_STEPS = 4
"""Ties between nodes of a clique go to the node with more walks of this length."""
MAX_VERTICES = 20_000
"""The adjacency matrix needs one byte for each pair of vertices."""


def read_col(path: Path) -> Bools:
    """The adjacency matrix bool[N, N] of a DIMACS .col or .col.gz file."""
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode("latin-1")
    except (OSError, EOFError, zlib.error) as error:
        sys.exit(f"{path} cannot be read: {error}")
    lines = [line.split() for line in text.splitlines()]
    try:
        sizes = [int(words[2]) for words in lines if words[:1] == ["p"]]
        edges = [(int(words[1]) - 1, int(words[2]) - 1) for words in lines if words[:1] == ["e"]]
    except (IndexError, ValueError):
        sys.exit(f"{path} is not a DIMACS graph: a p or e line has no numbers")
    if len(sizes) != 1 or not 1 <= sizes[0] <= MAX_VERTICES:
        sys.exit(f"{path}: one line 'p edge VERTICES EDGES' with 1 to {MAX_VERTICES:,} vertices is needed")
    adjacency = np.zeros((sizes[0], sizes[0]), dtype=bool)
    for u, v in edges:
        if not 0 <= min(u, v) <= max(u, v) < len(adjacency):
            sys.exit(f"{path}: edge {u + 1} {v + 1} of a graph with vertices 1..{len(adjacency)}")
        adjacency[u, v] = adjacency[v, u] = True
    if adjacency.diagonal().any():
        sys.exit(f"{path}: vertex {int(adjacency.diagonal().argmax()) + 1} has an edge to itself: no colouring exists")
    return adjacency


def core_numbers(adjacency: Bools) -> Ints:
    """int64[N]: for each node, the largest k such that it is in a subgraph with minimum degree
    k."""
    degree, core, left, k = (
        adjacency.sum(1),
        np.zeros(len(adjacency), dtype=np.int64),
        np.ones(len(adjacency), dtype=bool),
        0,
    )
    while left.any():
        v = int(np.where(left, degree, len(adjacency)).argmin())
        k = max(k, int(degree[v]))
        core[v], left[v] = k, False
        degree -= adjacency[v]
    return core


def clique_sizes(adjacency: Bools) -> Ints:
    """int64[N]: for each node, the size of a greedy clique that contains it.

    Candidates are the common neighbours of the clique. The next node is the candidate with the most
    neighbours among the candidates; ties go to the node with more walks of four steps, then to the
    lower number.
    """
    walks = np.ones(len(adjacency))
    for _ in range(WALK_STEPS):
        walks = adjacency @ walks
    sizes = np.ones(len(adjacency), dtype=np.int64)
    for v in range(len(adjacency)):
        candidates = np.flatnonzero(adjacency[v])
        while len(candidates):
            degree = adjacency[np.ix_(candidates, candidates)].sum(1)
            chosen = candidates[np.lexsort((candidates, -walks[candidates], -degree))[0]]
            candidates = candidates[adjacency[chosen, candidates]]
            sizes[v] += 1
    return sizes


def node_features(adjacency: Bools) -> Floats:
    """float32[N, 4]: the columns of FEATURES."""
    ones = adjacency.astype(np.float32)
    triangles = (ones @ ones * ones).sum(1) / 2
    return np.stack([adjacency.sum(1), core_numbers(adjacency), triangles, clique_sizes(adjacency)], 1).astype(
        np.float32
    )


class Model:
    """An exported network and one graph."""

    def __init__(self, path: Path, adjacency: Bools) -> None:
        try:
            self.session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
        except OSError as error:
            sys.exit(f"{path} cannot be read: {error}")
        except Exception as error:  # the exceptions of onnxruntime have no common base class
            sys.exit(f"{path} is not a model that onnxruntime can run: {error}")
        self.metadata = self.session.get_modelmeta().custom_metadata_map
        needed = self.metadata.get("ranks.feature_names", "")
        if needed.partition(", then")[0] != FEATURES:
            sys.exit(f"{path} needs the features '{needed}'; this program computes '{FEATURES}'")
        self.adjacency, self.features = adjacency, node_features(adjacency)
        self.edge_index = np.stack(np.nonzero(adjacency)).astype(np.int64)

    def run(self, num_colours: int, rng: np.random.Generator) -> tuple[Ints, float]:
        """One random start: (the colour with the largest logit of each node int64[N], the estimated
        chromatic number)."""
        noise = rng.standard_normal((len(self.adjacency), num_colours), dtype=np.float32)
        feed = {
            "node_features": np.concatenate([self.features, noise], 1),
            "edge_index": self.edge_index,
            "batch": np.zeros(len(self.adjacency), dtype=np.int64),
        }
        logits, chromatic = self.session.run(["color_logits", "chromatic"], feed)
        return logits.argmax(1), float(chromatic[0])

    def conflicts(self, colours: Ints) -> int:
        """The number of edges whose ends have the same colour."""
        u, v = self.edge_index
        return int((colours[u] == colours[v]).sum()) // 2


def integer_from(minimum: int) -> Callable[[str], int]:
    """A parser of integers that are at least `minimum`."""

    def parse(text: str) -> int:
        if not text.isdecimal() or int(text) < minimum:
            raise argparse.ArgumentTypeError(f"'{text}' is not an integer of at least {minimum}")
        return int(text)

    return parse


def main() -> int:
    """Print a colouring in the DIMACS format. The exit status is 1 if none was found."""
    parser = argparse.ArgumentParser(description="Colour a DIMACS graph with an exported model.")
    parser.add_argument("model", type=Path, help="model.onnx, as `ranks export` writes it")
    parser.add_argument("graph", type=Path, help="a .col or .col.gz file")
    parser.add_argument("-k", type=integer_from(1), help="number of colours; default: the model's estimate, then more")
    parser.add_argument("--tries", type=integer_from(1), default=12, help="random starts with each number of colours")
    parser.add_argument("--seed", type=integer_from(0), default=0, help="seed of the random starts")
    args = parser.parse_args()

    model, rng = Model(args.model, read_col(args.graph)), np.random.default_rng(args.seed)
    _, chromatic = model.run(1, rng)
    max_colours = int(model.adjacency.sum(1).max()) + 1  # always enough: the maximum degree + 1
    estimate = min(max(round(chromatic), 1), max_colours)
    made_by = f"ranks {model.metadata.get('ranks.version')}, format {model.metadata.get('ranks.format')}"
    print(f"c model of {made_by}, weights {model.metadata.get('ranks.weights_sha256')}")
    num_edges = model.edge_index.shape[1] // 2
    print(f"c {len(model.adjacency)} vertices, {num_edges} edges, chromatic number about {chromatic:.2f}")
    numbers = [estimate if args.k is None else args.k]
    while args.k is None and numbers[-1] < max_colours:
        numbers.append(min(max_colours, numbers[-1] + 1 + numbers[-1] // 10))
    for k in numbers:
        fewest = model.edge_index.shape[1]
        for number in range(1, args.tries + 1):
            colours, _ = model.run(k, rng)
            fewest = min(fewest, model.conflicts(colours))
            if fewest == 0:
                names, colours = np.unique(colours, return_inverse=True)
                print(f"c proper at try {number} of {args.tries} with {k} colours allowed, no repair")
                print(f"s col {len(names)}")
                print("\n".join(f"l {vertex} {colour + 1}" for vertex, colour in enumerate(colours.tolist(), start=1)))
                return 0
        print(f"c {k} colours: {fewest} conflicts at best in {args.tries} tries", flush=True)
    print("s UNKNOWN")
    return 1


if __name__ == "__main__":
    try:
        code = main()
        print(end="", flush=True)
    except BrokenPipeError:  # redirect, so that Python does not flush into the closed pipe again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit("the output was closed before the program ended")
    sys.exit(code)
