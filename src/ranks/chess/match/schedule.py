"""Pairs of games, played by several threads: each opening twice, with colours reversed.

The pairs are returned in the order of their tasks, whatever the number of threads. The seed of a
game depends only on its pair. So neither the games nor a sequential test depend on the number of
threads. Threads are enough for concurrency, because UCI engines are separate processes and our
players' kernels release the GIL.
"""

from __future__ import annotations

import hashlib
import itertools
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ranks.chess.match import MAX_PLIES
from ranks.chess.match.game import COLOURS, Abandoned, Conditions, GameRecord, Side, forfeit_reason, play_game
from ranks.chess.match.openings import Opening
from ranks.chess.players.player import Forfeit, Player

STOP_TIMEOUT_S = 5.0
"""How long a stopped match waits for running searches to end."""


@dataclass(frozen=True)
class Participant:
    """A participant of a match or ladder. Every thread opens its own player."""

    name: str
    open: Callable[[], Player]
    identity: Mapping[str, str] = field(default_factory=dict[str, str])
    """What plays: its spec, the program, and a hash of the program."""


@dataclass(frozen=True)
class PairTask:
    """A pair of games to be played: `first` has white in one and black in the other."""

    first: Participant
    second: Participant
    opening: Opening
    number: int
    """The index of the pair among the pairs of these two, from 0."""

    @property
    def key(self) -> tuple[str, str, int]:
        """A key that is unique in a pool."""
        return self.first.name, self.second.name, self.number


@dataclass(frozen=True)
class PairRecord:
    """A finished pair of games."""

    task: PairTask
    with_white: GameRecord
    """The game in which the first player had white."""
    with_black: GameRecord


def pair_tasks(
    encounters: Sequence[tuple[Participant, Participant, int]], openings: Iterable[Opening]
) -> Iterator[PairTask]:
    """Tasks of encounters (first, second, number of pairs): pair 0 of each, then pair 1, ...

    Pair n uses the n-th opening. If there are fewer openings, they are used again from the first.
    """
    most = max((pairs for _, _, pairs in encounters), default=0)
    for number, opening in zip(range(most), itertools.cycle(openings), strict=False):
        for first, second, pairs in encounters:
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
    """Play all tasks in `concurrency` threads.

    `on_game` is called after each game, by one thread at a time.

    Closing the iterator stops the match: running games are abandoned, and every thread closes its
    players.
    """
    workers = _Workers(iter(tasks), conditions, seed, on_game, max_plies)
    threads = [threading.Thread(target=workers.work, daemon=True) for _ in range(concurrency)]
    for thread in threads:
        thread.start()
    try:
        for number in range(1 << 62):
            record = workers.wait_for(number)
            if record is None:
                return
            yield record
    finally:
        workers.stop()
        for thread in threads:
            thread.join(STOP_TIMEOUT_S)


def game_seed(seed: int, task: PairTask, game: int) -> int:
    """The 32-bit seed of a game: a hash of the match seed, names, pair and game (0 or 1)."""
    key = f"game {seed} {task.first.name} {task.second.name} {task.number} {game}"
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "little")


class _Workers:
    """The state that the threads of one match share, guarded by `_changed`."""

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
        """Wait for the record of the task with this number; None if there are fewer tasks."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._fault or number in self._records or (self._exhausted and number >= self._taken)
            )
            if self._fault:
                raise self._fault
            return self._records.pop(number, None)

    def stop(self) -> None:
        """Abandon all games. Each thread then closes its players."""
        with self._changed:
            self._stopping = True

    def work(self) -> None:
        """The body of each thread: take a task, play it, store the record."""
        sides: dict[str, Side] = {}
        try:
            while (taken := self._take()) is not None:
                number, task = taken
                games = [self._game(task, game, sides) for game in (0, 1)]
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
            for side in sides.values():
                side.player.close()

    def _take(self) -> tuple[int, PairTask] | None:
        with self._changed:
            task = None if self._stopping else next(self._tasks, None)
            if task is None:
                self._exhausted = True
                self._changed.notify_all()
                return None
            self._taken += 1
            return self._taken - 1, task

    def _game(self, task: PairTask, game: int, sides: dict[str, Side]) -> GameRecord:
        round_name = f"{task.number + 1}.{game + 1}"
        colours = (task.first, task.second) if game == 0 else (task.second, task.first)
        try:
            white, black = (self._side(participant, sides) for participant in colours)
        except Forfeit as fault:
            failed = 0 if colours[0].name not in sides else 1
            names = (colours[0].name, colours[1].name)
            reason = f"{COLOURS[failed]} {forfeit_reason(fault)}"
            record = GameRecord(
                *names, round_name, task.opening, [], "0-1" if failed == 0 else "1-0", reason, forfeited=True
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

    def _side(self, participant: Participant, sides: dict[str, Side]) -> Side:
        """The participant's side, with this thread's player; opens the player on first use."""
        if participant.name not in sides:
            sides[participant.name] = Side(participant.name, participant.open())
        return sides[participant.name]
