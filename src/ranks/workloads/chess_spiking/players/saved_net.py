"""Nets with their weights, from a run, from an export folder, or from the files of the package.

weights/model.safetensors    the weights
weights/config.json          net: NetConfig, selfplay: SelfPlayConfig, seed (of rate coding), weights_sha256,
                             source: where they are from
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import safetensors.torch
import torch
from torch import Tensor

from ranks.engine.config import RunConfig
from ranks.engine.config_file import encode, overlay
from ranks.engine.export.about import read_about
from ranks.engine.export.load_export import read_verified
from ranks.engine.files.disk import write_durably, writing
from ranks.engine.files.regular import DamagedFile
from ranks.engine.files.strict_json import read_object
from ranks.engine.runs.find_run import find_folder
from ranks.engine.runs.folder import RunFolder
from ranks.engine.update.load_weights import load_weights
from ranks.errors import UserError
from ranks.selfplay.config import SelfPlayConfig
from ranks.selfplay.snapshots import weights_of_run
from ranks.workloads.chess_spiking.building import Net, build_net
from ranks.workloads.chess_spiking.config import Config, NetConfig

WORKLOAD = "chess-spiking"
SHIPPED = Path(__file__).parents[1] / "weights"
"""The trained net of the package; it is absent from a version without one."""
MODEL, CONFIG = "model.safetensors", "config.json"


@dataclass(frozen=True, eq=False)
class SavedNet:
    """A net in evaluation mode, on the CPU."""

    model: Net
    net: NetConfig
    selfplay: SelfPlayConfig
    """How it played in training; a player searches in the same way."""
    seed: int
    """Of the spikes of rate coding."""
    sha256: str
    """Of the weights."""
    source: str
    """Where the weights are from."""


def from_run(run: str, which: str, asked: str, runs_dir: Path = Path("runs")) -> SavedNet:
    """The net of a run, given by name or path. `which`: best (the newest where no checkpoint has a score),
    latest, or a number of finished iterations with a checkpoint or a snapshot.

    Raises UserError: no such run, a run of another workload, damaged or other weights.
    """
    folder = find_folder(run, runs_dir, asked)
    content = RunFolder(folder).read_settings()
    if content["workload"] != WORKLOAD:
        found = f"{folder} is a run of {content['workload']}, whose net is no player of chess"
        raise UserError(asked, found, f"name a run of {WORKLOAD}")
    cfg = overlay(Config(), content["config"], asked, "config")
    seed = overlay(RunConfig(), content["engine"], asked, "engine").seed
    weights, iteration = weights_of_run(folder, which, asked)
    return _saved_net(cfg.net, cfg.selfplay, weights, seed, f"{folder.name}, iteration {iteration}", asked)


def from_export(folder: Path, asked: str) -> SavedNet:
    """The net of a folder that `ranks fetch` or `ranks publish` wrote, with the settings of its run. Its weights are
    compared with their sha256. Raises UserError."""
    do = "give a complete folder of `ranks fetch`"
    try:
        about, config = read_about(folder), read_object(folder / CONFIG, follow=True)
        weights = safetensors.torch.load(read_verified(folder / MODEL, str(config.get("weights_sha256"))))
    except (DamagedFile, safetensors.SafetensorError) as damage:
        raise UserError(asked, str(damage), do) from None
    cfg = overlay(Config(), about.config, asked, "config")
    source = f"{about.run}, iteration {about.iteration}"
    return _saved_net(cfg.net, cfg.selfplay, weights, about.seed, source, asked)


def from_files(folder: Path, asked: str) -> SavedNet:
    """The net of the two files in a folder. Raises UserError where they are missing, damaged, or hold another net."""
    do = f"install ranks again, or train a net and name it as run:RUN (ranks train {WORKLOAD})"
    if not (folder / CONFIG).exists():
        raise UserError(asked, "this version of ranks has no trained net", do)
    try:
        config = read_object(folder / CONFIG, follow=True)
        seed, sha256, source = config.get("seed"), config.get("weights_sha256"), config.get("source")
        if type(seed) is not int or not isinstance(sha256, str) or not isinstance(source, str):
            raise DamagedFile(f"{folder / CONFIG}: it does not describe a net")
        weights = safetensors.torch.load(read_verified(folder / MODEL, sha256))
    except (DamagedFile, safetensors.SafetensorError) as damage:
        raise UserError(asked, str(damage), do) from None
    net = overlay(NetConfig(), config.get("net"), asked, "net")
    selfplay = overlay(SelfPlayConfig(), config.get("selfplay"), asked, "selfplay")
    return _saved_net(net, selfplay, weights, seed, source, asked)


def to_files(saved: SavedNet, folder: Path, asked: str) -> None:
    """Write the two files that `from_files` reads. Raises UserError where the folder cannot be written."""
    weights = safetensors.torch.save(dict(saved.model.state_dict()))
    config = {
        "net": encode(saved.net),
        "selfplay": encode(saved.selfplay),
        "seed": saved.seed,
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
        "source": saved.source,
    }
    with writing(asked, folder.parent, "nothing else was changed"):
        folder.mkdir(parents=True, exist_ok=True)
        write_durably(folder / MODEL, weights)
        write_durably(folder / CONFIG, (json.dumps(config, indent=2) + "\n").encode())


def _saved_net(
    net: NetConfig, selfplay: SelfPlayConfig, weights: Mapping[str, Tensor], seed: int, source: str, asked: str
) -> SavedNet:
    model = build_net(net)
    try:
        load_weights(model, weights)
    except UserError as error:
        found = f"the weights of {source} are of another net: {error.found}"
        raise UserError(asked, found, "use the version of ranks that trained it") from None
    digest = hashlib.sha256(safetensors.torch.save({name: t.contiguous() for name, t in weights.items()})).hexdigest()
    return SavedNet(model.to(torch.get_default_dtype()).eval(), net, selfplay, seed, digest, source)
