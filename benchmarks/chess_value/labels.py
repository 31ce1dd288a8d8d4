"""Labels a second of the pool of engines, and of a script of 20 lines that feeds Stockfish the same commands.

    python -m benchmarks.chess_value.labels                blocks of 5 s, 10 rounds, 1 engine: two minutes a limit
    python -m benchmarks.chess_value.labels --limits nodes:1000 --rounds 4

The pool and the script take turns, block by block, each with one engine and positions that it has not seen, so that
other programs on the machine slow both alike. The script is the quickest of its size: it sends `ucinewgame`, `isready`,
`position` and `go` at once and looks for the last score. Static evaluations it asks for 32 at a time, without
`ucinewgame`. Its scores must be those of the pool. Then the same positions are labelled again through the cache. All
positions are quiet ones, as in training. Writes benchmarks/results/chess_labels_DATE.json after each limit.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import origin, ratios, shown, spread, write_result
from ranks.chess.engine.search.quiet import quiet_mask
from ranks.workloads.chess_value.config import STATIC
from ranks.workloads.chess_value.labels.label import NO_SCORE
from ranks.workloads.chess_value.labels.position_keys import fresh_fens
from ranks.workloads.chess_value.labels.teacher import Teacher, TeacherSettings
from ranks.workloads.chess_value.labels.teacher_engine import find_teacher
from tests.chess_value.boards import random_boards

AT_A_TIME = 32
TRIED = 200
"""Positions that say how many take as long as a block."""


class Script:
    """The script of 20 lines."""

    def __init__(self, command: Sequence[str], limit: str) -> None:
        self.engine = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1 << 16
        )
        self.is_static = limit == STATIC
        self.go = "go " + limit.replace(":", " ")
        self.write("setoption name Threads value 1\nsetoption name Hash value 1\n")

    def write(self, text: str) -> None:
        self.engine.stdin.write(text)
        self.engine.stdin.flush()

    def scores(self, fens: Sequence[str]) -> list[int]:
        """The scores of positions."""
        if not self.is_static:
            return [self.score(fen) for fen in fens]
        return [cp for at in range(0, len(fens), AT_A_TIME) for cp in self.static_scores(fens[at : at + AT_A_TIME])]

    def static_scores(self, fens: Sequence[str]) -> list[int]:
        """The evaluations of a few positions."""
        self.write("".join(f"position fen {fen}\neval\n" for fen in fens))
        found: list[int] = []
        for line in self.engine.stdout:
            if line.startswith("Final evaluation"):
                word = line.split()[2]
                sign = -1 if " b " in fens[len(found)] else 1
                found.append(NO_SCORE if word == "none" else round(100 * float(word)) * sign)
                if len(found) == len(fens):
                    break
        return found

    def score(self, fen: str) -> int:
        self.write(f"ucinewgame\nisready\nposition fen {fen}\n{self.go}\n")
        found = ("cp", "0")
        for line in self.engine.stdout:
            if line.startswith("bestmove"):
                break
            if " score " in line and "bound" not in line:
                words = line.split()
                found = words[words.index("score") + 1], words[words.index("score") + 2]
        cp = int(found[1])
        return (10_000 if cp > 0 else -10_000) if found[0] == "mate" else max(-9_999, min(9_999, cp))


def quiet_boards(count: int, seed: int) -> NDArray[np.uint64]:
    """uint64[count, 13]: positions of random games without check and without a capture that wins material."""
    boards_N13 = random_boards(8 * count, seed)  # a sixth of them is quiet
    while len(quiet_N13 := boards_N13[quiet_mask(boards_N13)]) < count:
        boards_N13 = random_boards(2 * len(boards_N13), seed)
    return quiet_N13[:count]


def measured(command: str, limit: str, seconds_of_block: float, rounds: int, seed: int) -> dict[str, object]:
    """Labels a second of both, by turns, and of the cache."""
    script = Script(find_teacher(command), limit)
    tried = fresh_fens(quiet_boards(TRIED, seed + 1))
    script.scores(tried[: TRIED // 4])  # warms up
    first_s = time.perf_counter()
    script.scores(tried)
    block = max(50, int(seconds_of_block * TRIED / (time.perf_counter() - first_s)))
    boards_N13 = quiet_boards(block * (rounds + 1), seed)
    fens = fresh_fens(boards_N13)
    with tempfile.TemporaryDirectory() as folder:
        teacher = Teacher(TeacherSettings(command, limit, 1, Path(folder)))
        taught: list[NDArray[np.int16]] = []
        seconds: dict[str, list[float]] = {"pool": [], "script": []}
        wrong = 0
        for turn in range(rounds + 1):
            here = slice(turn * block, (turn + 1) * block)
            first_s = time.perf_counter()
            taught.append(teacher.label(boards_N13[here]).cp_N)
            between_s = time.perf_counter()
            by_script = script.scores(fens[here])
            end_s = time.perf_counter()
            wrong += int((taught[-1] != np.array(by_script)).sum())
            if turn:  # the first block warms up
                seconds["pool"].append(between_s - first_s)
                seconds["script"].append(end_s - between_s)
                print(
                    f"  {limit}: pool {block / seconds['pool'][-1]:,.0f}/s, "
                    f"script {block / seconds['script'][-1]:,.0f}/s"
                )
        again_s: list[float] = []
        for turn in range(1, rounds + 1):
            first_s = time.perf_counter()
            again = teacher.label(boards_N13[turn * block : (turn + 1) * block])
            again_s.append(time.perf_counter() - first_s)
            assert again.computed == 0
            assert np.array_equal(again.cp_N, taught[turn])
        about = str(teacher.about)
        teacher.close()
    script.engine.kill()
    script.engine.wait()
    return {
        "engine": about,
        "positions_of_a_block": block,
        "labels_per_second": {name: spread([block / s for s in found], 1) for name, found in seconds.items()},
        "pool_over_script": ratios(seconds["script"], seconds["pool"]),
        "cache_over_pool": ratios(seconds["pool"], again_s),
        "different_scores": wrong,
        "seconds": {**seconds, "cache": again_s},
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--engine", default="stockfish")
    parser.add_argument("--limits", nargs="+", default=["nodes:1000", "nodes:5000", "depth:4", "depth:8", "static"])
    parser.add_argument("--seconds", type=float, default=5.0, help="of a block, about")
    parser.add_argument("--rounds", type=int, default=10)
    args = parser.parse_args()
    results: dict[str, object] = {}
    began, load_before = origin(), os.getloadavg()
    for limit in args.limits:
        results[limit] = found = measured(args.engine, limit, args.seconds, args.rounds, seed=5)
        print(
            f"{limit}: pool over script {shown(found['pool_over_script'])}, "
            f"cache over pool {shown(found['cache_over_pool'], 0)}"
        )
        about = began | {"load_before": load_before, "load_after": os.getloadavg()}
        path = write_result(f"chess_labels_{began['date'][:10]}", about | {"limits": results})
        print(f"results: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
