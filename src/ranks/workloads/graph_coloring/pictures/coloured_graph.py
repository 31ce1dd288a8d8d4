"""A picture of a coloured graph: nodes and edges; for a large graph, its adjacency matrix ordered
by colour.

Legend: N nodes.
"""

from __future__ import annotations

import colorsys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints
from ranks.workloads.graph_coloring.pictures.canvas import CONFLICT, INK, PAPER, new_figure, save, text_colour

MAX_DRAWN_NODES = 200
"""Larger graphs are drawn as an adjacency matrix."""
FIRST_COLOURS = (
    "#4c78a8",
    "#f58518",
    "#54a24b",
    "#e45756",
    "#72b7b2",
    "#eeca3b",
    "#b279a2",
    "#9d755d",
    "#ff9da6",
    "#6f4fa0",
)
"""Colours that are easy to distinguish. `palette` generates further ones."""


def palette(num_colours: int) -> list[str]:
    """`num_colours` different colours '#rrggbb'; ten fixed ones, then evenly spread hues."""
    more = [
        "#{:02x}{:02x}{:02x}".format(*(round(255 * part) for part in colorsys.hls_to_rgb(0.61803 * i % 1, light, 0.6)))
        for i, light in enumerate(np.resize([0.45, 0.65, 0.3, 0.78], max(0, num_colours - len(FIRST_COLOURS))))
    ]
    return [*FIRST_COLOURS, *more][:num_colours]


def layout(graph: Graph, rounds: int = 200) -> npt.NDArray[np.float64]:
    """Positions float64[N, 2] by a force-directed layout (Fruchterman & Reingold 1991);
    deterministic.

    All nodes repel each other, edges pull their ends together, and the step size decreases.
    """
    rng = np.random.default_rng(0)
    n = graph.n
    angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
    position_N2 = np.stack([np.cos(angle), np.sin(angle)], 1) + 0.05 * rng.standard_normal((n, 2))
    u, v = graph.edges_E2.T
    spring = 1.6 / np.sqrt(max(n, 1))
    for max_step in np.linspace(0.2, 0.005, rounds):
        offset_NN2 = position_N2[:, None] - position_N2[None]
        squared_NN = (offset_NN2**2).sum(-1) + 1e-4
        force_N2 = (offset_NN2 * (spring**2 / squared_NN)[:, :, None]).sum(1) - 0.15 * position_N2
        edge_E2 = position_N2[u] - position_N2[v]
        pull_E2 = edge_E2 * (np.linalg.norm(edge_E2, axis=1, keepdims=True) / spring)
        np.add.at(force_N2, u, -pull_E2)
        np.add.at(force_N2, v, pull_E2)
        length_N1 = np.linalg.norm(force_N2, axis=1, keepdims=True) + 1e-9
        position_N2 += force_N2 / length_N1 * np.minimum(length_N1, max_step)
    return position_N2


def draw_colouring(graph: Graph, colours_N: Ints, path: Path, title: str) -> None:
    """Write a PNG or SVG. Edges whose ends have the same colour are red. Raises UserError."""
    _, name_N, sizes = np.unique(colours_N, return_inverse=True, return_counts=True)
    num_colours = len(sizes)
    class_N = np.argsort(np.argsort(-sizes, kind="stable"))[name_N]  # the largest class comes first
    conflicts = graph.conflicts(colours_N)
    figure = new_figure(f"--draw {path}", (8, 8.4))
    axes = figure.add_subplot()
    axes.set_aspect("equal")
    draw = _draw_graph if graph.n <= MAX_DRAWN_NODES else _draw_adjacency
    draw(axes, graph, class_N, palette(num_colours))
    state = "no conflict" if conflicts == 0 else f"{conflicts} conflicts (red)"
    facts = f"{graph.n} vertices, {graph.num_edges:,} edges, {num_colours} colours, {state}"
    axes.set_title(f"{title}\n", fontsize=15, color=INK, fontweight="bold")
    axes.text(0.5, 1.015, facts, transform=axes.transAxes, ha="center", va="bottom", fontsize=10.5, color=INK)
    save(figure, path, f"--draw {path}")


def _draw_graph(axes: Any, graph: Graph, class_N: Ints, colours: list[str]) -> None:
    """Nodes as discs in their colour, numbered up to 100 nodes; edges as lines."""
    lines: Any = import_module("matplotlib.collections")
    position_N2 = layout(graph)
    ends = position_N2[graph.edges_E2]
    conflict = class_N[graph.edges_E2[:, 0]] == class_N[graph.edges_E2[:, 1]]
    alpha = float(np.clip(9 / np.sqrt(max(graph.num_edges, 1)), 0.1, 0.6))
    axes.add_collection(lines.LineCollection(ends[~conflict], colors=INK, linewidths=0.7, alpha=alpha, zorder=1))
    axes.add_collection(lines.LineCollection(ends[conflict], colors=CONFLICT, linewidths=2.2, zorder=2))
    size = float(np.clip(14_000 / max(graph.n, 1), 50, 420))
    axes.scatter(*position_N2.T, s=size, c=[colours[c] for c in class_N], edgecolors=PAPER, linewidths=1.2, zorder=3)
    if graph.n <= 100:
        for i, (x, y) in enumerate(position_N2, start=1):
            style = {"fontsize": min(8.0, size**0.5 * 0.5), "color": text_colour(colours[class_N[i - 1]])}
            axes.text(x, y, str(i), ha="center", va="center", zorder=4, **style)
    axes.margins(0.04)
    axes.axis("off")


def _draw_adjacency(axes: Any, graph: Graph, class_N: Ints, colours: list[str]) -> None:
    """The adjacency matrix with its rows and columns ordered by colour class, the largest class
    first.

    With a proper colouring the coloured blocks on the diagonal are empty.
    """
    patches: Any = import_module("matplotlib.patches")
    order = np.argsort(class_N, kind="stable")
    place = np.argsort(order)
    u, v = place[graph.edges_E2.T]
    x, y = np.concatenate([u, v]), np.concatenate([v, u])
    conflict = np.concatenate([class_N[graph.edges_E2[:, 0]] == class_N[graph.edges_E2[:, 1]]] * 2)
    sizes = np.bincount(class_N, minlength=len(colours))
    for c, (start, size) in enumerate(zip(np.cumsum(sizes) - sizes, sizes, strict=True)):
        axes.add_patch(patches.Rectangle((start - 0.5, start - 0.5), size, size, color=colours[c], alpha=0.85, lw=0))
    dot = float(np.clip(2.2e5 / graph.n**2, 0.15, 3.0))
    axes.scatter(x[~conflict], y[~conflict], s=dot, c=INK, marker="s", linewidths=0, alpha=0.75)
    axes.scatter(x[conflict], y[conflict], s=12, c=CONFLICT, marker="s", linewidths=0, zorder=3)
    axes.set_xlim(-0.5, graph.n - 0.5)
    axes.set_ylim(graph.n - 0.5, -0.5)
    axes.set_xlabel(
        "vertices, colour class by colour class; a dot is an edge, a coloured block is a class", fontsize=10, color=INK
    )
    axes.tick_params(labelsize=8, colors=INK)
