"""A UCI program as a player: found, started, its options checked; started again for the next game if it died."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ranks.chess.board import Board
from ranks.chess.players.player import Choice, Forfeit, Limits
from ranks.chess.players.words import nearest
from ranks.chess.uci.client import PATIENCE, Patience, UciProgram
from ranks.errors import UserError

FOLDERS = ("/usr/games", "/usr/local/bin", "/usr/local/games", "/opt/homebrew/bin", "/opt/local/bin", "~/.local/bin")
"""Where programs stand that are not on PATH, too."""
INSTALLERS = {"apt": "sudo apt install", "brew": "brew install", "dnf": "sudo dnf install", "pacman": "sudo pacman -S"}


class ProgramPlayer:
    """Plays as a UCI program does; `nodes` is a limit of its own for every move, instead of any clock."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        options: Mapping[str, str],
        nodes: int | None = None,
        patience: Patience = PATIENCE,
    ) -> None:
        """Start it and set its options. Raises UserError where it is no UCI program or has no such option."""
        self.name, self.nodes = name, nodes
        self._command, self._options, self._patience = list(command), dict(options), patience
        try:
            self._program = UciProgram(self._command, patience)
        except Forfeit as fault:
            do = "check that the command is a UCI program: type it, then `uci`; it answers `uciok`"
            raise UserError(f"the player '{name}'", f"the program {fault}", do) from fault
        try:
            self._set_options(self._program)
        except Forfeit as fault:
            raise UserError(f"the player '{name}'", f"the program {fault}", "check its options") from fault
        except UserError:
            self._program.close()
            raise

    @property
    def program(self) -> str:
        """What the program calls itself: name and version."""
        return self._program.name

    @property
    def executable(self) -> Path:
        """The file that runs."""
        return Path(self._command[0])

    def new_game(self, seed: int) -> None:
        if not self._program.alive:
            self._program.kill()
            self._program = UciProgram(self._command, self._patience)
            self._set_options(self._program)
        self._program.new_game()

    def choose(self, board: Board, limits: Limits) -> Choice:
        if self.nodes is not None:
            limits = replace(limits, nodes=self.nodes, depth=None, movetime_s=None, clock=None, infinite=False)
        limited = limits.nodes or limits.depth or limits.movetime_s or limits.clock or limits.infinite
        if not limited:
            do = f"give a limit for all, such as nodes or a time control, or one of its own: {self.name}@1000"
            raise UserError(f"a move of '{self.name}'", "nothing says when the program has to move", do)
        return self._program.choose(board, limits)

    def close(self) -> None:
        self._program.close()

    def _set_options(self, program: UciProgram) -> None:
        for given, value in self._options.items():
            option = program.options.get(given.lower())
            asked = f"the player '{self.name}'"
            if option is None:
                names = [known.name for known in program.options.values()]
                do = nearest(given, names, f"it has {', '.join(names) or 'none'}")
                raise UserError(asked, f"{program.name} has no option '{given}'", do)
            refusal = option.refusal(value)
            if refusal:
                raise UserError(asked, f"{option.name}: {refusal}", f"give {option.name} a value that it takes")
            program.set_option(option.name, value)
        program.ready()


def find_command(text: str, word: str) -> list[str]:
    """The command with the path of its program, which is looked for on PATH and in FOLDERS. Raises UserError."""
    asked = f"the player '{word}'"
    try:
        parts = shlex.split(text)
    except ValueError as error:
        raise UserError(asked, f"the command cannot be read: {error}", "balance its quotation marks") from None
    if not parts:
        raise UserError(asked, "no command", "write uci:COMMAND, such as uci:stockfish")
    folders = os.pathsep.join(str(Path(folder).expanduser()) for folder in FOLDERS)
    found = shutil.which(parts[0]) or shutil.which(parts[0], path=folders)
    if found is None:
        raise UserError(
            asked, f"there is no program '{parts[0]}' on PATH or in {', '.join(FOLDERS)}", install(parts[0])
        )
    return [found, *parts[1:]]


def install(program: str) -> str:
    """How to get a program, by the installer that is here."""
    name = Path(program).name
    here = [command for installer, command in INSTALLERS.items() if shutil.which(installer)]
    return "install it: " + " or ".join(f"{command} {name}" for command in here or INSTALLERS.values())


def program_player(word: str, argument: str | None, options: Mapping[str, str]) -> ProgramPlayer:
    """`uci:COMMAND[@NODES][?Option=Value&...]`: any UCI program, with so many nodes for each move."""
    text, at, digits = (argument or "").rpartition("@")
    nodes = int(digits) if at and digits.isascii() and digits.isdecimal() else None
    if nodes == 0:
        raise UserError(f"the player '{word}'", "zero nodes", "give at least one")
    command = find_command(text if nodes else argument or "", word)
    return ProgramPlayer(word, command, options, nodes)
