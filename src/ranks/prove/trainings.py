"""A `ranks train` command under proof, and what its run folder says while it runs and afterwards."""

from __future__ import annotations

import contextlib
import math
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from ranks.engine.runs import checkpoint
from ranks.engine.runs.checkpoint import HostState
from ranks.engine.runs.folder import EVENTS_FILE, METRICS_FILE, SESSIONS_FILE
from ranks.engine.runs.jsonl import read_rows
from ranks.prove.processes import ProofError, Tree, end_all

LIMIT_S = 1800.0
"""No single command of a proof takes longer."""
TAIL_BYTES = 1 << 14


@dataclass(frozen=True)
class Deal:
    """Over how many ranks, in which shares, a run is dealt."""

    ranks: int
    shares: str | None = None

    @property
    def label(self) -> str:
        ranks = f"{self.ranks} rank{'s' if self.ranks > 1 else ''}"
        return f"{ranks}, shares {self.shares}" if self.shares else ranks

    @property
    def flags(self) -> list[str]:
        return ["--ranks", str(self.ranks), *(["--shares", self.shares] if self.shares else [])]


DEALS = (Deal(1), Deal(2), Deal(3), Deal(4), Deal(2, "5,3"))
QUICK_DEALS = (Deal(1), Deal(3, "4,3,1"))


@dataclass(frozen=True)
class Place:
    """Where a proof keeps its runs, the output of its commands and their temporary files."""

    folder: Path

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    @property
    def scratch(self) -> Path:
        return self.folder / "tmp"

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"


@contextlib.contextmanager
def place() -> Generator[Place]:
    """A folder of its own; at the end it is removed, with every process that is still at work in it."""
    with tempfile.TemporaryDirectory(prefix="proof-", ignore_cleanup_errors=True) as folder:
        found = Place(Path(folder))
        found.runs.mkdir()
        found.scratch.mkdir()
        before = signal.signal(signal.SIGTERM, _terminated)
        try:
            yield found
        finally:
            end_all()
            signal.signal(signal.SIGTERM, before)


def _terminated(signum: int, frame: FrameType | None) -> None:
    sys.exit(128 + signum)


@dataclass(frozen=True)
class Training:
    """One run: the same command starts it and continues it."""

    place: Place
    workload: str
    name: str
    deal: Deal
    flags: tuple[str, ...]
    gpus: str = "none"

    @property
    def folder(self) -> Path:
        return self.place.runs / self.name

    @property
    def arguments(self) -> list[str]:
        place = ["--runs-dir", str(self.place.runs), "--name", self.name, "--gpus", self.gpus]
        return ["train", self.workload, *place, *self.deal.flags, *self.flags]

    def start(self) -> Tree:
        return Tree(self.arguments, self.place.log(self.name), self.place.scratch)

    def complete(self, limit_s: float = LIMIT_S) -> None:
        """Run to the end. Raises ProofError where it does not end well."""
        tree = self.start()
        code = tree.wait(limit_s)
        if code != 0:
            raise ProofError(f"{self.name} ({self.deal.label}) ended with exit code {code}:\n{tree.tail()}")

    def under(self, name: str, deal: Deal | None = None, flags: Sequence[str] | None = None) -> Training:
        """The same with another name, deal or flags."""
        return replace(self, name=name, deal=deal or self.deal, flags=self.flags if flags is None else tuple(flags))

    # What the folder says -------------------------------------------------------------------------------------------

    @property
    def rows(self) -> list[dict[str, Any]]:
        return read_rows(self.folder / METRICS_FILE)

    @property
    def events(self) -> list[dict[str, Any]]:
        return read_rows(self.folder / EVENTS_FILE)

    @property
    def sessions(self) -> list[dict[str, Any]]:
        """Each beginning of the run so far, failed and restarted ones too."""
        return [r for r in read_rows(self.folder / SESSIONS_FILE) if r["event"] in ("opened", "resumed")]

    @property
    def num_rows(self) -> int:
        """How many iterations stand finished in metrics.jsonl, by its last whole line."""
        try:
            with (self.folder / METRICS_FILE).open("rb") as file:
                file.seek(max(0, file.seek(0, 2) - TAIL_BYTES))
                found = re.findall(rb'\{"iteration": (\d+), [^\n]*\n', file.read())
        except OSError:
            return 0
        return int(found[-1]) if found else 0

    @property
    def newest(self) -> int:
        """The iteration of the newest checkpoint; -1 where there is none."""
        return max((int(path.name) for path in checkpoint.listing(self.folder / "checkpoints")), default=-1)

    @property
    def saving(self) -> bool:
        """Whether a save's temporary folder exists now."""
        try:
            names = [path.name for path in (self.folder / "checkpoints").iterdir()]
        except OSError:
            return False
        return any(re.match(re.escape(checkpoint.TEMPORARY) + r"\d", name) for name in names)

    @property
    def leftovers(self) -> list[str]:
        """Half-written things in and beside the run folder."""
        beside = [p for p in self.place.runs.glob(f".{self.name}.*") if p.name != f".{self.name}.lock"]
        return [p.name for p in [*beside, *(self.folder / "checkpoints").glob(f"{checkpoint.TEMPORARY}*")]]

    def copy(self, name: str, iteration: int) -> Training:
        """A copy of the run folder that holds this checkpoint only."""
        other = self.under(name)
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


def fingerprint(run: Training) -> str:
    """What `ranks fingerprint` prints: computed afresh from the newest checkpoint, verified. Raises ProofError."""
    damaged: list[str] = []
    newest = checkpoint.newest(run.folder / "checkpoints", damaged)
    if newest is None or damaged:
        raise ProofError(f"{run.name}: {'; '.join(damaged) or 'no checkpoint'}")
    computed = HostState.of(newest.state).fingerprint()
    if computed != newest.fingerprint:
        raise ProofError(f"{newest.path} says {newest.fingerprint}, its tensors give {computed}")
    return computed


def relative_difference(a: Mapping[str, Tensor], b: Mapping[str, Tensor]) -> float:
    """|a - b| / |b| in the L2 norm over all weights."""
    if a.keys() != b.keys():
        return math.inf
    squares = torch.tensor([0.0, 0.0], dtype=torch.float64)
    for name, value in b.items():
        squares[0] += (a[name].double() - value.double()).square().sum()
        squares[1] += value.double().square().sum()
    return float((squares[0] / squares[1]).sqrt())
