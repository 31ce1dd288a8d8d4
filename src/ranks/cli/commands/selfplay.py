"""`ranks selfplay COMMAND`: what runs of self-play have played."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ranks.cli.flags.parse import call
from ranks.cli.saved.run_folder import open_run
from ranks.engine.runs.find_run import find_folder
from ranks.engine.runs.folder import RunFolder
from ranks.errors import UserError, nearest

if TYPE_CHECKING:
    from ranks.selfplay.replay.game_moves import PlayedGame


def games(
    run: str,
    /,
    *,
    iteration: int | None = None,
    last: int | None = None,
    pgn: bool = False,
    trust_code: bool = False,
    runs_dir: Path = Path("runs"),
) -> int:
    """Print the games of a run's replay window, one line a game, or as PGN. Also while the run trains.

    Args:
        run: A run's name under runs/, or the path of its folder.
        iteration: Only games that ended in this iteration, counted from 1 as in metrics.jsonl.
        last: Only this many games, the last in the order of iterations and ids.
        pgn: Print PGN, for games of chess.
        trust_code: Execute the copy of the workload's file that is in the run folder.
        runs_dir: The folder of the run folders.
    """
    asked = f"ranks selfplay games {run}"
    for flag, value in (("--iteration", iteration), ("--last", last)):
        if value is not None and value < 1:
            raise UserError(f"{flag} {value}", "it must be 1 or more", "change it")
    folder = find_folder(run, runs_dir, asked)
    from ranks.selfplay.replay.read_games import WindowGames

    skipped: list[str] = []

    def on_skipped(what: str) -> None:
        skipped.append(what)
        print(f"warning: skipped {what}", file=sys.stderr)

    window = WindowGames(RunFolder(folder), on_skipped)
    module = open_run(folder, asked, trust_code=trust_code).module
    format_pgn: Callable[[PlayedGame, str], str] | None = getattr(module, "format_pgn", None)
    if pgn and format_pgn is None:
        found = "the workload has no function format_pgn: its game is not chess"
        raise UserError(f"{asked} --pgn", found, "leave out --pgn")
    notation: Callable[[Sequence[int]], list[str]] = getattr(module, "notation", plain_numbers)
    printed = 0
    for game in window.select(iteration, last):
        if not pgn and not printed:
            print("# slot.number iteration weights result ending plies: moves")
        print(format_pgn(game, folder.name) if pgn and format_pgn else line_of(game, notation))
        printed += 1
    if not printed:
        if skipped:
            do = "restore it from a copy, or read it with the version of ranks that wrote it"
            raise UserError(asked, "no part can be read, see the warnings", do)
        raise UserError(asked, "the run has just deleted the part", "run the command again")
    return 0


def plain_numbers(moves: Sequence[int]) -> list[str]:
    """The moves of a game without a notation of its own."""
    return [str(move) for move in moves]


def line_of(game: PlayedGame, notation: Callable[[Sequence[int]], list[str]]) -> str:
    """A game as one line."""
    name, ending = f"{game.slot}.{game.number}", game.ending.replace(" ", "-")
    about = f"{name} {game.iteration} {game.weights_text} {game.result} {ending} {len(game.moves)}"
    return f"{about}: {' '.join(notation(game.moves))}"


COMMANDS: dict[str, Callable[..., int]] = {"games": games}


def selfplay(argv: Sequence[str]) -> int:
    """Run one of COMMANDS."""
    if not argv or argv[0] in ("-h", "--help"):
        lines = [f"  {name:<10} {(command.__doc__ or '').splitlines()[0]}" for name, command in COMMANDS.items()]
        print("\n".join(["usage: ranks selfplay COMMAND ...", "", *lines]))
        return 0
    if argv[0] not in COMMANDS:
        do = nearest(argv[0], list(COMMANDS), "see ranks selfplay --help")
        raise UserError(f"ranks selfplay {argv[0]}", "there is no such command", do)
    return call(COMMANDS[argv[0]], argv[1:], prog=f"ranks selfplay {argv[0]}")
