"""Days on which a stock has no price: reject them, drop them, or take the stock as not traded. Never fill them in.

Legend: D days, S stocks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NoReturn

import numpy as np

from ranks.workloads.stock_trading.data.prices import Dates, Floats

Missing = Literal["error", "drop-days", "drop-stocks", "not-traded"]
"""What to do if a stock has no price on a day: reject the file, drop that day or that stock, or trade nothing in it."""

Table = tuple[Dates, tuple[str, ...], dict[str, Floats]]
"""Dates, tickers, float64[D, S] by name."""


def without_gaps(table: Table, missing: Missing, reject: Callable[[str, str], NoReturn], notes: list[str]) -> Table:
    """The table as `missing` says; what was changed is appended to `notes`. `reject(found, do)` raises the error of the
    file. With "not-traded", all prices of a gap are NaN."""
    dates_D, tickers, fields = table
    gap_DS = np.zeros((len(dates_D), len(tickers)), dtype=bool)
    for name, values_DS in fields.items():
        if name != "volume":
            gap_DS |= np.isnan(values_DS)
    if not gap_DS.any():
        return table
    day, stock = (int(i) for i in np.argwhere(gap_DS)[0])
    many = f" (and {int(gap_DS.sum()) - 1} more gaps)" if gap_DS.sum() > 1 else ""
    found = f"{tickers[stock]} has no price on {dates_D[day]}{many}"
    if missing == "error":
        reject(found, "complete the file, or use --data.missing not-traded, drop-stocks or drop-days")
    if missing == "not-traded":
        if gap_DS.all(0).any():
            reject(f"{tickers[int(gap_DS.all(0).argmax())]} has no price on any day", "leave out that stock")
        ended = [ticker for ticker, is_gap in zip(tickers, gap_DS[-1], strict=True) if is_gap]
        notes.append(f"prices missing, taken as not traded: {int(gap_DS.sum())}, the first of {tickers[stock]}")
        notes.extend([f"without a price on the last day: {', '.join(ended)}"] if ended else [])
        return dates_D, tickers, {name: np.where(gap_DS, np.nan, values) for name, values in fields.items()}
    days, stocks = list(range(len(dates_D))), list(range(len(tickers)))
    if missing == "drop-stocks":
        stocks: list[int] = np.flatnonzero(~gap_DS.any(0)).tolist()
        notes.append(f"stocks dropped: {', '.join(t for s, t in enumerate(tickers) if s not in stocks)}")
    else:
        days: list[int] = np.flatnonzero(~gap_DS.any(1)).tolist()
        notes.append(f"days dropped: {len(dates_D) - len(days)}, the first on {dates_D[day]}")
    if not (days and stocks):
        reject(f"{found}; nothing is left after dropping", "complete the file")
    kept = {name: values[days][:, stocks] for name, values in fields.items()}
    return dates_D[days], tuple(tickers[s] for s in stocks), kept
