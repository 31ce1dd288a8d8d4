"""Pick and verify a checkpoint of a run that is only read."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

from torch import Tensor

from ranks.engine.runs.checkpoints import checkpoint
from ranks.engine.runs.checkpoints.checkpoint import Checkpoint
from ranks.engine.runs.folder import listing, name_of
from ranks.errors import UserError


def run_and_checkpoint(text: str, asked: str) -> tuple[str, str]:
    """The two parts of RUN[/CHECKPOINT], with best, latest or an iteration; best without one. Raises UserError."""
    match = re.fullmatch(r"(.+?)(?:/(best|latest|[0-9]{1,18}))?/?", text)
    if match is None:
        do = "write RUN or RUN/ITERATION, e.g. demo, demo/20, demo/best; as a chess player run:RUN"
        raise UserError(asked, "the name of a run is missing", do)
    return match[1], match[2] or "best"


def pick_checkpoint(run_folder: Path, which: str, asked: str) -> Checkpoint:
    """The checkpoint named `best` (lowest score), `latest` (newest intact), or by its iteration.
    Raises UserError."""
    folder = run_folder / "checkpoints"
    if which == "latest":
        return newest(folder, asked)
    if which == "best":
        path = checkpoint.best(folder)
        if path is None:
            raise UserError(asked, f"no checkpoint in {folder} was saved with a score", "take the newest: latest")
    elif re.fullmatch("[0-9]{1,18}", which):
        path = folder / name_of(int(which))
        if not os.path.lexists(path):
            kept = ", ".join(str(int(p.name)) for p in listing(folder)) or "none"
            raise UserError(
                asked, f"{folder} has no checkpoint of that iteration; it holds {kept}", "name one of those"
            )
    else:
        raise UserError(
            asked, "this is not the name of a checkpoint", "give best, latest or the number of an iteration"
        )
    return read(path, asked)


def newest(folder: Path, asked: str) -> Checkpoint:
    """The newest intact checkpoint; damaged ones are named and skipped. Raises UserError."""
    damage: list[str] = []
    found = checkpoint.newest(folder, damage)
    for line in damage:
        print(f"warning: skipped a damaged checkpoint: {line}", file=sys.stderr)
    if found is None:
        raise UserError(asked, f"no intact checkpoint in {folder}", "train the run, or give another run")
    return found


def read(path: Path, asked: str) -> Checkpoint:
    """Read and verify one checkpoint folder. Raises UserError that names the damaged file."""
    try:
        return checkpoint.read(path)
    except checkpoint.DamagedCheckpoint as damage:
        raise UserError(asked, str(damage), "use another checkpoint; `latest` is the newest intact one") from None


def model_weights(found: Checkpoint) -> dict[str, Tensor]:
    """The model's tensors in a checkpoint, which must keep exactly one object with a model. Raises
    UserError."""
    parts: list[Any] = [state.get("model") for state in found.state.values()]
    models = [part for part in parts if isinstance(part, dict) and all(isinstance(t, Tensor) for t in part.values())]
    if len(models) != 1:
        holds = f"{len(models)} models among {', '.join(found.state)}"
        raise UserError(f"the model of {found.path}", holds, "keep exactly one learner in Run.open(keep=...)")
    return models[0]
