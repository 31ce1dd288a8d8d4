"""Short runs of a workload with real ranks, one after the other in rounds, each started by `ranks launch`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ranks import sigterm
from ranks.cli.flags.settings import Settings
from ranks.cli.flags.split import split_flags
from ranks.cli.scaling import child
from ranks.cli.scaling.scale_flags import ScaleFlags
from ranks.cli.units import last_line
from ranks.engine.distributed.rendezvous.process_env import available_cores
from ranks.errors import UserError
from ranks.hardware.scale.run_rank import read
from ranks.hardware.scale.split import LEAST_ITERATIONS, ShortRun, TooFewIterations, short_run
from ranks.hardware.short_runs.rows import rows_of
from ranks.hardware.this_machine import load_warning
from ranks.launch.gpus import find_gpus
from ranks.progress import ProgressBar

TRIES = 3
"""How often a run that was too short is made again, each time longer."""
LIMIT_S = 3600.0
"""Of one run with its start."""


@dataclass(frozen=True)
class Case:
    """What one run is made with."""

    label: str
    num_ranks: int
    flags: tuple[str, ...] = ()
    """Of `ranks train`, after those of all runs."""


@dataclass(frozen=True)
class Measurement:
    """What all runs share."""

    workload: str
    flags: tuple[str, ...]
    """Of `ranks train`."""
    on_gpus: bool
    threads: int
    """CPU threads of each rank."""
    seconds: float
    """Of each run, without its start."""
    rounds: int
    load: float
    """The load average of the machine in the minute before."""

    @property
    def warning(self) -> str | None:
        """Where other programs use this machine, what that means."""
        return load_warning(self.load, available_cores(), "the speeds are too low")

    def run(self, cases: Sequence[Case]) -> dict[str, list[ShortRun]]:
        """The runs of each case by its label, in rounds over all cases. Raises UserError where a run fails."""
        found: dict[str, list[ShortRun]] = {case.label: [] for case in cases}
        length_s = {case.label: self.seconds for case in cases}
        bar = ProgressBar(len(cases) * self.rounds, title="scale", unit="short runs", stream=sys.stderr)
        with sigterm.raises_system_exit(), bar:
            for _ in range(self.rounds):
                for case in cases:
                    length_s[case.label], run = self._long_enough(case, length_s[case.label])
                    found[case.label].append(run)
                    bar.advance()
        return found

    def _long_enough(self, case: Case, seconds: float) -> tuple[float, ShortRun]:
        """(how long it was, the run). It is made again, longer, where it has too few iterations."""
        for _ in range(TRIES):
            try:
                return seconds, self._run(case, seconds)
            except TooFewIterations as short:
                seconds = max(1.5 * seconds, 1.2 * short.needed_s)
        found = f"fewer than {LEAST_ITERATIONS} whole iterations in {seconds:.0f} s"
        raise UserError(f"{self.workload}, {case.label}", found, f"give --seconds {3 * seconds:.0f}")

    def _run(self, case: Case, seconds: float) -> ShortRun:
        with tempfile.TemporaryDirectory(prefix="ranks-scale-") as name:
            folder = Path(name)
            count = str(case.num_ranks)
            ranks = ["--ranks", count, "--gpus", count if self.on_gpus else "none", "--max-restarts", "0"]
            flags = [*self.flags, "--threads", str(self.threads), *case.flags]
            script = [str(child.__file__), name, str(seconds), self.workload, *flags]
            ended = subprocess.run(
                [sys.executable, "-m", "ranks", "launch", *ranks, *script],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
            )
            asked = f"a short run of {self.workload}, {case.label}"
            if ended.returncode != 0:
                own = f"ranks train {self.workload} --ranks {count} {' '.join([*self.flags, *case.flags])}"
                raise UserError(asked, _error(folder) or last_line(ended.stderr), f"run it: {own.strip()}")
            try:
                return short_run(read(folder, case.num_ranks), rows_of(folder))
            except (OSError, KeyError, TypeError, ValueError) as error:
                do = "every rank must call the same collectives in every iteration; run ranks prove same-run"
                raise UserError(asked, f"the records of its ranks do not fit together: {error}", do) from error


def measurement_of(flags: ScaleFlags, settings: Settings, counts: Sequence[int]) -> Measurement:
    """What all runs share. Raises UserError where there are more ranks than GPUs or cores."""
    most, cores = max(counts), available_cores()
    gpus = find_gpus()
    on_gpus = flags.gpus is not None or (flags.ranks is None and gpus.count > 0)
    threads = settings.engine.resolved().threads or max(1, cores // most)
    name = "--gpus" if on_gpus else "--ranks"
    asked = f"{name} {','.join(map(str, counts))}"
    if on_gpus and most > gpus.count:
        found = f"this machine has {gpus.count} GPUs" if gpus.count else gpus.why_none
        raise UserError(asked, found, "measure where they are; ranks forecast needs one GPU, --ranks is for CPU cores")
    if not on_gpus and most * threads > cores:
        of_each = f" of {threads} threads" if threads > 1 else ""
        found = f"{most} ranks{of_each} on {cores} cores would wait for each other's cores"
        raise UserError(asked, found, f"give at most {max(1, cores // threads)} ranks")
    if most > settings.engine.num_shards:
        found = f"the run has {settings.engine.num_shards} shards, and a rank needs at least one"
        raise UserError(asked, found, f'give --train="--shards {most}"')
    train = tuple(split_flags(flags.train))
    return Measurement(flags.workload, train, on_gpus, threads, flags.seconds, flags.rounds, os.getloadavg()[0])


def _error(folder: Path) -> str:
    """Of the rank that failed first."""
    files = sorted(folder.glob(child.ERROR.format("*")), key=lambda file: file.stat().st_mtime_ns)
    return " ".join(files[0].read_text(encoding="utf-8").split())[:300] if files else ""
