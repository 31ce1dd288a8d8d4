"""Stocks that are listed later, suspended or delisted, in a small universe whose book is worked out by hand."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ranks.errors import UserError
from ranks.workloads.stock_trading.config import Config, ModelConfig, demo
from ranks.workloads.stock_trading.data.config import DataConfig, FeatureConfig
from ranks.workloads.stock_trading.data.features import features_of
from ranks.workloads.stock_trading.data.market_days import MarketDays, days_without_features
from ranks.workloads.stock_trading.data.periods import load_periods, load_prices
from ranks.workloads.stock_trading.data.prices import Prices
from ranks.workloads.stock_trading.data.read_csv import read_csv
from ranks.workloads.stock_trading.data.turbulence import turbulence
from ranks.workloads.stock_trading.market import baselines
from ranks.workloads.stock_trading.market.config import MarketConfig
from ranks.workloads.stock_trading.market.market import Market
from ranks.workloads.stock_trading.policy.backtest import backtest
from ranks.workloads.stock_trading.runs.trained_run import load_run

from .fixtures import bars, simulate_actions, train_run, with_gaps

PAGE = Path(__file__).parents[2] / "docs" / "stock-trading.md"
UNIVERSE = """date,A,B,C
2020-01-01,10,,10
2020-01-02,10,,10
2020-01-03,10,10,
2020-01-06,20,10,
2020-01-07,20,10,20
2020-01-08,20,10,
2020-01-09,20,10,
2020-01-10,20,10,
2020-01-13,20,10,30
2020-01-14,20,10,40
"""
"""B is listed on the third day. C has no price on two days, and then on three, after which it is taken as delisted."""
CONFIG = MarketConfig(1000, weight_step=0.5, commission_bps=0, episode_days=None, delisted_after=3)


@pytest.fixture
def universe(tmp_path: Path) -> Prices:
    path = tmp_path / "universe.csv"
    path.write_text(UNIVERSE)
    return read_csv(path, missing="not-traded")


def whole(prices: Prices) -> MarketDays:
    return days_without_features(prices, range(1, prices.num_days))


def test_book_worked_out_by_hand(universe: Prices) -> None:
    actions = np.array(
        [
            [0.4, 1.0, 0.6],  # 20 % of A: 20 at 10. 30 % of C: 30 at 10. B is not listed. Cash 500
            [0.0, 1.0, -1.0],  # B is not listed yet; the sale of C is not filled, as C is suspended
            [0.0, 0.4, -1.0],  # 20 % of B: 20 at 10, cash 300. No order for C, which is suspended
            [0.0, 0.0, -1.0],  # C is still suspended, so there is no order to fill when it returns
            [-1.0, 0.0, 0.2],  # A is sold: 20 at 20. C cannot be bought: it has no price again. Cash 300 + 400
            [0.0, 0.0, -1.0],  # C has no price on the second day
            [0.0, 0.0, -1.0],  # ... and on the third: it is taken as delisted, at 70 % of 20. Cash 700 + 420
            [0.0, 0.0, 1.0],  # C returns, but there was no order, as it was not traded at the close
            [0.0, 0.0, 0.4],  # 20 % of C can be bought again: 264 at 40. Cash 1120 - 264
        ]
    )
    ledger = simulate_actions(whole(universe), actions, CONFIG)
    assert ledger.shares_TS.tolist() == [
        [0, 0, 0],
        [20, 0, 30],
        [20, 0, 30],
        [20, 20, 30],
        [20, 20, 30],
        [0, 20, 30],
        [0, 20, 30],
        [0, 20, 0],
        [0, 20, 0],
        [0, 20, pytest.approx(6.6)],
    ]
    assert ledger.cash_T.tolist() == pytest.approx([1000, 500, 500, 300, 300, 700, 700, 1120, 1120, 856])
    # C is valued at its last price while it is suspended
    value_T = [1000, 1000, 1000, 1200, 1500, 1500, 1500, 1320, 1320, 1320]
    assert ledger.value_T.tolist() == pytest.approx(value_T)
    assert ledger.inconsistencies() == []
    forced = next(trade for trade in ledger.trades() if trade.ticker == "C" and trade.shares < 0)
    assert (str(forced.date), forced.shares, forced.price) == ("2020-01-10", -30, pytest.approx(14))


def test_forced_sales_pay_costs_and_recover_the_stated_fraction(universe: Prices) -> None:
    actions = np.zeros((9, 3))
    actions[0, 2] = 1.0  # 50 % of C: 50 at 10
    config = replace(CONFIG, commission_bps=100, recovery=0.4)
    ledger = simulate_actions(whole(universe), actions, config)
    assert ledger.cash_T.tolist() == pytest.approx([1000, *[495] * 6, *[495 + 50 * 8 * 0.99] * 3])
    nothing = simulate_actions(whole(universe), np.sign(actions) * [[0, 0, 2]], replace(config, recovery=0.0))
    assert nothing.value_T[-1] == pytest.approx(495)


def test_a_stock_is_held_until_it_is_taken_as_delisted(universe: Prices) -> None:
    actions = np.zeros((9, 3))
    actions[0, 2] = 1.0  # 50 at 10
    for delisted_after, price in {1: 7.0, 2: 7.0, 3: 14.0}.items():
        ledger = simulate_actions(whole(universe), actions, replace(CONFIG, delisted_after=delisted_after))
        assert [trade.price for trade in ledger.trades()] == pytest.approx([10, price])
    held = simulate_actions(whole(universe), actions, replace(CONFIG, delisted_after=4))
    assert [trade.price for trade in held.trades()] == [10]
    assert held.value_T[-1] == pytest.approx(500 + 50 * 40)


def test_what_a_stock_does_later_changes_no_book_before(universe: Prices) -> None:
    """Whether it returns or not: the account of each day is that of the prices up to that day."""
    actions = np.random.default_rng(0).uniform(-1, 1, (9, 3))
    book = simulate_actions(whole(universe), actions, CONFIG)
    for num in range(3, 10):
        before = simulate_actions(whole(universe.take(range(num))), actions[: num - 1], CONFIG)
        np.testing.assert_array_equal(before.shares_TS, book.shares_TS[:num])
        np.testing.assert_array_equal(before.value_T, book.value_T[:num])


def test_an_account_that_lost_all_stays_at_zero() -> None:
    prices = Prices.of(
        np.busday_offset("2020-01-01", np.arange(5), roll="forward"),
        ("A", "B"),
        {"close": np.array([[1.0, 1.0], [1.0, 1.0], [1.0, np.nan], [1.0, np.nan], [1.0, np.nan]])},
        "by hand",
        has_gaps=True,
    )
    config = replace(CONFIG, weight_step=1.0, recovery=0.0, delisted_after=1)
    market = Market(whole(prices), range(1), 0, config)
    rewards = [market.step(torch.tensor([[0.0, 1.0]])).reward_B.item() for _ in range(3)]
    assert rewards == [0, pytest.approx(-1000 * CONFIG.reward_scale), 0]


def test_turbulent_days_sell_what_is_traded_at_the_close_and_on_the_next_day(universe: Prices) -> None:
    actions = np.zeros((9, 3))
    actions[0] = [0.4, 0.0, 0.6]
    for turbulent, held in {1: [0, 0, 30], 2: [0, 0, 30], 3: [0, 0, 30], 8: [0, 0, 0]}.items():
        days = replace(whole(universe), is_turbulent_D=np.arange(10) == turbulent)
        ledger = simulate_actions(days, actions, replace(CONFIG, delisted_after=4))
        assert ledger.shares_TS[turbulent].tolist() == [20, 0, 30]
        assert ledger.shares_TS[turbulent + 1].tolist() == held


def test_baselines_hold_what_is_traded(universe: Prices) -> None:
    ledger = baselines.buy_and_hold(universe, range(1, 10), CONFIG)
    assert ledger.shares_TS[1].tolist() == [50, 0, 50]
    assert ledger.value_T[-1] == pytest.approx(50 * 20 + 50 * 14)
    assert ledger.inconsistencies() == []


def test_a_stock_without_any_price_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "none.csv").write_text("date,A,B\n2020-01-01,1,\n2020-01-02,1,\n")
    with pytest.raises(UserError, match="B has no price on any day"):
        read_csv(tmp_path / "none.csv", missing="not-traded")
    with pytest.raises(UserError, match="B has no price on 2020-01-01"):
        read_csv(tmp_path / "none.csv")


def test_partial_bars_are_not_traded(tmp_path: Path) -> None:
    lines = ["date,tic,open,high,low,close", "2020-01-01,A,1,2,1,2", "2020-01-02,A,1,,1,2", "2020-01-03,A,1,2,1,2"]
    (tmp_path / "bars.csv").write_text("\n".join(lines) + "\n")
    prices = read_csv(tmp_path / "bars.csv", missing="not-traded")
    assert prices.is_traded_DS[:, 0].tolist() == [True, False, True]
    assert prices.open_DS is not None
    assert np.isnan(prices.open_DS[1, 0])


FEATURES = FeatureConfig(
    names=("return", "trend", "macd", "rsi", "cci", "adx", "level", "traded"),
    trend_days=5,
    rsi_days=5,
    cci_days=5,
    adx_days=5,
    macd_fast=3,
    macd_slow=6,
    level_days=20,
    turbulence_days=40,
)


def test_features_of_a_late_stock_are_those_of_its_own_history() -> None:
    prices = bars(150, 3, 0)
    late = features_of(with_gaps(prices, (1, 0, 70)), FEATURES)
    alone = features_of(prices.take(range(70, 150)).only(("S1",)), replace(FEATURES, turbulence=False))
    full = features_of(prices, FEATURES)
    assert np.isfinite(late.stock_DSF[late.first_day :]).all()
    assert late.first_day == full.first_day == 41
    np.testing.assert_allclose(late.stock_DSF[90:, 1], alone.stock_DSF[20:, 0], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(late.stock_DSF[41:, [0, 2]], full.stock_DSF[41:, [0, 2]], rtol=1e-9, atol=1e-12)
    assert late.stock_DSF[41:70, 1].tolist() == [[0, 0, 0, 50, 0, 0, 0, 0]] * 29, "of a constant price, not traded"


def test_features_of_a_suspended_stock_are_those_of_its_last_price() -> None:
    prices, gap = bars(150, 3, 0), (2, 100, 110)
    fields = {name: values.copy() for name, values in prices.fields().items()}
    for values in fields.values():
        values[100:110, 2] = prices.close_DS[99, 2]
    still = features_of(Prices.of(prices.dates_D, prices.tickers, fields, "still"), FEATURES)
    suspended = features_of(with_gaps(prices, gap), FEATURES)
    np.testing.assert_array_equal(suspended.stock_DSF[41:, :, :-1], still.stock_DSF[41:, :, :-1])
    assert suspended.stock_DSF[98:112, 2, -1].tolist() == [1.0, 1.0, *[0.0] * 10, 1.0, 1.0]


def test_turbulence_counts_stocks_with_a_full_window() -> None:
    close_DS = bars(150, 4, 1).close_DS
    gap_DS = with_gaps(bars(150, 4, 1), (3, 0, 50)).close_DS
    found_D, three_D, four_D = turbulence(gap_DS, 30), turbulence(close_DS[:, :3], 30), turbulence(close_DS, 30)
    np.testing.assert_allclose(found_D[31:81], three_D[31:81] * 4 / 3, rtol=1e-9)
    np.testing.assert_array_equal(found_D[81:], four_D[81:])
    assert turbulence(with_gaps(bars(150, 2, 1), (1, 60, 61)).close_DS, 30)[60:92].tolist() == [0.0] * 32


@pytest.fixture(scope="module")
def masked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Config]:
    """A folder with own.csv and runs/own, trained on stocks that come and go."""
    folder = tmp_path_factory.mktemp("masked")
    prices = with_gaps(bars(700, 4, 2), (0, 0, 200), (1, 600, 700), (2, 300, 330), (2, 560, 640))
    lines = ["date," + ",".join(prices.tickers)]
    rows = zip(prices.dates_D, prices.close_DS.tolist(), strict=True)
    lines += [f"{day}," + ",".join("" if np.isnan(p) else repr(p) for p in row) for day, row in rows]
    (folder / "own.csv").write_text("\n".join(lines) + "\n")
    cfg = replace(
        demo(),
        data=DataConfig(source=str(folder / "own.csv"), missing="not-traded", embargo_days=10),
        features=replace(FEATURES, names=("return", "trend")),
        model=ModelConfig(hidden=8, feature_hidden=8, window=10),
        ppo=replace(demo().ppo, minibatches=2, epochs=1),
        global_batch=8,
        iterations=2,
    )
    train_run(cfg, folder / "runs", "own")
    return folder, cfg


def test_the_export_is_used_with_the_features_of_the_run(masked: tuple[Path, Config]) -> None:
    """The example of the page, for a run whose features have `traded` added."""
    folder, _ = masked
    code = PAGE.read_text(encoding="utf-8").split("```python use.py\n")[1].split("```")[0]
    used = [sys.executable, "-c", code.replace("demo", "own")]
    done = subprocess.run(used, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    weights = ast.literal_eval(done.stdout)
    assert list(weights) == ["S0", "S1", "S2", "S3"]
    assert all(0 <= weight <= 1 for weight in weights.values())


def test_a_policy_trains_and_is_tested_on_stocks_that_come_and_go(masked: tuple[Path, Config]) -> None:
    folder, cfg = masked
    run = load_run("own", folder / "runs")
    test = load_periods(run.cfg.periods).test
    assert backtest(run.policy, test, cfg.market, torch.device("cpu")).inconsistencies() == []
    actions = np.random.default_rng(0).uniform(-1, 1, (test.num_days, 4))
    ledger = simulate_actions(test, actions, cfg.market)
    assert ledger.inconsistencies() == []
    assert ledger.trades_T.sum() > 100
    is_traded_TS = load_prices(run.cfg.data).is_traded_DS[-len(ledger.dates_T) :].copy()
    for stock, last in ((1, 599), (2, 559)):
        forced = last + 20 - (700 - len(ledger.dates_T))
        assert ledger.shares_TS[forced - 1, stock] > 0
        assert not ledger.shares_TS[forced, stock]
        is_traded_TS[forced, stock] = True
    assert not ledger.traded_TS[~is_traded_TS].any()
    assert ledger.shares_TS[-59:, 2].any(), "it can be bought again"
