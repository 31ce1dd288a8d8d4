"""The folder of a ladder. A ladder can be stopped at any time and resumed from its folder.

    plan.json     the settings and the players (version, options, hash); a later start must have the same
    pairs.jsonl   one line for each finished pair of games: the raw data of the ratings
    games.pgn     all these games
    ladder.json   the ratings, with all data that they were computed from
    ladder.png    the plot of the ratings
    lock          locked by the ladder that writes here

A line of pairs.jsonl is written after its games, and holds the length of games.pgn at that time. On
resume, whatever a crash left after that length is cut off.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TextIO

from ranks.chess.match.game import GameRecord
from ranks.chess.match.match import points
from ranks.chess.match.schedule import PairRecord
from ranks.errors import UserError
from ranks.rating.crosstable import Crosstable

LINE = {"first": str, "second": str, "number": int, "points": list, "forfeits": list, "pgn_bytes": int}
"""The keys of a line of pairs.jsonl that are read, and their types."""


class LadderStore:
    """The pairs played so far, on disk and as a crosstable."""

    def __init__(
        self, folder: Path, plan: Mapping[str, Any], looks: int, write_game: Callable[[TextIO, GameRecord], None]
    ) -> None:
        """Open or create the folder of a ladder.

        Raises UserError if its plan differs, if another ladder is writing there, or if a file is
        damaged.
        """
        self.table = Crosstable()
        self.played: set[tuple[str, str, int]] = set()
        """(first, second, number) of each pair."""
        self.forfeits: Counter[tuple[str, str]] = Counter()
        """The number of forfeits by (player, reason)."""
        self._write_game = write_game
        with contextlib.ExitStack() as opened:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                opened.enter_context(_lock(folder))
                _require_whole(folder)
                self.looks = _agree(folder / "plan.json", plan, looks)
                """The greatest number of looks of all starts of this ladder."""
                line_bytes, pgn_bytes = self._read(folder / "pairs.jsonl")
                self._lines = opened.enter_context(_open_cut(folder / "pairs.jsonl", line_bytes))
                self._pgn = opened.enter_context(_open_cut(folder / "games.pgn", pgn_bytes))
            except OSError as error:
                found = f"{error.filename or folder}: {error.strerror}"
                raise UserError(f"a ladder in {folder}", found, "give a folder that can be written") from None
            self._opened = opened.pop_all()

    def add(self, pair: PairRecord) -> None:
        """Write a finished pair: first its games, then its line."""
        games = (pair.with_white, pair.with_black)
        for game in games:
            self._write_game(self._pgn, game)
        self._pgn.flush()
        entry = {
            "first": pair.task.first.name,
            "second": pair.task.second.name,
            "number": pair.task.number,
            "opening": pair.task.opening.name,
            "points": points(pair),
            "results": [game.result for game in games],
            "reasons": [game.reason for game in games],
            "plies": [len(game.opening.moves) + len(game.turns) for game in games],
            "forfeits": [[game.loser, game.reason] for game in games if game.forfeited],
            "pgn_bytes": os.fstat(self._pgn.fileno()).st_size,
        }
        self._lines.write(json.dumps(entry) + "\n")
        self._lines.flush()
        self._count(entry)

    def close(self) -> None:
        """Close the files and release the lock."""
        self._opened.close()

    def _read(self, path: Path) -> tuple[int, int]:
        """Count all complete lines.

        Returns their length in bytes, and the length of games.pgn that they state."""
        whole = path.read_bytes() if path.exists() else b""
        lines = whole.split(b"\n")[:-1]
        pgn_bytes = 0
        for number, line in enumerate(lines, 1):
            try:
                entry = json.loads(line)
                missing = [key for key, kind in LINE.items() if not isinstance(entry[key], kind)]
                if missing:
                    raise ValueError(f"{', '.join(missing)} cannot be read")
                self._count(entry)
                pgn_bytes = entry["pgn_bytes"]
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                what = f"there is no {error}" if isinstance(error, KeyError) else str(error)
                raise UserError(
                    f"the ladder in {path.parent}",
                    f"{path}, line {number} is damaged: {what}",
                    "restore the line, or start a new ladder in another folder",
                ) from None
        return sum(len(line) + 1 for line in lines), pgn_bytes

    def _count(self, entry: Mapping[str, Any]) -> None:
        key = (entry["first"], entry["second"], entry["number"])
        if key in self.played:
            raise ValueError(f"pair {key[2]} of {key[0]} and {key[1]} occurs twice")
        with_white, with_black = entry["points"]
        if not all(type(halves) is int and 0 <= halves <= 2 for halves in (with_white, with_black)):
            raise ValueError(f"{entry['points']} are not the points of two games")
        self.table.add(key[0], key[1], with_white, with_black)
        self.played.add(key)
        self.forfeits.update((player, reason) for player, reason in entry["forfeits"])


def _lock(folder: Path) -> TextIO:
    """Take the lock of the folder: an open file that only one ladder can hold."""
    lock = (folder / "lock").open("w", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise UserError(
            f"a ladder in {folder}", "another ladder is writing here", "wait until it ends, or give another folder"
        ) from None
    return lock


def _agree(path: Path, plan: Mapping[str, Any], looks: int) -> int:
    """Write the plan, or compare it with the existing one.

    Only new players and more looks are allowed."""
    players = plan["players"]
    if path.exists():
        before = _read_plan(path)
        players = {**before["players"], **players}
        looks = max(looks, before["looks"])
        changed = _differences(before, {**plan, "players": before["players"]})
        for name, identity in before["players"].items():
            changed += [f"{name}: {difference}" for difference in _differences(identity, players[name])]
        if changed:
            raise UserError(
                f"the ladder in {path.parent}",
                f"it was started with other settings ({path.name}): {'; '.join(changed)}",
                "use those settings, or another folder",
            )
    write_json(path, {**plan, "players": players, "looks": looks})
    return looks


def _read_plan(path: Path) -> dict[str, Any]:
    try:
        plan = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
        for identity in plan["players"].values():
            dict(identity)
        plan["looks"] = int(plan.get("looks", 1))
    except json.JSONDecodeError as error:
        found = f"line {error.lineno}: {error.msg}"
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        found = "these are not the settings of a ladder"
    else:
        return plan
    raise UserError(
        f"the ladder in {path.parent}",
        f"{path} is damaged: {found}",
        "restore the file, or start a new ladder in another folder",
    )


def _refuse_constant(name: str) -> None:
    """Raises ValueError for NaN and the infinities, which JSON does not have."""
    raise ValueError(name)


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """`seed was 3, is 4` for each setting that differs."""
    return [f"{key} was {before.get(key)}, is {value}" for key, value in now.items() if before.get(key) != value]


def _require_whole(folder: Path) -> None:
    """Raise UserError if a file is missing although a later one exists."""
    names = ("plan.json", "pairs.jsonl", "games.pgn")
    for first, then in itertools.pairwise(names):
        if (folder / then).exists() and not (folder / first).exists():
            raise UserError(
                f"the ladder in {folder}", f"{then} without {first}", f"restore {first}, or give another folder"
            )


def _open_cut(path: Path, num_bytes: int) -> TextIO:
    """Open a file for appending, cut to its known length: a crash may have left more."""
    found = path.stat().st_size if path.exists() else 0
    if not 0 <= num_bytes <= found:
        raise UserError(
            f"the ladder in {path.parent}",
            f"{path} has {found} bytes where the finished pairs filled {num_bytes}",
            f"restore the whole {path.name}, or start a new ladder in another folder",
        )
    stream = path.open("a", encoding="utf-8", newline="\n")
    stream.truncate(num_bytes)
    return stream


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write strict JSON atomically: a reader sees either the old file or the new one."""
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    temporary.replace(path)
