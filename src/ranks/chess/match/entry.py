"""From the words of a command line to what a match is made of: players, conditions, openings."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from ranks.chess.match.game import Conditions
from ranks.chess.match.opening_files import read_openings
from ranks.chess.match.openings import Opening, seeded_openings
from ranks.chess.match.schedule import Entrant
from ranks.chess.match.time_control import TimeControl
from ranks.chess.players.player import Limits, Player
from ranks.chess.players.program import ProgramPlayer
from ranks.chess.players.words import PlayerWord
from ranks.errors import UserError


def entrants(words: Sequence[str]) -> list[Entrant]:
    """A player for each word, named by it; the second one of a word has (2) behind its name.

    Each is opened and closed once, so that a word that cannot be played is refused before the first game.
    """
    seen: Counter[str] = Counter()
    found: list[Entrant] = []
    for word in words:
        parsed = PlayerWord.parse(word)
        seen[word] += 1
        name = word if seen[word] == 1 else f"{word} ({seen[word]})"
        player = parsed.make()
        found.append(Entrant(name, parsed.make, {"word": word, **program_facts(player)}))
        player.close()
    return found


def program_facts(player: Player) -> dict[str, str]:
    """The name and the hash of a UCI program; nothing for a player of our own."""
    if not isinstance(player, ProgramPlayer):
        return {}
    return {"program": player.program, "sha256": hashlib.sha256(player.executable.read_bytes()).hexdigest()}


def conditions(
    tc: str | None = None, nodes: int | None = None, depth: int | None = None, movetime: float | None = None
) -> Conditions:
    """At most one of a time control, nodes, depth and seconds for each move; without any, the players' own limits."""
    given = {"--tc": tc, "--nodes": nodes, "--depth": depth, "--movetime": movetime}
    flags = [f"{flag} {value}" for flag, value in given.items() if value is not None]
    if len(flags) > 1:
        raise UserError(" ".join(flags), "limits that exclude each other", "give one of them")
    for value in (nodes, depth, movetime):
        if value is not None and not 0 < value < float("inf"):
            raise UserError(flags[0], "no limit to play with", "give a number above 0")
    limits = Limits(nodes=nodes, depth=depth, movetime_s=movetime)
    return Conditions(None if tc is None else TimeControl.parse(tc), limits)


def openings_of(path: Path | None, seed: int) -> Iterable[Opening]:
    """The openings of a file, or our own of this seed."""
    return seeded_openings(seed) if path is None else read_openings(path)
