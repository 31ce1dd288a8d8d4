"""What the shipped net was trained on, as far as a test must know it: which graphs, and their chromatic numbers.

    python -m ranks.workloads.graph_coloring.tables.training_graphs    writes the file anew, once new weights are there

It stands beside the weights and names them. Making the graphs of the preset `small` takes some minutes; then they are
in the cache.

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

from ranks.workloads.graph_coloring.config import small
from ranks.workloads.graph_coloring.data.build import prepare
from ranks.workloads.graph_coloring.data.dataset_folder import load, write_durably
from ranks.workloads.graph_coloring.graphs.graph import Ints
from ranks.workloads.graph_coloring.net.weights_file import SHIPPED

FILE = SHIPPED / "training_graphs.safetensors"


@dataclass(frozen=True)
class TrainingGraphs:
    """`hash_G`: uint64, rising, see `weisfeiler_lehman_hash`. `counts_K`: int64, how many of these graphs have the
    chromatic number k, of those where it is proven. `weights_sha256`: of the net that was trained on them."""

    hash_G: npt.NDArray[np.uint64]
    counts_K: Ints
    weights_sha256: str

    @property
    def mean(self) -> float:
        """Of the chromatic numbers that are proven."""
        return float(np.average(np.arange(len(self.counts_K)), weights=self.counts_K))


def read_training_graphs(path: Path = FILE) -> TrainingGraphs:
    """Those of the shipped net."""
    arrays = safetensors.numpy.load_file(path)
    with safetensors.safe_open(path, "numpy") as file:
        facts = file.metadata()
    return TrainingGraphs(arrays["hash_G"], arrays["counts_K"], facts["weights_sha256"])


def main(path: Path = FILE) -> None:
    """Write the file for the weights that are shipped."""
    stored = load(prepare(small().data, "train"))
    proven_G = stored.low_G == stored.high_G
    arrays = {"hash_G": np.sort(stored.hash_G), "counts_K": np.bincount(stored.high_G[proven_G])}
    config = json.loads((SHIPPED / "config.json").read_text(encoding="utf-8"))
    facts = {"weights_sha256": config["weights_sha256"], "graphs_sha256": stored.sha256, "preset": "small"}
    write_durably(path, safetensors.numpy.save(arrays, metadata=facts))
    print(f"{len(stored):,} training graphs, chromatic number proven of {proven_G.sum():,}: {path}")


if __name__ == "__main__":
    main()
