"""Learning curves of our PPO and of Stable-Baselines3 on gymnasium environments.

    python -m benchmarks.on_policy.gymnasium_curves --peer PYTHON [--seeds 5] [--quick]    nothing else should run

PYTHON is the interpreter of a virtual environment:

    python3 -m venv peers && peers/bin/pip install torch numpy gymnasium sb3-contrib==2.9.2

Both sides train on CartPole-v1, Acrobot-v1, Pendulum-v1, and CartPole-v1 without velocities, which
needs memory (RecurrentPPO of sb3-contrib), with equal samples, updates and settings: gymnasium_peers/task.py. Two
trainings run at a time, with one thread each. A curve is the mean reward of the last 100 training
episodes.

Writes benchmarks/results/gymnasium_curves_DATE.json and docs/images/gymnasium_curves.svg.

Legend: R seeds, G points of a grid of steps.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rcParams
from matplotlib.figure import Figure

from benchmarks.measure import RESULTS, ROOT, environment, origin, write_result
from benchmarks.on_policy.gymnasium_peers import task
from benchmarks.on_policy.gymnasium_peers.task import GAMES, POINTS, SOLVED, Game

PEERS = Path(__file__).resolve().parent / "gymnasium_peers"

PICTURE = ROOT / "docs" / "images" / "gymnasium_curves.svg"
SIDES = {"ours": ("ranks", "#2f6f8f"), "sb3": ("Stable-Baselines3", "#ee9c54")}
AT_A_TIME, SEEDS_QUICK, QUICK = 2, 2, 6
"""Trainings at a time; with --quick, seeds and rollouts of each."""


def learn(python: str, side: str, name: str, game: Game, seed: int) -> dict[str, Any]:
    """Run one training. RuntimeError with its output if it fails."""
    command = [python, str(PEERS / f"{side}.py"), json.dumps({"game": asdict(game), "seed": seed})]
    done = subprocess.run(command, env=environment(OMP_NUM_THREADS="1"), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{side}: {done.stderr[-3000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    solved = next((steps for steps, mean in found["curve"] if mean >= SOLVED), None)
    final = found["curve"][-1][1] if found["curve"] else None
    return {"game": name, "side": side, "seed": seed, **found, "final": final, f"steps_to_{SOLVED:g}": solved}


def describe(one: dict[str, Any]) -> str:
    """One line about a training."""
    final = "no episode ended" if one["final"] is None else f"mean reward {one['final']:.1f} at the end"
    solved = one[f"steps_to_{SOLVED:g}"]
    reached = f", {SOLVED:g} after {solved:,} steps" if solved else ""
    size = f"{one['parameters']:,} parameters, {one['updates']:,} updates, {one['cpu_s']:.0f} s of CPU"
    return f"{one['game']}, {SIDES[one['side']][0]}, seed {one['seed']}: {final}{reached}; {size}"


def on_grid(curve: list[list[float]], grid_G: np.ndarray) -> np.ndarray:
    """float64[G]: the value of a curve at each number of steps; NaN before its first point."""
    steps, means = np.array(curve or [[np.inf, np.nan]], dtype=np.float64).T
    place_G = np.searchsorted(steps, grid_G, side="right") - 1
    return np.where(place_G >= 0, means[place_G], np.nan)


def draw(path: Path, games: dict[str, Game], found: list[dict[str, Any]]) -> None:
    """Draw median and range over the seeds, one panel for each game."""
    rcParams["svg.hashsalt"] = "ranks"
    figure = Figure(figsize=(15, 3.8), layout="constrained")
    for axes, (name, game) in zip(figure.subplots(1, len(games)), games.items(), strict=True):
        grid_G = np.linspace(0, game.samples, POINTS + 1)
        for side, (called, colour) in SIDES.items():
            mine = [one["curve"] for one in found if (one["game"], one["side"]) == (name, side)]
            mean_RG = np.stack([on_grid(curve, grid_G) for curve in mine])
            axes.plot(grid_G, np.median(mean_RG, 0), color=colour, label=f"{called}, median of {len(mine)} seeds")
            axes.fill_between(grid_G, mean_RG.min(0), mean_RG.max(0), color=colour, alpha=0.2, linewidth=0)
        if game.env_id == "CartPole-v1":
            axes.axhline(SOLVED, color="grey", linewidth=0.8, linestyle=":")
            axes.text(0, SOLVED, f" solved: {SOLVED:g}", fontsize=7, va="bottom", color="grey")
        axes.set_title(f"{name} ({'recurrent PPO' if game.recurrent else 'PPO'})", fontsize=10)
        axes.set_xlim(0, game.samples)
        axes.xaxis.set_major_formatter(lambda steps, _: f"{steps / 1000:g}k")
        axes.set_xlabel("environment steps")
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("reward of an episode, mean of the last 100")
    figure.axes[0].legend(fontsize=8, frameon=False, loc="lower right")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", required=True, help="interpreter with sb3-contrib installed")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a few rollouts, into a temporary folder")
    args = parser.parse_args()
    interpreters = {"ours": sys.executable, "sb3": args.peer}
    games, seeds, results, picture = GAMES, args.seeds, RESULTS, PICTURE
    if args.quick:
        games = {name: replace(game, samples=game.samples // game.rollouts * QUICK) for name, game in GAMES.items()}
        seeds, results = SEEDS_QUICK, Path(tempfile.mkdtemp(prefix="ranks-curves-"))
        picture = results / PICTURE.name
    started = time.perf_counter()

    def trainings() -> Iterator[dict[str, Any]]:
        pool = ThreadPoolExecutor(AT_A_TIME)
        try:
            todo = [
                pool.submit(learn, interpreters[side], side, name, game, seed)
                for name, game in games.items()
                for seed in range(seeds)
                for side in SIDES
            ]
            yield from (one.result() for one in todo)
        finally:
            pool.shutdown(cancel_futures=True)

    found: list[dict[str, Any]] = []
    for one in trainings():
        found.append(one)
        print(describe(one), flush=True)
    result = {
        "origin": origin(),
        "settings": {n.lower(): v for n, v in vars(task).items() if n.isupper() and isinstance(v, int | float)},
        "games": {name: asdict(game) for name, game in games.items()},
        "wall_s": round(time.perf_counter() - started, 1),
        "trainings": found,
    }
    draw(picture, games, found)
    print(write_result(f"gymnasium_curves_{time.strftime('%Y-%m-%d')}", result, results))
    print(picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
