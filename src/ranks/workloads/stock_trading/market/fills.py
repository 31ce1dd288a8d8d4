"""Fill the orders of a day: on tensors, for all accounts at once, in float64.

Legend: B accounts, S stocks.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ranks.workloads.stock_trading.market.config import MarketConfig
from ranks.workloads.stock_trading.market.orders import Orders, sum_stocks


def fill_orders(
    cash_B: Tensor, shares_BS: Tensor, orders: Orders, fill_BS: Tensor, config: MarketConfig
) -> tuple[Tensor, Tensor]:
    """(cash, shares) after the orders of one day are filled at the day's fill prices.

    Sales come first. If the cash is too little for all purchases, one factor scales them for all stocks. With
    `whole_shares` both are rounded down. Purchases and sales pay the commission, and slippage in their price. Neither
    cash nor shares are ever negative.
    """
    commission = config.commission
    sale_price_BS, purchase_price_BS = fill_BS * (1.0 - config.slippage), fill_BS * (1.0 + config.slippage)
    sold_BS = shares_BS * orders.sell_BS
    if config.whole_shares:
        sold_BS = sold_BS.floor()
    cash_B = cash_B + sum_stocks(sold_BS * sale_price_BS) * (1.0 - commission)
    needed_B = sum_stocks(orders.buy_BS) * (1.0 + commission)
    factor_B = torch.where(needed_B > cash_B, cash_B / needed_B, 1.0)
    bought_BS = torch.where(orders.buy_BS == 0.0, 0.0, orders.buy_BS * factor_B[:, None] / purchase_price_BS)
    if config.whole_shares:
        bought_BS = bought_BS.floor()
    cash_B = cash_B - sum_stocks(bought_BS * purchase_price_BS) * (1.0 + commission)
    return cash_B.clamp(min=0.0), shares_BS - sold_BS + bought_BS  # rounding may spend 1e-16 too much
