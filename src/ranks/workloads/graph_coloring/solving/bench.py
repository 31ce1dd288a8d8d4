"""`ranks graph-coloring bench`: every way on every graph of a folder, each for the same seconds.

Colourings are checked by code that shares nothing with the solvers (graphs/checker.py); its count of conflicts stands
in the table, not the way's own.
"""

from __future__ import annotations

import contextlib
import json as json_format
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, TextIO

import torch

from ranks.engine.runs import provenance
from ranks.errors import UserError
from ranks.workloads.graph_coloring.classical.cliques import greedy_clique
from ranks.workloads.graph_coloring.graphs.checker import problems
from ranks.workloads.graph_coloring.graphs.graph import Graph
from ranks.workloads.graph_coloring.graphs.read import ending, graph_files, read_graph
from ranks.workloads.graph_coloring.net.weights_file import load_net
from ranks.workloads.graph_coloring.pictures.plots import plot_gaps
from ranks.workloads.graph_coloring.solving.bench_report import CsvWriter, Row, gaps, summary, table, told
from ranks.workloads.graph_coloring.solving.best_known import BestKnown, read_best_known
from ranks.workloads.graph_coloring.solving.budget import budget_seconds, overrun
from ranks.workloads.graph_coloring.solving.net_ways import NetWays
from ranks.workloads.graph_coloring.solving.ways import CLASSICAL, Way

NET_WAYS = ("net raw", "net + repair", "net + TabuCol")
"""The names of `NetWays.table`, known before a net is loaded."""
ALL: list[str] = []
"""No way is named."""
REFUTED = "refuted by the checker"

WARM_UP = Graph.of(5, [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)])
"""Each way colours it once before anything is measured, so that no instance pays for what happens once."""


@dataclass(frozen=True)
class Instance:
    """A graph with what is known of it. `clique`: nodes of a clique, below which no number of colours lies."""

    name: str
    graph: Graph
    clique: int
    known: BestKnown | None


def bench(
    folder: Path,
    /,
    *,
    budget: str = "10s",
    seeds: int = 1,
    ways: list[str] = ALL,
    run: str | None = None,
    best: Path | None = None,
    csv: Path | None = None,
    json: Path | None = None,
    plot: Path | None = None,
) -> int:
    """Colour every graph of a folder in every way, each for the same seconds, and compare.

    Args:
        folder: A folder of graph files (.col, .mtx, .edges, .graphml, also .gz), or one file.
        budget: Time for each way on each graph: 10s, 2m.
        seeds: How many seeds to run, from 0 on; the table shows medians.
        ways: Only these ways, such as dsatur,tabucol; may be given several times; without it all.
        run: The net's weights: a run's name under runs/, its folder, or a model.safetensors file; without it, the net
            that ships with the package.
        best: Best known colours, as a CSV file instance,nodes,edges,best_known,proven, in place of the shipped one.
        csv: Write a row for each graph, way and seed here, as they come.
        json: Write the rows, the summary, and how they were made here.
        plot: Draw the gaps to the best known colours here, by family and way, as PNG or SVG.

    Self-loops are dropped, and said. Returns 0, or 1 where a way claimed a colouring that the checker refutes.
    """
    budget_s = budget_seconds(budget)
    if seeds < 1:
        raise UserError(f"--seeds {seeds}", "a bench needs at least one", "give --seeds 1 or more")
    titles = chosen(ways)
    instances = read_instances(folder, read_best_known(best))
    if plot:
        _begin_plot(plot, instances)
    setting = {"budget_s": budget_s, "seeds": seeds, "threads": torch.get_num_threads()}
    makers = dict(CLASSICAL)
    if any(title in NET_WAYS for title in titles):
        net = load_net(run)
        makers |= NetWays(net.model).table()
        setting |= {"weights": net.name, "weights_sha256": net.sha256}
        print(f"weights: {net.name}, sha256 {net.sha256[:12]}")
    with contextlib.ExitStack() as files:
        csv_file = files.enter_context(_open(csv, "--csv")) if csv else None
        json_file = files.enter_context(_open(json, "--json")) if json else None
        print(
            f"{len(instances)} graphs, {budget} for each of: {', '.join(titles)}; {provenance.cpu_name()}", flush=True
        )
        rows = run_all(instances, {title: makers[title] for title in titles}, budget_s, seeds, csv_file)
        lines = ["", *table(rows), "", *summary(rows)]
        print("\n".join(lines))
        print(f"* proven; seconds until the colouring was found, of {budget}; CPU: {setting['threads']} torch threads")
        if json_file:
            found = {"made": origin(setting), "rows": [asdict(row) for row in rows], "summary": summary(rows)}
            json_file.write(json_format.dumps(found, indent=1) + "\n")
    if plot:
        plot_gaps(plot, gaps(rows), f"colours above the fewest known, {budget} each")
        print(f"plot: {plot}")
    refuted = [row for row in rows if row.note.startswith(REFUTED)]
    for row in refuted:
        print(f"{row.way} on {row.instance}, seed {row.seed}: {row.note}")
    return 1 if refuted else 0


