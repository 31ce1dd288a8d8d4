"""`ranks stock-trading walk-forward`: train on the past, trade the years after it, go on, with several seeds."""

from __future__ import annotations

import csv
import hashlib
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ranks.engine.runs import provenance
from ranks.errors import UserError, nearest
from ranks.workloads.stock_trading.config import PRESETS, Config
from ranks.workloads.stock_trading.data.prices import Prices
from ranks.workloads.stock_trading.loading import load, prices_of
from ranks.workloads.stock_trading.market.ledger import Ledger
from ranks.workloads.stock_trading.market.market import Market
from ranks.workloads.stock_trading.one_account import backtest, measures
from ranks.workloads.stock_trading.reports.backtest import INDEX, NOT_ADVICE, RULES, index_ledger
from ranks.workloads.stock_trading.reports.books import MEASURED, say_notes, told
from ranks.workloads.stock_trading.reports.folds import Fold, Part, courses, folds_of, verdict
from ranks.workloads.stock_trading.reports.saved import load_run
from ranks.workloads.stock_trading.reports.tear_sheet import blank, draw_walk_forward
from ranks.workloads.stock_trading.trainings import Training, train_all

EDGES = "all folds, one after the other: a policy sells all at a fold's end, costs included; the others go through"
INTERVALS = "Intervals are of the mean over seeds (Student's t): they tell the luck of training, not of the market."


def walk_forward(
    *,
    folds: int = 5,
    seeds: int = 5,
    preset: str = "small",
    iterations: int | None = None,
    data: str | None = None,
    from_: str | None = None,
    to: str | None = None,
    out: Path | None = None,
    workers: int | None = None,
    runs_dir: Path = Path("runs"),
) -> int:
    """Train on all days up to a year, trade the years after it, go on: several folds and seeds, costs included.

    Args:
        folds: Tests that follow each other, over the later half of the days.
        seeds: Trainings of each fold, with the seeds 0, 1, ...
        preset: Settings of every training: full, small, demo or paper.
        iterations: Rollouts of each training, in place of the preset's.
        data: Other prices than those that ship with the package: a CSV file.
        from_: First day; without it 1993-01-04, of other prices the first that has all its features.
        to: Last day.
        out: Folder for walk_forward.json, equity.csv and walk_forward.png; without it, one beside the runs.
        workers: Trainings at a time, each with one thread; without it, as many as there are cores.
        runs_dir: Where run folders stand; those of one walk forward share a folder there, and go on if called again.

    Nothing is chosen by what a test shows: there is no validation, and each training's last weights trade. Returns 0.
    """
    for flag, value in (("--folds", folds), ("--seeds", seeds), ("--workers", 1 if workers is None else workers)):
        if value < 1:
            raise UserError(f"{flag} {value}", "a walk forward needs at least one", f"give {flag} 1 or more")
    cfg = _config(preset, iterations, data)
    prices = prices_of(cfg.data)
    parts = folds_of(cfg, prices, folds, from_, to)
    Market(load(parts[0].cfg).train, range(1), 0, cfg.market)  # refuses a period that is too short for an episode
    home = runs_dir / f"walk-forward-{preset}-{_digest(parts)}"
    folder = out or home / "report"
    _begin(folder)
    say_notes(prices)
    beside = [_beside(fold.cfg, fold.test, prices) for fold in parts]
    through = _beside(parts[0].cfg, range(parts[0].test.start, parts[-1].test.stop), prices)
    first, last = parts[0].cfg.data.test_from, parts[-1].cfg.data.test_to
    title = f"Test period {first} to {last} ({prices.source}), {folds} folds. {NOT_ADVICE}"
    print(f"{title}\n{folds * seeds} trainings ({preset}) in {home}/", flush=True)
    traded = _train_and_trade(parts, range(seeds), home, workers)
    market = cfg.market
    of_fold = [
        Part(courses([mine], market), courses([others], market)) for mine, others in zip(traded, beside, strict=True)
    ]
    whole = Part(courses(traded, market), courses([through], market))
    for fold, part in zip(parts, of_fold, strict=True):
        print("\n".join(["", f"fold {fold.number}: {fold.days}", *part.lines()]))
    says = verdict(whole, of_fold)
    print("\n".join(["", EDGES, *whole.lines(), "", INTERVALS, says]))
    found = {
        "title": title,
        **_origin(),
        "preset": preset,
        "config": asdict(cfg),
        "prices": {"source": prices.source, "sha256": prices.sha256},
        "runs": str(home),
        "folds": [{**_dates(fold), **part.facts()} for fold, part in zip(parts, of_fold, strict=True)],
        "all_folds": whole.facts(),
        "rules": MEASURED | {"over_seeds": INTERVALS, "all_folds": EDGES},
        "verdict": says,
    }
    (folder / "walk_forward.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    _write_equity(folder / "equity.csv", whole)
    edges_E = np.array([fold.cfg.data.test_from for fold in parts[1:]], "datetime64[D]")
    value_RT = np.stack([course.value_T for course in whole.policy.values()])
    others = {name: course.value_T for name, course in whole.beside.items()}
    dates_T = next(iter(whole.policy.values())).dates_T
    draw_walk_forward(folder / "walk_forward.png", title, dates_T, value_RT, others, edges_E)
    print(f"written: {folder}/ (walk_forward.json, equity.csv, walk_forward.png)")
    return 0


def _config(preset: str, iterations: int | None, data: str | None) -> Config:
    if preset not in PRESETS:
        listed = f"stock-trading has {', '.join(PRESETS)}"
        raise UserError(f"--preset {preset}", "no such preset", nearest(preset, list(PRESETS), listed))
    cfg = PRESETS[preset]()
    cfg = cfg if iterations is None else replace(cfg, iterations=iterations)
    return cfg if data is None else replace(cfg, data=replace(cfg.data, source=data))


def _beside(cfg: Config, test: range, prices: Prices) -> dict[str, Ledger]:
    """What a policy has to beat, through a test; the index where its days are known."""
    ledgers = {name: rule(prices, test, cfg.market) for name, rule in RULES.items()}
    index = index_ledger(cfg, test, prices)
    return ledgers if index is None else ledgers | {INDEX: index}


def _digest(folds: Sequence[Fold]) -> str:
    """Of all settings, dates included: another walk forward has other runs."""
    return hashlib.sha256(json.dumps([asdict(fold.cfg) for fold in folds]).encode()).hexdigest()[:8]


def _begin(folder: Path) -> None:
    """What could stop the report is told before anything is trained. Raises UserError."""
    blank(folder / "walk_forward.png", "", (1, 1))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "equity.csv").touch()
    except OSError as error:
        do = "give a folder that can be written"
        raise UserError(f"--out {folder}", error.strerror or str(error), do) from None


