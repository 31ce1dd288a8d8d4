"""Pairs of games played by several threads at once: each opening twice, with colours changed.

The pairs come out in the order in which they were asked for, whatever the number of threads: what is decided on their
way (a sequential test) does not depend on it, nor do the games themselves, whose seeds are those of their pair.
UCI programs are processes of their own and our players' kernels run without the GIL, so threads are enough.
"""

from __future__ import annotations

import hashlib
import itertools
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ranks.chess.match.game import MAX_PLIES, SIDES, Abandoned, Conditions, GameRecord, Seat, forfeit_reason, play_game
from ranks.chess.match.openings import Opening
from ranks.chess.players.player import Forfeit, Player

PATIENCE_S = 5.0
"""How long a stopped match waits for the moves that are being thought about."""


@dataclass(frozen=True)
class Entrant:
    """Someone who takes part; every thread opens a player of its own."""

    name: str
    open: Callable[[], Player]
    facts: Mapping[str, str] = field(default_factory=dict[str, str])
    """What it is: its word, the program that plays it, and a hash of that."""


@dataclass(frozen=True)
class PairTask:
    """Two games to be played, `first` with white in the one and black in the other."""

    first: Entrant
    second: Entrant
    opening: Opening
    number: int
    """Among the pairs of these two, from 0."""

    @property
    def key(self) -> tuple[str, str, int]:
        """What tells it from all others of a pool."""
        return self.first.name, self.second.name, self.number


@dataclass(frozen=True)
class PairRecord:
    """Two finished games."""

    task: PairTask
    with_white: GameRecord
    """The game in which the first player had white."""
    with_black: GameRecord


def pair_tasks(meetings: Sequence[tuple[Entrant, Entrant, int]], openings: Iterable[Opening]) -> Iterator[PairTask]:
    """The pairs of (first, second, how many): number 0 of every meeting, then number 1, ...

    Number n is played on the n-th opening, from the front again where there are fewer.
    """
    most = max((pairs for _, _, pairs in meetings), default=0)
    for number, opening in zip(range(most), itertools.cycle(openings), strict=False):
        for first, second, pairs in meetings:
            if number < pairs:
                yield PairTask(first, second, opening, number)


def play_pairs(
    tasks: Iterable[PairTask],
    conditions: Conditions,
    seed: int,
    concurrency: int,
    on_game: Callable[[GameRecord], None],
    max_plies: int = MAX_PLIES,
) -> Generator[PairRecord]:
    """Play all tasks in `concurrency` threads. `on_game` is called as each game ends, from one thread at a time.

    Closing the iterator stops the match: games in progress are abandoned, and every thread closes its players.
    """
    crew = _Crew(iter(tasks), conditions, seed, on_game, max_plies)
    threads = [threading.Thread(target=crew.work, daemon=True) for _ in range(concurrency)]
    for thread in threads:
        thread.start()
    try:
        for number in range(1 << 62):
            record = crew.wait_for(number)
            if record is None:
                return
            yield record
    finally:
        crew.stop()
        for thread in threads:
            thread.join(PATIENCE_S)


def game_seed(seed: int, task: PairTask, game: int) -> int:
    """The seed of one game of a pair: of this pairing and number alone, 32 bits."""
    key = f"game {seed} {task.first.name} {task.second.name} {task.number} {game}"
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "little")


class _Crew:
    """The state that the threads of one match share; everything is guarded by `_changed`."""

    def __init__(
        self,
        tasks: Iterator[PairTask],
        conditions: Conditions,
        seed: int,
        on_game: Callable[[GameRecord], None],
        max_plies: int,
    ) -> None:
        self._tasks, self._conditions, self._seed = tasks, conditions, seed
        self._on_game, self._max_plies = on_game, max_plies
        self._changed = threading.Condition()
        self._records: dict[int, PairRecord] = {}
        self._taken = 0
        self._exhausted = False
        self._stopping = False
        self._fault: BaseException | None = None

    def wait_for(self, number: int) -> PairRecord | None:
        """The record of the task with this number, once it is there; None where there is no such task."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._fault or number in self._records or (self._exhausted and number >= self._taken)
            )
            if self._fault:
                raise self._fault
            return self._records.pop(number, None)

    def stop(self) -> None:
        """Abandon all games; each thread then closes its players."""
        with self._changed:
            self._stopping = True

    def work(self) -> None:
        """What each thread does: take a task, play it, hand the record in."""
        seats: dict[str, Seat] = {}
        try:
            while (taken := self._take()) is not None:
                number, task = taken
                games = [self._game(task, game, seats) for game in (0, 1)]
                with self._changed:
                    self._records[number] = PairRecord(task, games[0], games[1])
                    self._changed.notify_all()
        except Abandoned:
            pass
        except BaseException as fault:
            with self._changed:
                self._fault = None if self._stopping else fault
                self._changed.notify_all()
        finally:
            for seat in seats.values():
                seat.player.close()

    def _take(self) -> tuple[int, PairTask] | None:
        with self._changed:
            task = None if self._stopping else next(self._tasks, None)
            if task is None:
                self._exhausted = True
                self._changed.notify_all()
                return None
            self._taken += 1
            return self._taken - 1, task

    def _game(self, task: PairTask, game: int, seats: dict[str, Seat]) -> GameRecord:
        round_name = f"{task.number + 1}.{game + 1}"
        colours = (task.first, task.second) if game == 0 else (task.second, task.first)
        try:
            white, black = (self._seat(entrant, seats) for entrant in colours)
        except Forfeit as fault:
            side = 0 if colours[0].name not in seats else 1
            names = (colours[0].name, colours[1].name)
            reason = f"{SIDES[side]} {forfeit_reason(fault)}"
            record = GameRecord(
                *names, round_name, task.opening, [], "0-1" if side == 0 else "1-0", reason, forfeited=True
            )
        else:
            seed = game_seed(self._seed, task, game)
            record = play_game(
                white, black, task.opening, self._conditions, seed, round_name, lambda: self._stopping, self._max_plies
            )
        with self._changed:
            if self._stopping:
                raise Abandoned
            self._on_game(record)
        return record

    def _seat(self, entrant: Entrant, seats: dict[str, Seat]) -> Seat:
        """The entrant's player of this thread, opened where there is none yet."""
        if entrant.name not in seats:
            seats[entrant.name] = Seat(entrant.name, entrant.open())
        return seats[entrant.name]
