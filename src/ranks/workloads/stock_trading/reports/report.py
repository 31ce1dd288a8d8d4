"""`ranks stock-trading report`: the books of trained policies on their test period, and a page that shows them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ranks.errors import UserError
from ranks.workloads.stock_trading.loading import prices_of, resolved, rows_of_test
from ranks.workloads.stock_trading.market.ledger import Ledger
from ranks.workloads.stock_trading.one_account import measures
from ranks.workloads.stock_trading.reports.backtest import INDEX, NOT_ADVICE, index_ledger, ledger_of, rule_ledger
from ranks.workloads.stock_trading.reports.books import books_lines, plain, say_notes, told, write_books
from ranks.workloads.stock_trading.reports.intervals import measures_over_seeds
from ranks.workloads.stock_trading.reports.saved import Trained, load_run
from ranks.workloads.stock_trading.reports.tear_sheet import draw_tear_sheet

BESIDE = ("buy-and-hold", "equal-weight", "momentum", "random")


def report(runs: tuple[str, ...], /, *, out: Path | None = None, runs_dir: Path = Path("runs")) -> int:
    """Write trades.csv, equity.csv, metrics.json and a one-page tear sheet of a run's test period.

    Args:
        runs: A run's name or folder; or several that differ by seed, with commas: a,b,c.
        out: Folder to write into; without it the folder `report` of the (first) run.
        runs_dir: Where run folders stand.

    Returns 0.
    """
    if not runs:
        raise UserError("a report", "no run is named", "name one, or several with commas: a,b,c")
    trained = [load_run(run, runs_dir) for run in runs]
    refuse_mixed(trained)
    cfg, folder = trained[0].cfg, out or trained[0].folder / "report"
    prices = prices_of(cfg.data)
    cfg = resolved(cfg, prices)
    say_notes(prices)
    ledgers = {one.name: ledger_of(one, cfg, prices) for one in trained}
    others = {name: rule_ledger(name, cfg, prices) for name in BESIDE}
    index = index_ledger(cfg, rows_of_test(cfg, prices), prices)
    if index is not None:
        others[INDEX] = index
    first = next(iter(ledgers.values()))
    title = f"Test period {first.dates_T[1]} to {first.dates_T[-1]} ({prices.source}). {NOT_ADVICE}"
    lines = [*books_lines({**ledgers, **others}), *seed_lines(list(ledgers.values()))]
    print("\n".join([title, *lines, verdict(ledgers, others)]))
    for one in trained:
        books = folder if len(trained) == 1 else folder / one.name
        write_books(books, ledgers[one.name], {"run": one.name, "seed": one.seed, "weights_sha256": one.sha256})
    seeds = {name: plain(values) for name, values in over_seeds(list(ledgers.values())).items()}
    beside = {name: plain(measures(other)) for name, other in others.items()}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "comparison.json").write_text(
        json.dumps({"title": title, "runs": list(runs), "over_seeds": seeds, "beside": beside}, indent=1) + "\n"
    )
    sheet = folder / "tear_sheet.png"
    draw_tear_sheet(sheet, title, list(ledgers.values()), others, [*lines, "", verdict(ledgers, others)])
    print(f"written: {folder}/ ({', '.join(sorted(path.name for path in folder.iterdir()))})")
    return 0


def refuse_mixed(trained: Sequence[Trained]) -> None:
    """Raises UserError where the runs differ by more than their seed, or not even by that."""
    for one, other in itertools.combinations(trained, 2):
        found = None
        if one.cfg != other.cfg:
            found = f"{other.name} has other settings than {one.name}"
        elif one.seed == other.seed or one.sha256 == other.sha256:
            found = f"{one.name} and {other.name} are one training, of seed {one.seed}"
        elif one.name == other.name:
            found = f"two runs are called {one.name}"
        if found is not None:
            raise UserError("a report over seeds", found, "name runs that differ by --seed, and by their names, alone")


def over_seeds(ledgers: Sequence[Ledger]) -> dict[str, dict[str, float]]:
    """Of each measure: see `intervals.over_seeds`."""
    return measures_over_seeds([measures(ledger) for ledger in ledgers])


def seed_lines(ledgers: Sequence[Ledger]) -> list[str]:
    """Mean and 95 % interval over the seeds, a line for each measure that matters; none for one run."""
    if len(ledgers) < 2:
        return []
    out = [f"over {len(ledgers)} seeds, mean [95 % interval], interquartile mean:"]
    over = over_seeds(ledgers)
    for name in ("return", "sharpe", "max_drawdown"):
        found = over[name]
        low, high = told(name, found["low"]), told(name, found["high"])
        mean, middle = told(name, found["mean"]), told(name, found["iqm"])
        out.append(f"  {name.replace('_', ' ')}: {mean} [{low}, {high}], {middle}")
    return out


def verdict(ledgers: Mapping[str, Ledger], others: Mapping[str, Ledger]) -> str:
    """One sentence on what the policy does not beat, in the mean over its seeds: by return, as who holds cash risks
    little, and by Sharpe ratio."""
    beside = {name: measures(other) for name, other in others.items()}
    says: list[str] = []
    for measure, called in (("return", "return"), ("sharpe", "Sharpe ratio")):
        mine = float(np.mean([measures(ledger)[measure] for ledger in ledgers.values()]))
        short = [name for name, found in beside.items() if not mine > found[measure]]
        beats = f"does not beat {', '.join(short)}" if short else "beats all of these"
        says.append(f"by {called} ({told(measure, mine)}) it {beats}")
    return f"The policy: {'; '.join(says)}. One period proves no skill."
