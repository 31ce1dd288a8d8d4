"""A run's checkpoint, chosen and verified, and the model rebuilt from it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ranks.cli.run_folder import SavedRun
from ranks.engine.runs import checkpoint
from ranks.engine.runs.checkpoint import Checkpoint
from ranks.engine.update.load_weights import load_weights
from ranks.errors import UserError


def choose(run_folder: Path, which: str) -> Checkpoint:
    """`best` (by the run's own score), `latest` that verifies, or the one of an iteration. Raises UserError."""
    asked = f"--checkpoint {which}"
    folder = run_folder / "checkpoints"
    if which == "latest":
        return newest(folder, asked)
    if which == "best":
        path = checkpoint.best(folder)
        if path is None:
            raise UserError(asked, f"no checkpoint in {folder} was saved with a score", "use --checkpoint latest")
    elif which.isdigit():
        path = folder / f"{int(which):08d}"
        if not path.is_dir():
            kept = ", ".join(str(int(p.name)) for p in checkpoint.listing(folder)) or "none"
            raise UserError(asked, f"{folder} holds no such iteration; it holds {kept}", "name one of those")
    else:
        raise UserError(asked, "that names no checkpoint", "give best, latest or the number of an iteration")
    return read(path, asked)


def newest(folder: Path, asked: str) -> Checkpoint:
    """The newest checkpoint that verifies; a damaged one is named and passed over. Raises UserError."""
    damage: list[str] = []
    found = checkpoint.newest(folder, damage)
    for line in damage:
        print(f"passed over a damaged checkpoint: {line}", file=sys.stderr)
    if found is None:
        raise UserError(asked, f"no whole checkpoint in {folder}", "train the run, or give another one")
    return found


def read(path: Path, asked: str) -> Checkpoint:
    """One checkpoint folder, verified. Raises UserError naming the file that is wrong."""
    try:
        return checkpoint.read(path)
    except checkpoint.DamagedCheckpoint as damage:
        raise UserError(asked, str(damage), "use another checkpoint; `--checkpoint latest` finds a whole one") from None


def rebuild(run: SavedRun, found: Checkpoint, device: torch.device) -> nn.Module:
    """The run's model with the checkpoint's weights, ready to be evaluated. Raises UserError."""
    model: nn.Module = run.module.build(run.config)
    load_weights(model, weights(found))
    return model.to(device, torch.get_default_dtype()).eval()


def weights(found: Checkpoint) -> dict[str, Tensor]:
    """The model's tensors in a checkpoint: those of the one kept object that has a model. Raises UserError."""
    models: list[Any] = [state["model"] for state in found.state.values() if "model" in state]
    if len(models) != 1:
        holds = f"{len(models)} models among {', '.join(found.state)}"
        raise UserError(f"the model of {found.path}", holds, "keep exactly one learner in Run.open(keep=...)")
    return models[0]
