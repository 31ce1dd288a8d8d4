"""Nets with their weights, from a run or from the files of the package.

weights/nnue.safetensors     the engine's integers (ranks.chess.engine.nnue.weights)
weights/config.json          weights_sha256, source: where they are from
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from ranks.chess.engine.nnue.weights import NnueWeights, load_weights, to_bytes, wrong_with
from ranks.engine.config_file import overlay
from ranks.engine.export.load_export import load_export
from ranks.engine.files.disk import write_durably, writing
from ranks.engine.files.regular import DamagedFile
from ranks.engine.files.strict_json import read_object
from ranks.engine.runs.checkpoints.pick import run_and_checkpoint
from ranks.engine.runs.find_run import find_folder
from ranks.engine.runs.folder import RunFolder
from ranks.engine.update import load_weights as float_weights
from ranks.errors import UserError
from ranks.selfplay.snapshots import weights_of_run
from ranks.workloads.chess_value.config import Config
from ranks.workloads.chess_value.net.building import ValueNet, build_net
from ranks.workloads.chess_value.net.cnn import CnnNet
from ranks.workloads.chess_value.net.nnue import NnueNet
from ranks.workloads.chess_value.net.planes import RESNET_PLANES
from ranks.workloads.chess_value.net.quantise import quantise
from ranks.workloads.chess_value.net.resnet import ResnetValue

WORKLOAD = "chess-value"
SHIPPED = Path(__file__).parents[1] / "weights"
"""The trained net of the package; it is absent from a version without one."""
MODEL, CONFIG = "nnue.safetensors", "config.json"


@dataclass(frozen=True, eq=False)
class SavedValueNet:
    """A net on the CPU, in evaluation mode."""

    model: ValueNet
    source: str
    """Where the weights are from."""


@dataclass(frozen=True, eq=False)
class ShippedNet:
    """A quantised net."""

    weights: NnueWeights
    sha256: str
    """Of the file's content."""
    source: str


def from_run(name: str, asked: str, runs_dir: Path = Path("runs")) -> SavedValueNet:
    """The net of RUN[/ITERATION], of a checkpoint or a snapshot; without ITERATION that of the best checkpoint, or of
    the newest where none has a score. Raises UserError: no such run, a run of another workload, damaged or other
    weights."""
    run, which = run_and_checkpoint(name, asked)
    folder = find_folder(run, runs_dir, asked)
    content = RunFolder(folder).read_settings()
    if content["workload"] != WORKLOAD:
        raise UserError(asked, f"{folder} is a run of {content['workload']}", f"name a run of {WORKLOAD}")
    cfg = overlay(Config(), content["config"], asked, "config")
    weights, cycle = weights_of_run(folder, which, asked)
    model, source = build_net(cfg.net), f"{folder.name}, cycle {cycle}"
    try:
        float_weights.load_weights(model, weights)
    except UserError as error:
        text = f"the weights of {source} are of another net: {error.found}"
        raise UserError(asked, text, "use the version of ranks that trained it") from None
    return SavedValueNet(model.float().eval(), source)


def from_export(folder: Path, asked: str) -> ValueNet:
    """The net of an export folder, whose weights are compared with their sha256. Raises UserError."""
    kinds: dict[str, type[ValueNet]] = {kind.__name__: kind for kind in (NnueNet, CnnNet, ResnetValue)}
    try:
        name = str(read_object(folder / CONFIG, follow=True).get("class"))
    except DamagedFile as damage:
        raise UserError(asked, str(damage), "give a folder of `ranks fetch` or `ranks export`") from None
    if name not in kinds:
        raise UserError(asked, f"{folder} holds a {name}", f"give a net of {WORKLOAD}: {', '.join(kinds)}")
    model = load_export(folder / "model.safetensors", kinds[name], asked)[0].float()
    _refuse_other_inputs(model, folder, asked)
    return model


def _refuse_other_inputs(model: ValueNet, folder: Path, asked: str) -> None:
    """Raise UserError for other inputs or layers than this version has: the engine's kernels check no bounds."""
    problem = None
    if isinstance(model, ResnetValue) and model.planes != RESNET_PLANES:
        problem = f"it takes {model.planes} planes, not {RESNET_PLANES}"
    elif isinstance(model, NnueNet):
        try:
            problem = wrong_with(quantise(model)._asdict())
        except (ValueError, RuntimeError) as error:  # features that are no multiple of those of a bucket
            problem = str(error)
    if problem:
        raise UserError(asked, f"{folder}: {problem}", "use the version of ranks that exported it, or train it again")


def from_files(folder: Path, asked: str) -> ShippedNet:
    """The net of the two files in a folder. Raises UserError where they are missing or damaged."""
    do = f"install ranks again, or train a net and name it as run:RUN (ranks train {WORKLOAD})"
    if not (folder / CONFIG).exists():
        raise UserError(asked, "this version of ranks has no trained net", do)
    try:
        config = read_object(folder / CONFIG, follow=True)
    except DamagedFile as damage:
        raise UserError(asked, str(damage), do) from None
    weights, source = load_weights(folder / MODEL, asked), config.get("source")
    sha256 = hashlib.sha256(to_bytes(weights)).hexdigest()
    if config.get("weights_sha256") != sha256 or not isinstance(source, str):
        raise UserError(asked, f"{folder / CONFIG} describes other weights than {folder / MODEL}", do)
    return ShippedNet(weights, sha256, source)


def to_files(weights: NnueWeights, source: str, folder: Path, asked: str) -> None:
    """Write the two files that `from_files` reads. Raises UserError where the folder cannot be written."""
    content = to_bytes(weights)
    config = {"weights_sha256": hashlib.sha256(content).hexdigest(), "source": source}
    with writing(asked, folder.parent, "nothing else was changed"):
        folder.mkdir(parents=True, exist_ok=True)
        write_durably(folder / MODEL, content)
        write_durably(folder / CONFIG, (json.dumps(config, indent=2) + "\n").encode())


def nnue_of(model: nn.Module, asked: str) -> NnueNet:
    """The net, where it is one that the engine plays with. Raises UserError."""
    if not isinstance(model, NnueNet):
        found = f"the net is a {type(model).__name__}, and only an nnue becomes a file of the engine"
        raise UserError(asked, found, "train with --net.kind nnue")
    return model
