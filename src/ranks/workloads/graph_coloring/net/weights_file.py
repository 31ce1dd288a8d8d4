"""Finding, verifying and loading a net: the shipped one, a run's export, or a file.

Weights stand in `model.safetensors`, with `config.json` beside it that holds the constructor's arguments and the sha256
of the weights. Both are data: nothing is unpickled.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch

from ranks.engine.weights import load_weights
from ranks.errors import UserError
from ranks.workloads.graph_coloring.net.model import ColouringNet

SHIPPED = Path(__file__).parent / "weights"


@dataclass(frozen=True)
class LoadedNet:
    """A net ready to colour. `name`: where it comes from, in words."""

    model: ColouringNet
    name: str
    sha256: str


def load_net(run: str | None, runs_dir: Path = Path("runs")) -> LoadedNet:
    """The shipped net for none; else that of a run (by name or folder) or of a safetensors file. Raises UserError."""
    if run is None:
        return read_net(SHIPPED / "model.safetensors", "shipped with ranks", "the net that ships with the package")
    asked = f"--run {run}"
    places = [Path(run), runs_dir / run]
    for place in places:
        if place.is_file():
            return read_net(place, str(place), asked)
        for folder in (place / "export", place):
            if (folder / "model.safetensors").is_file():
                return read_net(folder / "model.safetensors", f"run {place.name}", asked)
        if (place / "checkpoints").is_dir():
            raise UserError(asked, f"{place} has no export yet", f"let it finish, or run: ranks export {run}")
    raise UserError(asked, f"neither {places[0]} nor {places[1]} holds a net", "name a run of `ranks runs`, or a file")


def read_net(path: Path, name: str, asked: str) -> LoadedNet:
    """The net of one safetensors file and the config.json beside it. Raises UserError."""
    config_path = path.with_name("config.json")
    try:
        raw = path.read_bytes()
        config: Any = json.loads(config_path.read_text(encoding="utf-8"))
        arguments = dict(config["arguments"])
        expected = str(config["weights_sha256"])
    except OSError as error:
        raise UserError(asked, f"{error.filename}: {error.strerror}", "give an export folder that is whole") from None
    except (ValueError, KeyError, TypeError):
        raise UserError(asked, f"{config_path} does not describe a net", "export it again") from None
    sha256 = hashlib.sha256(raw).hexdigest()
    if sha256 != expected:
        raise UserError(
            asked,
            f"{path} is damaged: sha256 {sha256[:12]}, {config_path.name} says {expected[:12]}",
            "export it again",
        )
    if config.get("class") != ColouringNet.__name__:
        raise UserError(asked, f"{path} holds a {config.get('class')}", f"give a {ColouringNet.__name__}")
    try:
        model = ColouringNet(**arguments)
        weights = safetensors.torch.load(raw)
    except (TypeError, ValueError, safetensors.SafetensorError) as error:
        raise UserError(asked, f"{path} cannot be read: {error}", "export it again") from None
    load_weights(model, weights)
    return LoadedNet(model.to(torch.get_default_dtype()).eval(), name, sha256)
