"""Finding, verifying and loading a net: the shipped one, a run's export, or a file.

Weights stand in `model.safetensors`, with `config.json` beside it that holds the constructor's arguments and the sha256
of the weights. Both are data: nothing is unpickled.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ranks.engine.export.load_export import load_export
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
    model, sha256 = load_export(path, ColouringNet, asked)
    return LoadedNet(model, name, sha256)
