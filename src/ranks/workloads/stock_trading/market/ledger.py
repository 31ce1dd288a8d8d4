"""The books of one account over a period: what was held, traded and paid on each day. NumPy alone.

Legend: T days, from the day of the first decision on (nothing is traded on it); S stocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ranks.workloads.stock_trading.data.prices import Dates, Floats


class Trade(NamedTuple):
    """Shares bought, or sold where negative, at a price with slippage and without the fee, which is `cost`."""

    date: np.datetime64
    ticker: str
    shares: float
    price: float
    cost: float


@dataclass(frozen=True, eq=False)
class Ledger:
    """float64 throughout; money in the prices' currency, at each day's close."""

    dates_T: Dates
    tickers: tuple[str, ...]
    cash_T: Floats
    shares_TS: Floats
    """Held after the day's trades."""
    close_TS: Floats
    price_TS: Floats
    """Paid or got for a share on that day; the market's fill price where nothing was traded, NaN on the first day."""
    fee_T: Floats
    """Fees of the day's trades."""
    value_T: Floats

    @property
    def traded_TS(self) -> Floats:
        """Shares bought, or sold where negative."""
        return np.diff(self.shares_TS, axis=0, prepend=self.shares_TS[:1])

    @property
    def notional_T(self) -> Floats:
        """Money that changed hands, purchases and sales added up, fees apart."""
        traded_TS = np.abs(self.traded_TS)
        return np.where(traded_TS > 0, traded_TS * self.price_TS, 0.0).sum(1)

    def trades(self) -> Iterator[Trade]:
        """Day by day, in the order of the tickers; a day's fee is dealt out by the money that changed hands."""
        traded_TS, notional_T = self.traded_TS, self.notional_T
        for day, stock in np.argwhere(traded_TS != 0).tolist():
            shares, price = float(traded_TS[day, stock]), float(self.price_TS[day, stock])
            cost = float(self.fee_T[day] * abs(shares) * price / notional_T[day])
            yield Trade(self.dates_T[day], self.tickers[stock], shares, price, cost)

    def problems(self, tolerance: float = 1e-9) -> list[str]:
        """Where the books do not add up, to a share of the account's value; empty where they do.

        On every day: value = cash + shares x close; cash = the day before's - purchases + sales - fees; no cash and no
        holding is negative.
        """
        slack_T = tolerance * np.abs(self.value_T)
        held_T = (self.shares_TS * self.close_TS).sum(1)
        flow_T = np.where(self.traded_TS != 0, self.traded_TS * self.price_TS, 0.0).sum(1)
        expected_T = np.concatenate([self.cash_T[:1], self.cash_T[:-1] - flow_T[1:] - self.fee_T[1:]])
        checks = {
            "value is not cash and holdings": ~(np.abs(self.cash_T + held_T - self.value_T) <= slack_T),
            "cash does not follow from the trades": ~(np.abs(expected_T - self.cash_T) <= slack_T),
            "cash is negative": ~(self.cash_T >= 0),
            "a holding is negative": ~(self.shares_TS >= 0).all(1),
        }
        return [f"{text} on {self.dates_T[bad_T][0]}" for text, bad_T in checks.items() if bad_T.any()]
