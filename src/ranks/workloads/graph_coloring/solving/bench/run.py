"""Running a bench: read the instances, run every solver on each of them, and check every colouring.

The table reports the conflicts that the checker counts (graphs/checker.py), which shares no code
with the solvers.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, TextIO

import torch

from ranks.engine.runs import provenance
from ranks.errors import UserError
from ranks.progress import ProgressBar
from ranks.workloads.graph_coloring.classical.cliques import greedy_clique
from ranks.workloads.graph_coloring.graphs.checker import problems
from ranks.workloads.graph_coloring.graphs.graph import Graph
from ranks.workloads.graph_coloring.graphs.read import graph_files, graph_suffix, read_graph
from ranks.workloads.graph_coloring.solving.bench.best_known import BestKnown
from ranks.workloads.graph_coloring.solving.bench.report import BenchResult, CsvWriter, log_line
from ranks.workloads.graph_coloring.solving.budget import overrun
from ranks.workloads.graph_coloring.solving.search.solvers import CLASSICAL_SOLVERS, Solver

NET_SOLVERS = ("net raw", "net + repair", "net + TabuCol", "net + HEAD")
"""The names of `NetSolvers.by_name`, known before a net is loaded."""
REFUTED = "refuted by the checker"
WARM_UP = Graph.of(5, [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)])
"""Each solver colours this graph first, so that no instance pays for compilation and loading."""


@dataclass(frozen=True)
class Instance:
    """A graph of a bench.

    `clique`: the size of a clique, a lower bound. `known`: its best known colouring, if any.
    """

    name: str
    graph: Graph
    clique: int
    known: BestKnown | None


def choose_solvers(asked: Sequence[str]) -> list[str]:
    """The names of the asked solvers, or of all if none is asked. Raises UserError.

    Spelling is flexible: 'net-repair' means 'net + repair'. A text may hold several names with
    commas.
    """

    def plain(text: str) -> str:
        return "-".join(re.findall(r"\w+", text.lower()))

    by_plain_name = {plain(name): name for name in (*CLASSICAL_SOLVERS, *NET_SOLVERS)}
    wanted = [plain(name) for text in asked for name in text.split(",")]
    unknown = [name for name in wanted if name not in by_plain_name]
    if unknown:
        found, do = f"no solver is called {unknown[0]}", f"choose from {','.join(by_plain_name)}"
        raise UserError(f"--solvers {','.join(asked)}", found, do)
    return [name for plain_name, name in by_plain_name.items() if not asked or plain_name in wanted]


def read_instances(folder: Path, known: dict[str, BestKnown]) -> list[Instance]:
    """All graphs of a folder, or the graph of a file. Prints which files are skipped.

    Raises UserError, which names all files that are no valid graphs.
    """
    if not folder.exists():
        raise UserError(f"bench {folder}", "no such folder or file", "give a folder of graph files")
    paths = graph_files(folder) if folder.is_dir() else [folder]
    if not paths:
        raise UserError(f"bench {folder}", "no graph file in it", "give a folder of .col files")
    if folder.is_dir():
        others = sorted(path.name for path in folder.iterdir() if path.is_file() and path not in paths)
        if others:
            print(f"skipped, no graph files by their suffixes: {', '.join(others)}")
    instances: list[Instance] = []
    bad: list[str] = []
    stems = [path.name.removesuffix(".gz").removesuffix(graph_suffix(path)) for path in paths]
    for path, stem in zip(paths, stems, strict=True):
        try:
            graph = read_graph(path, drop_self_loops=True)
        except UserError as error:
            bad.append(error.found)
            continue
        name = stem if stems.count(stem) == 1 else path.name
        best = known.get(stem)
        if best and (best.nodes, best.edges) != (graph.n, graph.num_edges):
            print(f"{name}: the best known value is of a graph with {best.nodes} nodes, {best.edges} edges; not used")
            best = None
        instances.append(Instance(name, graph, len(greedy_clique(graph)), best))
    if bad:
        raise UserError(f"bench {folder}", "; ".join(bad), "fix these files, or remove them")
    return instances


def run_all(
    instances: Sequence[Instance], solvers: dict[str, Solver], budget_s: float, seeds: int, csv_file: TextIO | None
) -> list[BenchResult]:
    """Runs every solver on every instance; prints a line for each, and a bar on a terminal."""
    for solver in solvers.values():
        solver(WARM_UP, min(budget_s, 0.1), 0)
    writer = CsvWriter(csv_file) if csv_file else None
    results: list[BenchResult] = []
    with ProgressBar(len(instances) * seeds * len(solvers), log_every_s=None) as bar:
        for instance in instances:
            known = f", best known {instance.known}" if instance.known else ""
            graph = instance.graph
            bar.line(f"{instance.name}: {graph.n} nodes, {graph.num_edges:,} edges, clique {instance.clique}{known}")
            for seed, (name, solver) in _each_seed_and_solver(seeds, solvers):
                bar.title = f"{instance.name}, {name}:"
                bar.advance(0)
                results.append(measure(instance, name, solver, budget_s, seed))
                bar.line(log_line(results[-1]))
                if writer:
                    writer.write(results[-1])
                bar.advance()
    return results


def _each_seed_and_solver(seeds: int, solvers: dict[str, Solver]) -> Iterator[tuple[int, tuple[str, Solver]]]:
    return ((seed, solver) for seed in range(seeds) for solver in solvers.items())


def measure(instance: Instance, name: str, solver: Solver, budget_s: float, seed: int) -> BenchResult:
    """One solver on one instance: timed here, and its colouring checked."""
    graph, known = instance.graph, instance.known
    start_s, start_cpu_s = time.perf_counter(), time.process_time()
    found = solver(graph, budget_s, seed)
    spent_s, cpu_s = time.perf_counter() - start_s, time.process_time() - start_cpu_s
    colours: list[int] = found.colours_N.tolist()
    conflicts = len(problems(graph.n, graph.edges_E2.tolist(), colours, None))
    notes = ["optimal" if found.optimal else found.note, overrun(spent_s, budget_s)]
    if conflicts != found.conflicts:
        notes[0] = f"{REFUTED}: {found.conflicts} conflicts claimed, {conflicts} found"
    return BenchResult(
        instance=instance.name,
        nodes=graph.n,
        edges=graph.num_edges,
        clique=instance.clique,
        best_known=known.colours if known else None,
        proven=known.proven if known else None,
        solver=name,
        seed=seed,
        colours=None if conflicts else len(set(colours)),
        conflicts=conflicts,
        seconds=round(spent_s, 4),
        cpu_s=round(cpu_s, 4),
        found_s=None if found.found_s is None else round(found.found_s, 4),
        moves=found.moves,
        note="; ".join(filter(None, notes)),
    )


def provenance_of(setting: dict[str, Any]) -> dict[str, Any]:
    """How the results were measured: date, command, versions, hardware, and the given settings."""
    return {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": " ".join(["ranks", *sys.argv[1:]]),
        "commit": provenance.git_commit(),
        "versions": provenance.versions() | {"numba": metadata.version("numba")},
        "hardware": provenance.hardware(torch.device("cpu")),
        **setting,
    }
