"""The judges of the known answers, on policies that need no training."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from ranks.workloads.stock_trading.config import Config
from ranks.workloads.stock_trading.data.periods import load
from ranks.workloads.stock_trading.data.market_days import MarketDays
from ranks.workloads.stock_trading.tables import known_answers as known
from ranks.workloads.stock_trading.tables.reference import reference_rows


def test_reference_values_to_the_printed_digits() -> None:
    assert [row.what for row in reference_rows() if not row.passed] == []


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known, "JUDGED_DAYS", 3_000)


def of(cfg: Config) -> tuple[Config, MarketDays]:
    cfg = replace(cfg, data=replace(cfg.data, synthetic_days=3_000))
    return cfg, known.evaluation_days(cfg, 7, load(cfg).fitted)


@pytest.mark.usefixtures("short")
def test_every_year_is_an_account_of_its_own() -> None:
    cfg, days = of(known.mean_reverting())
    value_CYT = known.yearly_values(days, cfg, lambda obs: torch.ones(len(obs["day"]), 2), copies=2)
    assert value_CYT.shape == (2, days.num_days // 252, 253)
    assert (value_CYT[0] == value_CYT[1]).all()
    assert (value_CYT[:, :, 0] == cfg.market.initial_cash).all()
    first = days.window - 1
    for year in range(3):
        bought_S = days.close_DS[first + 252 * year + 1]
        last_S = days.close_DS[first + 252 * (year + 1)]
        wanted = 10_000 * bought_S.sum() * 1.001
        shares_S = np.floor(10_000 * min(1.0, 1e6 / wanted) * np.ones(2))
        assert value_CYT[0, year, -1] == pytest.approx(1e6 + (shares_S * (last_S - bought_S)).sum(), rel=0.01)


@pytest.mark.usefixtures("short")
def test_thresholds_earn_where_prices_return_and_nothing_where_they_do_not() -> None:
    cfg, _ = of(known.mean_reverting())
    low, high, sharpe = known.best_threshold(cfg)
    assert low < 0 <= high
    assert sharpe > 1.0
    walks = replace(cfg, data=replace(cfg.data, source="martingale"))
    assert known.best_threshold(walks)[2] < 0.6


@pytest.mark.usefixtures("short")
def test_who_trades_a_martingale_at_random_loses_the_fees() -> None:
    cfg, days = of(known.martingale())
    random = torch.Generator().manual_seed(0)
    value_YT = known.yearly_values(days, cfg, lambda obs: torch.rand((len(obs["day"]), 4), generator=random) * 2 - 1)[0]
    free = replace(cfg, market=replace(cfg.market, commission_bps=0.0))
    random.manual_seed(0)
    free_YT = known.yearly_values(days, free, lambda obs: torch.rand((len(obs["day"]), 4), generator=random) * 2 - 1)[0]
    assert (value_YT[:, -1] < free_YT[:, -1]).all()
