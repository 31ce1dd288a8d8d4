"""Colour a DIMACS graph with an exported model, using nothing but onnxruntime and NumPy.

    ranks export RUN                                          # writes model.onnx among other files
    python examples/color_with_onnx.py model.onnx graph.col > graph.sol

The contract of model.onnx: inputs `node_features` float32[N, F + K] (F counts of each node, then K standard normal
numbers), `edge_index` int64[2, D] (each edge in both directions) and `batch` int64[N] (the graph of each node);
outputs `color_logits` [N, K], `chromatic` [B], `graph_type_logits` [B, types], `difficulty` [B].

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
"""What this file can compute; the model says in its metadata what it wants."""
WALK_STEPS = 4
MOST_VERTICES = 20_000
"""The adjacency matrix takes a byte for each pair."""


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
        sys.exit(f"{path} is no DIMACS graph: a p or e line without its numbers")
    if len(sizes) != 1 or not 1 <= sizes[0] <= MOST_VERTICES:
        sys.exit(f"{path}: one line 'p edge VERTICES EDGES' with 1 to {MOST_VERTICES:,} vertices is needed")
    near = np.zeros((sizes[0], sizes[0]), dtype=bool)
    for u, v in edges:
        if not 0 <= min(u, v) <= max(u, v) < len(near):
            sys.exit(f"{path}: edge {u + 1} {v + 1} of a graph with vertices 1..{len(near)}")
        near[u, v] = near[v, u] = True
    if near.diagonal().any():
        sys.exit(f"{path}: vertex {int(near.diagonal().argmax()) + 1} is joined with itself: no colouring exists")
    return near


def core_numbers(near: Bools) -> Ints:
    """For each node the largest k such that it lies in a subgraph where all have k neighbours or more."""
    degree, core, here, k = near.sum(1), np.zeros(len(near), dtype=np.int64), np.ones(len(near), dtype=bool), 0
    while here.any():
        v = int(np.where(here, degree, len(near)).argmin())
        k = max(k, int(degree[v]))
        core[v], here[v] = k, False
        degree -= near[v]
    return core


def clique_sizes(near: Bools) -> Ints:
    """For each node the size of a clique with it, grown greedily.

    The next node is the one with the most neighbours among those that are joined to all chosen ones; ties go to the one
    where more walks of four steps begin, then to the lower number.
    """
    walks = np.ones(len(near))
    for _ in range(WALK_STEPS):
        walks = near @ walks
    sizes = np.ones(len(near), dtype=np.int64)
    for v in range(len(near)):
        around = np.flatnonzero(near[v])
        while len(around):
            joined = near[np.ix_(around, around)].sum(1)
            chosen = around[np.lexsort((around, -walks[around], -joined))[0]]
            around = around[near[chosen, around]]
            sizes[v] += 1
    return sizes


def node_features(near: Bools) -> Floats:
    """float32[N, 4]: the columns of FEATURES."""
    ones = near.astype(np.float32)
    triangles = (ones @ ones * ones).sum(1) / 2
    return np.stack([near.sum(1), core_numbers(near), triangles, clique_sizes(near)], 1).astype(np.float32)


class Model:
    """An exported net with one graph."""

    def __init__(self, path: Path, near: Bools) -> None:
        try:
            self.session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
        except OSError as error:
            sys.exit(f"{path} cannot be read: {error}")
        except Exception as error:  # onnxruntime's own have no common kind
            sys.exit(f"{path} is no model that onnxruntime can run: {error}")
        self.facts = self.session.get_modelmeta().custom_metadata_map
        wanted = self.facts.get("ranks.feature_names", "")
        if wanted.partition(", then")[0] != FEATURES:
            sys.exit(f"{path} wants the features '{wanted}'; this program makes '{FEATURES}'")
        self.near, self.features = near, node_features(near)
        self.edge_index = np.stack(np.nonzero(near)).astype(np.int64)

    def run(self, num_colours: int, rng: np.random.Generator) -> tuple[Ints, float]:
        """One random start: the likeliest colour of each node int64[N], and the estimate of the chromatic number."""
        noise = rng.standard_normal((len(self.near), num_colours), dtype=np.float32)
        feed = {
            "node_features": np.concatenate([self.features, noise], 1),
            "edge_index": self.edge_index,
            "batch": np.zeros(len(self.near), dtype=np.int64),
        }
        logits, chromatic = self.session.run(["color_logits", "chromatic"], feed)
        return logits.argmax(1), float(chromatic[0])

    def conflicts(self, colours: Ints) -> int:
        """Edges whose ends have one colour."""
        u, v = self.edge_index
        return int((colours[u] == colours[v]).sum()) // 2


def from_on(least: int) -> Callable[[str], int]:
    """Reads a whole number that is not below `least`."""

    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"'{text}' is no whole number from {least} on")
        return int(text)

    return read


def main() -> int:
    """Print a colouring in the DIMACS form; 1 where none was found."""
    parser = argparse.ArgumentParser(description="Colour a DIMACS graph with an exported model.")
    parser.add_argument("model", type=Path, help="model.onnx, as `ranks export` writes it")
    parser.add_argument("graph", type=Path, help="a .col or .col.gz file")
    parser.add_argument("-k", type=from_on(1), help="colours allowed; else more and more from the model's estimate on")
    parser.add_argument("--tries", type=from_on(1), default=12, help="random starts with each number of colours")
    parser.add_argument("--seed", type=from_on(0), default=0, help="of the random starts")
    given = parser.parse_args()

    model, rng = Model(given.model, read_col(given.graph)), np.random.default_rng(given.seed)
    _, chromatic = model.run(1, rng)
    most = int(model.near.sum(1).max()) + 1  # so many colours always suffice
    estimate = min(max(round(chromatic), 1), most)
    made_by = f"ranks {model.facts.get('ranks.version')}, format {model.facts.get('ranks.format')}"
    print(f"c model of {made_by}, weights {model.facts.get('ranks.weights_sha256')}")
    print(
        f"c {len(model.near)} vertices, {model.edge_index.shape[1] // 2} edges, chromatic number about {chromatic:.2f}"
    )
    numbers = [estimate if given.k is None else given.k]
    while given.k is None and numbers[-1] < most:
        numbers.append(min(most, numbers[-1] + 1 + numbers[-1] // 10))
    for k in numbers:
        fewest = model.edge_index.shape[1]
        for number in range(1, given.tries + 1):
            colours, _ = model.run(k, rng)
            fewest = min(fewest, model.conflicts(colours))
            if fewest == 0:
                names, colours = np.unique(colours, return_inverse=True)
                print(f"c proper at try {number} of {given.tries} with {k} colours allowed, no repair")
                print(f"s col {len(names)}")
                print("\n".join(f"l {vertex} {colour + 1}" for vertex, colour in enumerate(colours.tolist(), start=1)))
                return 0
        print(f"c {k} colours: {fewest} conflicts at best in {given.tries} tries", flush=True)
    print("s UNKNOWN")
    return 1


if __name__ == "__main__":
    try:
        code = main()
        print(end="", flush=True)
    except BrokenPipeError:  # whoever read the output has closed it; so that Python does not flush into it again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit("the output was closed before its end")
    sys.exit(code)
