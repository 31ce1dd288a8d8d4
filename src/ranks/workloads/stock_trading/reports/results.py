"""Results of backtests as text tables and as files: trades.csv, equity.csv, metrics.json.

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

PERCENTAGES = ("return", "cagr", "volatility", "max_drawdown", "turnover", "costs")
COUNTS = ("trades", "trading_days", "trades_per_year", "trading_days_per_year")
COLUMNS = (
    *("return", "cagr", "volatility", "sharpe", "sortino", "calmar", "max_drawdown", "turnover", "costs"),
    *("trades_per_year", "trading_days_per_year"),
)
HEADINGS = {"trades_per_year": "trades/year", "trading_days_per_year": "trading days/year"}
"""Columns whose heading is not their name."""
DEFINITIONS = {"annualisation_days": 252, "risk_free_rate": 0.0, "returns": "simple, close to close, with costs"}
"""Definitions of the metrics, for the files."""


def print_warnings(prices: Prices) -> None:
    """Print the warnings of the price reader to stderr, one a line."""
    for note in prices.notes:
        print(f"warning: {note}", file=sys.stderr)


def format_metric(name: str, value: float) -> str:
    """A metric as text: a percentage, a count, or a number with two digits; `-` if undefined."""
    if not math.isfinite(value):
        return "-"
    if name in COUNTS:
        return f"{value:,.0f}"
    return f"{value:.1%}" if name in PERCENTAGES else f"{value:.2f}"


def metrics_table(ledgers: Mapping[str, Ledger]) -> list[str]:
    """A text table of performance metrics, one row for each ledger."""
    return format_table({name: ledger.metrics() for name, ledger in ledgers.items()})


def format_table(metrics_of: Mapping[str, Mapping[str, float]]) -> list[str]:
    """A text table with a row of metrics for each name."""
    rows = [["", *(HEADINGS.get(name, name.replace("_", " ")) for name in COLUMNS)]]
    rows += [
        [name, *(format_metric(column, metrics[column]) for column in COLUMNS)] for name, metrics in metrics_of.items()
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    ]


def without_nan(values: Mapping[str, float]) -> dict[str, float | None]:
    """For JSON, which has no NaN: None where a metric is undefined."""
    return {name: value if math.isfinite(value) else None for name, value in values.items()}


def write_results(folder: Path, ledger: Ledger, source: Mapping[str, Any]) -> list[Path]:
    """Write the three files of one account; `source` goes first into metrics.json. Raises UserError if that fails."""
    paths = [folder / name for name in ("trades.csv", "equity.csv", "metrics.json")]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with paths[0].open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["date", "ticker", "shares", "price", "cost"])
            writer.writerows(
                [t.date, t.ticker, f"{t.shares:.10g}", f"{t.price:.6f}", f"{t.commission:.6f}"] for t in ledger.trades()
            )
        with paths[1].open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["date", "value", "cash", "drawdown", "fees"])
            columns = (ledger.dates_T, ledger.value_T, ledger.cash_T, drawdown(ledger.value_T), ledger.commission_T)
            for date, *numbers in zip(*columns, strict=True):
                writer.writerow([date, *(f"{number:.6f}" for number in numbers)])
        period = {"from": str(ledger.dates_T[1]), "to": str(ledger.dates_T[-1]), "days": len(ledger.dates_T) - 1}
        content = {**source, "period": period, **without_nan(ledger.metrics()), "definitions": DEFINITIONS}
        paths[2].write_text(json.dumps(content, indent=1) + "\n")
    except OSError as error:
        raise UserError(f"--out {folder}", error.strerror or str(error), "give a writable folder") from None
    return paths
