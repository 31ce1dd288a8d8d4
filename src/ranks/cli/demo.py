"""`ranks demo`: the whole way once, by the commands that a person would type, each printed before it runs."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import FrameType

from ranks.cli.parse import parse

PROG = "ranks demo"


@dataclass(frozen=True)
class Flags:
    """Train graph-coloring for about three minutes, evaluate and export it, and let it colour a graph.

    Interrupted and called again, it goes on where it was."""

    name: str = "demo"
    """Name of the run folder."""
    preset: str = "demo"
    """Which of graph-coloring's presets is trained."""
    runs_dir: Path = Path("runs")
    """Where everything is put."""


def demo(argv: Sequence[str]) -> int:
    """Run the commands one after the other; the first that fails ends the demo with its exit code."""
    flags = parse(Flags, argv, prog=PROG)
    run = flags.runs_dir / flags.name
    graph, solution, picture = (run / "solve" / f"graph.{kind}" for kind in ("col", "sol", "png"))
    place = ["--runs-dir", str(flags.runs_dir)] if flags.runs_dir != Path("runs") else []
    written = ["--out", str(solution), "--draw", str(picture)]
    for command in (
        ["train", "graph-coloring", "--preset", flags.preset, "--name", flags.name, *place],
        ["evaluate", flags.name, *place],
        ["export", flags.name, *place],
        ["graph-coloring", "solve", str(graph), "--run", str(run), "--net-only", *written],
    ):
        if command[0] == "graph-coloring" and not graph.exists():
            write_graph(graph)
        code = carry_out(command)
        if code:
            print(f"{PROG} ended early (exit code {code}); call it again and it goes on from here", file=sys.stderr)
            return code
    print(
        f"\nthe run, its metrics and checkpoints: {run}/ (list all runs: ranks runs)",
        f"weights for plain PyTorch, and ONNX:   {run / 'export'}/",
        f"a graph, and its colouring:            {graph}, {solution}",
        f"the colouring as a picture:            {picture}",
        "next: source .venv/bin/activate; ranks graph-coloring solve YOUR.col --draw YOUR.png, or: ranks new my_task",
        sep="\n",
    )
    return 0


def write_graph(path: Path) -> None:
    """A hard 3-colourable graph of 50 nodes that training never saw, in the DIMACS format."""
    from ranks.workloads.graph_coloring.data.hard_instances import hard_three_colourable

    graphs = (hard_three_colourable(seed=0, purpose="demo", n=50, item=item) for item in count())
    graph = next(graph for graph in graphs if graph.degrees().min() > 0)  # a lone vertex spoils the picture
    edges = [f"e {u + 1} {v + 1}" for u, v in graph.edges_E2.tolist()]
    head = ["c 3-colourable, and with one more edge no longer", f"p edge {graph.n} {graph.num_edges}"]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*head, *edges]) + "\n", encoding="ascii")


def carry_out(command: Sequence[str]) -> int:
    """Print a command as it would be typed, run it, and leave its signals to it. Returns its exit code."""
    print(f"\n$ ranks {shlex.join(command)}", flush=True)
    process: subprocess.Popen[bytes] | None = None

    def pass_on(signum: int, frame: FrameType | None) -> None:
        # Ctrl-C reaches the whole terminal by itself
        if process is not None and signum == signal.SIGTERM:
            process.send_signal(signum)

    previous = {signum: signal.signal(signum, pass_on) for signum in (signal.SIGINT, signal.SIGTERM)}
    try:
        process = subprocess.Popen([sys.executable, "-m", "ranks", *command])
        code = process.wait()
    finally:
        for signum, handler in previous.items():
            signal.signal(signum, handler)
    return code if code >= 0 else 128 - code