def _train_and_trade(folds: Sequence[Fold], seeds: range, home: Path, workers: int | None) -> list[dict[int, Ledger]]:
    """The books of each fold's test, by seed. A line for each training that is done, and a bar on a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    tests = [load(fold.cfg).test for fold in folds]
    trainings = {f"fold{fold.number}-seed{seed}": (fold, seed) for fold in folds for seed in seeds}
    ledgers: list[dict[int, Ledger]] = [{} for _ in folds]
    columns = BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn("trainings"), TimeRemainingColumn()
    with Progress(*columns, refresh_per_second=1, disable=not sys.stdout.isatty()) as bar:
        task = bar.add_task("", total=len(trainings))
        todo = [Training(name, fold.cfg, seed) for name, (fold, seed) in trainings.items()]
        for done, one in enumerate(train_all(todo, home, workers), start=1):
            fold, seed = trainings[one.name]
            policy = load_run(one.name, home).policy
            ledger = backtest(policy, tests[fold.number - 1], fold.cfg, torch.device("cpu"))
            ledgers[fold.number - 1][seed] = ledger
            found = {name: told(name, value) for name, value in measures(ledger).items()}
            text = f"fold {fold.number}, seed {seed}: return {found['return']}, Sharpe ratio {found['sharpe']}"
            bar.console.print(f"{text} ({done}/{len(todo)})", markup=False, highlight=False, soft_wrap=True)
            bar.advance(task)
    return [{seed: of_fold[seed] for seed in seeds} for of_fold in ledgers]


def _dates(fold: Fold) -> dict[str, Any]:
    d = fold.cfg.data
    return {"train": [d.train_from, d.train_to], "test": [d.test_from, d.test_to], "test_days": len(fold.test)}


def _origin() -> dict[str, Any]:
    return {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": " ".join(["ranks", *sys.argv[1:]]),
        "commit": provenance.git_commit(),
        "versions": provenance.versions(),
        "hardware": provenance.hardware(torch.device("cpu")),
    }


def _write_equity(path: Path, whole: Part) -> None:
    """All accounts side by side, through all folds, as shares of what they began with."""
    every = {f"policy, seed {seed}": course for seed, course in whole.policy.items()} | dict(whole.beside)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["date", *every])
        dates_T = next(iter(every.values())).dates_T
        for date, *values in zip(dates_T, *(course.value_T for course in every.values()), strict=True):
            writer.writerow([date, *(f"{value:.6f}" for value in values)])
