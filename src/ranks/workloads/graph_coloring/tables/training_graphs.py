"""The training graphs of the shipped weights: their hashes, and a histogram of their chromatic
numbers.

The tables exclude these graphs from their tests. After new weights, write the file again:

    python -m ranks.workloads.graph_coloring.tables.training_graphs

The file is in the folder of the weights and has their sha256. Generating the graphs of the preset
`small` takes some minutes; they are then in the cache.

Legend: G training graphs, K chromatic numbers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import safetensors
import safetensors.numpy

from ranks.engine.files.disk import replace_durably
from ranks.workloads.graph_coloring.config import small
from ranks.workloads.graph_coloring.data.build.build import prepare
from ranks.workloads.graph_coloring.data.dataset_folder import load
from ranks.workloads.graph_coloring.graphs.graph import Ints
from ranks.workloads.graph_coloring.net.weights_file import SHIPPED

FILE = SHIPPED / "training_graphs.safetensors"


@dataclass(frozen=True)
class TrainingGraphs:
    """The hashes and the chromatic numbers of the graphs that a network was trained on."""

    hash_G: npt.NDArray[np.uint64]
    """uint64[G], increasing: see `weisfeiler_lehman_hash`."""
    counts_K: Ints
    """int64[K]: the number of graphs with the proven chromatic number k."""
    weights_sha256: str
    """The sha256 of the trained weights."""

    @property
    def mean(self) -> float:
        """The mean of the proven chromatic numbers."""
        return float(np.average(np.arange(len(self.counts_K)), weights=self.counts_K))


def read_training_graphs(path: Path = FILE) -> TrainingGraphs:
    """The training graphs of the shipped weights."""
    arrays = safetensors.numpy.load_file(path)
    with safetensors.safe_open(path, "numpy") as file:
        metadata = file.metadata()
    return TrainingGraphs(arrays["hash_G"], arrays["counts_K"], metadata["weights_sha256"])


def main(path: Path = FILE) -> None:
    """Write the file for the shipped weights."""
    stored = load(prepare(small().data, "train"))
    proven_G = stored.low_G == stored.high_G
    arrays = {"hash_G": np.sort(stored.hash_G), "counts_K": np.bincount(stored.high_G[proven_G])}
    config = json.loads((SHIPPED / "config.json").read_text(encoding="utf-8"))
    metadata = {"weights_sha256": config["weights_sha256"], "graphs_sha256": stored.sha256, "preset": "small"}
    replace_durably(path, safetensors.numpy.save(arrays, metadata=metadata))
    print(f"{len(stored):,} training graphs, {proven_G.sum():,} with a proven chromatic number: {path}")


if __name__ == "__main__":
    main()
