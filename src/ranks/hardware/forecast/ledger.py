"""Forecasts and facts: each forecast is noted in the folder of the runs, and compared with the runs that follow.

A run belongs to the newest forecast before its start that has its workload, settings, device, number of ranks and
shares. A forecast for another card than that of the profile is noted under the name of the catalogue for that card, so
it belongs to a later run on such a card.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

from ranks.engine.files.jsonl import JsonlFile, iter_rows, number
from ranks.engine.files.regular import DamagedFile
from ranks.engine.runs.folder import EVENTS_FILE, METRICS_FILE, SESSIONS_FILE, RunFolder
from ranks.engine.runs.sessions import newest_state, wall_seconds
from ranks.errors import UserError
from ranks.hardware.catalogue.gpus import find
from ranks.hardware.forecast.job import Forecast, ForecastInterval
from ranks.hardware.forecast.profile import Profile
from ranks.hardware.short_runs.rows import period_s

FILE = "forecasts.jsonl"


@dataclass(frozen=True)
class ForecastAndFact:
    """A run and its forecast."""

    run: str
    num_ranks: int
    forecast_s: ForecastInterval
    """Of an iteration."""
    fact_s: float
    forecast_run_s: ForecastInterval
    fact_run_s: float | None
    """Of the whole run; None while it is not finished, or where it has other iterations than the forecast."""
    guessed: str = ""
    """Where the profile was recorded on another device: the cards of the forecast, and that device."""

    @property
    def error(self) -> float:
        """Of the forecast of an iteration, relative to the fact."""
        return self.forecast_s.middle / self.fact_s - 1

    @property
    def is_within(self) -> bool:
        """Whether the fact lies in the interval."""
        return self.forecast_s.low <= self.fact_s <= self.forecast_s.high

    def as_json(self) -> dict[str, Any]:
        """All numbers."""
        return asdict(self) | {"error": self.error, "is_within": self.is_within}


class ForecastLedger:
    """The file of forecasts in a folder of runs."""

    def __init__(self, runs_dir: Path) -> None:
        self.runs_dir = runs_dir

    def add(self, profile: Profile, forecasts: Sequence[Forecast], cards: Sequence[str] = ()) -> None:
        """Note forecasts. Raises UserError where the folder cannot be written.

        `cards`: those of the ranks by their names in the catalogue, in order, or one name for all ranks. Empty:
        the device of the profile. The threads of a rank on other cards are not known, because they depend on the cores
        of that machine.
        """
        try:
            self.runs_dir.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            found = f"{self.runs_dir}: {error.strerror or error}"
            raise UserError("to note a forecast", found, "name a writable folder with --runs-dir") from error
        file = JsonlFile(self.runs_dir / FILE)
        for forecast in forecasts:
            row = {
                "time": time.time(),
                "workload": Path(profile.workload).stem,
                "settings": profile.settings,
                "iterations": profile.iterations,
                "device": cards[0] if cards else profile.device,
                "threads": None if cards else profile.threads.get(forecast.num_ranks),
                "guessed": f"{'+'.join(dict.fromkeys(cards))}, recorded on {profile.device}" if cards else "",
                "ranks": forecast.num_ranks,
                "shards_per_rank": forecast.shards_per_rank,
                "iteration_s": _numbers(forecast.iteration_s),
                "run_s": _numbers(forecast.run_s),
            }
            file.append(row)
        file.close()

    def compare(self, folders: Sequence[Path]) -> Iterator[ForecastAndFact]:
        """The runs that have a forecast, oldest first."""
        noted = [row for row in iter_rows(self.runs_dir / FILE) if _is_complete(row)]
        for folder in folders:
            fact = Fact.read(folder)
            if fact is None:
                continue
            fitting = [row for row in noted if row["time"] <= fact.started and fact.fits(row)]
            if fitting:
                row = max(fitting, key=lambda row: row["time"])
                same_length = row["iterations"] == fact.iterations
                run_s = fact.wall_s if same_length else None
                forecast_s, forecast_run_s = ForecastInterval(*row["iteration_s"]), ForecastInterval(*row["run_s"])
                measured = fact.num_ranks, forecast_s, fact.iteration_s, forecast_run_s, run_s
                yield ForecastAndFact(folder.name, *measured, str(row.get("guessed", "")))


@dataclass(frozen=True)
class Fact:
    """What a run took."""

    workload: str
    settings: Mapping[str, Any]
    device: str
    """Of the first rank: a run keeps no other."""
    threads: int | None
    num_ranks: int
    shards_per_rank: Sequence[int]
    started: float
    iteration_s: float
    """Mean from the end of one iteration to the end of the next, without evaluations, saves and the first iteration of
    each session."""
    iterations: int
    wall_s: float | None
    """None while it is not finished."""

    @classmethod
    def read(cls, folder: Path) -> Fact | None:
        """None where the run has no iterations, or its files are damaged."""
        try:
            run = RunFolder(folder).read_run()
            identity = run["identity"]
            settings = settings_of(identity["config"], identity["engine"])
            hardware = cast("dict[str, Any]", run["hardware"])
            workload = str(identity["workload"])
        except (DamagedFile, UserError, KeyError, TypeError):
            return None
        sessions = list(iter_rows(folder / SESSIONS_FILE))
        starts = {number(s, "iteration") for s in sessions if s.get("event") in ("opened", "resumed")}
        rows = [row for row in iter_rows(folder / METRICS_FILE) if number(row, "iteration") is not None]
        later = [period_s(before, row) for before, row in pairwise(rows) if row["iteration"] - 1 not in starts]
        plans = [event for event in iter_rows(folder / EVENTS_FILE) if event.get("event") == "plan"]
        ranks = {plan.get("ranks") for plan in plans}
        started = next((at for s in sessions if (at := number(s, "joined") or number(s, "time")) is not None), None)
        if not later or len(ranks) != 1 or started is None:
            return None
        finished = newest_state(reversed(sessions)).get("event") == "finished"
        return cls(
            workload,
            settings,
            str(hardware.get("gpu") or hardware.get("cpu")),
            plans[-1].get("threads"),
            cast(int, ranks.pop()),
            plans[-1].get("shards_per_rank", ()),
            started,
            sum(later) / len(later),
            int(rows[-1]["iteration"]),
            wall_seconds(sessions) if finished else None,
        )

    def fits(self, row: Mapping[str, Any]) -> bool:
        """Whether a forecast is of this run's workload, settings, device, threads, ranks and shares."""
        own = {"workload": self.workload, "settings": self.settings}
        own |= {"ranks": self.num_ranks, "shards_per_rank": self.shards_per_rank}
        card = find(self.device)
        is_on_device = row.get("device") in (self.device, card and card.name)
        has_threads = row.get("threads") in (None, self.threads)
        return is_on_device and has_threads and all(row.get(name) == value for name, value in own.items())


def settings_of(config: Mapping[str, Any], engine: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that a forecast and its run have in common. `config`, `engine`: those parts of a run's identity."""
    kept = ("exact", "shards", "precision", "micro_batch")
    return {"config": dict(config), **{name: engine.get(name) for name in kept}}


def _numbers(interval: ForecastInterval) -> list[float]:
    return [interval.low, interval.middle, interval.high]


def _is_complete(row: Mapping[str, Any]) -> bool:
    """Whether a row of the file has all that a comparison reads."""
    numbers = [row.get("time"), row.get("iterations"), row.get("ranks")]
    for name in ("iteration_s", "run_s"):
        values = row.get(name)
        if not isinstance(values, list) or len(cast("list[Any]", values)) != 3:
            return False
        numbers += cast("list[Any]", values)
    return all(isinstance(value, int | float) for value in numbers) and isinstance(row.get("settings"), dict)
