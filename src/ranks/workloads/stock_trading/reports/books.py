"""Books as files and as lines: trades.csv, equity.csv, metrics.json.

Legend: T days.
"""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ranks.errors import UserError
from ranks.workloads.stock_trading.data.prices import Prices
from ranks.workloads.stock_trading.market.ledger import Ledger
from ranks.workloads.stock_trading.market.metrics import drawdown
from ranks.workloads.stock_trading.one_account import measures

PER_CENT = ("return", "cagr", "volatility", "max_drawdown", "turnover", "costs")
COLUMNS = ("return", "cagr", "volatility", "sharpe", "sortino", "calmar", "max_drawdown", "turnover", "costs")
MEASURED = {"annualisation_days": 252, "riskless_rate": 0.0, "returns": "simple, close to close, costs included"}
"""How the measures are meant, in files."""


def say_notes(prices: Prices) -> None:
    """What was done to the prices on reading, and what is odd about them, a line each on the error output."""
    for note in prices.notes:
        print(f"warning: {note}", file=sys.stderr)


def told(name: str, value: float) -> str:
    """A measure as people write it."""
    if not math.isfinite(value):
        return "-"
    return f"{value:.1%}" if name in PER_CENT else f"{value:.2f}"


def books_lines(ledgers: Mapping[str, Ledger]) -> list[str]:
    """A table of measures, a row for each name. Turnover is one way, a year's; costs are a share of the first value."""
    return measures_lines({name: measures(ledger) for name, ledger in ledgers.items()})


def measures_lines(rows_of: Mapping[str, Mapping[str, float]]) -> list[str]:
    """The same of measures that are known already."""
    rows = [["", *(name.replace("_", " ") for name in COLUMNS)]]
    rows += [[name, *(told(column, found[column]) for column in COLUMNS)] for name, found in rows_of.items()]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    ]


def plain(values: Mapping[str, float]) -> dict[str, float | None]:
    """For JSON, which knows no NaN: None where a measure is not defined."""
    return {name: value if math.isfinite(value) else None for name, value in values.items()}


def write_books(folder: Path, ledger: Ledger, facts: Mapping[str, Any]) -> list[Path]:
    """The three files of one account. Raises UserError where the folder cannot be written."""
    paths = [folder / name for name in ("trades.csv", "equity.csv", "metrics.json")]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with paths[0].open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["date", "ticker", "shares", "price", "cost"])
            writer.writerows(
                [t.date, t.ticker, f"{t.shares:g}", f"{t.price:.6f}", f"{t.cost:.6f}"] for t in ledger.trades()
            )
        with paths[1].open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["date", "value", "cash", "drawdown", "fees"])
            columns = (ledger.dates_T, ledger.value_T, ledger.cash_T, drawdown(ledger.value_T), ledger.fee_T)
            for date, *numbers in zip(*columns, strict=True):
                writer.writerow([date, *(f"{number:.6f}" for number in numbers)])
        period = {"from": str(ledger.dates_T[1]), "to": str(ledger.dates_T[-1]), "days": len(ledger.dates_T) - 1}
        found = {**facts, "period": period, **plain(measures(ledger)), "rules": MEASURED}
        paths[2].write_text(json.dumps(found, indent=1) + "\n")
    except OSError as error:
        raise UserError(f"--out {folder}", error.strerror or str(error), "give a folder that can be written") from None
    return paths
