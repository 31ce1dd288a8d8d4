"""A ladder: a round robin of a pool, rated by one fit, in a folder from which it can be resumed."""

from __future__ import annotations

import contextlib
import itertools
import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, TextIO

from ranks import __version__
from ranks.chess.match import MAX_PLIES
from ranks.chess.match.game import Conditions, GameRecord
from ranks.chess.match.ladder_plot import plot_ladder
from ranks.chess.match.ladder_store import LadderStore, write_json
from ranks.chess.match.match import forfeit_lines
from ranks.chess.match.openings import Opening, repetition_lines
from ranks.chess.match.schedule import Participant, pair_tasks, play_pairs
from ranks.chess.match.standings import Standings, rate, scale_text, standings_lines
from ranks.errors import UserError
from ranks.progress import ProgressBar

Pairing = tuple[str, str]


@dataclass(frozen=True)
class LadderPlan:
    """The settings of a ladder."""

    participants: list[Participant]
    openings: Iterable[Opening]
    openings_name: str
    conditions: Conditions
    games_per_pair: int
    """Games between each two players; an even number, since games are played in pairs."""
    anchors: Mapping[str, float] = field(default_factory=dict[str, float])
    """The fixed Elo of some players. Without anchors the mean of the pool is 0."""
    until_separated: int | None = None
    """Neighbours in the table that are not separated play more, up to this many games with each
    other."""
    seed: int = 0
    concurrency: int = 1
    max_plies: int = MAX_PLIES

    def __post_init__(self) -> None:
        names = [participant.name for participant in self.participants]
        asked = f"a ladder of {', '.join(names) or 'no players'}"
        if len(names) < 2:
            raise UserError(asked, "fewer than two players", "name two or more with --player")
        if len(set(names)) < len(names):
            raise UserError(asked, "two players of the same name", "name each player once")
        for flag, games in (("--games-per-pair", self.games_per_pair), ("--until-separated", self.until_separated)):
            if games is not None and (games < 2 or games % 2):
                raise UserError(f"{flag} {games}", "games are played in pairs", f"give {flag} an even number from 2 on")
        if self.max_plies < 1:
            raise UserError(f"--max-plies {self.max_plies}", "no game is that short", "give 1 or more")
        if self.concurrency < 1:
            raise UserError(f"--concurrency {self.concurrency}", "no thread would play the games", "give 1 or more")
        unknown = sorted(set(self.anchors) - set(names))
        if unknown:
            raise UserError(f"anchors {', '.join(unknown)}", f"players: {', '.join(names)}", "anchor one of them")

    @property
    def identity(self) -> dict[str, Any]:
        """All that the games depend on. It must be the same when a ladder is resumed."""
        return {
            "conditions": str(self.conditions),
            "time_margin_s": self.conditions.time_margin_s if self.conditions.timed else None,
            "concurrency": self.concurrency if self.conditions.timed else None,
            "openings": self.openings_name,
            "seed": self.seed,
            "max_plies": self.max_plies,
            "players": {participant.name: dict(participant.identity) for participant in self.participants},
        }

    @property
    def looks(self) -> list[int]:
        """Pairs of games after which the ratings are checked: doubled each time, up to the
        limit."""
        pairs = [self.games_per_pair // 2]
        while self.until_separated and pairs[-1] < self.until_separated // 2:
            pairs.append(min(2 * pairs[-1], self.until_separated // 2))
        return pairs


def play_ladder(
    plan: LadderPlan, folder: Path, command: str, write_game: Callable[[TextIO, GameRecord], None]
) -> Standings:
    """Play the games missing in `folder`, rate, write ladder.json and ladder.png, print the table.

    After Ctrl-C the pairs so far are rated, and KeyboardInterrupt is raised again. Raises UserError
    if the games cannot be rated.
    """
    with contextlib.closing(LadderStore(folder, plan.identity, len(plan.looks), write_game)) as store:
        try:
            _play(plan, store)
        except BaseException:
            with contextlib.suppress(UserError):  # too few games yet
                _report(plan, store, folder, command)
            raise
        return _report(plan, store, folder, command)


def _report(plan: LadderPlan, store: LadderStore, folder: Path, command: str) -> Standings:
    """Rate the pairs so far; write and print the ratings."""
    standings = rate(store.table, plan.anchors, store.looks)
    write_json(folder / "ladder.json", _content(plan, store, standings, command))
    title = f"{plan.conditions}: {2 * len(store.played)} games, {time.strftime('%Y-%m-%d', time.gmtime())}"
    plot_ladder(standings, title, folder / "ladder.png")
    for line in [*standings_lines(standings), *forfeit_lines(store.forfeits)]:
        print(line, flush=True)
    return standings


def _play(plan: LadderPlan, store: LadderStore) -> None:
    """Play the games of every pairing, then more games of neighbours that are not separated."""
    names = sorted(participant.name for participant in plan.participants)
    wanted = dict.fromkeys(itertools.combinations(names, 2), plan.looks[0])
    for line in repetition_lines(plan.openings, plan.looks[-1]):
        print(line, flush=True)
    _play_missing(plan, store, wanted)
    for pairs in plan.looks[1:]:
        neighbours = rate(store.table, plan.anchors, store.looks).unseparated
        close = [pairing for a, b in neighbours if (pairing := min((a, b), (b, a))) in wanted]
        if not close:
            return
        print(
            f"not separated: {', '.join(' and '.join(pairing) for pairing in close)}: they play more games", flush=True
        )
        wanted |= dict.fromkeys(close, pairs)
        _play_missing(plan, store, wanted)


def _play_missing(plan: LadderPlan, store: LadderStore, wanted: Mapping[Pairing, int]) -> None:
    """Play the wanted pairs that are not in the store, in turns between the pairings."""
    by_name = {participant.name: participant for participant in plan.participants}
    encounters = [(by_name[first], by_name[second], pairs) for (first, second), pairs in wanted.items()]
    tasks = [task for task in pair_tasks(encounters, plan.openings) if task.key not in store.played]
    if not tasks:
        return
    with ProgressBar(len(tasks), unit="pairs", log_every_s=None) as progress:
        pairs = play_pairs(tasks, plan.conditions, plan.seed, plan.concurrency, lambda game: None, plan.max_plies)
        try:
            for pair in pairs:
                store.add(pair)
                progress.advance()
                first, second = pair.task.first.name, pair.task.second.name
                progress.line(
                    f"{first} vs {second} {pair.task.number}: {pair.with_white.result} {pair.with_black.result}"
                )
        finally:
            pairs.close()


def _content(plan: LadderPlan, store: LadderStore, standings: Standings, command: str) -> dict[str, Any]:
    """The content of ladder.json: ratings, raw results, settings, versions and hardware."""
    ratings, table = standings.ratings, store.table
    return {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": command,
        "versions": {"ranks": __version__, "python": platform.python_version(), "numpy": version("numpy")}
        | {"numba": version("numba")},
        "hardware": {"platform": platform.platform(), "processor": _processor(), "cores": os.cpu_count()},
        "plan": plan.identity,
        "games": 2 * len(store.played),
        "scale": scale_text(ratings),
        "anchors": dict(plan.anchors),
        "prior_games": ratings.prior_games,
        "prior_because": standings.prior_because,
        "looks": standings.looks,
        "above_next_level": standings.level,
        "first_move_elo": list(ratings.first_move),
        "draws_between_equals": list(ratings.draw_share),
        "standings": [row._asdict() for row in standings.rows],
        "forfeits": [[player, reason, times] for (player, reason), times in sorted(store.forfeits.items())],
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
    """The name of the processor, if the system provides it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
