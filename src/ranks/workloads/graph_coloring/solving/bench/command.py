"""The command `ranks graph-coloring bench`: compare solvers on the graphs of a folder.

Imports torch and Numba inside the function only, so that `--help` answers at once.
"""

from __future__ import annotations

import contextlib
import json as json_format
from dataclasses import asdict
from pathlib import Path
from typing import TextIO

from ranks.errors import UserError
from ranks.workloads.graph_coloring.solving.budget import budget_seconds

ALL: list[str] = []
"""No solver is named: all are run."""


def bench(
    folder: Path,
    /,
    *,
    budget: str = "10s",
    seeds: int = 1,
    solvers: list[str] = ALL,
    run: str | None = None,
    best: Path | None = None,
    csv: Path | None = None,
    json: Path | None = None,
    plot: Path | None = None,
) -> int:
    """Colour every graph of a folder with every solver, each for the same time, and compare.

    Args:
        folder: A folder of graph files (.col, .mtx, .edges, .graphml, also .gz), or one file.
        budget: Time limit of each solver on each graph: 10s, 2m.
        seeds: The number of seeds, from 0 on; the table shows medians.
        solvers: Only these solvers, for example dsatur,tabucol; may be given several times; by
            default all.
        run: The net's weights: a run's name under runs/, its folder, or a model.safetensors file;
            by default the net that ships with the package.
        best: Best known colours, as a CSV file instance,nodes,edges,best_known,proven; by default
            the shipped one.
        csv: Write a row for each graph, solver and seed to this file, as they come.
        json: Write the rows, the summary, versions and hardware to this file.
        plot: Draw the gaps to the best known colours, by family and solver, to this PNG or SVG
            file.

    Self-loops are dropped, and counted in a printed line. An independent checker counts the
    conflicts of every colouring. Returns 0, or 1 if a solver claimed a colouring that the checker
    refutes.
    """
    budget_s = budget_seconds(budget)
    if seeds < 1:
        raise UserError(f"--seeds {seeds}", "a bench needs at least one", "give --seeds 1 or more")

    from ranks.engine.distributed.precision import one_thread
    from ranks.engine.runs.provenance import cpu_name
    from ranks.workloads.graph_coloring.net.weights_file import load_net
    from ranks.workloads.graph_coloring.pictures.plots import plot_gaps
    from ranks.workloads.graph_coloring.solving.bench import run as bench_run
    from ranks.workloads.graph_coloring.solving.bench.best_known import read_best_known
    from ranks.workloads.graph_coloring.solving.bench.report import gaps, summary, table
    from ranks.workloads.graph_coloring.solving.search.net_solvers import NetSolvers
    from ranks.workloads.graph_coloring.solving.search.solvers import CLASSICAL_SOLVERS

    names = bench_run.choose_solvers(solvers)
    instances = bench_run.read_instances(folder, read_best_known(best))
    if plot:  # an empty plot first, so that a path or format that fails is reported before the measurement
        if not any(instance.known for instance in instances):
            found = "no best known colours for any of these graphs"
            raise UserError(f"--plot {plot}", found, "give them with --best FILE, or leave --plot out")
        plot_gaps(plot, {}, "not measured yet")
    setting = {"budget_s": budget_s, "seeds": seeds, "threads": 1}
    available = dict(CLASSICAL_SOLVERS)
    if any(name in bench_run.NET_SOLVERS for name in names):
        net = load_net(run)
        available |= NetSolvers(net.model).by_name()
        setting |= {"weights": net.name, "weights_sha256": net.sha256}
        print(f"weights: {net.name}, sha256 {net.sha256[:12]}")
    with contextlib.ExitStack() as stack:
        csv_file = stack.enter_context(_open(csv, "--csv")) if csv else None
        json_file = stack.enter_context(_open(json, "--json")) if json else None
        print(f"{len(instances)} graphs, {budget} for each of: {', '.join(names)}; {cpu_name()}", flush=True)
        chosen = {name: available[name] for name in names}
        stack.enter_context(one_thread())
        results = bench_run.run_all(instances, chosen, budget_s, seeds, csv_file)
        print("\n".join(["", *table(results), "", *summary(results)]))
        print(f"* proven; seconds until the colouring was found, of {budget}; CPU: one thread")
        if json_file:
            rows = [asdict(result) for result in results]
            content = {"provenance": bench_run.provenance_of(setting), "rows": rows, "summary": summary(results)}
            json_file.write(json_format.dumps(content, indent=1) + "\n")
    if plot:
        plot_gaps(plot, gaps(results), f"colours above the best known, {budget} each")
        print(f"plot: {plot}")
    refuted = [result for result in results if result.note.startswith(bench_run.REFUTED)]
    for result in refuted:
        print(f"{result.solver} on {result.instance}, seed {result.seed}: {result.note}")
    return 1 if refuted else 0


def _open(path: Path, flag: str) -> TextIO:
    try:
        return path.open("w", encoding="utf-8", newline="\n")
    except OSError as error:
        raise UserError(f"{flag} {path}", error.strerror or str(error), "give a path that can be written") from None
