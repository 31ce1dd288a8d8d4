"""A trained policy on prices that changed, grew, or come from elsewhere: what its training days fixed stays fixed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from ranks.cli.main import main
from ranks.workloads.stock_trading.policy.preprocessing import market_days_for, get_preprocessing
from ranks.workloads.stock_trading.data.features import features_of
from ranks.workloads.stock_trading.data.prices import Prices
from ranks.workloads.stock_trading.data.periods import prepare_periods, load_prices, get_test_rows
from ranks.workloads.stock_trading.market.market import Market
from ranks.workloads.stock_trading.policy.backtest import backtest
from ranks.workloads.stock_trading.runs.trained_run import TrainedRun, load_run

from .fixtures import stocks

TICKERS = ("AAPL", "KO", "XOM")
SIZES = ["--iterations", "2", "--global-batch", "8", "--ppo.minibatches", "2", "--ppo.epochs", "1"]
MODEL = ["--model.hidden", "8", "--model.feature-hidden", "8", "--market.max-shares", "20000", "--gpus", "none"]


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
    write(folder / "own.csv", part("2006-01-03", "2018-12-31"))
    argv = ["train", "stock-trading", "--preset", "demo", *SIZES, *MODEL, "--data.source", "own.csv", "--name", "own"]
    command = [sys.executable, "-m", "ranks", *argv, "--ranks", "1", "--market.turbulence-exit", "0.9"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def own(home: Path, monkeypatch: pytest.MonkeyPatch) -> TrainedRun:
    monkeypatch.chdir(home)
    return load_run("own")


def measured(argv: Sequence[str], out: Path) -> dict[str, object]:
    assert main(["stock-trading", "backtest", "own", *argv, "--out", str(out)]) == 0
    return json.loads((out / "metrics.json").read_text())


def test_a_run_names_its_stocks_and_days(own: TrainedRun) -> None:
    data = own.cfg.data
    assert data.tickers == TICKERS
    assert (data.train_from, data.test_to) == ("2007-02-20", "2018-12-31")
    assert data.train_to is not None
    assert data.test_from is not None
    assert data.train_from < data.train_to < data.test_from < "2018-12-31"


def test_what_was_fitted_comes_back_to_the_last_bit(own: TrainedRun) -> None:
    prices = load_prices(own.cfg.data)
    fitted, carried = prepare_periods(prices, own.cfg).fitted, get_preprocessing(own.policy)
    np.testing.assert_array_equal(carried.scaler.mean_K, fitted.scaler.mean_K)
    np.testing.assert_array_equal(carried.scaler.std_K, fitted.scaler.std_K)
    assert carried.threshold == fitted.threshold < np.inf
    days, same = (
        market_days_for(own.policy, prices, get_test_rows(own.cfg, prices), own.cfg),
        prepare_periods(prices, own.cfg).test,
    )
    np.testing.assert_array_equal(days.table_DK, same.table_DK)
    np.testing.assert_array_equal(days.is_turbulent_D, same.is_turbulent_D)


OTHERS = {
    "columns in another order": part("2006-01-03", "2018-12-31", ("XOM", "AAPL", "KO")),
    "more stocks": part("2006-01-03", "2018-12-31", ("GE", *TICKERS, "PG")),
    "more years before": part("1996-01-02", "2018-12-31"),
    "more years after": part("2006-01-03", "2021-12-31"),
    "no day of the training": part("2014-06-02", "2018-12-31"),
}


@pytest.mark.parametrize("prices", OTHERS.values(), ids=OTHERS)
def test_the_same_days_give_the_same_books_whatever_the_file_holds_besides(
    own: TrainedRun, tmp_path: Path, prices: Prices
) -> None:
    mine = measured([], tmp_path / "mine")
    other = measured(["--data", str(write(tmp_path / "other.csv", prices))], tmp_path / "other")
    assert other["period"] == mine["period"]
    assert mine["turnover"] != 0
    for name in ("return", "sharpe", "turnover", "costs"):
        assert other[name] == pytest.approx(mine[name], rel=1e-9)


def test_a_source_that_grew_moves_no_period(
    own: TrainedRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = measured([], tmp_path / "mine")
    before = Path("own.csv").read_text()
    try:
        write(Path("own.csv"), part("1996-01-02", "2021-12-31"))
        assert measured([], tmp_path / "grown")["period"] == mine["period"]
        capsys.readouterr()
        assert main(["evaluate", "own", "--gpus", "none", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["metrics"]["return"] == pytest.approx(mine["return"], rel=1e-9)
    finally:
        Path("own.csv").write_text(before)


def test_an_end_that_is_not_named_is_that_of_the_run(own: TrainedRun, tmp_path: Path) -> None:
    data = own.cfg.data
    later, sooner = measured(["--from", "2017-01-03"], tmp_path), measured(["--to", "2017-12-29"], tmp_path)
    assert later["period"] == {"from": "2017-01-03", "to": data.test_to, "days": 502}
    assert sooner["period"] == {"from": data.test_from, "to": "2017-12-29", "days": 436}


def test_a_period_after_the_runs_own_goes_on_to_the_last_day(own: TrainedRun, tmp_path: Path) -> None:
    newer = write(tmp_path / "newer.csv", part("2014-01-02", "2021-12-31"))
    period = measured(["--data", str(newer), "--from", "2020-01-02"], tmp_path)["period"]
    assert period == {"from": "2020-01-02", "to": "2021-12-31", "days": 505}


def test_rules_learn_nothing_and_trade_any_days(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stock-trading", "backtest", "buy-and-hold", "--from", "2010-01-04", "--to", "2012-12-31"]) == 0
    assert "buy-and-hold: 2010-01-04 to 2012-12-31" in capsys.readouterr().out


BAD = {
    "other stocks": (part("2006-01-03", "2018-12-31", ("GE", "PG", "KO")), [], "AAPL"),
    "days of the training": (OTHERS["more years after"], ["--from", "2013-01-02", "--to", "2013-12-31"], "training"),
    "days too near to it": (OTHERS["more years after"], ["--from", "2016-01-29"], "lie between"),
    "no day of the test": (part("2006-01-03", "2014-12-31"), [], "its days are"),
    "no window before it": (part("2016-02-01", "2018-12-31"), [], "features are known from"),
}


@pytest.mark.parametrize(("prices", "flags", "found"), BAD.values(), ids=BAD)
def test_what_a_policy_cannot_trade_is_refused(
    own: TrainedRun, tmp_path: Path, capsys: pytest.CaptureFixture[str], prices: Prices, flags: list[str], found: str
) -> None:
    data = str(write(tmp_path / "other.csv", prices))
    assert main(["stock-trading", "backtest", "own", "--data", data, *flags]) == 2
    assert found in capsys.readouterr().err


SHORT = {"no test": 345, "no training": 290, "no feature": 200}


@pytest.mark.parametrize("num_days", SHORT.values(), ids=SHORT)
def test_a_history_that_is_too_short_gets_one_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], num_days: int
) -> None:
    path = write(tmp_path / "short.csv", stocks().only(TICKERS).take(range(4_000, 4_000 + num_days)))
    argv = ["train", "stock-trading", "--data.source", str(path), "--runs-dir", str(tmp_path), "--ranks", "1"]
    for command in ([*argv, "--gpus", "none"], ["stock-trading", "backtest", "buy-and-hold", "--data", str(path)]):
        assert main(command) == 2
        said = capsys.readouterr().err.splitlines()
        assert [line.split(":")[0].strip() for line in said][-3:] == ["asked", "found", "do"]


def test_what_was_done_to_the_prices_is_said(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "split.csv", part("2006-01-03", "2018-12-31"))
    text = path.read_text().splitlines()
    day, *closes = text[2_000].split(",")
    text[2_000] = ",".join([day, "", *closes[1:]])
    path.write_text("\n".join(text) + "\n")
    assert main(["stock-trading", "backtest", "buy-and-hold", "--data", str(path)]) == 2
    assert "AAPL has no price on" in capsys.readouterr().err
    argv = ["train", "stock-trading", "--preset", "demo", *SIZES, *MODEL, "--data.source", str(path), "--name", "said"]
    command = [sys.executable, "-m", "ranks", *argv, "--data.missing", "drop-days", "--ranks", "1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "days left out: 1, the first of them" in done.stdout + done.stderr
    assert "training 2007-02-20 to" in done.stdout + done.stderr


def test_an_export_acts_as_its_backtest(own: TrainedRun) -> None:
    """With features as they are, which it scales itself; the account as shares of the cash at the start."""
    prices = load_prices(own.cfg.data)
    test = get_test_rows(own.cfg, prices)
    days = market_days_for(own.policy, prices, test, own.cfg)
    ledger = backtest(own.policy, days, own.cfg, torch.device("cpu"))
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
    for row in range(test.start, test.start + own.cfg.market.episode_days):
        window_BWK = raw_DK[None, row - net.window : row]
        with torch.no_grad():
            action_BS, _, state = net(window_BWK, market.observe()["account"], state)
        market.advance(action_BS)
        shares.append(market.shares_BS[0].tolist())
    assert max(map(max, shares)) > 0
    assert shares == ledger.shares_TS[: len(shares)].tolist()
