"""From actions to trades: fills, costs, the no-trade band, weights within reach, cash."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

from ranks.errors import UserError
from ranks.workloads.stock_trading.data.prices import Prices
from ranks.workloads.stock_trading.market.config import MarketConfig
from ranks.workloads.stock_trading.market.market import Market

from ..fixtures import DEFAULT, FLAT, NO_COSTS, bars, days, of_closes


def test_orders_are_filled_at_the_next_open() -> None:
    prices = of_closes([10.0], [20.0], [30.0], open=[[9.0], [15.0], [25.0]], high=[[99.0]] * 3, low=[[1.0]] * 3)
    market = Market(days(prices), range(1), 0, NO_COSTS)
    assert market.step(torch.tensor([[0.15]])).reward_B.item() == pytest.approx(10 * (20 - 15))  # 150 buy 10 at 15
    assert market.cash_B.item() == pytest.approx(1000 - 10 * 15)
    assert market.observe()["account"][0].tolist() == pytest.approx([850 / 1050, 200 / 1050, 1.05])


def test_close_only_orders_are_filled_at_the_next_close() -> None:
    market = Market(days(of_closes([10.0], [20.0], [30.0])), range(1), 0, NO_COSTS)
    assert market.step(torch.tensor([[0.2]])).reward_B.item() == 0
    assert market.cash_B.item() == pytest.approx(1000 - 10 * 20)


def of_many(num_days: int, num_stocks: int) -> Prices:
    """Constant prices of many stocks."""
    dates_D = np.busday_offset("2020-01-01", np.arange(num_days), roll="forward")
    tickers = tuple(f"S{number}" for number in range(num_stocks))
    return Prices.of(dates_D, tickers, {"close": np.full((num_days, num_stocks), 10.0)}, "many")


def test_sales_fund_purchases_and_both_pay_costs() -> None:
    prices = of_closes([10.0, 10.0], [10.0, 10.0], [10.0, 10.0])
    config = replace(NO_COSTS, commission_bps=100, slippage_bps=1000, weight_step=0.55)
    market = Market(days(prices), range(1), 0, config)
    market.advance(torch.tensor([[1.0, 0.0]]))  # 550 buy 50 at 11, and 1 % of 550
    assert market.cash_B.item() == pytest.approx(1000 - 550 - 5.5)
    market.advance(torch.tensor([[-1.0, 2.0]]))  # 50 at 9, less 1 %; then 55 % of 944.5 at 11
    spent = 0.55 * 944.5
    assert market.cash_B.item() == pytest.approx(444.5 + 450 - 4.5 - spent * 1.01)
    assert market.shares_BS.tolist() == [[0, pytest.approx(spent / 11)]]


@pytest.mark.parametrize("whole", [False, True])
def test_too_little_cash_scales_all_purchases(whole: bool) -> None:
    market = Market(days(FLAT), range(1), 0, replace(NO_COSTS, commission_bps=1000, whole_shares=whole))
    market.advance(torch.ones(1, 2))  # 500 of each would cost 1100
    bought = [45, 22] if whole else [pytest.approx(500 / 1.1 / 10), pytest.approx(500 / 1.1 / 20)]
    assert market.shares_BS.tolist() == [bought]
    assert market.cash_B.item() == pytest.approx(1000 - (450 + 440) * 1.1 if whole else 0, abs=1e-8)
    assert market.cash_B.item() >= 0


def test_targets_above_the_whole_account_are_divided_by_their_sum() -> None:
    market = Market(days(FLAT), range(1), 0, replace(NO_COSTS, weight_step=1.0))
    market.advance(torch.ones(1, 2))
    assert market.weights_BS().tolist() == [pytest.approx([0.5, 0.5])]
    market.advance(torch.tensor([[0.0, 0.5]]))  # 0.5 and 1.0
    assert market.weights_BS().tolist() == [pytest.approx([1 / 3, 2 / 3])]
    market.advance(torch.tensor([[-1.0, -0.25]]))  # the rest is cash
    assert market.weights_BS().tolist() == [pytest.approx([0, 2 / 3 - 0.25])]


def test_small_changes_of_a_weight_do_not_trade() -> None:
    market = Market(days(FLAT), range(1), 0, replace(NO_COSTS, weight_step=0.1))
    market.advance(torch.tensor([[0.099, 0.101]]))
    assert market.weights_BS().tolist() == [[0, pytest.approx(0.0101)]]
    market.advance(torch.tensor([[0.0, -0.05]]))
    assert market.weights_BS().tolist() == [[0, pytest.approx(0.0101)]]
    market.advance(torch.tensor([[0.0, -1.0]]))
    assert market.shares_BS.tolist() == [[0, 0]]


def test_a_weight_of_0_sells_a_holding_smaller_than_the_band() -> None:
    market = Market(days(FLAT), range(1), 0, replace(NO_COSTS, weight_step=0.1))
    market.advance(torch.tensor([[0.15, 0.2]]))  # weights of 0.015 and 0.02
    market.advance(torch.tensor([[-0.1, -0.12]]))  # 0.01 would change, then 0.012
    assert market.weights_BS().tolist() == [[pytest.approx(0.005), pytest.approx(0.008)]]
    market.advance(torch.tensor([[-0.07, -0.07]]))  # 0, and a change of 0.007 to 0.001
    assert market.weights_BS().tolist() == [[0, pytest.approx(0.008)]]


@pytest.mark.parametrize("num_stocks", [20, 150])
def test_a_fully_invested_account_can_raise_one_weight(num_stocks: int) -> None:
    prices = of_many(12, num_stocks)
    for config in (NO_COSTS, replace(NO_COSTS, commission_bps=10)):
        market = Market(days(prices), range(1), 0, config)
        market.advance(torch.ones(1, num_stocks))
        assert market.cash_B.item() == pytest.approx(0, abs=1e-6)
        weights = [market.weights_BS()[0, 0].item()]
        for _ in range(10):
            market.advance(torch.nn.functional.one_hot(torch.tensor([0]), num_stocks))
            weights.append(market.weights_BS()[0, 0].item())
        assert all(after > before + 0.5 / num_stocks for before, after in itertools.pairwise(weights))
        assert weights[-1] > 7 / num_stocks
        others_S = market.weights_BS()[0, 1:]
        assert others_S.max().item() == pytest.approx(others_S.min().item())


def test_many_stocks_are_traded_with_the_default_band() -> None:
    """With 100 stocks or more, a band of 1 % would not be below the step of 1 / 100."""
    market = Market(days(of_many(3, 150)), range(1), 0, NO_COSTS)
    market.advance(torch.ones(1, 150) * 0.5)
    assert market.weights_BS().tolist() == [pytest.approx([0.5 / 150] * 150)]
    assert [MarketConfig().band_of(num) for num in (1, 20, 40)] == [0.01, 0.01, 0.005]


@pytest.mark.parametrize(("step", "band"), [(None, 0.01), (0.1, 0.1), (0.001, None)])
def test_a_band_that_is_not_below_the_step_is_rejected(step: float | None, band: float | None) -> None:
    config = replace(NO_COSTS, weight_step=step, no_trade_band=band)
    with pytest.raises(UserError, match="nothing would ever be traded"):
        Market(days(of_many(3, 100)), range(1), 0, config)


def test_any_weights_are_reached_within_a_few_days() -> None:
    """With actions of at most 1, from any weights: the largest change over the step, in days."""
    prices, num = bars(40, 20, 3), 20
    target_S = torch.tensor([0.25, 0.25, 0.25, 0.2, *[0.0] * 16], dtype=torch.float64)
    market = Market(days(prices), range(1), 0, replace(NO_COSTS, no_trade_band=0.0))
    for _ in range(6):
        market.advance((target_S - market.weights_BS()) * num)
    assert (market.weights_BS() - target_S).abs().max() < 0.02  # one day's moves of the prices


def test_cash_that_is_spent_day_after_day_stays_at_zero_or_above() -> None:
    """Without a floor, ever smaller rests of cash reach the smallest float and then a negative number."""
    prices = bars(900, 3, 1)
    market = Market(days(prices), range(64), 0, replace(DEFAULT, commission_bps=10))
    bias_BS = torch.randn((64, 3), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for day in range(899):
        market.advance(bias_BS * (1 + 0.1 * (day % 3)))
        assert (market.cash_B >= 0).all()
        assert market.value_B.isfinite().all()
