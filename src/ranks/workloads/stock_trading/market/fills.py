"""How orders become trades: on tensors, for all accounts at once, in float64.

Legend: B accounts, S stocks.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ranks.workloads.stock_trading.market.config import MarketConfig

SLACK = 1e-12
"""Share of the cash that is left where it does not reach, so that rounding cannot make it negative."""


def sum_stocks(values_BS: Tensor) -> Tensor:
    """Sums over the stocks along one fixed tree: the bits of a row do not depend on how many rows there are."""
    while (num := values_BS.shape[-1]) > 1:
        half = num // 2
        paired = values_BS[..., :half] + values_BS[..., half : 2 * half]
        values_BS = torch.cat([paired, values_BS[..., 2 * half :]], -1)
    return values_BS[..., 0]


def orders(action_BS: Tensor, config: MarketConfig) -> Tensor:
    """float64[B, S] shares to buy, or to sell where negative: actions in -1..1 (cut off there) times the most shares
    of a day, without the fraction where shares are whole."""
    order_BS = action_BS.detach().double().clamp(-1.0, 1.0) * config.max_shares
    return order_BS.trunc() if config.whole_shares else order_BS


def prices_paid(fill_BS: Tensor, config: MarketConfig) -> tuple[Tensor, Tensor]:
    """(what a seller gets, what a buyer pays) for a share, slippage included, fees not."""
    slippage = config.slippage
    return fill_BS * (1.0 - slippage), fill_BS * (1.0 + slippage)


def trade(
    cash_B: Tensor, shares_BS: Tensor, order_BS: Tensor, fill_BS: Tensor, config: MarketConfig
) -> tuple[Tensor, Tensor]:
    """(cash, shares) after one day's orders at the day's fill prices.

    Sales come first, of what is held at most: there is no selling short. Purchases are then scaled by one factor for
    all stocks where the cash would not reach, and rounded down to whole shares. Both sides pay the fee. Neither cash
    nor shares are ever negative.
    """
    fee = config.fee
    got_BS, paid_BS = prices_paid(fill_BS, config)
    sold_BS = torch.minimum((-order_BS).clamp(min=0.0), shares_BS)
    cash_B = cash_B + sum_stocks(sold_BS * got_BS) * (1.0 - fee)
    wanted_BS = order_BS.clamp(min=0.0)
    needed_B = sum_stocks(wanted_BS * paid_BS) * (1.0 + fee)
    share_B = torch.where(needed_B > cash_B, cash_B / needed_B * (1.0 - SLACK), 1.0)
    bought_BS = wanted_BS * share_B[:, None]
    if config.whole_shares:
        bought_BS = bought_BS.floor()
    cash_B = cash_B - sum_stocks(bought_BS * paid_BS) * (1.0 + fee)
    return cash_B, shares_BS - sold_BS + bought_BS
