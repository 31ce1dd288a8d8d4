"""`--init-from EXPORT`: a new run begins with the weights of an export. Nothing is unpickled.

The first checkpoint has these weights, so a resume does not need the export again. The run's identity has their
sha256: the same command with another export is another run.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import safetensors
import safetensors.torch

from ranks.engine.distributed.agree import on_first_rank
from ranks.engine.distributed.world import World
from ranks.engine.export.load_export import read_verified
from ranks.engine.files.regular import DamagedFile
from ranks.engine.files.strict_json import read_object
from ranks.engine.runs.folder import RunFolder
from ranks.engine.update.learner import Learner
from ranks.engine.update.load_weights import load_weights
from ranks.errors import UserError

FOLDER = "give the export folder of a run (runs/NAME/export; `ranks export NAME` writes it)"


def initial_sha256(export: Path | None, folder: RunFolder) -> str | None:
    """The sha256 of the weights that the run begins or began with; None for new ones.

    A run that exists is known by what it has recorded, where no export is given or it is gone. Raises UserError
    where a new run cannot read it.
    """
    folder.check_format()
    recorded = folder.read_run()["identity"].get("init_from") if folder.exists else None
    gone = export is not None and not _weights_file(export).exists()
    if export is None or (recorded is not None and gone):
        return recorded
    return _described_sha256(export)


def load_initial_weights(world: World, learners: Iterable[Learner]) -> None:
    """Give the learners the weights of `--init-from`. Every rank calls it; the first one reads them.

    Raises UserError, on all ranks, where the export is damaged or has other tensors than the model.
    """
    export = world.config.init_from
    if export is None:
        return
    for learner in learners:
        on_first_rank(world, lambda learner=learner: _load(export, learner))
        learner.share_weights()


def _load(export: Path, learner: Learner) -> None:
    asked = f"--init-from {export}"
    try:
        raw = read_verified(_weights_file(export), _described_sha256(export))
        weights = safetensors.torch.load(raw)
    except DamagedFile as damage:
        raise UserError(asked, str(damage), FOLDER) from None
    except safetensors.SafetensorError as error:
        raise UserError(asked, f"{_weights_file(export)}: {error}", FOLDER) from error
    load_weights(learner.model, weights, asked, "give an export of the same model, made with the same config")


def _described_sha256(export: Path) -> str:
    """What config.json says about the weights; `read_verified` compares it with them."""
    asked, config = f"--init-from {export}", _weights_file(export).with_name("config.json")
    try:
        sha256 = read_object(config, follow=True).get("weights_sha256")
    except DamagedFile as damage:
        raise UserError(asked, str(damage), FOLDER) from None
    if not isinstance(sha256, str):
        raise UserError(asked, f"{config} has no weights_sha256, so it does not belong to an export", FOLDER)
    return sha256


def _weights_file(export: Path) -> Path:
    return export if export.suffix == ".safetensors" else export / "model.safetensors"
