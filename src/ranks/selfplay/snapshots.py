"""Weights that a run keeps: every so many iterations, and the best so far.

Each is a kept file, runs/NAME/kept/snapshots/ITERATION-SHA256.safetensors: written once, named by all later
checkpoints, and verified when it is read.
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
from ranks.engine.runs.checkpoints.pick import newest
from ranks.engine.runs.folder import RunFolder
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
        self._world, self._kept = world, KeptFiles(world, FOLDER)

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


def weights_of(run: Path, iteration: int, asked: str) -> dict[str, Tensor]:
    """The weights of a run folder's snapshot after `iteration` finished iterations.

    Raises UserError where there is none, naming those that there are, or where its file is damaged.
    """
    named = newest(run / "checkpoints", asked).manifest.kept
    files = [KeptFile(path, size) for path, size in named.items() if path.startswith(f"{FOLDER}/")]
    by_iteration = {file.iteration + 1: file for file in files}
    if iteration not in by_iteration:
        kept = ", ".join(map(str, sorted(by_iteration))) or "none"
        found = f"{run} keeps no weights of iteration {iteration}; snapshots: {kept}"
        raise UserError(asked, found, "name one of those, best or latest")
    folder = KeptFolder(RunFolder(run).kept)
    try:
        folder.verify(by_iteration[iteration])
        return arrays_as_weights(folder.open(by_iteration[iteration]))
    except DamagedFile as damage:
        raise UserError(asked, str(damage), "name another iteration, best or latest") from None
