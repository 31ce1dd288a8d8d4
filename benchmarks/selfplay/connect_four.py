"""How well the self-play template plays Connect Four after ten minutes on two cores.

    python -m benchmarks.selfplay.connect_four [--minutes 10] [--ranks 2] [--seeds 3] [--clock wall|cpu] [-- FLAGS]

FLAGS are those of `ranks train`. It trains what `ranks new NAME --shape self-play` writes and asks how often the net
plays an optimal move in up to 1,000 positions (connect_four_positions.py): without search, and with 64
simulations of Gumbel search without noise. Optimal is a move with the best outcome (won, drawn or lost) under perfect
play. The strict share, of positions with 16 stones or more, counts only moves that also win soonest or lose latest. In
each position at least one move is not optimal. Positions that occurred in the training games, or whose mirror image
did, are left out, also those that were not learned from. Of equal priors each counts in part. The untrained net is
measured too.

With --clock cpu the time is the CPU time of all processes of the run, divided by the ranks: for a machine that does
other work. Writes benchmarks/results/connect_four_DATE.json.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import numpy as np
import psutil
import torch
from numpy.typing import NDArray
from torch import nn

from benchmarks.measure import environment, origin, write_result
from benchmarks.selfplay.connect_four_positions import SHA256, STRICT_FROM, Position, key_of, read
from ranks.engine.runs.checkpoints.pick import model_weights, pick_checkpoint
from ranks.search import CONNECT_FOUR, Evaluation, Leaves, Search
from ranks.selfplay import Positions, SelfPlayConfig, expected_outcome, policy_and_value
from ranks.selfplay.search_settings import match_search

MEASURED, SIMULATIONS = 1_000, 64
GOALS = {"policy": 0.75, "search": 0.85}
NAME = "four_in_a_row"
RECORDER = '''

class ReplayWindow(ReplayWindow):
    """Also writes down every position of the games, so that none of them is in the test."""

    def add(self, games):
        if self.world.rank == 0:
            np.save(f"seen/{games.iteration:08d}.npy", np.unique(games.records.state_PW, axis=0))
        super().add(games)
'''
"""Is added to the template, which looks its names up when the training begins."""


class Template(Protocol):
    """What the measure needs of the template's module."""

    ENCODING: Any
    SELFPLAY: SelfPlayConfig


def evaluator(net: nn.Module, encoding: Any) -> Any:
    """The net as the search calls it."""

    def evaluate(leaves: Leaves) -> Evaluation:
        with torch.inference_mode():
            logits_BM, value = policy_and_value(net, encoding, Positions.of(leaves))
            return Evaluation(logits_BM.softmax(1).numpy(), expected_outcome(value).numpy())

    return evaluate


def chosen(net: nn.Module, module: Template, positions: Sequence[Position], simulations: int) -> list[list[int]]:
    """The move of each position; without simulations the one with the highest prior, or several of equal priors.

    The search is that of the template, without noise."""
    config = match_search(module.SELFPLAY, simulations)
    search = Search(CONNECT_FOUR, config, len(positions), groups=1)
    for slot, position in enumerate(positions):
        search.set_root(slot, slot, position.moves)
    result = search.run(evaluator(net, module.ENCODING), simulations=simulations)
    if simulations:
        return [[int(move)] for move in result.chosen_P]
    highest_P1 = result.priors_PM.max(1, keepdims=True)
    rows = zip(result.moves_PM, result.priors_PM >= highest_P1 - 1e-6, result.num_moves_P, strict=True)
    return [row[:count][is_best[:count]].tolist() for row, is_best, count in rows]


def share(right_N: NDArray[np.float64]) -> float | None:
    """The mean; None of nothing."""
    return round(float(right_N.mean()), 4) if len(right_N) else None


def measure(net: nn.Module, module: Template, positions: Sequence[Position]) -> dict[str, Any]:
    """The shares of optimal moves, and those by plies."""
    net.eval()
    found: dict[str, Any] = {}
    plies_N = np.array([len(position.moves) for position in positions])
    for name, simulations in (("policy", 0), ("search", SIMULATIONS)):
        moves = chosen(net, module, positions, simulations)
        right_N, strict_N = (
            np.array([np.mean([move in best for move in of]) for of, best in zip(moves, bests, strict=True)])
            for bests in ([p.best for p in positions], [p.soonest for p in positions])
        )
        parts = {f"{a} to {min(a + 5, 30)}": np.isin(plies_N, range(a, a + 6)) for a in range(8, 31, 6)}
        found[name] = share(right_N)
        found[f"{name}_strict"] = share(strict_N[plies_N >= STRICT_FROM])
        found[f"{name}_by_plies"] = {plies: share(right_N[is_part_N]) for plies, is_part_N in parts.items()}
    return found


