"""Charts of backtests: equity against the baselines, drawdown, rolling Sharpe ratio, monthly returns.

Legend: T days, R runs, W days of the rolling window.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ranks.errors import UserError
from ranks.workloads.stock_trading.data.prices import Dates, Floats
from ranks.workloads.stock_trading.market.ledger import Ledger
from ranks.workloads.stock_trading.market.metrics import YEAR, drawdown, returns

ROLLING_DAYS = 126
CHART_INCHES = (4.0, 1.4, 1.7, 2.5)
"""Heights of the charts: equity, drawdown, rolling Sharpe ratio, monthly returns."""
LINE_WIDTH, LINE_INCHES = 150, 0.11
"""Characters of a table line, and its height."""
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def draw_tear_sheet(
    path: Path, title: str, runs: Sequence[Ledger], baselines: Mapping[str, Ledger], lines: Sequence[str]
) -> None:
    """Write `tear_sheet` to a file. Raises UserError if that fails."""
    _save(tear_sheet(path, title, runs, baselines, lines), path)


def tear_sheet(
    path: Path, title: str, runs: Sequence[Ledger], baselines: Mapping[str, Ledger], lines: Sequence[str]
) -> Any:
    """The matplotlib figure of a one-page tear sheet: `title`, charts, and the text table `lines`.

    `runs`: one ledger for each seed of a policy, on the same days as `baselines`. Raises UserError if matplotlib is not
    installed.
    """
    wrapped = "\n".join(textwrap.fill(line, LINE_WIDTH) if len(line) > LINE_WIDTH else line for line in lines)
    table_inches = (wrapped.count("\n") + 3) * LINE_INCHES
    figure = empty_figure(path, title, (9, sum(CHART_INCHES) + table_inches))
    rows = [["equity"], ["drawdown"], ["sharpe"], ["months"], ["table"]]
    grid: Any = figure.subplot_mosaic(rows, height_ratios=[*CHART_INCHES, table_inches])
    dates_T = runs[0].dates_T
    value_RT = np.stack([run.value_T / run.value_T[0] for run in runs])
    _equity(grid["equity"], dates_T, value_RT, {n: b.value_T / b.value_T[0] for n, b in baselines.items()})
    _drawdown(grid["drawdown"], dates_T, value_RT)
    _rolling(grid["sharpe"], dates_T, value_RT)
    for name in ("equity", "drawdown", "sharpe"):
        grid[name].set_xlim(dates_T[0], dates_T[-1])
    _months(grid["months"], dates_T, np.median(value_RT, 0))
    grid["table"].axis("off")
    grid["table"].text(0, 1, wrapped, family="monospace", fontsize=6, va="top").set_in_layout(False)
    return figure


def draw_walk_forward(
    path: Path, title: str, dates_T: Dates, value_RT: Floats, baselines: Mapping[str, Floats], edges: Dates
) -> None:
    """Draw equity and drawdown over all folds. `value_RT` and `baselines`: values relative to the first; `edges`: the
    first day of each fold after the first. Raises UserError if the file cannot be written."""
    figure = empty_figure(path, title, (9, 6.5))
    grid: Any = figure.subplot_mosaic([["equity"], ["drawdown"]], height_ratios=[4, 1.4], sharex=True)
    _equity(grid["equity"], dates_T, value_RT, baselines)
    _drawdown(grid["drawdown"], dates_T, value_RT)
    for axes in grid.values():
        axes.set_xlim(dates_T[0], dates_T[-1])
        for edge in edges:
            axes.axvline(edge, color="grey", linewidth=0.6, linestyle=":")
    _save(figure, path)


def empty_figure(path: Path, title: str, inches: tuple[float, float]) -> Any:
    """A figure with only a title. Raises UserError if matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        do = "pip install 'ranks[stock-trading]'"
        raise UserError(f"the picture {path}", "matplotlib is not installed", do) from None
    figure = Figure(figsize=inches, layout="constrained")
    figure.suptitle(title, fontsize=10)
    return figure


