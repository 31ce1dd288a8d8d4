"""Which stocks can be traded on which day: listed later, delisted, suspended.

Legend: D rows of days, B accounts, S stocks.
"""

from __future__ import annotations

from dataclasses import dataclass

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
    is_gone_DS: Tensor
    """Day d is its last: on day d + 1 it leaves the market for good, and its holders are paid off."""

    @classmethod
    def of(cls, days: MarketDays, device: torch.device | str) -> Tradability | None:
        """None if all stocks are traded on all days."""
        if days.is_traded_DS is None or days.is_gone_DS is None:
            return None
        is_filled_DS = torch.as_tensor(days.fill_DS, device=device).isfinite()
        is_traded_DS, is_gone_DS = (torch.as_tensor(a, device=device) for a in (days.is_traded_DS, days.is_gone_DS))
        return cls(is_traded_DS, is_filled_DS, is_gone_DS)

    def fill_DS(self, fill_DS: Tensor, close_DS: Tensor, recovery: float) -> Tensor:
        """The fill prices, with last price times `recovery` for a stock that is gone, and 1 where nothing is filled."""
        forced_DS = torch.where(self.is_gone_DS, close_DS * recovery, 1.0)
        return torch.where(self.is_filled_DS, fill_DS, forced_DS)

    def filled(self, orders: Orders, day_B: Tensor) -> Orders:
        """The orders that are filled on the next day, with the forced sales of what is gone."""
        is_filled_BS, is_gone_BS = self.is_filled_DS.index_select(0, day_B), self.is_gone_DS.index_select(0, day_B)
        sell_BS = torch.where(is_filled_BS, orders.sell_BS, is_gone_BS.double())
        return Orders(sell_BS, torch.where(is_filled_BS, orders.buy_BS, 0.0))
