"""A trained policy on other prices of its stocks: preprocessing statistics and periods stay those of its training."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ranks.cli.main import main
from ranks.workloads.stock_trading.config import ModelConfig, demo
from ranks.workloads.stock_trading.data.config import DataConfig
from ranks.workloads.stock_trading.data.features import features_of
from ranks.workloads.stock_trading.data.periods import get_test_rows, load_prices, prepare_periods
from ranks.workloads.stock_trading.data.prices import Prices
from ranks.workloads.stock_trading.market.config import MarketConfig
from ranks.workloads.stock_trading.market.market import Market
from ranks.workloads.stock_trading.policy.backtest import backtest
from ranks.workloads.stock_trading.policy.preprocessing import get_preprocessing, market_days_for
from ranks.workloads.stock_trading.runs.trained_run import TrainedRun, load_run

from .fixtures import stocks, train_run

TICKERS = ("AAPL", "KO", "XOM")
FIRST, LAST = "2010-01-04", "2016-12-30"
"""The first and the last day of the run's prices."""


def part(first: str, last: str, tickers: Sequence[str] = TICKERS) -> Prices:
    return stocks().take(stocks().rows(first, last)).only(tuple(tickers))


def write(path: Path, prices: Prices) -> Path:
    days = zip(prices.dates_D, prices.close_DS.tolist(), strict=True)
    lines = [",".join(["date", *prices.tickers]), *(f"{day}," + ",".join(map(repr, row)) for day, row in days)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with own.csv, and runs/own, trained on it."""
    folder = tmp_path_factory.mktemp("own")
    write(folder / "own.csv", part(FIRST, LAST))
    cfg = replace(
        demo(),
        data=DataConfig(source="own.csv"),
        market=MarketConfig(no_trade_band=0.0, turbulence_exit=0.9),
        model=ModelConfig(hidden=8, feature_hidden=8),
        ppo=replace(demo().ppo, minibatches=2, epochs=1),
        global_batch=8,
        iterations=2,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        train_run(cfg, Path("runs"), "own")
    return folder


@pytest.fixture
def own(home: Path, monkeypatch: pytest.MonkeyPatch) -> TrainedRun:
    monkeypatch.chdir(home)
    return load_run("own")


def rows_of_test(run: TrainedRun, prices: Prices) -> range:
    return get_test_rows(run.cfg.data, run.cfg.model.window, prices)


def measured(argv: Sequence[str], out: Path) -> dict[str, object]:
    assert main(["stock-trading", "backtest", "own", *argv, "--out", str(out)]) == 0
    return json.loads((out / "metrics.json").read_text())


@pytest.fixture(scope="module")
def own_results(home: Path) -> dict[str, object]:
    """metrics.json of a backtest of runs/own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        return measured([], home / "results")


def test_saved_config_has_tickers_and_dates(own: TrainedRun) -> None:
    data = own.cfg.data
    assert data.tickers == TICKERS
    assert (data.train_from, data.test_to) == ("2011-02-16", LAST)
    assert data.train_from is not None
    assert data.train_to is not None
    assert data.test_from is not None
    assert data.train_from < data.train_to < data.test_from < LAST


def test_preprocessing_statistics_are_restored_bit_for_bit(own: TrainedRun) -> None:
    prices = load_prices(own.cfg.data)
    periods, stored = prepare_periods(own.cfg.periods, prices), get_preprocessing(own.policy)
    fitted = periods.stats
    np.testing.assert_array_equal(stored.scaler.mean_K, fitted.scaler.mean_K)
    np.testing.assert_array_equal(stored.scaler.std_K, fitted.scaler.std_K)
    assert stored.threshold == fitted.threshold < np.inf
    days = market_days_for(own.policy, prices, rows_of_test(own, prices), own.cfg.features)
    same = periods.test
    np.testing.assert_array_equal(days.table_DK, same.table_DK)
    np.testing.assert_array_equal(days.is_turbulent_D, same.is_turbulent_D)


OTHERS = {
    "columns in another order": part(FIRST, LAST, ("XOM", "AAPL", "KO")),
    "more stocks": part(FIRST, LAST, ("GE", *TICKERS, "PG")),
    "more years before": part("2000-01-03", LAST),
    "more years after": part(FIRST, "2019-12-31"),
    "no day of the training": part("2013-12-02", LAST),
}


@pytest.mark.parametrize("prices", OTHERS.values(), ids=OTHERS)
def test_extra_days_or_stocks_in_the_file_change_nothing(
    own: TrainedRun, own_results: dict[str, object], tmp_path: Path, prices: Prices
) -> None:
    other = measured(["--data", str(write(tmp_path / "other.csv", prices))], tmp_path / "other")
    assert other["period"] == own_results["period"]
    assert own_results["turnover"] != 0
    for name in ("return", "sharpe", "turnover", "costs"):
        assert other[name] == pytest.approx(own_results[name], rel=1e-6)  # averages start elsewhere


def test_more_days_in_the_source_move_no_period(
    own: TrainedRun, own_results: dict[str, object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = Path("own.csv").read_text()
    try:
        write(Path("own.csv"), part("2000-01-03", "2019-12-31"))
        assert measured([], tmp_path / "grown")["period"] == own_results["period"]
        capsys.readouterr()
        assert main(["evaluate", "own", "--gpus", "none", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["metrics"]["return"] == pytest.approx(
            own_results["return"], rel=1e-9
        )
    finally:
        Path("own.csv").write_text(before)


def test_missing_from_or_to_is_that_of_the_run(own: TrainedRun, tmp_path: Path) -> None:
    data = own.cfg.data
    later, sooner = measured(["--from", "2016-07-01"], tmp_path), measured(["--to", "2016-06-30"], tmp_path)
    assert later["period"] == {"from": "2016-07-01", "to": data.test_to, "days": 127}
    assert sooner["period"] == {"from": data.test_from, "to": "2016-06-30", "days": 183}


def test_later_periods_extend_to_the_last_day(own: TrainedRun, tmp_path: Path) -> None:
    newer = write(tmp_path / "newer.csv", part("2014-01-02", "2018-12-31"))
    period = measured(["--data", str(newer), "--from", "2018-01-02"], tmp_path)["period"]
    assert period == {"from": "2018-01-02", "to": "2018-12-31", "days": 251}


def test_baselines_trade_any_days(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stock-trading", "backtest", "buy-and-hold", "--from", "2012-01-03", "--to", "2012-12-31"]) == 0
    assert "buy-and-hold: 2012-01-03 to 2012-12-31" in capsys.readouterr().out


BAD = {
    "other stocks": (part(FIRST, LAST, ("GE", "PG", "KO")), [], "AAPL"),
    "days of the training": (OTHERS["more years after"], ["--from", "2013-01-02", "--to", "2013-12-31"], "training"),
    "days too near to it": (OTHERS["more years after"], ["--from", "2015-07-31"], "lie between"),
    "no day of the test": (part(FIRST, "2014-12-31"), [], "its days are"),
    "no window before it": (part("2015-08-03", "2018-12-31"), [], "features exist from"),
}


@pytest.mark.parametrize(("prices", "flags", "found"), BAD.values(), ids=BAD)
def test_backtests_that_are_impossible_are_rejected(
    own: TrainedRun, tmp_path: Path, capsys: pytest.CaptureFixture[str], prices: Prices, flags: list[str], found: str
) -> None:
    data = str(write(tmp_path / "other.csv", prices))
    assert main(["stock-trading", "backtest", "own", "--data", data, *flags]) == 2
    assert found in capsys.readouterr().err


SHORT = {"no test": 345, "no training": 290, "no feature": 200}


@pytest.mark.parametrize("num_days", SHORT.values(), ids=SHORT)
def test_short_histories_are_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str], num_days: int) -> None:
    path = write(tmp_path / "short.csv", stocks().only(TICKERS).take(range(4_000, 4_000 + num_days)))
    argv = ["train", "stock-trading", "--data.source", str(path), "--runs-dir", str(tmp_path), "--ranks", "1"]
    for command in (
        [*argv, "--gpus", "none", "--hang-timeout", "none"],
        ["stock-trading", "backtest", "buy-and-hold", "--data", str(path)],
    ):
        assert main(command) == 2
        lines = capsys.readouterr().err.splitlines()
        assert [line.split(":")[0].strip() for line in lines][-3:] == ["asked", "found", "do"]


def test_dropped_days_and_periods_are_reported(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "split.csv", part(FIRST, LAST))
    text = path.read_text().splitlines()
    day, *closes = text[1_000].split(",")
    text[1_000] = ",".join([day, "", *closes[1:]])
    path.write_text("\n".join(text) + "\n")
    assert main(["stock-trading", "backtest", "buy-and-hold", "--data", str(path)]) == 2
    assert "AAPL has no price on" in capsys.readouterr().err
    flags = ["--preset", "demo", "--iterations", "1", "--global-batch", "8", "--ppo.epochs", "1", "--gpus", "none"]
    argv = ["train", "stock-trading", *flags, "--data.source", str(path), "--data.missing", "drop-days"]
    command = [sys.executable, "-m", "ranks", *argv, "--ranks", "1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "days dropped: 1, the first on" in done.stdout + done.stderr
    assert "train 2011-02-16 to" in done.stdout + done.stderr


def test_export_equals_backtest(own: TrainedRun) -> None:
    """The export gets unscaled features, and the account's weights."""
    prices = load_prices(own.cfg.data)
    test = rows_of_test(own, prices)
    days = market_days_for(own.policy, prices, test, own.cfg.features)
    ledger = backtest(own.policy, days, own.cfg.market, torch.device("cpu"))
    sys.path.insert(0, "runs/own/export")
    try:
        import model  # type: ignore[import-not-found]
    finally:
        sys.path.pop(0)
    net = model.load("runs/own/export")
    raw_DK = torch.as_tensor(features_of(prices, own.cfg.features).flat_DK)
    market, state = Market(days, range(1), 0, own.cfg.market), net.start_state(1)
    shares = [market.shares_BS[0].tolist()]
    market.load_state_dict(
        market.state_dict() | {name: torch.tensor([days.window - 1]) for name in ("day", "start_day")}
    )
    assert own.cfg.market.episode_days is not None
    for row in range(test.start, test.start + own.cfg.market.episode_days):
        window_BWK = raw_DK[None, row - net.window : row]
        with torch.no_grad():
            action_BS, _, state = net(window_BWK, market.observe()["account"], state)
        market.advance(action_BS)
        shares.append(market.shares_BS[0].tolist())
    assert max(map(max, shares)) > 0
    # an action is rounded in float32 and sizes a fraction of a share
    np.testing.assert_allclose(shares, ledger.shares_TS[: len(shares)], rtol=1e-4, atol=1e-6)
