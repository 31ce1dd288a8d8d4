"""Find, verify and load a network: the shipped one, the export of a run, or a file.

The weights are in `model.safetensors`. A `config.json` in the same folder has the arguments of the
constructor and the sha256 of the weights. Nothing is unpickled.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ranks.engine.export.load_export import load_export
from ranks.engine.runs.folder import RUN_FILE, RunFolder
from ranks.errors import UserError
from ranks.workloads.graph_coloring.net.model import ColouringNet

SHIPPED = Path(__file__).parent / "weights"


@dataclass(frozen=True)
class LoadedNet:
    """A network with its weights. `name`: where it comes from, for messages."""

    model: ColouringNet
    name: str
    sha256: str


def load_net(run: str | None, runs_dir: Path = Path("runs")) -> LoadedNet:
    """The network of a run (name or folder) or a safetensors file; None: the shipped one.

    Raises UserError if there is none, or if another version of ranks made the run.
    """
    if run is None:
        return read_net(SHIPPED / "model.safetensors", "shipped with ranks", "the network that ships with the package")
    asked = f"--run {run}"
    places = [Path(run), runs_dir / run]
    for place in places:
        if place.is_file():
            return read_net(place, str(place), asked)
        if (place / RUN_FILE).is_file():
            RunFolder(place).check_format()
        for folder in (place / "export", place):
            if (folder / "model.safetensors").is_file():
                return read_net(folder / "model.safetensors", f"run {place.name}", asked)
        if (place / "checkpoints").is_dir():
            raise UserError(asked, f"{place} has no export yet", f"let it finish, or run: ranks export {run}")
    raise UserError(
        asked, f"neither {places[0]} nor {places[1]} holds a network", "name a run that `ranks runs` lists, or a file"
    )


def read_net(path: Path, name: str, asked: str) -> LoadedNet:
    """The network of a safetensors file and the config.json in its folder. Raises UserError."""
    model, sha256 = load_export(path, ColouringNet, asked)
    return LoadedNet(model, name, sha256)
