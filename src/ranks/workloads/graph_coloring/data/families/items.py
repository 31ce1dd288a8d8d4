"""Which graph each item of a data set is: it depends on (data seed, purpose, item, attempt) only.

An attempt is another random graph for the same item, generated if the graph before is a duplicate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from ranks.engine.sharding.rng import numpy_generator
from ranks.workloads.graph_coloring.config import MAX_NODES, MIN_NODES, DataConfig
from ranks.workloads.graph_coloring.data.families.generators import Family, GeneratedGraph, relabelled
from ranks.workloads.graph_coloring.data.families.training import FAMILIES, WITHOUT_SEARCH
from ranks.workloads.graph_coloring.data.families.unseen import UNSEEN

Purpose = Literal["train", "validation", "unseen"]
SIZE_MIX = ((0.30, MIN_NODES, 50), (0.40, 50, 200), (0.25, 200, 500), (0.05, 500, MAX_NODES))
"""(share, minimum, maximum) of the number of nodes, as in the data set that this one follows."""
ATTEMPTS_PER_FAMILY = 4
"""After this many attempts another family and size is chosen, because some families are finite."""


def family_names(purpose: Purpose) -> list[str]:
    """The family names of a data set, in the order of the numbers that its files hold."""
    return list(UNSEEN if purpose == "unseen" else FAMILIES)


def generate_item(data: DataConfig, purpose: Purpose, item: int, attempt: int) -> tuple[str, GeneratedGraph]:
    """(family name, graph) of an item."""
    kind_rng = numpy_generator(data.seed, f"{purpose}/family", attempt // ATTEMPTS_PER_FAMILY, item)
    if purpose == "unseen":
        name = list(UNSEEN)[int(kind_rng.integers(len(UNSEEN)))]
        family = UNSEEN[name]
        n = int(np.exp(kind_rng.uniform(np.log(family.min_nodes), np.log(family.max_nodes + 1))))
    else:
        families = FAMILIES if data.labels == "full" else WITHOUT_SEARCH
        if kind_rng.random() < data.threshold_share:
            name, family = "threshold", families["threshold"]
            n = random_size(kind_rng, min(max(data.min_nodes, family.min_nodes), data.max_nodes), data.max_nodes)
        else:
            n = random_size(kind_rng, data.min_nodes, data.max_nodes)
            name, family = random_family(kind_rng, families, n)
    rng = numpy_generator(data.seed, f"{purpose}/graph", attempt, item)
    return name, relabelled(rng, family.generate(rng, n))


def random_size(rng: np.random.Generator, min_nodes: int, max_nodes: int) -> int:
    """A random number of nodes from SIZE_MIX, restricted to `min_nodes`..`max_nodes`."""
    cut = [(share, max(low, min_nodes), min(high, max_nodes)) for share, low, high in SIZE_MIX]
    ranges = [(share, low, high) for share, low, high in cut if low < high] or [(1.0, min_nodes, max_nodes)]
    shares = np.array([share for share, _, _ in ranges])
    _, low, high = ranges[int(rng.choice(len(ranges), p=shares / shares.sum()))]
    return int(rng.integers(low, high + 1))


def random_family(rng: np.random.Generator, families: Mapping[str, Family], n: int) -> tuple[str, Family]:
    """A random family, by weight, of those other than `threshold` that have graphs of n nodes."""
    able = [(name, f) for name, f in families.items() if name != "threshold" and f.min_nodes <= n <= f.max_nodes]
    weights = np.array([family.weight for _, family in able])
    return able[int(rng.choice(len(able), p=weights / weights.sum()))]
