"""The days of a period: features, fill prices, the exit after turbulent days, the lookback window."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch

from ranks.errors import UserError
from ranks.workloads.stock_trading.data.config import FeatureConfig
from ranks.workloads.stock_trading.data.market_days import Periods, make_periods
from ranks.workloads.stock_trading.data.split import Split, split_by_dates
from ranks.workloads.stock_trading.market.config import MarketConfig
from ranks.workloads.stock_trading.market.market import Market

from ..fixtures import TEST_PERIOD, TRAIN_PERIOD, stocks


def split(train_from: str = TRAIN_PERIOD[0]) -> Split:
    return split_by_dates(stocks(), (train_from, TRAIN_PERIOD[1]), TEST_PERIOD, embargo=30, window=30)


@functools.cache
def periods(turbulence_exit: float | None = None, window: int = 30) -> Periods:
    return make_periods(stocks(), split(), FeatureConfig(), window, turbulence_exit)


def test_periods_have_their_days_and_the_window_before() -> None:
    made = periods(turbulence_exit=0.9)
    assert made.validation is None
    assert made.stats.threshold == pytest.approx(42.175, abs=1e-3)
    test = made.test
    assert test.num_days == 1095
    assert str(test.dates_D[30]) == "2016-01-04"
    assert str(test.dates_D[-1]) == "2020-05-08"
    assert np.isfinite(test.table_DK).all()
    assert np.isnan(test.fill_DS[-1]).all()
    np.testing.assert_array_equal(test.fill_DS[:-1], test.close_DS[1:])
    assert int(test.is_turbulent_D[30:].sum()) == 153
    assert not periods().test.is_turbulent_D.any()


def test_all_is_sold_after_a_turbulent_day() -> None:
    made = periods(turbulence_exit=0.9).test
    market = Market(made, range(8), 0, MarketConfig(episode_days=None))
    held_days = 0
    for day in range(made.window - 1, len(made.dates_D) - 1):
        market.advance(torch.ones(8, 20))
        held_days += bool((market.shares_BS > 0).any())
        if made.is_turbulent_D[day]:
            assert (market.shares_BS == 0).all()
    assert held_days == int((~made.is_turbulent_D[29:-1]).sum())


def test_turbulence_exit_needs_the_turbulence_feature() -> None:
    with pytest.raises(UserError, match="the turbulence is off"):
        make_periods(stocks(), split(), FeatureConfig(turbulence=False), 30, 0.9)


def test_periods_need_a_window_before_them() -> None:
    with pytest.raises(UserError, match="features exist from 1991-01-02 on"):
        make_periods(stocks(), split("1991-01-02"), FeatureConfig(), 30)
    with pytest.raises(UserError, match="a window of 0 days"):
        periods(window=0)


def test_observation_is_account_and_features() -> None:
    made = periods().train
    market = Market(made, range(3), 0, MarketConfig())
    for seed in range(4):
        market.advance(torch.rand((3, 20), generator=torch.Generator().manual_seed(seed)))
    vector_BF = market.observation_vector()
    assert vector_BF.shape == (3, 22 + 141)
    assert vector_BF.dtype == torch.get_default_dtype()
    for row, day in enumerate(market.day_B.tolist()):
        np.testing.assert_array_equal(vector_BF[row, 22:].numpy(), made.table_DK[day])
        held_S = market.shares_BS[row].numpy() * made.close_DS[day]
        value = market.value_B[row].item()
        np.testing.assert_allclose(vector_BF[row, 1:21].numpy(), held_S / value, rtol=1e-6)
        np.testing.assert_allclose(
            vector_BF[row, [0, 21]].numpy(), [market.cash_B[row].item() / value, value / 1e6], rtol=1e-6
        )
    assert market.table_DF.shape == (made.num_days + 30, 141)
