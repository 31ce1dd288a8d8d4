"""The sides of a comparison as processes, asked in turns. Interpreters come from the command line."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measure import environment, ratios, spread

FOLDER = Path(__file__).resolve().parent / "peers"
PREPARE_S, ANSWER_S = 420.0, 240.0
"""A side that is silent for so long is ended and reported."""


@dataclass(frozen=True)
class Side:
    """One way of playing: a script and its arguments."""

    name: str
    python: str
    argv: tuple[str, ...]
    processes: int = 1
    """On as many cores each; 2 processes on 2 cores have one each."""
    ranks: bool = False
    """Whether its processes are ranks of one run."""
    runs: bool = False
    """Whether each of its processes is the only rank of a run of its own."""


class Playing:
    """The processes of one side, waiting to be asked."""

    def __init__(self, side: Side, cores: Sequence[str], slice_s: float) -> None:
        self.side, self.slice_s = side, slice_s
        self.answers: list[dict[str, float]] = []
        self.folder = tempfile.TemporaryDirectory(prefix="ranks-benchmark-")
        each = [",".join(cores)] if side.processes == 1 else list(cores)
        if side.ranks or side.runs:
            each = list(cores)[: side.processes]
        self.processes = [self._start(rank, mine) for rank, mine in enumerate(each)]
        infos = [self._read(process, PREPARE_S) for process in self.processes]
        self.info = next((info for info in infos if "missing" in info), infos[-1])

    @property
    def ready(self) -> bool:
        return "missing" not in self.info

    def _start(self, rank: int, cores: str) -> subprocess.Popen[str]:
        side, place = self.side, dict[str, str]()
        argv = [side.python, str(FOLDER / side.argv[0]), *side.argv[1:], "--cores", cores]
        if side.ranks or side.runs:
            folder = Path(self.folder.name, f"run{rank}" if side.runs else "run")
            folder.mkdir(exist_ok=True)
            number, world = ("0", "1") if side.runs else (str(rank), str(side.processes))
            place = {"RANK": number, "LOCAL_RANK": number, "RANKS_STORE": str(folder / "store")}
            place |= {"WORLD_SIZE": world, "LOCAL_WORLD_SIZE": world, "OMP_NUM_THREADS": "1"}
            argv += ["--folder", str(folder)]
        # A library of another environment must not find the source of this one.
        env = environment(**place)
        if side.python != sys.executable:
            env.pop("PYTHONPATH")
        pipe = subprocess.PIPE
        return subprocess.Popen(argv, env=env, stdin=pipe, stdout=pipe, stderr=self._log(rank), text=True)

    def _log(self, rank: int) -> Any:
        return Path(self.folder.name, f"stderr{rank}").open("w", encoding="utf-8")

    def _read(self, process: subprocess.Popen[str], limit_s: float) -> dict[str, Any]:
        """The next JSON line of a process, or why there is none."""
        assert process.stdout is not None
        killer = threading.Timer(limit_s, process.kill)
        killer.start()
        try:
            for line in process.stdout:
                with suppress(ValueError):
                    found = json.loads(line)
                    if isinstance(found, dict):
                        return found
        finally:
            killer.cancel()
        logs = [path.read_text(encoding="utf-8")[-600:] for path in sorted(Path(self.folder.name).glob("stderr*"))]
        return {"missing": f"ended with exit code {process.wait()}: {' | '.join(filter(None, logs))}"}

    def measure(self) -> None:
        """One round."""
        if not self.ready:
            return
        for process in self.processes:
            assert process.stdin is not None
            with suppress(BrokenPipeError):
                process.stdin.write(f"{self.slice_s}\n")
                process.stdin.flush()
        answers = [self._read(process, self.slice_s + ANSWER_S) for process in self.processes]
        failed = [answer for answer in answers if "missing" in answer]
        if failed:
            self.info = failed[0]
            return
        names = {name for answer in answers for name in answer}
        total = {name: sum(answer.get(name, 0.0) for answer in answers) for name in sorted(names)}
        for name in ("plies", "evaluations", "simulations", "games"):
            total[f"{name}_per_s"] = sum(answer.get(name, 0.0) / answer["seconds"] for answer in answers)
        total["seconds"] /= len(answers)
        self.answers.append({name: round(value, 3) for name, value in total.items()})

    def rates(self, name: str) -> list[float]:
        """Of each round, all processes together."""
        return [answer[f"{name}_per_s"] for answer in self.answers]

    def row(self) -> dict[str, Any]:
        """What was found of this side; `games_per_hour` is of the games that ended, which few rounds make noisy."""
        found: dict[str, Any] = {"side": self.side.name, "processes": len(self.processes), **self.info}
        if not self.ready or not self.answers:
            return found
        games, plies = (sum(answer.get(name, 0.0) for answer in self.answers) for name in ("games", "game_plies"))
        found["plies_per_s"] = spread(self.rates("plies"), 3)
        found["evaluations_per_s"] = spread(self.rates("evaluations"), 1)
        found["games_ended"] = games
        if plies:
            found["mean_plies_of_a_game"] = round(plies / games, 1)
        wall_s = sum(answer["seconds"] for answer in self.answers)
        found["games_per_hour"] = round(games / wall_s * 3600, 1)
        found["cpu_s_by_wall_s"] = round(sum(answer["cpu_seconds"] for answer in self.answers) / wall_s, 3)
        found["rounds"] = self.answers
        return found

    def end(self) -> None:
        """Its processes; what was measured stays."""
        for process in self.processes:
            process.kill()
            process.wait()

    def close(self) -> None:
        self.end()
        self.folder.cleanup()


def compare(
    sides: Sequence[Side], cores: Sequence[str], slice_s: float, rounds: int, *, only_fastest: bool = False
) -> dict[str, Any]:
    """Measure the sides in turns; a row for each, with the first side's rate by its rate in each round.

    `only_fastest`: of the sides after the first, only the one with the most plies/s goes on after the first round.
    """
    playing: list[Playing] = []
    try:
        for side in sides:
            playing.append(Playing(side, cores, slice_s))
        going = playing
        for turn in range(rounds):
            for one in going:
                one.measure()
            others = [one for one in playing[1:] if one.ready]
            if turn == 0 and only_fastest and others:
                going = [playing[0], max(others, key=lambda one: one.rates("plies")[0])]
                for one in playing:
                    if one not in going:
                        one.end()
        ours, rows = playing[0], [one.row() for one in playing]
        for one, row in zip(playing[1:], rows[1:], strict=True):
            if ours.ready and one.ready and one in going:
                row["first_by_this"] = ratios(ours.rates("plies"), one.rates("plies"))
                if all(one.rates("evaluations")):
                    row["evaluations_first_by_this"] = ratios(ours.rates("evaluations"), one.rates("evaluations"))
        return {"sides": rows}
    finally:
        for one in playing:
            one.close()
