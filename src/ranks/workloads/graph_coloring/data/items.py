"""Which graph stands under which number: a pure function of (data seed, purpose, item, attempt).

An attempt is another draw for the same item, made where the graph before was met already.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from ranks.engine.sharding.rng import numpy_generator
from ranks.workloads.graph_coloring.config import MAX_NODES, MIN_NODES, DataConfig
from ranks.workloads.graph_coloring.data.families import FAMILIES, WITHOUT_SEARCH
from ranks.workloads.graph_coloring.data.made import Family, Made, relabelled
from ranks.workloads.graph_coloring.data.unseen import UNSEEN

Purpose = Literal["train", "validation", "unseen"]
SIZE_MIX = ((0.30, MIN_NODES, 50), (0.40, 50, 200), (0.25, 200, 500), (0.05, 500, MAX_NODES))
"""(share, least nodes, most nodes): the sizes of the data set that this workload's first version was written after."""
ATTEMPTS_ALIKE = 4
"""After so many attempts another family and size is drawn: some families are finite."""


def family_names(purpose: Purpose) -> list[str]:
    """In the order of their numbers in the parts."""
    return list(UNSEEN if purpose == "unseen" else FAMILIES)


def draw(data: DataConfig, purpose: Purpose, item: int, attempt: int) -> tuple[str, Made]:
    """(family, graph) of an item."""
    kind_rng = numpy_generator(data.seed, f"{purpose}/family", attempt // ATTEMPTS_ALIKE, item)
    if purpose == "unseen":
        name = list(UNSEEN)[int(kind_rng.integers(len(UNSEEN)))]
        family = UNSEEN[name]
        n = int(np.exp(kind_rng.uniform(np.log(family.least), np.log(family.most + 1))))
    else:
        families = FAMILIES if data.labels == "full" else WITHOUT_SEARCH
        if kind_rng.random() < data.threshold_share:
            name, family = "threshold", families["threshold"]
            n = draw_size(kind_rng, min(max(data.min_nodes, family.least), data.max_nodes), data.max_nodes)
        else:
            n = draw_size(kind_rng, data.min_nodes, data.max_nodes)
            name, family = draw_family(kind_rng, families, n)
    rng = numpy_generator(data.seed, f"{purpose}/graph", attempt, item)
    return name, relabelled(rng, family.make(rng, n))


def draw_size(rng: np.random.Generator, min_nodes: int, max_nodes: int) -> int:
    """A number of nodes from SIZE_MIX, without what lies outside `min_nodes` to `max_nodes`."""
    cut = [(share, max(least, min_nodes), min(most, max_nodes)) for share, least, most in SIZE_MIX]
    bands = [(share, least, most) for share, least, most in cut if least < most] or [(1.0, min_nodes, max_nodes)]
    shares = np.array([share for share, _, _ in bands])
    _, least, most = bands[int(rng.choice(len(bands), p=shares / shares.sum()))]
    return int(rng.integers(least, most + 1))


def draw_family(rng: np.random.Generator, families: Mapping[str, Family], n: int) -> tuple[str, Family]:
    """One of the other families that can make graphs of n nodes, by their shares."""
    able = [(name, f) for name, f in families.items() if name != "threshold" and f.least <= n <= f.most]
    shares = np.array([family.share for _, family in able])
    return able[int(rng.choice(len(able), p=shares / shares.sum()))]
