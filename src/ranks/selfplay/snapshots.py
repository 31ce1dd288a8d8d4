"""Weights that a run keeps every so many iterations. (The best ones are those of `best_weights.py`.)

Each is a kept file, runs/NAME/kept/snapshots/ITERATION-SHA256.safetensors: written once, named by all later
checkpoints, and verified when it is read. Training never reads it, so a run continues without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ranks.engine.distributed.world import World
from ranks.engine.files.regular import DamagedFile
from ranks.engine.runs.checkpoints import checkpoint
from ranks.engine.runs.checkpoints.pick import model_weights, newest, pick_checkpoint
from ranks.engine.runs.folder import RunFolder, listing, name_of
from ranks.engine.runs.kept.kept_file import KeptFile
from ranks.engine.runs.kept.kept_files import KeptFiles
from ranks.engine.runs.kept.kept_folder import KeptFolder
from ranks.errors import UserError

FOLDER = "snapshots"
"""Of the weights in runs/NAME/kept/."""


class Snapshots:
    """The weights of every `every` iterations.

        snapshots = Snapshots(net, cfg.snapshot_every, world)
        with Run.open(cfg, world, keep=dict(learner=learner, ..., snapshots=snapshots)) as run:
            for iteration in run.iterations(cfg.iterations, long=True):
                ...
                snapshots.take(iteration)

    `weights_of` reads them again by the number of finished iterations.
    """

    def __init__(self, net: nn.Module, every: int, world: World) -> None:
        """Raises UserError where `every` is below 1."""
        if every < 1:
            raise UserError(f"weights every {every} iterations", "the interval is 1 or more", "give 1 or more")
        self.net, self.every = net, every
        self._world, self._kept = world, KeptFiles(world, FOLDER, archive=True)

    def take(self, iteration: int) -> None:
        """Keep the weights if this iteration, from 0, is one of every `every`. Every rank calls it inside the
        loop, after the iteration's last update. Raises UserError where the disk is full."""
        if (iteration + 1) % self.every == 0:
            self._world.session.drain()
            self._kept.write(iteration, weights_as_arrays(self.net) if self._world.rank == 0 else {})

    def state_dict(self) -> dict[str, Any]:
        return self._kept.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._kept.load_state_dict(state)


def weights_as_arrays(net: nn.Module) -> dict[str, NDArray[Any]]:
    """A net's state as arrays of a kept file. It waits for the device."""
    return {name: tensor.detach().cpu().numpy() for name, tensor in net.state_dict().items()}


def arrays_as_weights(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Tensor]:
    """The inverse of `weights_as_arrays`: copies, also of memory-mapped arrays."""
    return {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}


def weights_of_run(run: Path, which: str, asked: str) -> tuple[dict[str, Tensor], int]:
    """The weights of a run folder, and after how many iterations it had them. `which`: best (the newest where no
    checkpoint has a score), latest, or a number of finished iterations with a checkpoint or a snapshot.

    Raises UserError where there are none, or where they are damaged.
    """
    checkpoints = run / "checkpoints"
    if which.isdecimal() and not (checkpoints / name_of(int(which))).exists():
        return weights_of(run, int(which), asked), int(which)
    if which == "best" and checkpoint.best(checkpoints) is None:
        which = "latest"
    found = pick_checkpoint(run, which, asked)
    return model_weights(found), found.iteration


def saved_iterations(run: Path, asked: str) -> list[int]:
    """The numbers of finished iterations whose weights a run folder has, in a checkpoint or a snapshot.

    Raises UserError where no checkpoint is intact."""
    return sorted({*_snapshots(run, asked), *(int(path.name) for path in listing(run / "checkpoints"))})


def weights_of(run: Path, iteration: int, asked: str) -> dict[str, Tensor]:
    """The weights of a run folder's snapshot after `iteration` finished iterations.

    Raises UserError where there is none, naming those that there are, or where its file is damaged.
    """
    by_iteration = _snapshots(run, asked)
    if iteration not in by_iteration:
        saved = ", ".join(map(str, saved_iterations(run, asked)))
        found = f"{run} keeps no weights of iteration {iteration}, but those of {saved}"
        raise UserError(asked, found, "name one of those, best or latest")
    folder = KeptFolder(RunFolder(run).kept)
    try:
        folder.verify(by_iteration[iteration])
        return arrays_as_weights(folder.open(by_iteration[iteration]))
    except DamagedFile as damage:
        raise UserError(asked, str(damage), "name another iteration, best or latest") from None


def _snapshots(run: Path, asked: str) -> dict[int, KeptFile]:
    """Those that the newest checkpoint names, by their number of finished iterations."""
    named = newest(run / "checkpoints", asked).manifest.kept
    files = [KeptFile(path, size) for path, size in named.items() if path.startswith(f"{FOLDER}/")]
    return {file.iteration + 1: file for file in files}
