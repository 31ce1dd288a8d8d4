"""The command `ranks graph-coloring solve`: colour the graph of a file.

Imports torch and Numba inside the function only, so that `--help` answers at once.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ranks.errors import UserError
from ranks.workloads.graph_coloring.pictures.canvas import check_picture
from ranks.workloads.graph_coloring.solving.budget import budget_seconds

if TYPE_CHECKING:
    from ranks.workloads.graph_coloring.solving.solution import Solution


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
    net_only: bool = False,
    drop_self_loops: bool = False,
    base: Literal["auto", 0, 1] = "auto",
) -> int:
    """Colour a graph: with the fewest colours found within the time, or with at most -k.

    Args:
        file: DIMACS (.col), edge list (.edges, .txt, .csv), MatrixMarket (.mtx) or GraphML, also
            with .gz; or - for standard input.
        run: A run's name under runs/, the path of its folder, or a model.safetensors file; by
            default the net that ships with the package.
        k: The number of colours allowed.
        budget: Time limit of the search: 10s, 2m.
        seed: Seed of the random starts.
        out: Write the colouring to this DIMACS .sol file; with - to standard output, and all
            messages to standard error.
        draw: Draw the coloured graph to this .png or .svg file.
        no_net: Colour with DSATUR, a classical algorithm, instead of the net.
        net_only: Use only the net and the repair of its colourings, to see what it can do alone.
        drop_self_loops: Drop edges from a vertex to itself, which no colouring can satisfy, and
            print how many.
        base: Whether an edge list numbers its vertices from 0 or from 1; auto checks whether a 0
            occurs, and prints it.

    The net is not used if DSATUR and a clique settle the graph or, on small graphs, a short exact
    search does.

    Returns 0 with a proper colouring, 1 without one.
    """
    budget_s = budget_seconds(budget)
    if k is not None and k < 1:
        raise UserError(f"-k {k}", "a colouring needs at least one colour", "give -k 1 or more")
    if no_net and net_only:
        raise UserError("--no-net --net-only", "they exclude each other", "give one of them")
    if no_net and run is not None:
        raise UserError(f"--no-net --run {run}", "--no-net uses no weights", "leave one of them out")
    to_stdout = str(out) == "-"
    if out is not None and not to_stdout:
        check_writable(out, "--out")
    if draw is not None:
        check_picture(draw, f"--draw {draw}")
        check_writable(draw, "--draw")

    from ranks.workloads.graph_coloring.graphs.dimacs import sol_text, write_sol
    from ranks.workloads.graph_coloring.graphs.read import read_graph
    from ranks.workloads.graph_coloring.net.weights_file import load_net
    from ranks.workloads.graph_coloring.pictures.coloured_graph import draw_colouring
    from ranks.workloads.graph_coloring.solving.best_colouring import by_dsatur, by_net, by_net_alone

    with contextlib.redirect_stdout(sys.stderr) if to_stdout else contextlib.nullcontext():
        net = None if no_net else load_net(run)
        weights = "DSATUR, no net" if net is None else f"weights: {net.name}, sha256 {net.sha256}"
        print(weights if net is None else weights[: -len(net.sha256) + 12], flush=True)
        graph = read_graph(file, drop_self_loops=drop_self_loops, base=base)
        print(f"{file}: {graph.n} vertices, {graph.num_edges} edges", flush=True)
        if net is None:
            found = by_dsatur(graph)
        else:
            found = (by_net_alone if net_only else by_net)(graph, net, k=k, budget_s=budget_s, seed=seed)
        lines = describe(found, k)
        print("\n".join(lines))
    colours_N = found.colours_N if found.proper(k) else None
    comments = [f"ranks graph-coloring solve {file}", weights, f"seed {seed}, budget {budget_s:g} s", *lines]
    if to_stdout:
        print(sol_text(colours_N, comments), end="")
    else:
        print("s UNKNOWN" if colours_N is None else f"s col {found.num_colours}")
    if out is not None and not to_stdout:
        write_sol(out, colours_N, comments)
        print(f"colouring: {out}")
    if draw is not None:
        draw_colouring(graph, found.colours_N, draw, title=Path(file).name if file != "-" else "standard input")
        print(f"drawing: {draw}", file=sys.stderr if to_stdout else sys.stdout)
    return 1 if colours_N is None else 0


def check_writable(path: Path, flag: str) -> None:
    """Raises UserError if a file cannot be written at a path; called before the search."""
    if path.is_dir():
        found = f"{path} is a folder"
    elif not path.parent.is_dir():
        found = f"there is no folder {path.parent}"
    elif not os.access(path if path.exists() else path.parent, os.W_OK):
        found = "permission to write is denied"
    else:
        return
    raise UserError(f"{flag} {path}", found, "give a path that can be written")


def describe(found: Solution, k: int | None) -> list[str]:
    """The lines that describe a solution: colours, bound, which component found it, and when."""
    if found.impossible(k):
        return [f"proven impossible with {k} colours: {found.bound.why}", f"decided after {found.seconds:.2f} s"]
    allowed = f" (allowed: {k})" if k is not None else ""
    proven = ", optimal" if found.optimal else f"; at least {found.bound.colours} are needed"
    lines = [
        f"{found.num_colours} colours{allowed}, conflicts {found.conflicts}{proven}: {found.bound.why}",
        f"found by {found.found_by} after {found.found_s:.2f} s of {found.seconds:.2f} s",
    ]
    if found.report is not None:
        report = found.report
        lines.append(f"the net's estimate {report.chromatic:.1f}; {report.tries} tries, {report.moves:,} TabuCol moves")
    if found.without_net:
        lines.append(f"without the net: {found.without_net}")
    return lines
