"""Baselines, ledgers and metrics: reference values, consistency, values by hand, and the market on the same trades."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from ranks.errors import UserError
from ranks.workloads.stock_trading.data.market_days import MarketDays
from ranks.workloads.stock_trading.data.prices import Prices
from ranks.workloads.stock_trading.market import baselines, metrics
from ranks.workloads.stock_trading.market.config import MarketConfig
from ranks.workloads.stock_trading.market.ledger import Ledger
from ranks.workloads.stock_trading.market.market import Market
from ranks.workloads.stock_trading.market.simulate import simulate

from .fixtures import TEST_PERIOD, CountReads, ReferenceAccount, bars, days, index, of_closes, simulate_actions, stocks

REFERENCE = {
    "buy and hold": (1.6342, 0.2500, 0.2321, 1.0781, -0.3065),
    "equal weight, every 21 days at 10 bp": (0.8948, 0.1586, 0.1970, 0.8459, -0.3150),
    "the index": (0.4557, 0.0903, 0.1924, 0.5463, -0.3392),
}
"""Return, CAGR, volatility, Sharpe ratio, maximum drawdown of 1,095 days from 2016-01-04 on."""


def measured(ledger: Ledger) -> tuple[float, ...]:
    """Metrics from the close of the first day of the period, after the cost of the first purchase."""
    value_T = ledger.value_T[1:]
    assert len(value_T) == 1095
    metric_functions = metrics.cumulative_return, metrics.cagr, metrics.volatility, metrics.sharpe, metrics.max_drawdown
    return tuple(round(measure(value_T), 4) for measure in metric_functions)


@pytest.mark.parametrize("name", REFERENCE)
def test_baselines_match_reference_values(name: str) -> None:
    rows, free = stocks().rows(*TEST_PERIOD), MarketConfig(commission_bps=0)
    no_band = MarketConfig(no_trade_band=0.0)
    ledgers = {
        "buy and hold": lambda: baselines.buy_and_hold(stocks(), rows, free),
        "equal weight, every 21 days at 10 bp": lambda: baselines.equal_weight(stocks(), rows, no_band),
        "the index": lambda: baselines.buy_and_hold(index(), rows, free),
    }
    ledger = ledgers[name]()
    assert measured(ledger) == REFERENCE[name]
    assert ledger.inconsistencies() == []


@pytest.mark.parametrize("band", [0.0, 0.01])
def test_equal_weights_equal_those_of_a_reference_account(band: float) -> None:
    """Two implementations without common code: plain Python, stock by stock, and the market on tensors."""
    config, rows = MarketConfig(no_trade_band=band), stocks().rows(*TEST_PERIOD)[:420]
    ledger = baselines.equal_weight(stocks(), rows, config)
    account = ReferenceAccount(config, 20)
    values = [account.cash]
    for number, row in enumerate(rows):
        before, now = stocks().close_DS[row - 1].tolist(), stocks().close_DS[row].tolist()
        if number % 21 == 0:
            value = account.value(before)
            weight = [n * p / value for n, p in zip(account.shares, before, strict=True)]
            account.trade([(1 / 20 - w) * 20 for w in weight], before, now)
        values.append(account.value(now))
    np.testing.assert_allclose(ledger.value_T, values, rtol=1e-9)


def test_limits_of_a_day_delay_a_baseline() -> None:
    """With a step of 1 % a day, equal weights of 5 % take five days, and the market is the one of the policies."""
    prices, config = stocks().take(range(6000, 6400)), MarketConfig(weight_step=0.01, no_trade_band=0.0)
    ledger = baselines.buy_and_hold(prices, range(300, 340), config)
    traded = np.flatnonzero(ledger.trades_T)
    assert traded[:5].tolist() == [1, 2, 3, 4, 5]
    assert len(traded) <= 7  # prices move while it buys
    assert ledger.cash_T[5] < 0.05e6


@pytest.mark.parametrize("prices", [bars(80, 4, 0), stocks().take(range(6500, 6600))], ids=["bars", "closes"])
@pytest.mark.parametrize("whole_shares", [True, False])
def test_ledger_is_consistent_every_day(prices: Prices, whole_shares: bool) -> None:
    config = MarketConfig(1e4, commission_bps=30, slippage_bps=20, whole_shares=whole_shares)
    actions = np.random.default_rng(0).uniform(-1, 1, (prices.num_days - 1, prices.num_stocks))
    ledger = simulate_actions(days(prices), actions, config)
    assert ledger.inconsistencies() == []
    assert ledger.commission_T.sum() > 0
    trades = list(ledger.trades())
    assert len(trades) == (ledger.traded_TS != 0).sum() > 50
    assert sum(trade.commission for trade in trades) == pytest.approx(ledger.commission_T.sum())
    paid = sum(trade.shares * trade.price + trade.commission for trade in trades)
    assert ledger.cash_T[-1] == pytest.approx(1e4 - paid, abs=1e-6)
    assert sum(abs(trade.shares) * trade.price for trade in trades) == pytest.approx(ledger.notional_T.sum())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("value_T", "value is not cash plus holdings"),
        ("cash_T", "cash does not follow"),
        ("commission_T", "cash does not follow"),
        ("shares_TS", "value is not cash plus holdings"),
    ],
)
def test_inconsistent_ledgers_are_detected(name: str, text: str) -> None:
    actions = np.random.default_rng(0).uniform(-1, 1, (19, 3))
    ledger = simulate_actions(days(bars(20, 3, 0)), actions, MarketConfig())
    wrong = getattr(ledger, name).copy()
    wrong[7] += 1
    broken = replace(ledger, **{name: wrong})
    assert any(found.startswith(text) and str(ledger.dates_T[7]) in found for found in broken.inconsistencies())


def test_trades_have_day_price_and_commission() -> None:
    prices = of_closes([10.0], [20.0], [30.0], open=[[9.0], [15.0], [25.0]], high=[[99.0]] * 3, low=[[1.0]] * 3)
    config = MarketConfig(1000, commission_bps=100, slippage_bps=200)
    ledger = simulate_actions(days(prices), np.array([[0.153], [-1.0]]), config)
    bought, sold = ledger.trades()
    assert (str(bought.date), bought.ticker, bought.shares) == ("2020-01-02", "A", pytest.approx(10))
    assert (bought.price, bought.commission) == pytest.approx((15 * 1.02, 1.53))
    assert (str(sold.date), sold.shares) == ("2020-01-03", pytest.approx(-10))
    assert (sold.price, sold.commission) == pytest.approx((25 * 0.98, 2.45))
    assert ledger.value_T[0] == 1000
    assert ledger.trades_T.tolist() == [0, 1, 1]


def test_simulation_runs_to_the_end_of_the_period_or_to_ruin() -> None:
    made: MarketDays = days(bars(40, 3, 0), window=4)
    seen: list[int] = []

    def act(observation: dict[str, torch.Tensor]) -> torch.Tensor:
        seen.append(int(observation["day"]))
        return torch.ones(1, 3)

    ledger = simulate(Market(made, range(1), 0, MarketConfig(episode_days=None)), act)
    assert seen == list(range(3, 39))
    assert (ledger.dates_T == made.dates_D[3:]).all()
    crash = days(of_closes([10.0], [10.0], [1.0], [10.0], [10.0]))
    config = MarketConfig(1000, commission_bps=0, episode_days=None, ruin_fraction=0.2)
    ruined = simulate(Market(crash, range(1), 0, config), lambda _: torch.ones(1, 1))
    assert ruined.value_T.tolist() == [1000, 1000, 100]
    with pytest.raises(ValueError, match="2 environments"):
        simulate(Market(made, range(2), 0, MarketConfig(episode_days=None)), act)


def test_a_simulation_waits_for_the_device_as_often_for_many_days_as_for_few() -> None:
    counts: list[int] = []
    for num_days in (10, 60):
        market = Market(days(bars(num_days, 3, 0)), range(1), 0, MarketConfig(episode_days=None, ruin_fraction=0.2))
        with CountReads() as counter:
            simulate(market, lambda _: torch.ones(1, 3))
        counts.append(counter.count)
    assert counts[0] == counts[1] > 0


def test_strategies_see_only_the_days_before() -> None:
    prices, seen = stocks().take(range(6000, 6400)), list[tuple[int, int]]()

    def rule(day: int, past_DS: np.ndarray) -> None:
        seen.append((day, len(past_DS)))

    ledger = baselines.run_strategy(prices, range(300, 310), rule, MarketConfig())
    assert seen == [(day, 300 + day) for day in range(10)]
    assert (ledger.value_T == 1e6).all()
    for wrong in (np.array([0.6, 0.6, *[0.0] * 18]), np.array([-0.1, *[0.0] * 19]), np.full(20, np.nan)):
        with pytest.raises(ValueError, match="invalid weights"):
            baselines.run_strategy(prices, range(300, 310), lambda day, past_DS, w=wrong: w, MarketConfig())


@pytest.mark.parametrize("name", baselines.BASELINES)
def test_baseline_ledgers_are_consistent_at_any_cost(name: str) -> None:
    prices = stocks().take(range(6000, 6400))
    for config in (MarketConfig(), MarketConfig(commission_bps=200, slippage_bps=100)):
        ledger = baselines.BASELINES[name](prices, range(300, 400), config)
        assert ledger.inconsistencies() == []
        traded = np.flatnonzero(ledger.trades_T).tolist()
        months = [1] if name == "buy-and-hold" else [1, 22, 43, 64, 85]
        assert traded[0] == 1
        assert all(any(0 <= day - month < 8 for month in months) for day in traded), "days after a new target"


@pytest.mark.parametrize("name", ["momentum", "min-variance"])
def test_momentum_and_min_variance_need_a_year_of_history(name: str) -> None:
    with pytest.raises(UserError, match="252 days of history"):
        baselines.BASELINES[name](stocks(), range(252, 300), MarketConfig())
    with pytest.raises(UserError, match="no day before it"):
        baselines.buy_and_hold(stocks(), range(10), MarketConfig())


def test_momentum_holds_the_best_stocks_of_a_year_ago_to_a_month_ago() -> None:
    prices = stocks().take(range(6000, 6400))
    ledger = baselines.momentum(prices, range(300, 321), MarketConfig())
    assert np.flatnonzero(ledger.trades_T)[:4].tolist() == [1, 2, 3, 4], "17 % at 5 % a day"
    gain_S = prices.close_DS[299 - 21] / prices.close_DS[299 - 252]
    assert set(np.flatnonzero(ledger.shares_TS[1])) == set(np.argsort(gain_S)[-6:])


def test_momentum_keeps_no_dust_of_former_winners() -> None:
    """Its target of most stocks is 0, and a rest below the no-trade band is sold too."""
    prices = stocks().take(range(6000, 6600))
    ledger = baselines.momentum(prices, range(300, 600), MarketConfig())
    for month in range(2, 14):
        row = month * 21 + 1 + 8  # after the 8 days of orders from the first day of that month on
        gain_S = prices.close_DS[299 + month * 21 - 21] / prices.close_DS[299 + month * 21 - 252]
        losers_S = np.argsort(-gain_S)[6:]
        assert not ledger.shares_TS[row, losers_S].any(), month


def test_minimum_variance_weights_satisfy_the_kkt_conditions() -> None:
    """Karush-Kuhn-Tucker: all held stocks have the same marginal variance, and the other stocks no lower one."""
    close_DS = stocks().close_DS[6000:6253]
    covariance_SS = np.cov((close_DS[1:] / close_DS[:-1] - 1).T)
    weights_S = baselines.minimum_variance_weights(covariance_SS)
    assert weights_S.sum() == pytest.approx(1)
    assert weights_S.min() >= 0
    slope_S = covariance_SS @ weights_S
    least = weights_S @ slope_S
    assert slope_S[weights_S > 1e-4] == pytest.approx(least, rel=1e-3)
    assert (slope_S >= least * (1 - 1e-3)).all()
    assert baselines.minimum_variance_weights(np.diag([1.0, 2.0, 4.0])) == pytest.approx(
        np.array([4, 2, 1]) / 7, rel=1e-6
    )


def test_projection_to_the_simplex() -> None:
    assert baselines.project_to_simplex(np.array([0.2, 0.3, 0.5])).tolist() == pytest.approx([0.2, 0.3, 0.5])
    assert baselines.project_to_simplex(np.array([2.0, 0.0, -5.0])).tolist() == [1, 0, 0]
    assert baselines.project_to_simplex(np.array([0.9, 0.7, 0.0])).tolist() == pytest.approx([0.6, 0.4, 0.0])


def test_metrics_by_hand() -> None:
    value_T = np.array([100.0, 110.0, 99.0, 118.8])
    return_R = np.array([0.1, -0.1, 0.2])
    assert metrics.cumulative_return(value_T) == pytest.approx(0.188)
    assert metrics.cagr(value_T) == pytest.approx(1.188**84 - 1)
    assert metrics.volatility(value_T) == pytest.approx(return_R.std(ddof=1) * 252**0.5)
    assert metrics.sharpe(value_T) == pytest.approx(return_R.mean() / return_R.std(ddof=1) * 252**0.5)
    assert metrics.sortino(value_T) == pytest.approx(return_R.mean() / np.sqrt(0.01 / 3) * 252**0.5)
    assert metrics.max_drawdown(value_T) == pytest.approx(-0.1)
    assert metrics.drawdown(value_T).tolist() == pytest.approx([0, 0, -0.1, 0])
    assert metrics.calmar(value_T) == pytest.approx((1.188**84 - 1) / 0.1)
    notional_T = np.array([0.0, 50.0, 0.0, 30.0])
    assert metrics.turnover(notional_T, value_T) == pytest.approx(40 / value_T.mean() * 84)
    summary = metrics.summary(value_T, notional_T, notional_T * 0.01, np.array([0.0, 2.0, 0.0, 1.0]))
    assert [summary[name] for name in ("trades", "trading_days")] == [3, 2]
    assert [summary[name] for name in ("trades_per_year", "trading_days_per_year")] == [3 * 84, 2 * 84]
    assert summary["costs"] == pytest.approx(0.008)
    assert summary["return"] == metrics.cumulative_return(value_T)
    assert all(type(value) is float for value in summary.values())


def test_undefined_metrics_are_nan() -> None:
    rising_T, flat_T = np.array([1.0, 2.0, 4.0]), np.ones(5)
    assert np.isnan(metrics.sortino(rising_T))
    assert np.isnan(metrics.calmar(rising_T))
    assert np.isnan(metrics.sharpe(flat_T))
    assert metrics.max_drawdown(flat_T) == 0
    assert metrics.cumulative_return(flat_T) == 0
    one = metrics.summary(np.ones(1), *np.zeros((3, 1)))
    defined = [name for name, value in one.items() if not np.isnan(value)]
    assert defined == ["return", "max_drawdown", "costs", "trades", "trading_days"]
