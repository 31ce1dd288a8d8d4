"""The players `run:RUN[...]` and `model:FOLDER[...]` of `ranks chess`: the workload that trained the net makes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

from ranks.chess.players.player import Player
from ranks.chess.players.spec import before_number
from ranks.engine.export.about import read_about
from ranks.engine.files.regular import DamagedFile
from ranks.engine.runs.checkpoints.pick import run_and_checkpoint
from ranks.engine.runs.find_run import find_folder
from ranks.engine.runs.folder import RunFolder
from ranks.errors import UserError
from ranks.workloads import WORKLOADS

PLAYERS = {
    "run": "ranks.workloads.run_players:run_player",
    "model": "ranks.workloads.run_players:model_player",
}
RUNS = Path("runs")


def run_player(spec: str, argument: str | None, options: Mapping[str, str]) -> Player:
    """The player of a run, by the factory that its workload names as RUN_PLAYER. Raises UserError: no such run, or a
    workload whose nets do not play chess."""
    asked = f"the player '{spec}'"
    run, _ = run_and_checkpoint(before_number(argument), asked)
    folder = find_folder(run, RUNS, asked)
    workload = RunFolder(folder).read_settings()["workload"]
    factory = _factories("RUN_PLAYER").get(workload)
    if factory is None:
        found = f"{folder} is a run of {workload}, whose net is no player of chess"
        raise UserError(asked, found, f"name a run of {' or '.join(_factories('RUN_PLAYER'))}")
    return _make(factory, spec, argument, options)


def model_player(spec: str, argument: str | None, options: Mapping[str, str]) -> Player:
    """The player of a model that `ranks fetch` brought, by the factory that its workload names as MODEL_PLAYER. Raises
    UserError: no such folder, damaged, or a workload whose models do not play chess."""
    asked = f"the player '{spec}'"
    folder = Path(before_number(argument))
    try:
        about = read_about(folder)
    except DamagedFile as damage:
        do = "write model:FOLDER, with a folder that `ranks fetch` or `ranks publish --dry-run` wrote"
        raise UserError(asked, str(damage), do) from None
    factory = _factories("MODEL_PLAYER").get(about.workload)
    if factory is None:
        found = f"{folder} is a model of {about.workload}, which is no player of chess"
        raise UserError(asked, found, f"name a model of {' or '.join(_factories('MODEL_PLAYER'))}")
    return _make(factory, spec, argument, options)


def _make(factory: str, spec: str, argument: str | None, options: Mapping[str, str]) -> Player:
    module, function = factory.split(":")
    make: Callable[[str, str | None, Mapping[str, str]], Player] = getattr(import_module(module), function)
    return make(spec, argument, options)


def _factories(kind: str) -> dict[str, str]:
    """RUN_PLAYER or MODEL_PLAYER of each workload that has one."""
    modules = {name: import_module(module) for name, module in WORKLOADS.items()}
    return {name: getattr(module, kind) for name, module in modules.items() if hasattr(module, kind)}