def chosen(ways: Sequence[str]) -> list[str]:
    """The titles of the asked ways, all where none is asked; 'net + repair' answers to net-repair too, and commas part
    several of one text. Raises UserError."""

    def word(text: str) -> str:
        return "-".join(re.findall(r"\w+", text.lower()))

    by_word = {word(title): title for title in (*CLASSICAL, *NET_WAYS)}
    asked = [word(way) for part in ways for way in part.split(",")]
    unknown = [way for way in asked if way not in by_word]
    if unknown:
        raise UserError(f"--ways {','.join(ways)}", f"no way is called {unknown[0]}", f"choose of {','.join(by_word)}")
    return [title for way, title in by_word.items() if not ways or way in asked]


def read_instances(folder: Path, known: dict[str, BestKnown]) -> list[Instance]:
    """All graphs of a folder, or that of a file; says what was left out. Raises a UserError that names all bad ones."""
    if not folder.exists():
        raise UserError(f"bench {folder}", "no such folder or file", "give a folder of graph files")
    paths = graph_files(folder) if folder.is_dir() else [folder]
    if not paths:
        raise UserError(f"bench {folder}", "no graph file in it", "give a folder of .col files")
    if folder.is_dir():
        others = sorted(path.name for path in folder.iterdir() if path.is_file() and path not in paths)
        if others:
            print(f"left out, no graph files by their endings: {', '.join(others)}")
    instances: list[Instance] = []
    bad: list[str] = []
    stems = [path.name.removesuffix(".gz").removesuffix(ending(path)) for path in paths]
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
        raise UserError(f"bench {folder}", "; ".join(bad), "mend these files, or take them out")
    return instances


def run_all(
    instances: Sequence[Instance], ways: dict[str, Way], budget_s: float, seeds: int, csv_file: TextIO | None
) -> list[Row]:
    """Every way on every instance, one after the other: a line for each, and a bar on a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    for way in ways.values():
        way(WARM_UP, min(budget_s, 0.1), 0)
    columns = (BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    writer = CsvWriter(csv_file) if csv_file else None
    rows: list[Row] = []
    with Progress(*columns, refresh_per_second=1, disable=not sys.stdout.isatty()) as bar:
        task = bar.add_task("", total=len(instances) * seeds * len(ways))

        def line(text: str) -> None:
            bar.console.print(text, markup=False, highlight=False, emoji=False, soft_wrap=True)

        for instance in instances:
            known = f", best known {instance.known}" if instance.known else ""
            graph = instance.graph
            line(f"{instance.name}: {graph.n} nodes, {graph.num_edges:,} edges, clique {instance.clique}{known}")
            for seed, (title, way) in _turns(seeds, ways):
                bar.update(task, description=f"{instance.name}, {title}", refresh=True)
                rows.append(measure(instance, title, way, budget_s, seed))
                line(told(rows[-1]))
                if writer:
                    writer.write(rows[-1])
                bar.advance(task)
    return rows


def _turns(seeds: int, ways: dict[str, Way]) -> Iterator[tuple[int, tuple[str, Way]]]:
    return ((seed, way) for seed in range(seeds) for way in ways.items())


def measure(instance: Instance, title: str, way: Way, budget_s: float, seed: int) -> Row:
    """One way on one instance, timed from outside, and checked."""
    graph, known = instance.graph, instance.known
    begin, begin_cpu = time.perf_counter(), time.process_time()
    answer = way(graph, budget_s, seed)
    spent_s, cpu_s = time.perf_counter() - begin, time.process_time() - begin_cpu
    colours: list[int] = answer.colours_N.tolist()
    conflicts = len(problems(graph.n, graph.edges_E2.tolist(), colours, None))
    notes = ["optimal" if answer.optimal else answer.note, overrun(spent_s, budget_s)]
    if conflicts != answer.conflicts:
        notes[0] = f"{REFUTED}: {answer.conflicts} conflicts claimed, {conflicts} found"
    return Row(
        instance=instance.name,
        nodes=graph.n,
        edges=graph.num_edges,
        clique=instance.clique,
        best_known=known.colours if known else None,
        proven=known.proven if known else None,
        way=title,
        seed=seed,
        colours=None if conflicts else len(set(colours)),
        conflicts=conflicts,
        seconds=round(spent_s, 4),
        cpu_s=round(cpu_s, 4),
        found_s=None if answer.found_s is None else round(answer.found_s, 4),
        moves=answer.moves,
        note="; ".join(filter(None, notes)),
    )


def origin(setting: dict[str, Any]) -> dict[str, Any]:
    """What stands beside the rows: date, command, versions, hardware, setting."""
    return {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": " ".join(["ranks", *sys.argv[1:]]),
        "commit": provenance.git_commit(),
        "versions": provenance.versions() | {"numba": metadata.version("numba")},
        "hardware": provenance.hardware(torch.device("cpu")),
        **setting,
    }


def _begin_plot(path: Path, instances: Sequence[Instance]) -> None:
    """An empty plot, so that one that cannot be drawn is told before anything is measured. Raises UserError."""
    if not any(instance.known for instance in instances):
        found = "of no graph here the best known colours are known"
        raise UserError(f"--plot {path}", found, "give them with --best FILE, or leave --plot out")
    plot_gaps(path, {}, "not measured yet")


def _open(path: Path, flag: str) -> TextIO:
    try:
        return path.open("w", encoding="utf-8", newline="\n")
    except OSError as error:
        raise UserError(f"{flag} {path}", error.strerror or str(error), "give a path that can be written") from None
