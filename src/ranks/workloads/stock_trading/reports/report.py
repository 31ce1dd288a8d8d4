"""`ranks stock-trading report`: backtest trained policies over their test period and draw a tear sheet."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ranks.errors import UserError
from ranks.workloads.stock_trading.data.periods import get_test_rows, load_prices, resolve_dates
from ranks.workloads.stock_trading.market.baselines import BASELINES
from ranks.workloads.stock_trading.market.ledger import Ledger
from ranks.workloads.stock_trading.reports.backtest import INDEX, NOT_ADVICE, index_ledger, policy_ledger
from ranks.workloads.stock_trading.reports.intervals import metrics_over_seeds
from ranks.workloads.stock_trading.reports.results import (
    format_metric,
    metrics_table,
    print_warnings,
    without_nan,
    write_results,
)
from ranks.workloads.stock_trading.reports.tear_sheet import draw_tear_sheet

if TYPE_CHECKING:
    from ranks.workloads.stock_trading.runs.trained_run import TrainedRun

COMPARED = ("buy-and-hold", "equal-weight", "momentum", "random")
"""The baselines of a report."""


def report(runs: tuple[str, ...], /, *, out: Path | None = None, runs_dir: Path = Path("runs")) -> int:
    """Backtest runs over their test period: write trades.csv, equity.csv, metrics.json and a one-page tear sheet.

    Args:
        runs: A run's name or folder, or several runs that differ by seed, with commas: a,b,c.
        out: Output folder; by default the folder `report` of the (first) run.
        runs_dir: The folder of the runs.

    Returns 0.
    """
    from ranks.workloads.stock_trading.runs.trained_run import load_run

    if not runs:
        raise UserError("a report", "no run is named", "name one, or several with commas: a,b,c")
    trained = [load_run(run, runs_dir) for run in runs]
    reject_mixed(trained)
    cfg, folder = trained[0].cfg, out or trained[0].folder / "report"
    prices = load_prices(cfg.data)
    periods = replace(cfg.periods, data=resolve_dates(cfg.periods, prices))
    test = get_test_rows(periods.data, periods.window, prices)
    print_warnings(prices)
    ledgers = {run.name: policy_ledger(run.policy, periods, cfg.market, prices) for run in trained}
    baselines = {name: BASELINES[name](prices, test, cfg.market) for name in COMPARED}
    index = index_ledger(prices, test, cfg.market)
    if index is not None:
        baselines[INDEX] = index
    first = next(iter(ledgers.values()))
    title = f"Test period {first.dates_T[1]} to {first.dates_T[-1]} ({prices.source}). {NOT_ADVICE}"
    lines = [*metrics_table({**ledgers, **baselines}), *seed_lines(list(ledgers.values()))]
    print("\n".join([title, *lines, verdict(ledgers, baselines)]))
    for run in trained:
        run_folder = folder if len(trained) == 1 else folder / run.name
        source = {"run": run.name, "seed": run.seed, "weights_sha256": run.sha256}
        write_results(run_folder, ledgers[run.name], source)
    content = {
        "title": title,
        "runs": list(runs),
        "over_seeds": {name: without_nan(values) for name, values in over_seeds(list(ledgers.values())).items()},
        "baselines": {name: without_nan(ledger.metrics()) for name, ledger in baselines.items()},
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "comparison.json").write_text(json.dumps(content, indent=1) + "\n")
    sheet = folder / "tear_sheet.png"
    draw_tear_sheet(sheet, title, list(ledgers.values()), baselines, [*lines, "", verdict(ledgers, baselines)])
    print(f"written: {folder}/ ({', '.join(sorted(path.name for path in folder.iterdir()))})")
    return 0


def reject_mixed(trained: Sequence[TrainedRun]) -> None:
    """Raises UserError if the runs have different configs, or if two have the same seed or name."""
    for one, other in itertools.combinations(trained, 2):
        found = None
        if one.cfg != other.cfg:
            found = f"{other.name} has a different config than {one.name}"
        elif one.seed == other.seed or one.sha256 == other.sha256:
            found = f"{one.name} and {other.name} are the same training with seed {one.seed}"
        elif one.name == other.name:
            found = f"two runs are named {one.name}"
        if found is not None:
            raise UserError("a report over seeds", found, "name runs that differ only by --seed and by name")


def over_seeds(ledgers: Sequence[Ledger]) -> dict[str, dict[str, float]]:
    """For each metric: see `intervals.over_seeds`."""
    return metrics_over_seeds([ledger.metrics() for ledger in ledgers])


def seed_lines(ledgers: Sequence[Ledger]) -> list[str]:
    """Mean and 95 % interval over the seeds, one line for each main metric; no lines for one run."""
    if len(ledgers) < 2:
        return []
    out = [f"over {len(ledgers)} seeds, mean [95 % interval], interquartile mean:"]
    statistics = over_seeds(ledgers)
    for name in ("return", "sharpe", "max_drawdown", "trades_per_year"):
        mean, low, high, iqm = (format_metric(name, statistics[name][key]) for key in ("mean", "low", "high", "iqm"))
        out.append(f"  {name.replace('_', ' ')}: {mean} [{low}, {high}], {iqm}")
    return out


def verdict(ledgers: Mapping[str, Ledger], baselines: Mapping[str, Ledger]) -> str:
    """One sentence that names the baselines that the policy does not beat, by mean return and mean Sharpe ratio over
    its seeds. The Sharpe ratio is there because a policy that holds cash has little risk."""
    parts: list[str] = []
    for metric, label in (("return", "return"), ("sharpe", "Sharpe ratio")):
        mine = float(np.mean([ledger.metrics()[metric] for ledger in ledgers.values()]))
        better = [name for name, ledger in baselines.items() if not mine > ledger.metrics()[metric]]
        result = f"does not beat {', '.join(better)}" if better else "beats all of these"
        parts.append(f"by {label} ({format_metric(metric, mine)}) it {result}")
    return f"The policy: {'; '.join(parts)}. One period is no proof of skill."
