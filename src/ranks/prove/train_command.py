"""A `ranks train` command under proof, and what its run folder holds while it runs and after it."""

from __future__ import annotations

import contextlib
import math
import re
import shutil
import tempfile
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ranks import sigterm
from ranks.engine.files.jsonl import read_rows
from ranks.engine.runs.checkpoints import checkpoint
from ranks.engine.runs.checkpoints.checkpoint import HostState
from ranks.engine.runs.folder import EVENTS_FILE, METRICS_FILE, SESSIONS_FILE, TEMPORARY, listing
from ranks.prove.processes import ProcessTree, ProofError, kill_marked

LIMIT_S = 1800.0
"""Most seconds of a single command of a proof."""
TAIL_BYTES = 1 << 14
OWN_FOLDER = "{folder}"
"""In the flags of a run: a folder of its own, which is empty when it starts first."""


@dataclass(frozen=True)
class RankLayout:
    """How many ranks a run has, and their shares of the work (None: equal)."""

    ranks: int
    shares: str | None = None

    @property
    def label(self) -> str:
        ranks = f"{self.ranks} rank{'s' if self.ranks > 1 else ''}"
        return f"{ranks}, shares {self.shares}" if self.shares else ranks

    @property
    def flags(self) -> list[str]:
        return ["--ranks", str(self.ranks), *(["--shares", self.shares] if self.shares else [])]


LAYOUTS = (RankLayout(1), RankLayout(2), RankLayout(3), RankLayout(4), RankLayout(2, "5,3"))
QUICK_LAYOUTS = (RankLayout(1), RankLayout(3, "4,3,1"))


@dataclass(frozen=True)
class Workspace:
    """The temporary folder of a proof: its runs, the output of its commands and their temporary files."""

    folder: Path

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    @property
    def tmp(self) -> Path:
        return self.folder / "tmp"

    def own(self, name: str) -> Path:
        """A folder that a run has for itself, apart from its run folder."""
        return self.folder / "own" / name

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"


@contextlib.contextmanager
def workspace() -> Generator[Workspace]:
    """Make a workspace; at the end kill every process that still runs in it, and remove it."""
    with tempfile.TemporaryDirectory(prefix="proof-", ignore_cleanup_errors=True) as folder:
        found = Workspace(Path(folder))
        found.runs.mkdir()
        found.tmp.mkdir()
        with sigterm.raises_system_exit():
            try:
                yield found
            finally:
                kill_marked()


