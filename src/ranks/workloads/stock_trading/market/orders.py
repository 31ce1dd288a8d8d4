"""From actions to orders: an action asks for a change of a stock's weight in the account.

Orders are in money, so they do not depend on the scale of a price: a later split or dividend, which rescales all
adjusted prices before it, changes no order. Tensors for all accounts at once, in float64.

Legend: B accounts, S stocks.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

ROUNDING = 1e-9
"""A smaller change of a weight is rounding and never trades."""


class Orders(NamedTuple):
    """The orders of one day. For each stock at most one of the two is above 0."""

    sell_BS: Tensor
    """float64[B, S]: fraction of the holding to sell, 0 to 1."""
    buy_BS: Tensor
    """float64[B, S]: money to spend on shares, without the commission."""


def sum_stocks(values_BS: Tensor) -> Tensor:
    """Sum over the stocks in a fixed pairwise order, so that a row has the same bits for any number of rows."""
    while (num := values_BS.shape[-1]) > 1:
        half = num // 2
        paired = values_BS[..., :half] + values_BS[..., half : 2 * half]
        values_BS = torch.cat([paired, values_BS[..., 2 * half :]], -1)
    return values_BS[..., 0]


def weights_of(held_BS: Tensor, value_B: Tensor) -> Tensor:
    """float64[B, S]: the value of each holding as a fraction of the account; 0 for an account without value."""
    return held_BS / value_B.clamp(min=torch.finfo(torch.float64).tiny)[:, None]


def target_weights(
    action_BS: Tensor, weight_BS: Tensor, step: float, band: float, is_traded_BS: Tensor | None = None
) -> Tensor:
    """float64[B, S]: the weights that the actions ask for,

        w' = max(0, w + step * a),  a in -1..1,

    divided by their sum where it is above 1; the rest is cash. A stock whose w' differs from w by less than `band`
    keeps w, except that a w' of 0 stays 0. The division comes after the band: a purchase of a fully invested account is
    paid by all other stocks, however little of each. A stock that is not traded today keeps its weight, and the others
    share what it leaves.
    """
    wanted_BS = (weight_BS + step * action_BS.detach().double().clamp(-1.0, 1.0)).clamp(min=0.0)
    is_sold_out_BS = (wanted_BS < weight_BS) & (wanted_BS <= ROUNDING)
    is_kept_BS = (wanted_BS - weight_BS).abs() < max(band, ROUNDING)
    wanted_BS = torch.where(is_sold_out_BS, 0.0, torch.where(is_kept_BS, weight_BS, wanted_BS))
    if is_traded_BS is None:
        return wanted_BS / sum_stocks(wanted_BS).clamp(min=1.0)[:, None]
    free_B = 1.0 - sum_stocks(torch.where(is_traded_BS, 0.0, weight_BS))
    total_B = sum_stocks(torch.where(is_traded_BS, wanted_BS, 0.0))
    factor_B = torch.where(total_B > free_B, free_B.clamp(min=0.0) / total_B, 1.0)
    return torch.where(is_traded_BS, wanted_BS * factor_B[:, None], weight_BS)


def orders_to(target_BS: Tensor, weight_BS: Tensor, value_B: Tensor) -> Orders:
    """The orders that lead from the present weights to the target weights at the present prices. A target of 0 sells
    the whole holding."""
    change_BS = target_BS - weight_BS
    is_rounding_BS, is_sale_BS = (change_BS.abs() < ROUNDING) & (target_BS > 0), change_BS < 0
    sell_BS = torch.where(is_sale_BS & ~is_rounding_BS, -change_BS / weight_BS, 0.0)
    buy_BS = torch.where(is_sale_BS | is_rounding_BS, 0.0, change_BS * value_B[:, None])  # NaN stays NaN
    return Orders(sell_BS, buy_BS)
