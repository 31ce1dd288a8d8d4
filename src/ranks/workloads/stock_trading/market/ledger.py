"""The ledger of one account over a period: cash, holdings, trades and commissions of each day. NumPy only.

Legend: T days, from the day of the first action on (nothing is traded on it); S stocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ranks.workloads.stock_trading.data.prices import Dates, Floats
from ranks.workloads.stock_trading.market.metrics import summary


class Trade(NamedTuple):
    """Shares bought, or sold if negative. `price` includes slippage but not the commission."""

    date: np.datetime64
    ticker: str
    shares: float
    price: float
    commission: float


@dataclass(frozen=True, eq=False)
class Ledger:
    """float64 arrays; money in the currency of the prices, at the close of each day."""

    dates_T: Dates
    tickers: tuple[str, ...]
    cash_T: Floats
    shares_TS: Floats
    """Holdings after the trades of the day."""
    close_TS: Floats
    price_TS: Floats
    """Price of a share in the trades of the day, with slippage; the fill price of the market where nothing was traded;
    NaN on the first day."""
    commission_T: Floats
    """Commissions of the trades of the day."""
    value_T: Floats

    @property
    def traded_TS(self) -> Floats:
        """Shares bought, or sold if negative."""
        return np.diff(self.shares_TS, axis=0, prepend=self.shares_TS[:1])

    @property
    def notional_T(self) -> Floats:
        """Traded value: purchases plus sales, without commissions."""
        traded_TS = np.abs(self.traded_TS)
        return np.where(traded_TS > 0, traded_TS * self.price_TS, 0.0).sum(1)

    @property
    def trades_T(self) -> Floats:
        """Purchases and sales of each day."""
        return (self.traded_TS != 0).sum(1).astype(np.float64)

    def trades(self) -> Iterator[Trade]:
        """All trades by day, then ticker. The commission of a day is split in proportion to the traded value."""
        traded_TS, notional_T = self.traded_TS, self.notional_T
        for day, stock in np.argwhere(traded_TS != 0).tolist():
            shares, price = float(traded_TS[day, stock]), float(self.price_TS[day, stock])
            commission = float(self.commission_T[day] * abs(shares) * price / notional_T[day])
            yield Trade(self.dates_T[day], self.tickers[stock], shares, price, commission)

    def metrics(self) -> dict[str, float]:
        """The performance metrics by name: see `metrics.summary`."""
        return summary(self.value_T, self.notional_T, self.commission_T, self.trades_T)

    def inconsistencies(self, tolerance: float = 1e-9) -> list[str]:
        """What does not add up, with the first day of each problem; empty if the ledger is consistent.

        On every day: value = cash + shares x close; cash = cash of the day before - purchases + sales - commissions;
        neither cash nor a holding is negative. `tolerance` is a fraction of the account's value.
        """
        slack_T = tolerance * np.abs(self.value_T)
        held_T = (self.shares_TS * self.close_TS).sum(1)
        flow_T = np.where(self.traded_TS != 0, self.traded_TS * self.price_TS, 0.0).sum(1)
        expected_T = np.concatenate([self.cash_T[:1], self.cash_T[:-1] - flow_T[1:] - self.commission_T[1:]])
        checks = {
            "value is not cash plus holdings": ~(np.abs(self.cash_T + held_T - self.value_T) <= slack_T),
            "cash does not follow from the trades": ~(np.abs(expected_T - self.cash_T) <= slack_T),
            "cash is negative": ~(self.cash_T >= 0),
            "a holding is negative": ~(self.shares_TS >= 0).all(1),
        }
        return [f"{text} on {self.dates_T[bad_T][0]}" for text, bad_T in checks.items() if bad_T.any()]
