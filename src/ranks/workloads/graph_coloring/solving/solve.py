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
from ranks.workloads.graph_coloring.solving.budget import WALL, MoveClock, SearchClock, budget_seconds, number_of_moves

if TYPE_CHECKING:
    from ranks.workloads.graph_coloring.solving.solution import Solution


def solve(
    file: str,
    /,
    *,
    run: str | None = None,
    k: int | None = None,
    budget: str = "10s",
    moves: str | None = None,
    init: Path | None = None,
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
        budget: Time limit, reading the file included: 10s, 2m.
        moves: Limit in moves of TabuCol in place of --budget, for example 50M. Equal arguments
            then give an equal answer on any load and number of cores.
        init: Start from the colouring in this .sol file.
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
    amount = budget_seconds(budget) if moves is None else number_of_moves(moves)
    if k is not None and k < 1:
        raise UserError(f"-k {k}", "a colouring needs at least one colour", "give -k 1 or more")
    if no_net and net_only:
        raise UserError("--no-net --net-only", "they exclude each other", "give one of them")
    if no_net and run is not None:
        raise UserError(f"--no-net --run {run}", "--no-net uses no weights", "leave one of them out")
    if no_net and init is not None:
        raise UserError(f"--no-net --init {init}", "DSATUR starts from no colouring", "leave one of them out")
    if net_only and init is not None:
        raise UserError(f"--net-only --init {init}", "the net starts from no colouring", "leave one of them out")
    to_stdout = str(out) == "-"
    if out is not None and not to_stdout:
        check_writable(out, "--out")
    if draw is not None:
        check_picture(draw, f"--draw {draw}")
        check_writable(draw, "--draw")

    from ranks.workloads.graph_coloring.graphs.dimacs import sol_text, write_sol
    from ranks.workloads.graph_coloring.graphs.read import read_graph
    from ranks.workloads.graph_coloring.graphs.sol_file import read_sol
    from ranks.workloads.graph_coloring.net.weights_file import load_net
    from ranks.workloads.graph_coloring.pictures.coloured_graph import draw_colouring
    from ranks.workloads.graph_coloring.solving.best_colouring import (
        Limit,
        best_colouring,
        by_dsatur,
        by_net_alone,
        warm_up,
        with_k_colours,
    )
    from ranks.workloads.graph_coloring.solving.search.change_colours import with_more_colours

    clock = WALL if moves is None else MoveClock()
    limit_text = f"budget {amount:g} s" if moves is None else f"{amount:,} moves"
    with contextlib.redirect_stdout(sys.stderr) if to_stdout else contextlib.nullcontext():
        net = None if no_net else load_net(run)
        weights = "DSATUR, no net" if net is None else f"weights: {net.name}, sha256 {net.sha256}"
        print(weights if net is None else weights[: -len(net.sha256) + 12], flush=True)
        if moves is None and not no_net:
            print("with seconds the answer depends on the speed of the machine; with --moves it does not")
        warm_up()
        limit = Limit.from_now(amount, clock)
        graph = read_graph(file, drop_self_loops=drop_self_loops, base=base)
        print(f"{file}: {graph.n} vertices, {graph.num_edges} edges", flush=True)
        given_N = None
        if init is not None:
            given_N = read_sol(init, graph.n, "--init")
            print(f"{init}: {len(set(given_N.tolist()))} colours, conflicts {graph.conflicts(given_N)}", flush=True)
            given_N = with_more_colours(graph, given_N)
        if net is None:
            found = by_dsatur(graph, limit)
            if k is not None and not found.settled(k):
                found = with_k_colours(graph, found, k)
        elif net_only:
            found = by_net_alone(graph, net, k=k, limit=limit, seed=seed)
        else:
            found = best_colouring(graph, net, k=k, limit=limit, seed=seed, given_N=given_N)
        lines = describe(found, k, clock)
        print("\n".join(lines))
    colours_N = found.colours_N if found.proper(k) else None
    comments = [f"ranks graph-coloring solve {file}", weights, f"seed {seed}, {limit_text}", *lines]
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


def describe(found: Solution, k: int | None, clock: SearchClock = WALL) -> list[str]:
    """The lines that describe a solution: colours, bound, which component found it, and when."""

    def shown(amount: float) -> str:
        return f"{amount:.2f} s" if clock.unit == "s" else f"{amount:,.0f} {clock.unit}"

    if found.impossible(k):
        return [f"proven impossible with {k} colours: {found.bound.why}", f"decided after {shown(found.seconds)}"]
    allowed = f" (allowed: {k})" if k is not None else ""
    proven = ", optimal" if found.optimal else f"; at least {found.bound.colours} are needed"
    lines = [
        f"{found.num_colours} colours{allowed}, conflicts {found.conflicts}{proven}: {found.bound.why}",
        f"found by {found.found_by} after {shown(found.found_s)} of {shown(found.seconds)}",
    ]
    if not found.proper(k):
        lines[1] = f"not found in {shown(found.seconds)}: the best answer leaves {found.conflicts} conflicting edges"
    if found.report is not None:
        report = found.report
        searched = f"{report.tries} tries, {report.moves:,} moves, {report.generations} generations of HEAD"
        lines.append(f"the net's estimate {report.chromatic:.1f}; {searched}")
    if found.without_net:
        lines.append(f"without the net: {found.without_net}")
    return lines
