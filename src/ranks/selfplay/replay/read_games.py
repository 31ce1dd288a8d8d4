"""Reads the games of a run from the parts of its replay window that are on disk, also while the run trains."""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Callable, Iterator

from ranks.engine.files.regular import DamagedFile
from ranks.engine.runs.folder import RunFolder
from ranks.engine.runs.kept.kept_file import KeptFile
from ranks.engine.runs.kept.kept_folder import KeptFolder
from ranks.errors import UserError
from ranks.selfplay.replay.game_moves import FOLDER, GameMoves, PlayedGame


class WindowGames:
    """The games of a run whose parts are on disk: those of the replay window, and of older parts that are not deleted
    yet."""

    def __init__(self, run: RunFolder, on_skipped: Callable[[str], None]) -> None:
        """`on_skipped` is called with what is wrong with each part that cannot be read.

        Raises UserError where there is no part."""
        self._run, self._kept, self._on_skipped = run, KeptFolder(run.kept), on_skipped
        self._parts: dict[int, KeptFile] = {f.iteration + 1: f for f in self._kept.listing(FOLDER)}
        if not self._parts:
            found = f"{run.kept / FOLDER} holds no games"
            do = "name a run of self-play; it has games when its first iteration has ended, unless they were deleted"
            raise UserError(f"the games of {run.path}", found, do)

    @property
    def iterations(self) -> list[int]:
        """Those that have a part, counted from 1."""
        return list(self._parts)

    def of(self, iteration: int) -> Iterator[PlayedGame]:
        """The games that ended in an iteration, by id. Nothing but a report where its part cannot be read, or was
        deleted by the run meanwhile. Raises UserError where the run has no such part."""
        if iteration not in self._parts:
            first, last = self.iterations[0], self.iterations[-1]
            found = f"{self._run.kept / FOLDER} has no part of it, but of others from {first} to {last}"
            raise UserError(f"the games of iteration {iteration}", found, "name one of those")
        return self._read(self._parts[iteration])

    def _read(self, file: KeptFile) -> Iterator[PlayedGame]:
        path = self._run.kept / file.path
        try:
            self._kept.verify(file)
            arrays = self._kept.open(file)
        except DamagedFile as damage:
            if os.path.lexists(path):
                self._on_skipped(f"a damaged part: {damage}")
            return
        games = GameMoves.opened(arrays)
        if games is None:
            self._on_skipped(f"{path}: an older version of ranks wrote it, without the moves of whole games")
            return
        yield from games.games(file.iteration, arrays["value_P"])

    def select(self, iteration: int | None = None, last: int | None = None) -> Iterator[PlayedGame]:
        """The games of one iteration, or of all from the oldest on; of these the last `last` (1 or more). Raises
        UserError where the run has no part of the iteration."""
        if iteration is not None:
            found = self.of(iteration)
        elif last is None:
            found = itertools.chain.from_iterable(map(self.of, self.iterations))
        else:
            found = iter(self._newest(last))
        return found if last is None else iter(deque(found, last))

    def _newest(self, count: int) -> list[PlayedGame]:
        """The games of as many of the newest parts as have `count` games."""
        games: list[PlayedGame] = []
        for iteration in reversed(self.iterations):
            games = [*self.of(iteration), *games]
            if len(games) >= count:
                break
        return games
