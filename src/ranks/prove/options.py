"""The options that `ranks prove same-run` and `ranks prove survive` share."""

from __future__ import annotations

import itertools
import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ranks.errors import UserError

OPTIONS = ("--iterations", "--gpus")
"""Flags of ranks train that a proof has as options."""
CHOSEN = ("--ranks", "--shares", "--name", "--runs-dir", "--exact", "--no-exact", "--shards", "--save-every")
"""Flags of ranks train that a proof chooses for each run."""


@dataclass(frozen=True)
class ProofOptions:
    """Options of every proof that trains."""

    iterations: int | None = None
    """Iterations of each complete run; by default chosen for the workload."""
    quick: bool = False
    """Fewer and shorter runs; the same bounds."""
    gpus: str = "none"
    """GPUs to train on, as in ranks train; none is the CPU."""
    seed: int = 0
    """Seed of the random times of signals and of the processes that get them."""
    train: str = ""
    """More flags of ranks train for all runs, in one string: --train="--preset small". {folder} is an empty folder for
    each run, such as --store {folder}."""
    out: Path = Path("results")
    """Folder of the result file."""

    def __post_init__(self) -> None:
        """Raises UserError for a flag in `train` that the proof would override."""
        for given, following in itertools.pairwise([*self.train_flags, ""]):
            name, _, value = given.partition("=")
            flag = name.replace("_", "-")
            if flag in OPTIONS:
                do = f"give it to ranks prove: {flag} {value or following}"
                raise UserError(f"--train={shlex.quote(self.train)}", f"{flag} is an option of the proof itself", do)
            if flag in CHOSEN:
                found = f"the proof chooses {flag} for each of its runs"
                raise UserError(f"--train={shlex.quote(self.train)}", found, f"leave {flag} out")

    @property
    def train_flags(self) -> tuple[str, ...]:
        return tuple(shlex.split(self.train))

    def settings(self, **more: Any) -> dict[str, Any]:
        """The options as the result file records them; `more` replaces and adds."""
        return {name: value for name, value in asdict(self).items() if name != "out"} | more
