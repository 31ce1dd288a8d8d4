"""The players that a spec can name: our own, those of workloads, and those of your modules."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from ranks.chess.players.player import Player
from ranks.chess.players.spec import PlayerSpec, name_of
from ranks.chess.players.strength import FILE, Strength, read_strength
from ranks.errors import UserError

PLAYERS: Mapping[str, str] = {
    "random": "ranks.chess.players.simple:random_player",
    "greedy": "ranks.chess.players.simple:greedy_player",
    "minimax": "ranks.chess.players.alphabeta:minimax_player",
    "alphabeta": "ranks.chess.players.alphabeta:alphabeta_player",
    "engine": "ranks.chess.engine.player:engine_player",
    "mcts": "ranks.chess.players.tree_search:material_player",
    "uci": "ranks.chess.uci.player:uci_player",
}
"""The built-in players: each name with its factory as "module:function" (see PlayerSpec)."""
USAGE = (
    "random, greedy, minimax:DEPTH, alphabeta:DEPTH[?evaluation=position], engine[:FOLDER], mcts:SIMULATIONS, "
    "uci:COMMAND[@NODES][?Option=Value&...], or MODULE.FUNCTION[:ARGUMENT] of your own"
)
MODULES: list[str] = []
"""Modules with a PLAYERS table like the one above, and perhaps one of STRENGTHS: names with their files. The command
line adds the workloads."""
ENGINE = Path(__file__).parents[1] / "engine"
"""The folder with the strength of the engine's own tables."""


def parse_player(text: str) -> PlayerSpec:
    """The spec of a player. Raises UserError for an unknown name.

    Only a name that is not built in causes the modules of MODULES to be imported. A name with a
    dot, e.g. my_module.my_player, is the factory itself, in a module on Python's path
    (PYTHONPATH)."""
    name = name_of(text)
    players = dict(PLAYERS)
    if name not in players:
        for module in MODULES:
            players |= getattr(import_module(module), "PLAYERS", {})
    if name not in players and "." in name:
        players[name] = _factory(text, name)
    added = "".join(f", {other}" for other in sorted(players.keys() - PLAYERS.keys() - {name}))
    return PlayerSpec.parse(text, players, USAGE + (f"; of workloads: {added[2:]}" if added else ""))


def make_player(text: str) -> Player:
    """The player of a spec, e.g. `alphabeta:3` or `uci:stockfish?Threads=1`. Raises UserError."""
    return parse_player(text).make()


def strength_of(spec: PlayerSpec) -> Strength | None:
    """The Elo of a player by its nodes. None where none was measured, or where the spec has limits or options of its
    own. Raises UserError where the file is damaged."""
    file: Path | None = None
    if spec.name == "engine" and not spec.options:
        file = (ENGINE if spec.argument in (None, "tables") else Path(spec.argument)) / FILE
    elif spec.name not in PLAYERS and spec.argument is None:
        for module in MODULES:
            file = getattr(import_module(module), "STRENGTHS", {}).get(spec.name, file)
    return None if file is None else read_strength(file, f"the player '{spec.text}'")


def _factory(text: str, name: str) -> str:
    """'package.module.function' -> 'package.module:function'. Raises UserError if there is none."""
    asked = f"the player '{text}'"
    module, _, function = name.rpartition(".")
    try:
        found = find_spec(module) is not None
    except (ImportError, ValueError):
        found = False
    if not found:
        do = f"set PYTHONPATH to the folder of {module.partition('.')[0]}.py, or name one of: {USAGE}"
        raise UserError(asked, f"there is no module '{module}' on Python's path", do)
    if not callable(getattr(import_module(module), function, None)):
        do = f"define {function}(spec, argument, options), which returns a player"
        raise UserError(asked, f"the module '{module}' has no function '{function}'", do)
    return f"{module}:{function}"
