"""`ranks fingerprint`: a sha256 of the whole training state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ranks.cli.flags.parse import Positional, parse
from ranks.cli.saved.run_folder import find_folder
from ranks.errors import UserError


@dataclass(frozen=True)
class FingerprintFlags:
    """Print the sha256 of a run's state: weights, optimizer, counters.

    Two runs have equal fingerprints only if their states are bit-for-bit identical."""

    run: Positional[str]
    """A run's name or path, for its newest checkpoint; or the path of a checkpoint folder."""
    runs_dir: Path = Path("runs")
    """The folder of the run folders."""


def fingerprint(argv: Sequence[str]) -> int:
    """Verify the checkpoint's files, compute the fingerprint from the tensors, and print it."""
    flags = parse(FingerprintFlags, argv, prog="ranks fingerprint")
    from ranks.cli.saved.saved_model import newest, read
    from ranks.engine.runs.checkpoint import MANIFEST, HostState

    asked = f"ranks fingerprint {flags.run}"
    if (Path(flags.run) / MANIFEST).is_file():
        found = read(Path(flags.run), asked)
    else:
        found = newest(find_folder(flags.run, flags.runs_dir, asked) / "checkpoints", asked)
    computed = HostState.of(found.state).fingerprint()
    if computed != found.fingerprint:
        wrong = f"the tensors in {found.path} do not give the fingerprint that is recorded there"
        raise UserError(asked, wrong, "use another checkpoint of the run")
    print(computed)
    return 0
