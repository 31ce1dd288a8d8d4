"""From logits to colours: the raw colouring of the network, without repair.

A try is one random start of the network. After every round each node takes the colour with the
largest logit; the round with the fewest conflicts is the result of the try. A graph needs no
further try after a try without conflicts.

Legend: T rounds, R rows (one for each node and colour), N nodes, E edges, K largest number of
colours, B graphs.
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
class RawColouring:
    """The best raw colouring of one graph."""

    colours_N: Ints
    conflicts: int
    tries: int
    """The number of tries made."""
    round: int
    """The round of the best colouring within its try, counted from 1."""
    chromatic: float
    """The network's estimate of the chromatic number."""


def argmax_colours(logits_TR: Tensor, rows: Rows) -> Tensor:
    """int64[T, N]: each node's colour with the largest logit after each round; 0 without colours."""
    max_colours = int(rows.colours_N.max()) if len(rows.colours_N) else 0
    if max_colours == 0:
        return torch.zeros(len(logits_TR), len(rows.colours_N), dtype=torch.int64, device=logits_TR.device)
    colour_K = torch.arange(max_colours, device=logits_TR.device)
    row_NK = (rows.ptr_N[:-1, None] + colour_K).clamp(max=logits_TR.shape[1] - 1)
    return logits_TR[:, row_NK].masked_fill(colour_K >= rows.colours_N[:, None], -torch.inf).argmax(-1)


def conflicts_by_round(colours_TN: Tensor, batch: GraphBatch) -> Tensor:
    """int64[T, B]: the number of conflicting edges of each graph after each round."""
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
) -> list[RawColouring]:
    """The best raw colouring of each graph within `tries` tries of `rounds` rounds.

    All graphs that are not yet solved form one batch. Noise is keyed by (seed, purpose, try, item).
    `items`: the item of each graph; by default its index in `graphs`.
    """
    items = items if items is not None else range(len(graphs))
    best: dict[int, RawColouring] = {}
    unsolved = list(range(len(graphs)))
    with eval_mode(model):
        for attempt in range(tries):
            chosen = [graphs[i] for i in unsolved]
            batch = collate(chosen, [num_colours] * len(unsolved), [items[i] for i in unsolved]).to(device)
            rows, encoding = rows_of(batch), encode(model, batch)
            noise_R = noise(rng.key(seed, f"{purpose}/noise", attempt), batch, rows)
            colours_TN = argmax_colours(unroll(model, encoding, noise_R, rows, rounds), rows)
            fewest_B, round_B = conflicts_by_round(colours_TN, batch).min(0)
            colours, starts = colours_TN.cpu().numpy(), batch.ptr.tolist()
            for b, i in enumerate(unsolved):
                t, conflicts = int(round_B[b]), int(fewest_B[b])
                old = best.get(i)
                if old is None or conflicts < old.conflicts:
                    part = colours[t, starts[b] : starts[b + 1]].copy()
                    best[i] = RawColouring(part, conflicts, attempt + 1, t + 1, float(encoding.chromatic_B[b]))
                else:
                    best[i] = replace(old, tries=attempt + 1)
            unsolved = [i for i in unsolved if best[i].conflicts]
            if not unsolved:
                break
    return [best[i] for i in range(len(graphs))]
