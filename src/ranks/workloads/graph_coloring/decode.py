"""From the net's logits to colours: the raw answer, without any repair, by tries and rounds.

A try is one random start of the net. After every round each node takes its likeliest colour; the round with the
fewest conflicts counts. The first try that leaves no conflict ends the search of its graph.

Legend: T rounds, N nodes, K colours, D directed edges, B graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ranks.engine.evaluate import acting
from ranks.workloads.graph_coloring.graphs import Graph, GraphBatch, Ints, collate
from ranks.workloads.graph_coloring.model import ColouringNet, sum_by_graph

Noise = Callable[[int, int], npt.NDArray[np.float64]]
"""(try, position of the graph in the list) -> float64[n, K]."""


@dataclass(frozen=True)
class RawAnswer:
    """The best raw colouring of one graph. `tries`: tries made; `round`: where the best one was met, from 1."""

    colours_N: Ints
    conflicts: int
    tries: int
    round: int
    chromatic: float
    """The chromatic head's estimate, from the first try."""


def conflicts_by_round(colours_TN: Tensor, batch: GraphBatch) -> Tensor:
    """int64[T, B]: conflicting edges of each graph after each round."""
    source_D, target_D = batch.edge_index_2D
    same_DT = (colours_TN[:, source_D] == colours_TN[:, target_D]).T.to(torch.float32)
    total_BT = sum_by_graph(same_DT, batch.node_graph_N[target_D], len(batch))
    return (total_BT.T / 2).round().to(torch.int64)


def best_round(model: ColouringNet, batch: GraphBatch, rounds: int) -> tuple[list[tuple[Ints, int, int]], Tensor]:
    """One try on each graph: (colours, conflicts, round from 1) of its best round; and chromatic estimates float[B]."""
    logits_TNK, chromatic_B = model.unroll(batch.noise_NK, batch.edge_index_2D, batch.node_graph_N, len(batch), rounds)
    colours_TN = logits_TNK.argmax(-1)
    fewest_B, round_B = conflicts_by_round(colours_TN, batch).min(0)
    colours = colours_TN.cpu().numpy()
    starts: list[int] = batch.ptr.tolist()
    rounds_B: list[int] = round_B.tolist()
    answers = [(colours[t, starts[b] : starts[b + 1]].copy(), int(fewest_B[b]), t + 1) for b, t in enumerate(rounds_B)]
    return answers, chromatic_B


def raw_search(
    model: ColouringNet, graphs: Sequence[Graph], noise: Noise, *, tries: int, rounds: int, device: torch.device
) -> list[RawAnswer]:
    """Up to `tries` tries of `rounds` rounds on each graph, all graphs side by side; solved ones drop out."""
    best: dict[int, RawAnswer] = {}
    open_ = list(range(len(graphs)))
    with acting(model):
        for attempt in range(tries):
            batch = collate([graphs[i] for i in open_], [noise(attempt, i) for i in open_]).to(device)
            answers, chromatic_B = best_round(model, batch, rounds)
            estimates: list[float] = chromatic_B.tolist()
            for i, (colours, conflicts, round_), chromatic in zip(open_, answers, estimates, strict=True):
                old = best.get(i)
                if old is None:
                    best[i] = RawAnswer(colours, conflicts, attempt + 1, round_, chromatic)
                elif conflicts < old.conflicts:
                    best[i] = RawAnswer(colours, conflicts, attempt + 1, round_, old.chromatic)
                else:
                    best[i] = RawAnswer(old.colours_N, old.conflicts, attempt + 1, old.round, old.chromatic)
            open_ = [i for i in open_ if best[i].conflicts]
            if not open_:
                break
    return [best[i] for i in range(len(graphs))]
