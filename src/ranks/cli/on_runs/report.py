"""`ranks report RUN`: one page about a run."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ranks.cli.flags.parse import Positional, parse
from ranks.engine.runs.find_run import find_folder
from ranks.errors import UserError

PAGE = "report.html"


@dataclass(frozen=True)
class ReportFlags:
    """Write one HTML page about a run: curves, time, starts and faults, settings. Also while it trains."""

    run: Positional[str]
    """Its name, or the path of its folder."""
    out: Path | None = None
    """The folder of the page and its pictures; by default report/ in the folder of the run."""
    price: float | None = None
    """What the machine costs an hour; the page then says what the run has cost."""
    runs_dir: Path = Path("runs")
    """The folder of the run folders."""


def report(argv: Sequence[str]) -> int:
    """Read the run's files, draw the pictures and write the page."""
    flags = parse(ReportFlags, argv, prog="ranks report")
    asked = f"ranks report {flags.run}"
    if flags.price is not None and not 0 < flags.price < math.inf:
        raise UserError(f"--price {flags.price}", "it must be a number above 0", "give --price 2.49, for example")
    folder = find_folder(flags.run, flags.runs_dir, asked)
    from ranks.watch.report.run_facts import RunFacts

    facts = RunFacts.read(folder)
    if not facts.rows:
        raise UserError(asked, f"{folder} has no metrics yet", "wait until the first iteration has ended")
    try:
        from ranks.watch.report.curves import draw_metrics, draw_time
    except ModuleNotFoundError as missing:
        if missing.name != "matplotlib":
            raise
        raise UserError(asked, "the package matplotlib is not installed", "pip install 'ranks[report]'") from missing
    from ranks.watch.report.page import page

    place = flags.out or folder / "report"
    try:
        place.mkdir(parents=True, exist_ok=True)
        pictures = [*draw_metrics(facts, place), *draw_time(facts, place)]
        written = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
        (place / PAGE).write_text(page(facts, flags.price, time.time(), written, pictures), encoding="utf-8")
    except OSError as error:
        found = f"{place}: {error.strerror or error}"
        raise UserError(asked, found, "give a writable folder with --out") from error
    print(f"written: {place / PAGE}, and its pictures")
    return 0
