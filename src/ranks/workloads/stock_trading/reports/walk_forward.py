"""`ranks stock-trading walk-forward`: train on the past and test on the years after it, over several folds and
seeds."""

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

from ranks.errors import UserError, nearest
from ranks.progress import ProgressBar
from ranks.workloads.stock_trading.config import PRESETS, Config
from ranks.workloads.stock_trading.data.market_days import MarketDays
from ranks.workloads.stock_trading.data.periods import load_prices, prepare_periods
from ranks.workloads.stock_trading.data.prices import Prices
from ranks.workloads.stock_trading.market.baselines import BASELINES
from ranks.workloads.stock_trading.market.config import MarketConfig
from ranks.workloads.stock_trading.market.ledger import Ledger
from ranks.workloads.stock_trading.reports.backtest import INDEX, NOT_ADVICE, index_ledger
from ranks.workloads.stock_trading.reports.folds import Comparison, Fold, join_folds, make_folds, verdict
from ranks.workloads.stock_trading.reports.results import DEFINITIONS, format_metric, print_warnings
from ranks.workloads.stock_trading.reports.tear_sheet import draw_walk_forward, empty_figure

ALL_FOLDS = (
    "all folds, one after the other: a policy sells all holdings at the end of a fold, with costs; baselines do not"
)
INTERVALS = (
    "Intervals are of the mean over seeds (Student's t). They show the variation of training, not of the market."
)


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
    """Walk-forward test: train on all days up to a year, test on the years after it, and move on, with several seeds.

    Args:
        folds: Number of consecutive tests, over the later half of the days.
        seeds: Trainings of each fold, with seeds 0, 1, ...
        preset: Config of all trainings: full, small, demo or paper.
        iterations: Rollouts of each training; by default as in the preset.
        data: A CSV file with prices; by default the prices shipped with the package.
        from_: First day; by default 1993-01-04, or the first day with all features of other prices.
        to: Last day.
        out: Output folder of walk_forward.json, equity.csv and walk_forward.png; by default next to the runs.
        workers: Parallel trainings, with one thread each; by default one per core.
        runs_dir: The folder of the runs. The same command finds its runs there again and resumes them.

    There is no validation period: the weights after the last iteration are tested. Returns 0.
    """
    for flag, value in (("--folds", folds), ("--seeds", seeds), ("--workers", 1 if workers is None else workers)):
        if value < 1:
            raise UserError(f"{flag} {value}", "a number below 1", f"give {flag} 1 or more")
    cfg = _config(preset, iterations, data)
    market = cfg.market
    prices = load_prices(cfg.data)
    parts = make_folds(cfg.periods, prices, folds, from_, to)
    jobs = [replace(cfg, data=fold.data) for fold in parts]
    tests = _test_days(jobs, prices)
    home = runs_dir / f"walk-forward-{preset}-{_digest(jobs)}"
    folder = out or home / "report"
    _check_output(folder)
    print_warnings(prices)
    fold_baselines = [_baselines(prices, fold.test, market) for fold in parts]
    baselines = _baselines(prices, range(parts[0].test.start, parts[-1].test.stop), market)
    first, last = parts[0].data.test_from, parts[-1].data.test_to
    title = f"Test period {first} to {last} ({prices.source}), {folds} folds. {NOT_ADVICE}"
    print(f"{title}\n{folds * seeds} trainings ({preset}) in {home}/", flush=True)
    ledgers = _train_and_test(jobs, tests, range(seeds), home, workers)
    of_fold = [
        Comparison(join_folds([policy], market), join_folds([others], market))
        for policy, others in zip(ledgers, fold_baselines, strict=True)
    ]
    whole = Comparison(join_folds(ledgers, market), join_folds([baselines], market))
    for fold, comparison in zip(parts, of_fold, strict=True):
        print("\n".join(["", f"fold {fold.number}: {fold.description}", *comparison.lines()]))
    sentence = verdict(whole, of_fold)
    print("\n".join(["", ALL_FOLDS, *whole.lines(), "", INTERVALS, sentence]))
    content = {
        "title": title,
        **_provenance(),
        "preset": preset,
        "config": asdict(cfg),
        "prices": {"source": prices.source, "sha256": prices.sha256},
        "runs": str(home),
        "folds": [{**_dates(fold), **comparison.to_json()} for fold, comparison in zip(parts, of_fold, strict=True)],
        "all_folds": whole.to_json(),
        "definitions": DEFINITIONS | {"over_seeds": INTERVALS, "all_folds": ALL_FOLDS},
        "verdict": sentence,
    }
    (folder / "walk_forward.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    _write_equity(folder / "equity.csv", whole)
    edges_E = np.array([fold.data.test_from for fold in parts[1:]], "datetime64[D]")
    value_RT = np.stack([curve.value_T for curve in whole.policy.values()])
    baseline_values = {name: curve.value_T for name, curve in whole.baselines.items()}
    dates_T = next(iter(whole.policy.values())).dates_T
    draw_walk_forward(folder / "walk_forward.png", title, dates_T, value_RT, baseline_values, edges_E)
    print(f"written: {folder}/ (walk_forward.json, equity.csv, walk_forward.png)")
    return 0


def _config(preset: str, iterations: int | None, data: str | None) -> Config:
    if preset not in PRESETS:
        listed = f"stock-trading has {', '.join(PRESETS)}"
        raise UserError(f"--preset {preset}", "no such preset", nearest(preset, list(PRESETS), listed))
    cfg = PRESETS[preset]()
    cfg = cfg if iterations is None else replace(cfg, iterations=iterations)
    return cfg if data is None else replace(cfg, data=replace(cfg.data, source=data))


def _test_days(jobs: Sequence[Config], prices: Prices) -> list[MarketDays]:
    """The test period of each fold. Raises UserError if the first training period is shorter than an episode."""
    from ranks.workloads.stock_trading.market.market import Market

    periods = [prepare_periods(cfg.periods, prices) for cfg in jobs]
    Market(periods[0].train, range(1), 0, jobs[0].market)
    return [one.test for one in periods]


def _baselines(prices: Prices, test: range, market: MarketConfig) -> dict[str, Ledger]:
    """The ledgers of all baselines over a test, and of the index if it has all its days."""
    ledgers = {name: run(prices, test, market) for name, run in BASELINES.items()}
    index = index_ledger(prices, test, market)
    return ledgers if index is None else ledgers | {INDEX: index}


def _digest(jobs: Sequence[Config]) -> str:
    """A hash of all configs with their dates, so that another walk-forward test has other runs."""
    return hashlib.sha256(json.dumps([asdict(cfg) for cfg in jobs]).encode()).hexdigest()[:8]


def _check_output(folder: Path) -> None:
    """Check before training that the report can be written. Raises UserError."""
    empty_figure(folder / "walk_forward.png", "", (1, 1))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "equity.csv").touch()
    except OSError as error:
        do = "give a writable folder"
        raise UserError(f"--out {folder}", error.strerror or str(error), do) from None


