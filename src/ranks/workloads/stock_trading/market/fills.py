"""Turn actions into orders and orders into fills: on tensors, for all accounts at once, in float64.

Legend: B accounts, S stocks.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ranks.workloads.stock_trading.market.config import MarketConfig

SLACK = 1e-12
"""Fraction of the cash that stays unspent when it is too little for all orders, so that rounding cannot make it
negative."""


def sum_stocks(values_BS: Tensor) -> Tensor:
    """Sum over the stocks in a fixed pairwise order, so that a row has the same bits for any number of rows."""
    while (num := values_BS.shape[-1]) > 1:
        half = num // 2
        paired = values_BS[..., :half] + values_BS[..., half : 2 * half]
        values_BS = torch.cat([paired, values_BS[..., 2 * half :]], -1)
    return values_BS[..., 0]


def orders_from_actions(action_BS: Tensor, config: MarketConfig) -> Tensor:
    """float64[B, S]: shares to buy, or to sell if negative. Actions are clipped to -1..1 and multiplied by
    `max_shares`; with `whole_shares` the fraction is cut off."""
    order_BS = action_BS.detach().double().clamp(-1.0, 1.0) * config.max_shares
    return order_BS.trunc() if config.whole_shares else order_BS


def fill_prices(fill_BS: Tensor, config: MarketConfig) -> tuple[Tensor, Tensor]:
    """(price of a sale, price of a purchase) of one share, with slippage, without commission."""
    slippage = config.slippage
    return fill_BS * (1.0 - slippage), fill_BS * (1.0 + slippage)


def fill_orders(
    cash_B: Tensor, shares_BS: Tensor, order_BS: Tensor, fill_BS: Tensor, config: MarketConfig
) -> tuple[Tensor, Tensor]:
    """(cash, shares) after the orders of one day are filled at the day's fill prices.

    Sales come first and sell at most what is held: there is no short selling. If the cash is too little for all
    purchases, one factor scales them for all stocks; with `whole_shares` they are rounded down. Purchases and sales pay
    the commission. Neither cash nor shares are ever negative.
    """
    commission = config.commission
    sale_price_BS, purchase_price_BS = fill_prices(fill_BS, config)
    sold_BS = torch.minimum((-order_BS).clamp(min=0.0), shares_BS)
    cash_B = cash_B + sum_stocks(sold_BS * sale_price_BS) * (1.0 - commission)
    wanted_BS = order_BS.clamp(min=0.0)
    needed_B = sum_stocks(wanted_BS * purchase_price_BS) * (1.0 + commission)
    factor_B = torch.where(needed_B > cash_B, cash_B / needed_B * (1.0 - SLACK), 1.0)
    bought_BS = wanted_BS * factor_B[:, None]
    if config.whole_shares:
        bought_BS = bought_BS.floor()
    cash_B = cash_B - sum_stocks(bought_BS * purchase_price_BS) * (1.0 + commission)
    return cash_B, shares_BS - sold_BS + bought_BS
