"""Speed of whole self-play on chess, on 2 CPU cores, against OpenSpiel's AlphaZero, mctx + pgx and chess-snn-rl.

    python -m benchmarks.selfplay.against_peers --openspiel PYTHON --pgx PYTHON --origin PYTHON --source FOLDER

Nothing else should run. The peers have environments of their own, made like this (Python 3.11, about 3 GB):

    python3 -m venv peers/openspiel && peers/openspiel/bin/pip install open_spiel==2.0.2 jax==0.10.2 flax==0.12.8 \\
        optax==0.2.8 orbax-checkpoint==0.12.8 chex==0.1.92
    python3 -m venv peers/pgx && peers/pgx/bin/pip install pgx==2.6.0 mctx==0.0.71 jax==0.10.2
    python3 -m venv peers/origin && peers/origin/bin/pip install torch==2.13.0 \\
        --index-url https://download.pytorch.org/whl/cpu
    peers/origin/bin/pip install numpy scipy tqdm loguru chess==1.11.2
    peers/origin/bin/pip install --no-deps spikingjelly==2.0.0
    git clone https://github.com/andrewhamara/chess-snn-rl peers/chess-snn-rl
    git -C peers/chess-snn-rl checkout 582689d0227c7f33b7faea5d2c1ad252362cd2dc

Then --openspiel peers/openspiel/bin/python --pgx peers/pgx/bin/python --origin peers/origin/bin/python
--source peers/chess-snn-rl. A peer that is not given is left out by name. Parts (--parts a,b):

a   whole self-play with the tiny net, a 6x64 net and a constant, against OpenSpiel (PUCT) and mctx + pgx (Gumbel)
b   the loop's cost over `Search` + net alone
c   opening an iteration and a save, with windows of 10 thousand and 10 million positions (2.5 GB of disk);
    gathering a batch from a window of 1 part and of 1,000 parts
d   2 ranks of one thread against 1 rank of one thread, and against 2 runs of one such rank
e   the origin's net without search, and the origin's own program; the default net with 32 simulations

Sides are processes that prepare (compile, fill caches; not counted) and then play in turns, round by
round: ours, A, B, ours, A, B, ... Ratios are of a round; figures are medians with quartiles. Ours is one
rank of one thread on each core, as `ranks train` starts them; OpenSpiel has one actor on each core; mctx +
pgx is one process with both cores. The result file is written after each comparison; the same command goes
on with a file that is not complete. Games differ in length by net and search, so the ratios are of plies
and of evaluations; games/hour are plies by the mean length of the games that ended.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.measure import RESULTS, environment, origin, spread, write_result
from benchmarks.selfplay.bars import judge, show
from benchmarks.selfplay.sides import FOLDER, Side, compare

SCRIPT_S = 900.0
MCTX_GAMES = {32: (16, 64, 256), 100: (16, 64)}
"""Games of mctx + pgx in a batch, by simulations; after the first round only the fastest goes on."""


class Benchmark:
    """The comparisons by name. Each returns what goes into the result file."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.asked, self.cores = asked, asked.cores.split(",")
        self.quick = asked.quick
        self.slice_s, self.rounds = (1.0, 1) if asked.quick else (asked.slice_s, asked.rounds)
        self.slots = 8 if asked.quick else 256

    def plan(self) -> dict[str, Callable[[], dict[str, Any]]]:
        """Every comparison, part by part."""
        found: dict[str, Callable[[], dict[str, Any]]] = {}
        for net in ("tiny", "6x64", "constant"):
            found[f"a OpenSpiel {net} 32"] = partial(self.openspiel, net)
        for net in ("tiny", "6x64"):
            for simulations in (32, 100):
                found[f"a mctx {net} {simulations}"] = partial(self.mctx, net, simulations)
        for net in ("tiny", "6x64"):
            found[f"b overhead {net}"] = partial(self.overhead, net)
        for positions in (10_000, 100_000 if self.quick else 10_000_000):
            found[f"c window {positions}"] = partial(self.window, positions)
        for parts in (1, 1_000):
            found[f"c gather {parts}"] = partial(self.window, 200_000, "--part", str(200_000 // parts))
        found["d ranks tiny"] = self.two_ranks
        found["e origin"] = self.origin_net
        found["e default 32"] = self.default_net
        return {name: do for name, do in found.items() if name[0] in self.asked.parts.split(",")}

    def ours(self, name: str, net: str, search: str, simulations: int, slots: int, games: int, ranks: int = 2) -> Side:
        argv = ("ours.py", "--net", net, "--search", search, "--simulations", str(simulations))
        slots, games = (self.slots, 2) if self.quick else (slots, games)
        argv += ("--slots", str(slots), "--games", str(games))
        return Side(name, sys.executable, argv, ranks, ranks=True)

    def openspiel(self, net: str) -> dict[str, Any]:
        """AlphaZero's PUCT with 32 simulations."""
        slots, games = (64, 2) if net == "6x64" else (256, 16)
        sides = [self.ours("ranks", net, "puct", 32, slots, games)]
        if self.asked.openspiel:
            peer = partial(Side, python=self.asked.openspiel, processes=len(self.cores))
            argv = ("openspiel_alphazero.py", "--net", net, "--simulations", "32")
            sides.append(peer("OpenSpiel AlphaZero", argv=argv))
            if net != "constant":
                sides.append(peer("OpenSpiel AlphaZero, its net compiled by us", argv=(*argv, "--jit")))
        return self.compared(sides)

    def mctx(self, net: str, simulations: int) -> dict[str, Any]:
        """Gumbel with mctx's settings, at mctx's best batch."""
        slots, games = (64, 2) if net == "6x64" else (256, 16)
        sides = [self.ours("ranks", net, "gumbel", simulations, slots, games)]
        if self.asked.pgx:
            batches = MCTX_GAMES[simulations][: 1 if self.quick else None]
            sides += [self.mctx_side(net, simulations, batch) for batch in batches]
        return compare(sides, self.cores, self.slice_s, self.rounds, only_fastest=True)

    def mctx_side(self, net: str, simulations: int, batch: int) -> Side:
        argv = ("mctx_selfplay.py", "--net", net, "--simulations", str(simulations), "--games", str(batch))
        return Side(f"mctx + pgx, {batch} games", self.asked.pgx, argv)

    def overhead(self, net: str) -> dict[str, Any]:
        """One process, one thread, 256 slots, 32 simulations."""
        more = ["--rounds", str(self.rounds + 1)]
        if net == "6x64":  # slower: fewer games in an iteration
            more += ["--games", "2", "--searches", "1"]
        if self.quick:
            more = [
                "--slots",
                str(self.slots),
                "--rounds",
                "2",
                "--games",
                "2",
                "--searches",
                "1",
                "--simulations",
                "8",
            ]
        found = self.script("loop_overhead.py", "--net", net, *more)
        return {**found, "overhead": spread(found["overhead"])}

    def window(self, positions: int, *more: str) -> dict[str, Any]:
        quick = ["--iterations", "3"] * self.quick
        return self.script("window_cost.py", "--positions", str(positions), *more, *quick)

    def two_ranks(self) -> dict[str, Any]:
        """256 slots in all, Gumbel, 32 simulations. Two runs at a time show what two cores reach without waiting and
        gathering."""
        sides = [
            self.ours(f"{ranks} rank{'s' * (ranks > 1)} of one thread", "tiny", "gumbel", 32, 256, 16, ranks)
            for ranks in (2, 1)
        ]
        alone = self.ours("2 runs of one rank of one thread", "tiny", "gumbel", 32, 128, 8)
        return self.compared([*sides, replace(alone, ranks=False, runs=True)])

    def origin_net(self) -> dict[str, Any]:
        """No search: one evaluation a ply."""
        sides = [self.ours("ranks, origin's net", "origin", "none", 1, 64, 4)]
        if self.asked.origin and self.asked.source:
            argv = ("origin_style.py", "--source", str(self.asked.source.resolve()))
            sides.append(Side("chess-snn-rl, a process on each core", self.asked.origin, argv, len(self.cores)))
            sides.append(Side("chess-snn-rl, one process", self.asked.origin, argv))
        return self.compared(sides)

    def default_net(self) -> dict[str, Any]:
        """6 blocks of 64 channels, T = 4, Gumbel."""
        return self.compared([self.ours("ranks, default net", "default", "gumbel", 32, 32, 1)])

    def compared(self, sides: list[Side]) -> dict[str, Any]:
        return compare(sides, self.cores, self.slice_s, self.rounds)

    def script(self, script: str, *more: str) -> dict[str, Any]:
        """The JSON line that a script of ours prints."""
        with tempfile.TemporaryDirectory(prefix="ranks-benchmark-") as folder:
            argv = [sys.executable, str(FOLDER / script), *more, "--cores", self.cores[0], "--folder", folder]
            env = environment(OMP_NUM_THREADS="1")
            done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=SCRIPT_S)
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode or not lines:
            raise RuntimeError(f"{script} ended with exit code {done.returncode}:\n{done.stderr[-2000:]}")
        return json.loads(lines[-1])


SAME = ("command", "commit", "hardware", "versions")
"""What two sessions of one measurement have in common."""


def unfinished(folder: Path, now: dict[str, Any]) -> dict[str, Any] | None:
    """The newest result file that the same command began and did not complete, with this commit and machine."""
    for path in sorted(folder.glob("selfplay_cpu_*.json"), reverse=True):
        found = json.loads(path.read_text(encoding="utf-8"))
        if not found["complete"] and all(found["origin"].get(name) == now.get(name) for name in SAME):
            return found
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--openspiel", metavar="PYTHON", help="interpreter of the environment with OpenSpiel")
    parser.add_argument("--pgx", metavar="PYTHON", help="with mctx and pgx")
    parser.add_argument("--origin", metavar="PYTHON", help="with SpikingJelly and python-chess")
    parser.add_argument("--source", type=Path, metavar="FOLDER", help="a clone of chess-snn-rl")
    parser.add_argument("--parts", default="a,b,c,d,e")
    parser.add_argument("--only", default="", help="only comparisons whose name has this in it")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--slice-s", type=float, default=10.0, help="seconds of a side in a round")
    parser.add_argument("--cores", default="0,1")
    parser.add_argument("--quick", action="store_true", help="a few games, to see that it works; figures mean nothing")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the result file")
    asked = parser.parse_args()
    now = origin()
    content = unfinished(asked.out, now) or {"origin": now, "complete": False, "comparisons": {}}
    name = f"selfplay_cpu_{content['origin']['date'][:10]}"
    comparisons, failed = content["comparisons"], False
    for comparison, do in Benchmark(asked).plan().items():
        if asked.only not in comparison:
            continue
        if comparison not in comparisons:
            start = time.perf_counter()
            try:
                found = do()
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                print(f"\n{comparison}: FAILED: {error}", flush=True)
                failed = True
                continue
            found["seconds"] = round(time.perf_counter() - start, 1)
            comparisons[comparison] = found
        show(comparison, comparisons[comparison])
        content["bars"] = judge(comparisons)
        write_result(name, content, asked.out)
    content["complete"] = not failed
    print("\nBars")
    for bar in content.get("bars", []):
        print(f"  {'held  ' if bar['held'] else 'MISSED'} {bar['bar']}: {bar['found']:,.4g} (goal {bar['goal']})")
    path = write_result(name, content, asked.out)
    print(f"\nwritten to {path.name}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
