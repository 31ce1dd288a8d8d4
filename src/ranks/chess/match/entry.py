"""From the words of a command line to what a match is made of: players, conditions, openings."""

from __future__ import annotations

import functools
import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ranks import __version__
from ranks.chess.match.game import Conditions
from ranks.chess.match.opening_files import read_openings
from ranks.chess.match.openings import Opening, seeded_openings
from ranks.chess.match.schedule import Entrant
from ranks.chess.match.time_control import TimeControl
from ranks.chess.players.player import Limits
from ranks.chess.players.program import ProgramPlayer
from ranks.chess.players.words import PlayerWord
from ranks.errors import UserError

OUR_SOURCES = ("chess/board.py", "chess/core/", "chess/players/", "search/")
"""What our own players are made of."""


def entrants(words: Sequence[str]) -> list[Entrant]:
    """A player for each word. It is named by its word, a UCI program by what it calls itself and what was set.

    Each is opened and closed once, so that a word that cannot be played is refused before the first game.
    """
    seen: Counter[str] = Counter()
    found: list[Entrant] = []
    for word in words:
        parsed = PlayerWord.parse(word)
        player = parsed.make()
        name = program_name(player, parsed.options) if isinstance(player, ProgramPlayer) else word
        if isinstance(player, ProgramPlayer):
            program, digest = player.program, hashlib.sha256(player.executable.read_bytes()).hexdigest()
        else:
            program, digest = f"ranks {__version__}", our_sha256()
        player.close()
        seen[name] += 1
        facts = {"word": word, "program": program, "sha256": digest}
        found.append(Entrant(name if seen[name] == 1 else f"{name} ({seen[name]})", parsed.make, facts))
    return found


def program_name(player: ProgramPlayer, options: Mapping[str, str]) -> str:
    """`Stockfish 15.1, 5000 nodes, UCI_Elo 1350`."""
    nodes = [f"{player.nodes} nodes"] if player.nodes else []
    given = [f"{option} {value}" for option, value in options.items() if value != "true"]
    return ", ".join([player.program, *nodes, *given])


@functools.cache
def our_sha256() -> str:
    """The hash of the sources of our own players, which tells states of one version apart."""
    package = Path(__file__).resolve().parents[2]
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        if path.relative_to(package).as_posix().startswith(OUR_SOURCES):
            digest.update(str(path.relative_to(package)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def conditions(
    tc: str | None = None,
    nodes: int | None = None,
    depth: int | None = None,
    movetime: float | None = None,
    time_margin: float = 0.0,
) -> Conditions:
    """At most one of a time control, nodes, depth and seconds for each move; without any, the players' own limits."""
    given = {"--tc": tc, "--nodes": nodes, "--depth": depth, "--movetime": movetime}
    flags = [f"{flag} {value}" for flag, value in given.items() if value is not None]
    if len(flags) > 1:
        raise UserError(" ".join(flags), "limits that exclude each other", "give one of them")
    for value in (nodes, depth, movetime):
        if value is not None and not 0 < value < float("inf"):
            raise UserError(flags[0], "no limit to play with", "give a number above 0")
    if not 0 <= time_margin < float("inf"):
        raise UserError(f"--time-margin {time_margin}", "no length of time", "give seconds from 0 on")
    limits = Limits(nodes=nodes, depth=depth, movetime_s=movetime)
    return Conditions(None if tc is None else TimeControl.parse(tc), limits, time_margin)


def openings_of(path: Path | None, seed: int) -> Iterable[Opening]:
    """The openings of a file, or our own of this seed."""
    return seeded_openings(seed) if path is None else read_openings(path)
