"""`solve` in Python: colour a networkx graph."""

from __future__ import annotations

import math
import time
from collections.abc import Hashable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np

from ranks.errors import UserError
from ranks.workloads.graph_coloring.graphs.networkx_graphs import from_networkx
from ranks.workloads.graph_coloring.net.weights_file import load_net
from ranks.workloads.graph_coloring.solving.best_colouring import Limit, best_colouring, warm_up
from ranks.workloads.graph_coloring.solving.budget import MoveClock, integer

Status = Literal["proper", "impossible", "not found"]


@dataclass(frozen=True)
class NetworkxSolution:
    """The best colouring of a networkx graph: `colors` maps each node to 0..num_colors - 1.

    `status`: "proper" if no edge conflicts and at most k colours are used; "impossible" if it is
    proven that k colours are too few; else "not found". `conflicts`: conflicting edges of `colors`;
    0 if proper. `lower_bound`, `proof`: fewer colours than this are proven impossible, and why.
    `optimal`: whether the colouring is proper and has as many colours as the lower bound.
    `found_by`: the component that found it.
    """

    status: Status
    colors: dict[Hashable, int]
    num_colors: int
    conflicts: int
    lower_bound: int
    proof: str
    found_by: str
    seconds: float
    optimal: bool
    weights: str


def solve(
    G: Any,
    k: int | None = None,
    *,
    budget_s: float = 10.0,
    moves: int | None = None,
    seed: int = 0,
    run: str | None = None,
) -> NetworkxSolution:
    """Colours a networkx graph with the fewest colours found in `budget_s` seconds, or at most `k`.

    `moves`: a limit in moves of TabuCol in place of seconds; equal arguments then give an equal
    answer on any load and number of cores. `run`: a run's name or folder, or a model.safetensors
    file; by default the net that ships with the package. `status` of the result tells "proven
    impossible" from "not found". Raises UserError for self-loops and empty graphs, and if `k`,
    `budget_s`, `moves` or `seed` is not a valid number.
    """
    if k is not None:
        k = integer("k", k)
        if k < 1:
            raise UserError(f"k={k}", "a colouring needs at least one colour", "give k=1 or more")
    if isinstance(budget_s, bool) or not isinstance(budget_s, Real) or not 0 < float(budget_s) < math.inf:
        raise UserError(f"budget_s={budget_s!r}", "a search needs time", "give a positive number of seconds")
    seed = integer("seed", seed)
    if moves is not None and (moves := integer("moves", moves)) < 1:
        raise UserError(f"moves={moves}", "a search needs moves", "give moves=1000000, for example")
    net = load_net(run)
    warm_up()
    limit = Limit.from_now(float(budget_s)) if moves is None else Limit.from_now(moves, MoveClock())
    start_s = time.perf_counter()
    graph, nodes = from_networkx(G)
    found = best_colouring(graph, net, k=k, limit=limit, seed=seed)
    _, class_N = np.unique(found.colours_N, return_inverse=True)
    return NetworkxSolution(
        "impossible" if found.impossible(k) else "proper" if found.proper(k) else "not found",
        dict(zip(nodes, class_N.tolist(), strict=True)),
        found.num_colours,
        found.conflicts,
        found.bound.colours,
        found.bound.why,
        found.found_by,
        time.perf_counter() - start_s,
        found.optimal,
        f"{net.name}, sha256 {net.sha256}",
    )
