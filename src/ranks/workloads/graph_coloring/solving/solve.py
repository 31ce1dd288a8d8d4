"""`ranks graph-coloring solve`: colour the graph of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from ranks.engine.config import seconds
from ranks.errors import UserError
from ranks.workloads.graph_coloring.graphs.dimacs import write_sol
from ranks.workloads.graph_coloring.graphs.read import read_graph
from ranks.workloads.graph_coloring.net.weights_file import load_net
from ranks.workloads.graph_coloring.solving.solution import Solution, by_dsatur, by_net


def solve(
    file: str,
    /,
    *,
    run: str | None = None,
    k: int | None = None,
    budget: str = "10s",
    seed: int = 0,
    out: Path | None = None,
    draw: Path | None = None,
    no_net: bool = False,
    drop_self_loops: bool = False,
    base: Literal["auto", 0, 1] = "auto",
) -> int:
    """Colour a graph: with the fewest colours that are found within the budget, or with at most -k.

    Args:
        file: DIMACS (.col), edge list (.edges, .txt, .csv), MatrixMarket (.mtx) or GraphML, also with .gz; or - for
            standard input.
        run: A run's name under runs/, the path of its folder, or a model.safetensors file; without it, the net that
            ships with the package.
        k: Colours allowed.
        budget: Time for the search: 10s, 2m.
        seed: Of the random starts.
        out: Write the colouring here, as a DIMACS .sol file.
        draw: Draw the coloured graph here, as PNG.
        no_net: Colour with DSATUR, a classical algorithm, in place of the net.
        drop_self_loops: Drop edges from a vertex to itself, which no colouring can satisfy, with a warning.
        base: How an edge list numbers its vertices: from 0 or from 1; auto looks whether a 0 occurs, and says so.

    Returns 0 with a proper colouring, 1 without one.
    """
    budget_s = seconds(budget, "--budget")
    if k is not None and k < 1:
        raise UserError(f"-k {k}", "a colouring needs at least one colour", "give -k 1 or more")
    if no_net and run is not None:
        raise UserError(f"--no-net --run {run}", "--no-net uses no weights", "leave one of them out")
    net = None if no_net else load_net(run)
    weights = "DSATUR, no net" if net is None else f"weights: {net.name}, sha256 {net.sha256}"
    print(weights if net is None else weights[: -len(net.sha256) + 12], flush=True)
    graph = read_graph(file, drop_self_loops=drop_self_loops, base=base)
    print(f"{file}: {graph.n} vertices, {graph.num_edges} edges", flush=True)
    found = by_dsatur(graph) if net is None else by_net(graph, net, k=k, budget_s=budget_s, seed=seed)
    proper = found.proper(k)
    facts = facts_of(found, k)
    print("\n".join(facts))
    print(f"s col {found.num_colours}" if proper else "s UNKNOWN")
    if out is not None:
        comments = [f"ranks graph-coloring solve {file}", weights, f"seed {seed}, budget {budget_s:g} s", *facts]
        write_sol(out, found.colours_N if proper else None, comments)
        print(f"colouring: {out}")
    if draw is not None:
        from ranks.workloads.graph_coloring.pictures.coloured_graph import draw_colouring

        draw_colouring(graph, found.colours_N, draw, title=Path(file).name if file != "-" else "standard input")
        print(f"drawing: {draw}")
    return 0 if proper else 1


def facts_of(found: Solution, k: int | None) -> list[str]:
    """What is told of an answer, line by line."""
    allowed = f" (allowed: {k})" if k is not None else ""
    proven = ", optimal: a clique has as many nodes" if found.optimal else ""
    lines = [
        f"{found.num_colours} colours{allowed}, conflicts {found.conflicts}{proven}",
        f"found by {found.found_by} after {found.found_s:.2f} s of {found.seconds:.2f} s",
    ]
    if found.told is not None:
        told = found.told
        lines.append(f"the net's estimate {told.chromatic:.1f}; {told.tries} tries, {told.moves:,} TabuCol moves")
    return lines
