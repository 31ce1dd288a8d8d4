"""`ranks fingerprint`: a sha256 of the whole training state."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ranks.cli.flags.parse import Positional, parse
from ranks.engine.runs.find_run import find_folder


@dataclass(frozen=True)
class FingerprintFlags:
    """Print the sha256 of a run's state: weights, optimizer, counters.

    Two runs have equal fingerprints only if their states are bit-for-bit identical."""

    run: Positional[str]
    """A run's name or path, for its newest checkpoint; or the path of a checkpoint folder."""
    runs_dir: Path = Path("runs")
    """The folder of the run folders."""


def fingerprint(argv: Sequence[str]) -> int:
    """Verify the newest good checkpoint, or the given one, and print its fingerprint."""
    flags = parse(FingerprintFlags, argv, prog="ranks fingerprint")
    from ranks.engine.runs.checkpoints.manifest import MANIFEST
    from ranks.engine.runs.checkpoints.pick import newest, read

    asked = f"ranks fingerprint {flags.run}"
    if os.path.lexists(Path(flags.run) / MANIFEST):
        found = read(Path(flags.run), asked)
    else:
        found = newest(find_folder(flags.run, flags.runs_dir, asked) / "checkpoints", asked)
    print(found.fingerprint)  # computed from the tensors when they were read, and equal to the manifest's
    return 0
