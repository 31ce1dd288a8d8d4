"""What a ladder leaves in its folder, so that it can be stopped anywhere and goes on where it was.

    plan.json     what is played, by whom (version, options, hash); a later start must agree with it
    pairs.jsonl   one line for each finished pair of games: the raw data of the rating
    games.pgn     all these games
    ladder.json   the rating with everything it was made from
    ladder.png    its plot

A line of pairs.jsonl is written after the games it stands for and ends with the length of games.pgn: what a crash left
behind that length is cut off.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TextIO

from ranks.chess.match.game import GameRecord
from ranks.chess.match.match import points
from ranks.chess.match.schedule import PairRecord
from ranks.chess.rating.crosstable import Crosstable
from ranks.errors import UserError


class Journal:
    """The pairs that were played, on disk and as a crosstable."""

    def __init__(self, folder: Path, plan: Mapping[str, Any], write_game: Callable[[TextIO, GameRecord], None]) -> None:
        """Open or begin a ladder's folder. Raises UserError where it belongs to another plan."""
        folder.mkdir(parents=True, exist_ok=True)
        _agree(folder / "plan.json", plan)
        self.table = Crosstable()
        self.played: set[tuple[str, str, int]] = set()
        """(first, second, number) of each pair."""
        self.forfeits: Counter[tuple[str, str]] = Counter()
        """How often (player, reason)."""
        self._write_game = write_game
        self._lines = _open_cut(folder / "pairs.jsonl")
        pgn_bytes = 0
        for line in self._lines:
            entry = json.loads(line)
            self._count(entry)
            pgn_bytes = entry["pgn_bytes"]
        self._pgn = (folder / "games.pgn").open("a+", encoding="utf-8", newline="\n")
        self._pgn.truncate(pgn_bytes)

    def add(self, pair: PairRecord) -> None:
        """Keep a finished pair: first its games, then its line."""
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
        """Close the files."""
        self._lines.close()
        self._pgn.close()

    def _count(self, entry: Mapping[str, Any]) -> None:
        self.table.add(entry["first"], entry["second"], *entry["points"])
        self.played.add((entry["first"], entry["second"], entry["number"]))
        self.forfeits.update((player, reason) for player, reason in entry["forfeits"])


def _agree(path: Path, plan: Mapping[str, Any]) -> None:
    """Write the plan, or compare it with the one that is there; players may join later, the rest must be equal."""
    if path.exists():
        before = json.loads(path.read_text(encoding="utf-8"))
        players = {**before["players"], **plan["players"]}
        changed = [key for key in plan if key != "players" and before.get(key) != plan[key]]
        changed += [name for name, facts in before["players"].items() if facts != players[name]]
        if changed:
            raise UserError(
                f"the ladder in {path.parent}",
                f"it was begun with other settings: {', '.join(changed)} (see {path.name})",
                "use those, or another folder",
            )
        plan = {**plan, "players": players}
    write_json(path, plan)


def _open_cut(path: Path) -> TextIO:
    """A file of lines, at its start, without a last line that a crash left unfinished."""
    path.touch()
    whole = path.read_bytes()
    stream = path.open("r+", encoding="utf-8", newline="\n")
    stream.truncate(whole.rfind(b"\n") + 1)
    return stream


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write strict JSON; a reader sees the old file or the new one."""
    beside = path.with_suffix(".tmp")
    beside.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    beside.replace(path)