@dataclass(frozen=True)
class TrainCommand:
    """One run. The same command starts it and resumes it."""

    workspace: Workspace
    workload: str
    name: str
    layout: RankLayout
    flags: tuple[str, ...]
    gpus: str = "none"
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """Environment variables that the command has in addition."""

    @property
    def folder(self) -> Path:
        return self.workspace.runs / self.name

    @property
    def arguments(self) -> list[str]:
        where = ["--runs-dir", str(self.workspace.runs), "--name", self.name, "--gpus", self.gpus]
        flags = [flag.replace(OWN_FOLDER, str(self.workspace.own(self.name))) for flag in self.flags]
        return ["train", self.workload, *where, *self.layout.flags, *flags]

    def start(self) -> ProcessTree:
        """Start or resume the run."""
        return ProcessTree(self.arguments, self.workspace.log(self.name), self.workspace.tmp, self.env)

    def complete(self, limit_s: float = LIMIT_S) -> None:
        """Run to the end. Raises ProofError where the exit code is not 0."""
        tree = self.start()
        code = tree.wait(limit_s)
        if code != 0:
            raise ProofError(f"{self.name} ({self.layout.label}) ended with exit code {code}:\n{tree.tail()}")

    def variant(self, name: str, layout: RankLayout | None = None, flags: Sequence[str] | None = None) -> TrainCommand:
        """The same command with another name, layout or flags."""
        return replace(
            self, name=name, layout=layout or self.layout, flags=self.flags if flags is None else tuple(flags)
        )

    # What the run folder holds --------------------------------------------------------------------------------------

    @property
    def rows(self) -> list[dict[str, Any]]:
        return read_rows(self.folder / METRICS_FILE)

    @property
    def events(self) -> list[dict[str, Any]]:
        return read_rows(self.folder / EVENTS_FILE)

    @property
    def finished(self) -> bool:
        """Whether the run has reported its end."""
        return any(event["event"] == "finished" for event in self.events)

    @property
    def sessions(self) -> list[dict[str, Any]]:
        """Every start of the run so far, also failed ones and restarts."""
        return [r for r in read_rows(self.folder / SESSIONS_FILE) if r["event"] in ("opened", "resumed")]

    @property
    def num_rows(self) -> int:
        """How many iterations are finished, from the last whole line of metrics.jsonl."""
        try:
            with (self.folder / METRICS_FILE).open("rb") as file:
                file.seek(max(0, file.seek(0, 2) - TAIL_BYTES))
                found = re.findall(rb'\{"iteration": (\d+), [^\n]*\n', file.read())
        except OSError:
            return 0
        return int(found[-1]) if found else 0

    def has_each_iteration_once(self, total: int) -> bool:
        """Whether metrics.jsonl has one row for each iteration, in order."""
        return [row["iteration"] for row in self.rows] == list(range(1, total + 1))

    @property
    def newest(self) -> int:
        """The iteration of the newest checkpoint, -1 where there is none."""
        return max((int(path.name) for path in listing(self.folder / "checkpoints")), default=-1)

    @property
    def saving(self) -> bool:
        """Whether a save is being written: its temporary folder exists."""
        try:
            names = [path.name for path in (self.folder / "checkpoints").iterdir()]
        except OSError:
            return False
        return any(re.match(re.escape(TEMPORARY) + r"\d", name) for name in names)

    @property
    def temporaries(self) -> list[str]:
        """Names of half-written files and folders inside the run folder and next to it."""
        siblings = [p for p in self.workspace.runs.glob(f".{self.name}.*") if p.name != f".{self.name}.lock"]
        inside = [*self.folder.glob(f"checkpoints/{TEMPORARY}*"), *self.folder.glob(f"kept/*/{TEMPORARY}*")]
        return [p.name for p in [*siblings, *inside]]

    def backup(self) -> Path | None:
        """Copy the run folder; None where the run has not been started."""
        if not self.folder.exists():
            return None
        backup = self.workspace.tmp / f"{self.name}.backup"
        shutil.rmtree(backup, ignore_errors=True)
        return Path(shutil.copytree(self.folder, backup))

    def restore(self, backup: Path | None) -> None:
        """Make the run folder as it was at the backup."""
        shutil.rmtree(self.folder)
        if backup is not None:
            shutil.copytree(backup, self.folder)

    def copy(self, name: str, iteration: int) -> TrainCommand:
        """Copy the run folder with one checkpoint only."""
        other = self.variant(name)
        shutil.copytree(self.folder, other.folder, ignore=shutil.ignore_patterns("checkpoints"))
        kept = Path("checkpoints") / f"{iteration:08d}"
        shutil.copytree(self.folder / kept, other.folder / kept)
        return other

    def weights(self, iteration: int) -> dict[str, Tensor]:
        """All weights of a checkpoint, verified. Raises ProofError."""
        try:
            state = checkpoint.read(self.folder / "checkpoints" / f"{iteration:08d}").state
        except checkpoint.DamagedCheckpoint as damage:
            raise ProofError(str(damage)) from None
        flat = HostState.of({name: {"model": kept["model"]} for name, kept in state.items() if "model" in kept}).flat()
        if not flat:
            raise ProofError(f"{self.folder} keeps no learner, so there are no weights to compare")
        return flat


def fingerprint(run: TrainCommand) -> str:
    """The fingerprint that `ranks fingerprint` prints: computed from the newest checkpoint. Raises ProofError."""
    damaged: list[str] = []
    newest = checkpoint.newest(run.folder / "checkpoints", damaged, resume=True)
    if newest is None or damaged:
        raise ProofError(f"{run.name}: {'; '.join(damaged) or 'no checkpoint'}")
    return newest.fingerprint


def relative_difference(a: Mapping[str, Tensor], b: Mapping[str, Tensor]) -> float:
    """|a - b| / |b| in the L2 norm over all weights."""
    if a.keys() != b.keys():
        return math.inf
    squares = torch.tensor([0.0, 0.0], dtype=torch.float64)
    for name, value in b.items():
        squares[0] += (a[name].double() - value.double()).square().sum()
        squares[1] += value.double().square().sum()
    return float((squares[0] / squares[1]).sqrt())
