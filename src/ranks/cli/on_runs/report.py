"""`ranks report RUN`: one page about a run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ranks.cli.flags.parse import Positional, parse
from ranks.cli.on_runs.price import check_price
from ranks.engine.files.jsonl import iter_rows, number
from ranks.engine.runs.find_run import find_folder
from ranks.engine.runs.folder import EVENTS_FILE, METRICS_FILE, SESSIONS_FILE, TELEMETRY_FILE
from ranks.errors import UserError
from ranks.watch.run_facts import RowSums, RunFacts

PAGE = "report.html"


@dataclass(frozen=True)
class ReportFlags:
    """Write one HTML page about a run, also while it trains: curves, time, cost, scaling, forecast and fact, starts and
    faults, settings."""

    run: Positional[str]
    """Its name, or the path of its folder."""
    out: Path | None = None
    """The folder of the page and its pictures; by default report/ in the folder of the run."""
    price: float | None = None
    """What the machine costs an hour; by default what `ranks train --price` said of each session."""
    scale: Path | None = None
    """The file of `ranks scale WORKLOAD --out DIR`, or DIR, to show how the speed grows with the number of ranks; by
    default scale.json in the folder of the run, if it is there."""
    runs_dir: Path = Path("runs")
    """The folder of the run folders."""


def report(argv: Sequence[str]) -> int:
    """Read the run's files, draw the pictures and write the page."""
    flags = parse(ReportFlags, argv, prog="ranks report")
    asked = f"ranks report {flags.run}"
    check_price(flags.price)
    folder = find_folder(flags.run, flags.runs_dir, asked)
    rows = [row for row in iter_rows(folder / METRICS_FILE) if number(row, "iteration") is not None]
    sessions = list(iter_rows(folder / SESSIONS_FILE))
    facts = RunFacts.read(folder, RowSums.of(rows), list(iter_rows(folder / EVENTS_FILE)), sessions)
    if not rows:
        raise UserError(asked, f"{folder} has no metrics yet", "wait until the first iteration has ended")
    try:
        from ranks.cli.on_runs.scaling_of_run import scaling_of
        from ranks.watch.report.by_rank import draw_by_rank
        from ranks.watch.report.curves import draw
    except ModuleNotFoundError as missing:
        if missing.name != "matplotlib":
            raise
        raise UserError(asked, "the package matplotlib is not installed", "pip install 'ranks[report]'") from missing
    from ranks.cli.forecasting.table import fact_rows
    from ranks.hardware.forecast.ledger import ForecastLedger
    from ranks.watch.report.page import image, page, preformatted, table

    scaling = scaling_of(str(facts.settings["workload"]), flags.scale, folder)
    forecasts = list(ForecastLedger(folder.parent).compare([folder]))
    place = flags.out or folder / "report"
    try:
        place.mkdir(parents=True, exist_ok=True)
        pictures = [*draw(rows, place), *draw_by_rank(list(iter_rows(folder / TELEMETRY_FILE)), place)]
        written = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
        more = [(f"Forecast and fact, ranks: {c.num_ranks}", [*table(fact_rows(c))]) for c in forecasts]
        if scaling is not None:
            more.append(("Scaling", [*preformatted(scaling.text()), *image("Scaling", scaling.draw(place))]))
        (place / PAGE).write_text(page(facts, flags.price, time.time(), written, pictures, more), encoding="utf-8")
    except OSError as error:
        found = f"{place}: {error.strerror or error}"
        raise UserError(asked, found, "give a writable folder with --out") from error
    print(f"written: {place / PAGE}, and its pictures")
    return 0
