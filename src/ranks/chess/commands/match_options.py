"""From the flags of `ranks chess match` and `ladder` to participants, conditions and openings."""

from __future__ import annotations

import functools
import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from ranks import __version__
from ranks.chess.commands.players import PLAYERS, parse_player
from ranks.chess.match.game import Conditions
from ranks.chess.match.opening_files import read_openings
from ranks.chess.match.openings import Opening, seeded_openings
from ranks.chess.match.schedule import Participant
from ranks.chess.match.time_control import TimeControl
from ranks.chess.players.player import Limits
from ranks.chess.players.spec import PlayerSpec
from ranks.chess.uci.player import UciPlayer
from ranks.errors import UserError

OUR_SOURCES = ("chess/board.py", "chess/core/", "chess/engine/", "chess/players/", "search/")
"""The source files of our own players."""


def participants(specs: Sequence[str]) -> list[Participant]:
    """A participant for each spec.

    Its name is the spec; a UCI engine is named by its id name and its options. Each player is
    created and closed here, so that a spec that cannot play is refused before the first game.
    """
    seen: Counter[str] = Counter()
    found: list[Participant] = []
    for text in specs:
        spec = parse_player(text)
        player = spec.make()
        if isinstance(player, UciPlayer):
            name = engine_name(player, spec.options)
            program, digest = player.program, files_sha256(player.files)
        else:
            name, program = text, f"ranks {__version__}"
            digest = source_sha256(spec, getattr(player, "weights_sha256", ""))
        player.close()
        seen[name] += 1
        identity = {"word": text, "program": program, "sha256": digest}  # the keys of plan.json
        found.append(Participant(name if seen[name] == 1 else f"{name} ({seen[name]})", spec.make, identity))
    return found


def engine_name(player: UciPlayer, options: Mapping[str, str]) -> str:
    """`Stockfish 15.1, 5000 nodes, UCI_Elo 1350`."""
    nodes = [f"{player.nodes} nodes"] if player.nodes else []
    given = [f"{option} {value}" for option, value in options.items() if value != "true"]
    return ", ".join([player.program, *nodes, *given])


def files_sha256(paths: Iterable[Path]) -> str:
    """The hash of the content of files that one can read, one after the other."""
    digest = hashlib.sha256()
    for path in paths:
        if os.access(path, os.R_OK):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def source_sha256(spec: PlayerSpec, weights_sha256: str = "") -> str:
    """The hash of a player's source, and of its weights where it has the attribute `weights_sha256`.

    It covers our own players, and the file of a factory from another module. Other files that such
    a factory reads (further modules) are not part of it."""
    source = b""
    if spec.name not in PLAYERS:
        found = find_spec(spec.factory.split(":")[0])
        source = Path(found.origin).read_bytes() if found and found.origin else b""
    elif not weights_sha256:
        return our_sha256()
    return hashlib.sha256(our_sha256().encode() + source + weights_sha256.encode()).hexdigest()


@functools.cache
def our_sha256() -> str:
    """The hash of the source files of our own players. It tells apart two states of one version."""
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
    """The conditions of a game: one of the limits, or none, so that each player uses its own."""
    given = {"--tc": tc, "--nodes": nodes, "--depth": depth, "--movetime": movetime}
    flags = [f"{flag} {value}" for flag, value in given.items() if value is not None]
    if len(flags) > 1:
        raise UserError(" ".join(flags), "limits that exclude each other", "give one of them")
    for value in (nodes, depth, movetime):
        if value is not None and not 0 < value < float("inf"):
            raise UserError(flags[0], "this is not a limit", "give a number above 0")
    if not 0 <= time_margin < float("inf"):
        raise UserError(f"--time-margin {time_margin}", "this is not a duration", "give 0 or more seconds")
    limits = Limits(nodes=nodes, depth=depth, movetime_s=movetime)
    return Conditions(None if tc is None else TimeControl.parse(tc), limits, time_margin)


def openings_of(path: Path | None, seed: int) -> Iterable[Opening]:
    """The openings of a file, or our own openings for this seed."""
    return seeded_openings(seed) if path is None else read_openings(path)
