"""From the net's logits to colours: the raw answer, without any repair, by tries and rounds.

A try is one random start of the net. After every round each node takes its likeliest colour; the round with the
fewest conflicts counts. The first try that leaves no conflict ends the search of its graph.

Legend: T rounds, R rows, N nodes, E edges, K most colours, B graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ranks.engine.sharding import rng
from ranks.engine.update.evaluate import eval_mode
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints
from ranks.workloads.graph_coloring.net.batch import GraphBatch, collate
from ranks.workloads.graph_coloring.net.model import ColouringNet
from ranks.workloads.graph_coloring.net.rows import Rows, encode, row_noise, rows_of, unroll
from ranks.workloads.graph_coloring.net.sums import sum_by_graph

Noise = Callable[[int, GraphBatch, Rows], Tensor]
"""(key, batch, rows) -> float[R]."""


@dataclass(frozen=True)
class RawAnswer:
    """The best raw colouring of one graph. `tries`: tries made; `round`: where the best one was met, from 1."""

    colours_N: Ints
    conflicts: int
    tries: int
    round: int
    chromatic: float
    """The chromatic head's estimate."""


def likeliest_colours(logits_TR: Tensor, rows: Rows) -> Tensor:
    """int64[T, N]: each node's colour with the largest logit, after each round; 0 where it has none."""
    most = int(rows.colours_N.max()) if len(rows.colours_N) else 0
    if most == 0:
        return torch.zeros(len(logits_TR), len(rows.colours_N), dtype=torch.int64, device=logits_TR.device)
    each_K = torch.arange(most, device=logits_TR.device)
    row_NK = (rows.ptr_N[:-1, None] + each_K).clamp(max=logits_TR.shape[1] - 1)
    return logits_TR[:, row_NK].masked_fill(each_K >= rows.colours_N[:, None], -torch.inf).argmax(-1)


def conflicts_by_round(colours_TN: Tensor, batch: GraphBatch) -> Tensor:
    """int64[T, B]: conflicting edges of each graph after each round."""
    u_E, v_E = batch.edges_2E
    same_ET = (colours_TN[:, u_E] == colours_TN[:, v_E]).T.to(torch.float32)
    return sum_by_graph(same_ET, batch.node_graph_N[u_E], len(batch)).T.round().to(torch.int64)


def raw_search(
    model: ColouringNet,
    graphs: Sequence[Graph],
    num_colours: int,
    *,
    seed: int,
    purpose: str,
    tries: int,
    rounds: int,
    device: torch.device,
    items: Sequence[int] | None = None,
    noise: Noise = row_noise,
) -> list[RawAnswer]:
    """Up to `tries` tries of `rounds` rounds on each graph, all graphs side by side; solved ones drop out.

    Noise is keyed by (seed, purpose, try, item); without `items` a graph's item is its place in the list.
    """
    names = items if items is not None else range(len(graphs))
    best: dict[int, RawAnswer] = {}
    open_ = list(range(len(graphs)))
    with eval_mode(model):
        for attempt in range(tries):
            chosen = [graphs[i] for i in open_]
            batch = collate(chosen, [num_colours] * len(open_), [names[i] for i in open_]).to(device)
            rows, encoding = rows_of(batch), encode(model, batch)
            noise_R = noise(rng.key(seed, f"{purpose}/noise", attempt), batch, rows)
            colours_TN = likeliest_colours(unroll(model, encoding, noise_R, rows, rounds), rows)
            fewest_B, round_B = conflicts_by_round(colours_TN, batch).min(0)
            colours, starts = colours_TN.cpu().numpy(), batch.ptr.tolist()
            for b, i in enumerate(open_):
                t, conflicts = int(round_B[b]), int(fewest_B[b])
                old = best.get(i)
                if old is None or conflicts < old.conflicts:
                    part = colours[t, starts[b] : starts[b + 1]].copy()
                    best[i] = RawAnswer(part, conflicts, attempt + 1, t + 1, float(encoding.chromatic_B[b]))
                else:
                    best[i] = replace(old, tries=attempt + 1)
            open_ = [i for i in open_ if best[i].conflicts]
            if not open_:
                break
    return [best[i] for i in range(len(graphs))]