def _train_and_test(
    jobs: Sequence[Config], tests: Sequence[MarketDays], seeds: range, home: Path, workers: int | None
) -> list[dict[int, Ledger]]:
    """The ledgers of the test of each fold, by seed. Prints a line for each run, and a progress bar on a terminal."""
    import torch

    from ranks.workloads.stock_trading.policy.backtest import backtest
    from ranks.workloads.stock_trading.runs.train_many import TrainingJob, train_many
    from ranks.workloads.stock_trading.runs.trained_run import load_run

    runs = {f"fold{number + 1}-seed{seed}": (number, seed) for number in range(len(jobs)) for seed in seeds}
    ledgers: list[dict[int, Ledger]] = [{} for _ in jobs]
    with ProgressBar(len(runs), unit="trainings", log_every_s=None) as bar:
        todo = [TrainingJob(name, jobs[number], seed) for name, (number, seed) in runs.items()]
        for done, job in enumerate(train_many(todo, home, workers), start=1):
            number, seed = runs[job.name]
            policy = load_run(job.name, home).policy
            ledger = backtest(policy, tests[number], jobs[number].market, torch.device("cpu"))
            ledgers[number][seed] = ledger
            metrics = {name: format_metric(name, value) for name, value in ledger.metrics().items()}
            text = f"fold {number + 1}, seed {seed}: return {metrics['return']}, Sharpe ratio {metrics['sharpe']}, "
            text += f"{metrics['trades_per_year']} trades a year"
            bar.line(f"{text} ({done}/{len(todo)})")
            bar.advance()
    return [{seed: of_fold[seed] for seed in seeds} for of_fold in ledgers]


def _dates(fold: Fold) -> dict[str, Any]:
    d = fold.data
    return {"train": [d.train_from, d.train_to], "test": [d.test_from, d.test_to], "test_days": len(fold.test)}


def _provenance() -> dict[str, Any]:
    import torch

    from ranks.engine.runs import provenance

    return {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": " ".join(["ranks", *sys.argv[1:]]),
        "commit": provenance.git_commit(),
        "versions": provenance.versions(),
        "hardware": provenance.hardware(torch.device("cpu")),
    }


def _write_equity(path: Path, whole: Comparison) -> None:
    """Write the values of all accounts over all folds, relative to their first value."""
    policies = {f"policy, seed {seed}": curve for seed, curve in whole.policy.items()}
    curves = policies | dict(whole.baselines)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["date", *curves])
        dates_T = next(iter(curves.values())).dates_T
        for date, *values in zip(dates_T, *(curve.value_T for curve in curves.values()), strict=True):
            writer.writerow([date, *(f"{value:.6f}" for value in values)])
