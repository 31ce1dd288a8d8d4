"""A ladder: a round robin of a pool, one fit of all ratings, kept in a folder and continued where it was stopped."""

from __future__ import annotations

import contextlib
import itertools
import os
import platform
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, TextIO

from ranks import __version__
from ranks.chess.match.game import MAX_PLIES, Conditions, GameRecord
from ranks.chess.match.ladder_files import Journal, write_json
from ranks.chess.match.ladder_plot import plot_ladder
from ranks.chess.match.match import forfeit_lines
from ranks.chess.match.openings import Opening
from ranks.chess.match.progress import Progress
from ranks.chess.match.schedule import Entrant, PairTask, play_pairs
from ranks.chess.match.standings import Standings, rate, standings_lines
from ranks.errors import UserError

Pairing = tuple[str, str]


@dataclass(frozen=True)
class LadderPlan:
    """What is played."""

    entrants: list[Entrant]
    openings: Iterable[Opening]
    openings_name: str
    conditions: Conditions
    games_per_pair: int
    """Of each two players; even, as games are played in pairs."""
    anchors: Mapping[str, float] = field(default_factory=dict[str, float])
    """Elo that is given, by player; without any the mean of the pool is 0."""
    until_separated: int | None = None
    """Neighbours that are not separated play on, up to this many games with each other."""
    seed: int = 0
    concurrency: int = 1
    max_plies: int = MAX_PLIES

    def __post_init__(self) -> None:
        names = [entrant.name for entrant in self.entrants]
        asked = f"a ladder of {', '.join(names) or 'nobody'}"
        if len(names) < 2:
            raise UserError(asked, "fewer than two players", "name two or more with --player")
        if len(set(names)) < len(names):
            raise UserError(asked, "two players of one name", "name each once")
        for flag, games in (("--games-per-pair", self.games_per_pair), ("--until-separated", self.until_separated)):
            if games is not None and (games < 2 or games % 2):
                raise UserError(f"{flag} {games}", "games are played in pairs", f"give {flag} an even number from 2 on")
        if self.concurrency < 1:
            raise UserError(f"--concurrency {self.concurrency}", "nobody to play the games", "give 1 or more")
        strange = sorted(set(self.anchors) - set(names))
        if strange:
            raise UserError(f"anchors {', '.join(strange)}", f"players: {', '.join(names)}", "anchor one of them")

    @property
    def identity(self) -> dict[str, Any]:
        """What must stay equal where a ladder is continued: everything that its games depend on."""
        return {
            "conditions": str(self.conditions),
            "openings": self.openings_name,
            "seed": self.seed,
            "max_plies": self.max_plies,
            "players": {entrant.name: dict(entrant.facts) for entrant in self.entrants},
        }


def play_ladder(
    plan: LadderPlan, folder: Path, command: str, write_game: Callable[[TextIO, GameRecord], None]
) -> Standings:
    """Play what is missing in `folder`, rate, write ladder.json and ladder.png, and print the table.

    Ctrl-C does so for the pairs so far and goes on as KeyboardInterrupt. Raises UserError where the games give no
    ratings.
    """
    journal = Journal(folder, plan.identity, write_game)
    try:
        _play(plan, journal)
    except BaseException:
        with contextlib.suppress(UserError):  # too few games yet
            _report(plan, journal, folder, command)
        raise
    finally:
        journal.close()
    return _report(plan, journal, folder, command)


def _report(plan: LadderPlan, journal: Journal, folder: Path, command: str) -> Standings:
    """Rate the pairs so far, and leave and print what came out."""
    standings = rate(journal.table, plan.anchors)
    write_json(folder / "ladder.json", _content(plan, journal, standings, command))
    plot_ladder(standings, f"{plan.conditions}, {len(journal.played) * 2} games", folder / "ladder.png")
    for line in [*standings_lines(standings), *forfeit_lines(journal.forfeits)]:
        print(line, flush=True)
    return standings


def _play(plan: LadderPlan, journal: Journal) -> None:
    """Every pairing plays its games; then, if asked, neighbours double theirs until they are separated."""
    names = sorted(entrant.name for entrant in plan.entrants)
    wanted: Counter[Pairing] = Counter({pair: plan.games_per_pair // 2 for pair in itertools.combinations(names, 2)})
    while True:
        _play_missing(plan, journal, wanted)
        if plan.until_separated is None:
            return
        close = [min((a, b), (b, a)) for a, b in rate(journal.table, plan.anchors).unseparated]
        more = {pair: min(2 * wanted[pair], plan.until_separated // 2) for pair in close if pair in wanted}
        if all(wanted[pair] >= pairs for pair, pairs in more.items()):
            return
        wanted.update({pair: pairs - wanted[pair] for pair, pairs in more.items()})
        print(f"not separated: {', '.join(' and '.join(pair) for pair in more)}: they play on", flush=True)


def _play_missing(plan: LadderPlan, journal: Journal, wanted: Mapping[Pairing, int]) -> None:
    """Play the pairs that are wanted and not in the journal, pairing by pairing in turns."""
    tasks = [task for task in _tasks(plan, wanted) if _key(task) not in journal.played]
    if not tasks:
        return
    with Progress(len(tasks), "pairs") as progress:
        pairs = play_pairs(tasks, plan.conditions, plan.seed, plan.concurrency, lambda game: None, plan.max_plies)
        try:
            for pair in pairs:
                journal.add(pair)
                progress.advance()
                first, second = pair.task.first.name, pair.task.second.name
                progress.line(
                    f"{first} vs {second} {pair.task.number}: {pair.with_white.result} {pair.with_black.result}"
                )
        finally:
            pairs.close()


def _tasks(plan: LadderPlan, wanted: Mapping[Pairing, int]) -> Iterator[PairTask]:
    """All wanted pairs: number 0 of every pairing, then number 1, ...; number n has the n-th opening."""
    by_name = {entrant.name: entrant for entrant in plan.entrants}
    openings = itertools.cycle(plan.openings)
    for number, opening in zip(range(max(wanted.values())), openings, strict=False):
        for (first, second), pairs in wanted.items():
            if number < pairs:
                yield PairTask(by_name[first], by_name[second], opening, number)


def _key(task: PairTask) -> tuple[str, str, int]:
    return task.first.name, task.second.name, task.number


def _content(plan: LadderPlan, journal: Journal, standings: Standings, command: str) -> dict[str, Any]:
    """ladder.json: the ratings, the raw results, and what they were made with."""
    ratings, table = standings.ratings, journal.table
    return {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": command,
        "versions": {"ranks": __version__, "python": platform.python_version(), "numpy": version("numpy")}
        | {"numba": version("numba")},
        "hardware": {"platform": platform.platform(), "processor": _processor(), "cores": os.cpu_count()},
        "plan": plan.identity,
        "games": 2 * len(journal.played),
        "scale": ratings.scale,
        "anchors": dict(plan.anchors),
        "prior_games": ratings.prior_games,
        "first_move_elo": list(ratings.first_move),
        "draws_between_equals": list(ratings.draw_share),
        "standings": [row._asdict() | {"separated": row.separated} for row in standings.rows],
        "forfeits": [[player, reason, times] for (player, reason), times in sorted(journal.forfeits.items())],
        "pairings": [
            {
                "first": first,
                "second": second,
                "pairs_by_points_with_white_and_black": pairs_33.tolist(),
                "pentanomial": table.pentanomial(first, second),
                **table.games(first, second)._asdict(),
            }
            for (first, second), pairs_33 in table.pairings.items()
        ],
    }


def _processor() -> str:
    """The processor's name, where the system tells it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
