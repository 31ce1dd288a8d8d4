"""Evaluation, backtests and reports from the command line, and error messages for bad input."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ranks.cli.main import main
from ranks.errors import UserError
from ranks.workloads.stock_trading.config import Config, ModelConfig, demo
from ranks.workloads.stock_trading.data.config import DataConfig, FeatureConfig
from ranks.workloads.stock_trading.market.baselines import buy_and_hold
from ranks.workloads.stock_trading.market.config import MarketConfig
from ranks.workloads.stock_trading.reports.backtest import INDEX
from ranks.workloads.stock_trading.reports.intervals import iqm, over_seeds
from ranks.workloads.stock_trading.reports.results import COLUMNS, metrics_table
from ranks.workloads.stock_trading.reports.tear_sheet import monthly_returns, rolling_sharpe, tear_sheet

from .fixtures import stocks, train_run


def config() -> Config:
    """A few seconds of training, and a test of seven months."""
    return replace(
        demo(),
        data=DataConfig(test_to="2016-07-29"),
        features=FeatureConfig(turbulence=False),
        model=ModelConfig(hidden=8, feature_hidden=8),
        ppo=replace(demo().ppo, minibatches=2, epochs=1),
        optim=replace(demo().optim, lr=0.1),  # so that actions leave the no-trade band
        global_batch=8,
        iterations=2,
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the runs runs/a and runs/b, which differ by seed."""
    folder = tmp_path_factory.mktemp("trained")
    train_run(config(), folder / "runs", "a", seed=1)
    train_run(config(), folder / "runs", "b", seed=2)
    return folder


def test_a_run_of_another_kind_of_policy_is_refused_by_name(tmp_path: Path) -> None:
    """As is a run of an earlier version, whose default was clstm."""
    cascade = replace(config(), model=replace(config().model, kind="clstm"), iterations=1)
    train_run(cascade, tmp_path, "old")
    with pytest.raises(UserError, match=r'config\.model\.kind was "clstm", now "shared"'):
        train_run(replace(config(), iterations=1), tmp_path, "old")


