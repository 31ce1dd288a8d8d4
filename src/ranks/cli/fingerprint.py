"""`ranks fingerprint`: the training state as one line of hex."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ranks.cli.parse import Positional, parse
from ranks.cli.run_folder import find_folder
from ranks.errors import UserError


@dataclass(frozen=True)
class Flags:
    """Print the sha256 over everything that a run keeps: weights, optimizer, counters. Equal only for equal states."""

    run: Positional[str]
    """A run's name under runs/ or its path (its newest checkpoint), or the path of a checkpoint folder."""
    runs_dir: Path = Path("runs")
    """Where run folders stand."""


def fingerprint(argv: Sequence[str]) -> int:
    """Verify the checkpoint's files, compute the fingerprint afresh, and print it."""
    flags = parse(Flags, argv, prog="ranks fingerprint")
    from ranks.cli.saved_model import newest, read
    from ranks.engine.runs.checkpoint import MANIFEST, HostState

    asked = f"ranks fingerprint {flags.run}"
    if (Path(flags.run) / MANIFEST).is_file():
        found = read(Path(flags.run), asked)
    else:
        found = newest(find_folder(flags.run, flags.runs_dir, asked) / "checkpoints", asked)
    computed = HostState.of(found.state).fingerprint()
    if computed != found.fingerprint:
        raise UserError(asked, f"{found.path} says {found.fingerprint}, its tensors give {computed}", "do not trust it")
    print(computed)
    return 0
