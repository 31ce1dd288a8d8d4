"""Which stocks can be traded on which day: listed later, delisted, suspended.

On a day without a price nobody knows whether a stock will come back. So it counts as suspended, until it had no price
on `delisted_after` days in a row.

Legend: D rows of days, B accounts, S stocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ranks.workloads.stock_trading.data.market_days import MarketDays
from ranks.workloads.stock_trading.market.orders import Orders


@dataclass(frozen=True, eq=False)
class Tradability:
    """bool[D, S] each; row d is about the orders that are given at its close and filled on the next day.

    An order needs a stock that is traded on both days. What is known at the close decides who may give an order; what
    the next day brings decides whether it is filled.
    """

    is_traded_DS: Tensor
    """The stock is traded on day d."""
    is_filled_DS: Tensor
    """It is traded on day d + 1."""
    is_delisted_DS: Tensor
    """On day d + 1 it has had no price for `delisted_after` days or more in a row: its holders are sold out by
    force."""

    @classmethod
    def of(cls, days: MarketDays, delisted_after: int, device: torch.device | str) -> Tradability | None:
        """None if all stocks are traded on all days. Days are counted from the first row on: who holds a stock has
        bought it within the rows."""
        if days.is_traded_DS is None:
            return None
        row_D1 = np.arange(len(days.is_traded_DS))[:, None]
        last_DS = np.maximum.accumulate(np.where(days.is_traded_DS, row_D1, -1), axis=0)
        is_delisted_DS = np.zeros_like(days.is_traded_DS)
        is_delisted_DS[:-1] = (row_D1 - last_DS >= delisted_after)[1:]
        is_filled_DS = np.isfinite(days.fill_DS)
        return cls(*(torch.as_tensor(a, device=device) for a in (days.is_traded_DS, is_filled_DS, is_delisted_DS)))

    def fill_DS(self, fill_DS: Tensor, close_DS: Tensor, recovery: float) -> Tensor:
        """The fill prices, with last price times `recovery` for a delisted stock, and 1 where nothing is filled."""
        forced_DS = torch.where(self.is_delisted_DS, close_DS * recovery, 1.0)
        return torch.where(self.is_filled_DS, fill_DS, forced_DS)

    def filled(self, orders: Orders, day_B: Tensor) -> Orders:
        """The orders that are filled on the next day, with the forced sales of what is delisted."""
        is_filled_BS = self.is_filled_DS.index_select(0, day_B)
        is_delisted_BS = self.is_delisted_DS.index_select(0, day_B)
        sell_BS = torch.where(is_filled_BS, orders.sell_BS, is_delisted_BS.double())
        return Orders(sell_BS, torch.where(is_filled_BS, orders.buy_BS, 0.0))