def test_run_can_be_evaluated_and_its_export_needs_only_torch(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(trained)
    assert main(["evaluate", "a", "--gpus", "none"]) == 0
    code = (
        "import sys; sys.path.insert(0, 'runs/a/export'); import model, torch\n"
        "net = model.load('runs/a/export')\n"
        "window = torch.zeros(1, net.window, net.num_columns)\n"
        "action, value, state = net(window, torch.zeros(1, net.num_account), net.start_state(1))\n"
        "print(tuple(action.shape), 'ranks' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split("\n")[0] == "(1, 20) False", done.stderr


def test_backtest_files_are_consistent(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(trained)
    out = tmp_path / "results"
    argv = ["stock-trading", "backtest", "a", "--from", "2018-01-02", "--to", "2018-12-31", "--out", str(out)]
    assert main(argv) == 0
    assert "a: 2018-01-02 to 2018-12-31, 251 days" in capsys.readouterr().out
    equity = list(csv.DictReader((out / "equity.csv").read_text().splitlines()))
    trades = list(csv.DictReader((out / "trades.csv").read_text().splitlines()))
    found = json.loads((out / "metrics.json").read_text())
    assert found["period"] == {"from": "2018-01-02", "to": "2018-12-31", "days": 251}
    assert equity[0]["date"] == "2017-12-29", "the day of the first action"
    assert found["return"] == pytest.approx(float(equity[-1]["value"]) / float(equity[0]["value"]) - 1, abs=1e-9)
    paid = sum(float(t["shares"]) * float(t["price"]) + float(t["cost"]) for t in trades)
    assert float(equity[-1]["cash"]) == pytest.approx(1e6 - paid, abs=0.05 + 1e-6 * len(trades))
    assert sum(float(t["cost"]) for t in trades) == pytest.approx(sum(float(e["fees"]) for e in equity), abs=0.01)


def test_baselines_trade_the_default_test_period(capsys: pytest.CaptureFixture[str]) -> None:
    for baseline in ("buy-and-hold", "equal-weight"):
        assert main(["stock-trading", "backtest", baseline]) == 0
        assert f"{baseline}: 2016-01-04 to 2020-05-08, 1095 days" in capsys.readouterr().out


def test_report_over_seeds_equals_backtests(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(trained)
    assert main(["stock-trading", "report", "a,b", "--out", str(tmp_path / "report")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Test period 2016-01-04 to 2016-07-29")
    assert "no investment advice" in lines[0]
    assert any(line.startswith("over 2 seeds") for line in lines)
    found = json.loads((tmp_path / "report" / "comparison.json").read_text())
    assert (tmp_path / "report" / "tear_sheet.png").stat().st_size > 50_000
    for what in ("a", "b", "buy-and-hold", "equal-weight", "momentum", "random"):
        assert main(["stock-trading", "backtest", what, "--to", "2016-07-29", "--out", str(tmp_path / what)]) == 0
        reported = json.loads((tmp_path / what / "metrics.json").read_text())
        metrics_file = tmp_path / "report" / what / "metrics.json"
        same = json.loads(metrics_file.read_text()) if metrics_file.exists() else found["baselines"][what]
        assert all(reported[name] == same[name] for name in COLUMNS), what


def test_evaluate_equals_backtest(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(trained)
    assert main(["evaluate", "a", "--gpus", "none", "--json"]) == 0
    evaluated = json.loads(capsys.readouterr().out)["metrics"]
    assert main(["stock-trading", "backtest", "a", "--out", str(tmp_path)]) == 0
    reported = json.loads((tmp_path / "metrics.json").read_text())
    assert {name: reported[name] for name in evaluated} == evaluated


def test_long_text_fits_on_the_tear_sheet() -> None:
    """A long line of text is wrapped: it neither narrows the charts nor leaves the page."""
    runs = [
        buy_and_hold(stocks(), range(6_000, 6_150), MarketConfig(commission_bps=cost)) for cost in (10, 20, 30, 40, 50)
    ]
    table = metrics_table({f"a-run-of-some-name-{n}": run for n, run in enumerate(runs)})
    lines = [*table, "", "not beaten: " + 60 * "word "]
    page = tear_sheet(Path("page.png"), "Test period", runs, {INDEX: runs[0]}, lines)
    page.draw_without_rendering()
    *charts, below = page.axes
    assert min(chart.get_position().width for chart in charts) > 0.8
    (text,) = below.texts
    assert "word" in text.get_text().splitlines()[-1]
    assert page.bbox.contains(*text.get_window_extent().min)
    assert page.bbox.contains(*text.get_window_extent().max)


BAD = {
    "no such run": ["backtest", "missing"],
    "a misspelled baseline": ["backtest", "buy-and-holt"],
    "an empty period": ["backtest", "buy-and-hold", "--from", "2018-06-02", "--to", "2018-06-03"],
    "days beyond the history": ["backtest", "buy-and-hold", "--to", "2031-01-01"],
    "no calendar day": ["backtest", "buy-and-hold", "--from", "2018-13-01"],
    "a test inside the training": ["backtest", "a", "--from", "2014-01-02", "--to", "2014-12-31"],
    "a period that begins after its end": ["backtest", "a", "--from", "2019-01-02", "--to", "2018-06-01"],
    "half a day": ["backtest", "buy-and-hold", "--to", "2019"],
    "a report of one run twice": ["report", "a,a"],
    "no such file": ["backtest", "buy-and-hold", "--data", "nowhere.csv"],
    "a folder that cannot be written": ["backtest", "buy-and-hold", "--out", "runs/a/run.json/folder"],
    "a report of nothing": ["report", "missing"],
}


@pytest.mark.parametrize("argv", BAD.values(), ids=BAD.keys())
def test_bad_input_gets_one_error(
    trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], argv: list[str]
) -> None:
    monkeypatch.chdir(trained)
    assert main(["stock-trading", *argv]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0].strip() for line in lines] == ["asked", "found", "do"]


def test_windows_longer_than_the_embargo_are_rejected(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "stock-trading", "--model.window", "90", "--print-config"]) == 2
    assert "a window of 90 days" in capsys.readouterr().err


def test_monthly_returns_and_rolling_sharpe_by_hand() -> None:
    dates_T = np.array(["2019-12-31", "2020-01-02", "2020-01-31", "2020-02-03", "2020-02-28"], "datetime64[D]")
    found = monthly_returns(dates_T, np.array([100.0, 110.0, 120.0, 90.0, 60.0]))
    assert found == pytest.approx({(2020, 1): 0.2, (2020, 2): -0.5})
    value_T = np.cumprod([1.0, 1.1, 0.9, 1.2, 1.05], dtype=np.float64)
    rolling_T = rolling_sharpe(value_T, 2)
    assert np.isnan(rolling_T[:2]).all()
    last = np.array([0.2, 0.05])
    assert rolling_T[-1] == pytest.approx(last.mean() / last.std(ddof=1) * 252**0.5)


def test_intervals_over_seeds() -> None:
    values_R = np.array([0.0, 1.0, 2.0, 3.0, 100.0])
    assert iqm(values_R) == pytest.approx(2.0)
    assert set(over_seeds(values_R[:1])) == {"mean", "iqm", "runs"}


@pytest.mark.parametrize("num", [2, 3, 5, 16])
def test_intervals_cover_the_mean_in_95_percent(num: int) -> None:
    samples_XR = np.random.default_rng(num).standard_normal((4_000, num))
    covers = [over_seeds(values_R)["low"] <= 0 <= over_seeds(values_R)["high"] for values_R in samples_XR]
    assert np.mean(covers) == pytest.approx(0.95, abs=0.015)