def module_of(path: Path) -> ModuleType:
    """The workload's file as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def ranks(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a command of `ranks` in a folder."""
    with (folder / "output.txt").open("ab") as output:
        command = [sys.executable, "-m", "ranks", *arguments]
        return subprocess.Popen(command, cwd=folder, env=environment(), stdout=output, stderr=subprocess.STDOUT)


def cpu_seconds(process: psutil.Process) -> float:
    """CPU time of a process and of its children, those that have ended included."""
    total = 0.0
    for one in [process, *process.children(recursive=True)]:
        try:
            times = one.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
        except psutil.NoSuchProcess:
            pass
    return total


def train(folder: Path, seed: int, asked: argparse.Namespace) -> dict[str, Any]:
    """Train until the time is over or the run ends. RuntimeError with its output where it fails."""
    if ranks(folder, "new", NAME, "--shape", "self-play").wait():
        raise RuntimeError((folder / "output.txt").read_text())
    path = folder / f"{NAME}.py"
    path.write_text(path.read_text(encoding="utf-8") + RECORDER, encoding="utf-8")
    (folder / "seen").mkdir()
    flags = ["--ranks", str(asked.ranks), "--threads", "1", "--gpus", "none", "--seed", str(seed), *asked.flags]
    process = ranks(folder, "train", f"./{NAME}.py", *flags)
    tree, started, cpu_s = psutil.Process(process.pid), time.perf_counter(), 0.0
    while process.poll() is None:
        try:
            cpu_s = max(cpu_s, cpu_seconds(tree))
        except psutil.NoSuchProcess:
            break
        spent_s = cpu_s / asked.ranks if asked.clock == "cpu" else time.perf_counter() - started
        if spent_s >= 60 * asked.minutes:
            process.terminate()
            break
        time.sleep(0.5)
    code, wall_s = process.wait(), time.perf_counter() - started
    if code not in (0, 143):
        raise RuntimeError((folder / "output.txt").read_text()[-3000:])
    rows = [json.loads(row) for row in (folder / "runs" / NAME / "metrics.jsonl").read_text().splitlines()]
    games = sum(row["rollout/games"] for row in rows)
    return {"seed": seed, "exit_code": code, "wall_s": wall_s, "cpu_s": cpu_s, "iterations": len(rows), "games": games}


def one_seed(seed: int, asked: argparse.Namespace) -> dict[str, Any]:
    """Train with one seed and measure the net before and after."""
    with tempfile.TemporaryDirectory(prefix="connect-four-") as name:
        folder = Path(name)
        found = train(folder, seed, asked)
        module = module_of(folder / f"{NAME}.py")
        torch.manual_seed(seed)
        net = module.build(module.Config())
        seen = {tuple(row) for path in (folder / "seen").iterdir() for row in np.load(path).tolist()}
        seen = {key_of(np.array(row, np.uint64)) for row in seen}
        held_out = [position for position in read() if key_of(position.state_W) not in seen]
        found |= {"positions_seen": len(seen), "left_out": len(read()) - len(held_out)}
        positions = held_out[:MEASURED]
        found["untrained"] = measure(net, module, positions)
        net.load_state_dict(model_weights(pick_checkpoint(folder / "runs" / NAME, "latest", NAME)))
        found["trained"] = measure(net, module, positions)
        found["positions"] = len(positions)
    print(json.dumps(found), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("flags", nargs="*", help="flags of ranks train, behind --")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    began = origin()
    runs = [one_seed(seed, asked) for seed in range(asked.seeds)]
    goals = {name: {"goal": goal, "lowest": min(run["trained"][name] for run in runs)} for name, goal in GOALS.items()}
    content = {"origin": began, "positions_sha256": SHA256, "simulations": SIMULATIONS, "goals": goals, "runs": runs}
    print("wrote", write_result(f"connect_four_{began['date'][:10]}", content))


if __name__ == "__main__":
    main()
