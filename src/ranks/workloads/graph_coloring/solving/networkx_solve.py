"""`solve` in Python: colour a networkx graph."""

from __future__ import annotations

import math
import operator
from collections.abc import Hashable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from ranks.errors import UserError
from ranks.workloads.graph_coloring.graphs.networkx_graphs import from_networkx
from ranks.workloads.graph_coloring.net.weights_file import load_net
from ranks.workloads.graph_coloring.solving.best_colouring import by_net


@dataclass(frozen=True)
class NetworkxSolution:
    """A proper colouring of a networkx graph: `colors` maps each node to 0..num_colors - 1.

    `found_by`: DSATUR, exact search, or the component of the net's pipeline that found it.
    `optimal`: whether fewer colours are proven impossible.
    """

    colors: dict[Hashable, int]
    num_colors: int
    found_by: str
    seconds: float
    optimal: bool
    weights: str


def solve(
    G: Any, k: int | None = None, *, budget_s: float = 10.0, seed: int = 0, run: str | None = None
) -> NetworkxSolution | None:
    """Colours a networkx graph with the fewest colours found in `budget_s` seconds, or at most `k`.

    `run`: a run's name or folder, or a model.safetensors file; by default the net that ships with
    the package. Returns None if no colouring with `k` colours was found. Raises UserError for
    self-loops and empty graphs, and if `k`, `budget_s` or `seed` is not a valid number.
    """
    if k is not None:
        k = integer("k", k)
        if k < 1:
            raise UserError(f"k={k}", "a colouring needs at least one colour", "give k=1 or more")
    if isinstance(budget_s, bool) or not isinstance(budget_s, Real) or not 0 < float(budget_s) < math.inf:
        raise UserError(f"budget_s={budget_s!r}", "a search needs time", "give a positive number of seconds")
    seed = integer("seed", seed)
    graph, nodes = from_networkx(G)
    net = load_net(run)
    found = by_net(graph, net, k=k, budget_s=float(budget_s), seed=seed)
    if not found.proper(k):
        return None
    _, class_N = np.unique(found.colours_N, return_inverse=True)
    return NetworkxSolution(
        dict(zip(nodes, class_N.tolist(), strict=True)),
        found.num_colours,
        found.found_by,
        found.seconds,
        found.optimal,
        f"{net.name}, sha256 {net.sha256}",
    )


def integer(name: str, value: Any) -> int:
    """A value as an int, if it is an integer of any type (NumPy's too). Raises UserError."""
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise UserError(f"{name}={value!r}", f"a {type(value).__name__}", f"give a whole number, for example {name}=3")
