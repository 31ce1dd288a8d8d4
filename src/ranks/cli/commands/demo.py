"""`ranks demo`: train, evaluate, export and use a model, with the commands of every user."""

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

from ranks.cli.flags.parse import parse

PROG = "ranks demo"
EXAMPLE = Path("examples/graph.col")
"""The demo's graph, as it is in a clone of the repository."""


@dataclass(frozen=True)
class DemoFlags:
    """Train graph-coloring for some minutes, evaluate and export the model, and colour a graph with
    it.

    After an interruption, the same command resumes the training."""

    name: str = "demo"
    """Name of the run folder."""
    preset: str = "demo"
    """The preset of graph-coloring that is trained."""
    runs_dir: Path = Path("runs")
    """The folder of the run folders."""


def demo(argv: Sequence[str]) -> int:
    """Run the commands in order. The first that fails ends the demo with its exit code."""
    flags = parse(DemoFlags, argv, prog=PROG)
    run = flags.runs_dir / flags.name
    graph = EXAMPLE if EXAMPLE.is_file() else run / "solve" / "graph.col"
    solution, picture = run / "solve" / "graph.sol", run / "solve" / "graph.png"
    place = ["--runs-dir", str(flags.runs_dir)] if flags.runs_dir != Path("runs") else []
    written = ["--out", str(solution), "--draw", str(picture)]
    print(
        "The demo trains a neural network that colours graphs: 3 to 6 minutes on 2 CPU cores.",
        "Then it evaluates and exports the network, and colours a graph with it: less than a minute.",
        "Ctrl-C stops it after a save; the same command resumes it.",
        sep="\n",
    )
    for command in (
        ["train", "graph-coloring", "--preset", flags.preset, "--name", flags.name, *place],
        ["evaluate", flags.name, *place],
        ["export", flags.name, *place],
        ["graph-coloring", "solve", str(graph), "--run", str(run), "--net-only", *written],
    ):
        if command[0] == "graph-coloring":
            solution.parent.mkdir(parents=True, exist_ok=True)
            if not graph.exists():
                graph.write_text(example_graph(), encoding="ascii")
        code = run_command(command)
        if code:
            print(f"{PROG} ended early (exit code {code}); the same command resumes it", file=sys.stderr)
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


def example_graph() -> str:
    """A hard 3-colourable graph of 50 nodes, not in the training data, in the DIMACS format."""
    from ranks.workloads.graph_coloring.data.families.hard_instances import hard_three_colourable

    graphs = (hard_three_colourable(seed=0, purpose="demo", n=50, item=item) for item in count())
    graph = next(graph for graph in graphs if graph.degrees().min() > 0)  # a node without edges spoils the picture
    head = [
        "c 50 nodes that 3 colours suffice for; one edge more, and they do not",
        "c made by the function example_graph in ranks/cli/commands/demo.py",
        f"p edge {graph.n} {graph.num_edges}",
    ]
    return "\n".join([*head, *(f"e {u + 1} {v + 1}" for u, v in graph.edges_E2.tolist())]) + "\n"


def run_command(command: Sequence[str]) -> int:
    """Print a command as it is typed, and run it. It handles Ctrl-C and SIGTERM itself. Returns its
    exit code."""
    print(f"\n$ ranks {shlex.join(command)}", flush=True)
    process: subprocess.Popen[bytes] | None = None

    def pass_on(signum: int, frame: FrameType | None) -> None:
        # Ctrl-C reaches all processes of the terminal by itself
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
