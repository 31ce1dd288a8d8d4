"""The evaluation on synthetic markets, with policies that need no training."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from ranks.workloads.stock_trading.config import Config
from ranks.workloads.stock_trading.data.market_days import MarketDays
from ranks.workloads.stock_trading.data.periods import load_periods
from ranks.workloads.stock_trading.tables import known_answers
from ranks.workloads.stock_trading.tables.reference import reference_rows


def test_reference_values() -> None:
    assert [row.what for row in reference_rows() if not row.passed] == []


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_answers, "EVALUATION_DAYS", 3_000)


def short_market(cfg: Config) -> tuple[Config, MarketDays]:
    cfg = replace(cfg, data=replace(cfg.data, synthetic_days=3_000))
    return cfg, known_answers.evaluation_days(cfg.periods, 7, load_periods(cfg.periods).stats)


@pytest.mark.usefixtures("short")
def test_each_year_is_a_separate_account() -> None:
    cfg, days = short_market(known_answers.mean_reverting())

    def buy_first(obs: dict[str, torch.Tensor]) -> torch.Tensor:
        return (obs["account"][:, :1] == 1).double().expand(-1, 2)

    value_CYT = known_answers.yearly_values(days, cfg.market, buy_first, copies=2)
    assert value_CYT.shape == (2, days.num_days // 252, 253)
    assert (value_CYT[0] == value_CYT[1]).all()
    assert (value_CYT[:, :, 0] == cfg.market.initial_cash).all()
    first = days.window - 1
    for year in range(3):
        bought_S = days.close_DS[first + 252 * year + 1]
        last_S = days.close_DS[first + 252 * (year + 1)]
        held = 1e6 / 1.001 / 2 * (last_S / bought_S).sum()  # half of each on the first day, kept within the band
        assert value_CYT[0, year, -1] == pytest.approx(held, rel=0.02)


@pytest.mark.usefixtures("short")
def test_thresholds_gain_on_mean_reverting_prices_only() -> None:
    cfg, _ = short_market(known_answers.mean_reverting())
    low, high, sharpe = known_answers.best_threshold(cfg.periods, cfg.market)
    assert low < 0 <= high
    assert sharpe > 1.0
    walks = replace(cfg, data=replace(cfg.data, source="martingale"))
    assert known_answers.best_threshold(walks.periods, walks.market)[2] < 0.6


@pytest.mark.usefixtures("short")
def test_random_trading_of_a_martingale_loses_the_commissions() -> None:
    cfg, days = short_market(known_answers.martingale())
    random = torch.Generator()

    def act(obs: dict[str, torch.Tensor]) -> torch.Tensor:
        return torch.rand((len(obs["day"]), 4), generator=random) * 2 - 1

    random.manual_seed(0)
    value_YT = known_answers.yearly_values(days, cfg.market, act)[0]
    random.manual_seed(0)
    free_YT = known_answers.yearly_values(days, replace(cfg.market, commission_bps=0.0), act)[0]
    assert (value_YT[:, -1] < free_YT[:, -1]).all()
