"""A UCI engine as a player: found, started, configured, and restarted if it died."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from ranks.chess.board import Board
from ranks.chess.players.player import Choice, Forfeit, Limits
from ranks.chess.players.spec import nearest
from ranks.chess.uci.client import UciClient, start_again_if_lost
from ranks.chess.uci.timeouts import DEFAULT_TIMEOUTS, Timeouts
from ranks.errors import UserError

FOLDERS = ("/usr/games", "/usr/local/bin", "/usr/local/games", "/opt/homebrew/bin", "/opt/local/bin", "~/.local/bin")
"""Folders that are searched after PATH."""
INSTALLERS = {"apt": "sudo apt install", "brew": "brew install", "dnf": "sudo dnf install", "pacman": "sudo pacman -S"}


class UciPlayer:
    """Plays the moves of a UCI engine, which dies with the thread that starts it (Linux).

    That is the thread that creates the player, and that of `new_game` where the engine had died. `nodes`, if given,
    limits every move and replaces all other limits."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        options: Mapping[str, str],
        nodes: int | None = None,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        *,
        if_known: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Start the engine and set its options, and those of `if_known` that it has.

        Raises UserError if it is no UCI engine or has no such option."""
        self.name, self.nodes = name, nodes
        self._command, self._options, self._timeouts = list(command), dict(options), timeouts
        self._if_known = dict(if_known)
        try:
            self._client = start_again_if_lost(self._open)
        except Forfeit as fault:
            do = "check that the command is a UCI engine, and its options: type it, then `uci`; it answers `uciok`"
            raise UserError(f"the player '{name}'", f"the engine {fault}", do) from fault

    @property
    def program(self) -> str:
        """The engine's `id name`: its name and version."""
        return self._client.name

    @property
    def files(self) -> list[Path]:
        """The executable file, and the files that its arguments and options name, such as a script or a net."""
        named = [*self._command[1:], *self._options.values()]
        return [Path(self._command[0]), *(Path(text) for text in named if os.path.isfile(text))]

    def new_game(self, seed: int) -> None:
        if not self._client.alive:
            self._client.kill()
            self._client = self._open()
        self._client.new_game()

    def choose(self, board: Board, limits: Limits) -> Choice:
        if self.nodes is not None:
            limits = replace(
                limits, nodes=self.nodes, depth=None, mate=None, movetime_s=None, clock=None, infinite=False
            )
        limited = limits.nodes or limits.depth or limits.mate or limits.movetime_s or limits.clock or limits.infinite
        if not limited:
            do = f"give all players a limit (--nodes, --tc, ...), or this one its own: {self.name}@1000"
            raise UserError(f"a move of '{self.name}'", "the engine has no limit for its search", do)
        return self._client.choose(board, limits)

    def close(self) -> None:
        self._client.close()

    def _open(self) -> UciClient:
        client = UciClient(self._command, self._timeouts, dies_with_us=True)
        try:
            self._set_options(client)
        except UserError:
            client.close()
            raise
        return client

    def _set_options(self, client: UciClient) -> None:
        known = {name: value for name, value in self._if_known.items() if name.lower() in client.options}
        for given, value in {**known, **self._options}.items():
            option = client.options.get(given.lower())
            asked = f"the player '{self.name}'"
            if option is None:
                names = [each.name for each in client.options.values()]
                do = nearest(given, names, f"it has {', '.join(names) or 'none'}")
                raise UserError(asked, f"{client.name} has no option '{given}'", do)
            refusal = option.refusal(value)
            if refusal:
                raise UserError(asked, f"{option.name}: {refusal}", f"give {option.name} a valid value")
            client.set_option(option.name, value)
        client.ready()


def find_command(text: str, spec: str) -> list[str]:
    """Split a command and find its program on PATH or in FOLDERS. Raises UserError."""
    asked = f"the player '{spec}'"
    try:
        parts = shlex.split(text)
    except ValueError as error:
        raise UserError(asked, f"the command cannot be read: {error}", "balance its quotation marks") from None
    if not parts:
        raise UserError(asked, "no command", "write uci:COMMAND, e.g. uci:stockfish")
    folders = os.pathsep.join(str(Path(folder).expanduser()) for folder in FOLDERS)
    found = shutil.which(parts[0]) or shutil.which(parts[0], path=folders)
    if found is None:
        raise UserError(
            asked, f"there is no program '{parts[0]}' on PATH or in {', '.join(FOLDERS)}", install(parts[0])
        )
    return [found, *parts[1:]]


def install(program: str) -> str:
    """How to install a program with the package manager of this machine."""
    name = Path(program).name
    here = [command for installer, command in INSTALLERS.items() if shutil.which(installer)]
    return "install it: " + " or ".join(f"{command} {name}" for command in here or INSTALLERS.values())


def uci_player(spec: str, argument: str | None, options: Mapping[str, str]) -> UciPlayer:
    """`uci:COMMAND[@NODES][?Option=Value&...]`: any UCI engine, with NODES for each move."""
    text, at, digits = (argument or "").rpartition("@")
    nodes = int(digits) if at and digits.isascii() and digits.isdecimal() and len(digits) < 16 else None
    if nodes == 0:
        raise UserError(f"the player '{spec}'", "zero nodes", "give at least one")
    command = find_command(text if nodes else argument or "", spec)
    return UciPlayer(spec, command, options, nodes)