def _save(figure: Any, path: Path) -> None:
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise UserError(f"the picture {path}", str(error), "give a writable .png, .svg or .pdf file") from None


def _equity(axes: Any, dates_T: Dates, value_RT: Floats, baselines: Mapping[str, Floats]) -> None:
    for name, value_T in baselines.items():
        axes.plot(dates_T, value_T, linewidth=0.9, label=name, alpha=0.8)
    _median_and_range(
        axes, dates_T, value_RT, "policy" if len(value_RT) == 1 else f"policy, median of {len(value_RT)} seeds"
    )
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("{x:g}")
    axes.set_ylabel("value / value at the start")
    axes.legend(fontsize=7, loc="upper left")


def _median_and_range(axes: Any, dates_T: Dates, rows_RT: Floats, label: str | None = None) -> None:
    axes.plot(dates_T, np.median(rows_RT, 0), color="black", linewidth=1.4, label=label)
    if len(rows_RT) > 1:
        axes.fill_between(dates_T, rows_RT.min(0), rows_RT.max(0), color="black", alpha=0.15, linewidth=0)


def _drawdown(axes: Any, dates_T: Dates, value_RT: Floats) -> None:
    drawdown_RT = np.stack([drawdown(value_T) for value_T in value_RT])
    axes.fill_between(dates_T, np.median(drawdown_RT, 0), 0, color="tab:red", alpha=0.5, linewidth=0)
    axes.yaxis.set_major_formatter("{x:.0%}")
    axes.set_ylabel("drawdown")


def rolling_sharpe(value_T: Floats, days: int = ROLLING_DAYS) -> Floats:
    """float64[T]: the annualised Sharpe ratio of the last `days` returns; NaN on the first `days` days."""
    windows_RW = np.lib.stride_tricks.sliding_window_view(returns(value_T), days)
    std_R = windows_RW.std(1, ddof=1)
    ratio_R = np.divide(windows_RW.mean(1), std_R, out=np.full(len(std_R), np.nan), where=std_R > 0) * np.sqrt(YEAR)
    return np.concatenate([np.full(days, np.nan), ratio_R])


def _rolling(axes: Any, dates_T: Dates, value_RT: Floats) -> None:
    axes.set_ylabel(f"Sharpe, {ROLLING_DAYS} days")
    axes.axhline(0, color="grey", linewidth=0.6)
    if len(dates_T) > ROLLING_DAYS:
        _median_and_range(axes, dates_T, np.stack([rolling_sharpe(value_T) for value_T in value_RT]))


def monthly_returns(dates_T: Dates, value_T: Floats) -> dict[tuple[int, int], float]:
    """Returns by (year, month), from the last value before the month to its last value. The first day, on which nothing
    is traded, belongs to no month."""
    month_T = dates_T.astype("datetime64[M]")[1:]
    out: dict[tuple[int, int], float] = {}
    before = float(value_T[0])
    for month in np.unique(month_T):
        last = float(value_T[1:][month_T == month][-1])
        year = int(month.astype("datetime64[Y]").astype(int)) + 1970
        out[year, int(month.astype(int)) % 12 + 1] = last / before - 1
        before = last
    return out


def _months(axes: Any, dates_T: Dates, value_T: Floats) -> None:
    return_of = monthly_returns(dates_T, value_T)
    years = sorted({year for year, _ in return_of})
    table_YM = np.array([[return_of.get((year, month), np.nan) for month in range(1, 13)] for year in years])
    most = float(np.nanmax(np.abs(table_YM))) or 0.01
    axes.imshow(table_YM, cmap="RdYlGn", vmin=-most, vmax=most, aspect="auto")
    axes.set_xticks(range(12), MONTHS, fontsize=7)
    axes.set_yticks(range(len(years)), [str(year) for year in years], fontsize=7)
    for (row, column), value in np.ndenumerate(table_YM):
        if np.isfinite(value):
            axes.text(column, row, f"{value:.1%}", ha="center", va="center", fontsize=6)
    axes.set_title("returns by month", fontsize=8)
