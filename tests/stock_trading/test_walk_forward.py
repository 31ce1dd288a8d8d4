"""Walk-forward tests: dates of the folds, metrics from the backtests, a second call, errors of trainings."""

from __future__ import annotations

import csv
import itertools
import json
import math
import pickle
import statistics
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranks.cli.main import main
from ranks.errors import Stopped, UserError
from ranks.workloads.stock_trading.config import PRESETS, Config, ModelConfig, demo
from ranks.workloads.stock_trading.data.config import FeatureConfig
from ranks.workloads.stock_trading.data.periods import split_periods
from ranks.workloads.stock_trading.market.baselines import buy_and_hold
from ranks.workloads.stock_trading.market.config import MarketConfig
from ranks.workloads.stock_trading.market.ledger import Ledger
from ranks.workloads.stock_trading.reports.backtest import INDEX
from ranks.workloads.stock_trading.reports.folds import Comparison, EquityCurve, make_folds, verdict
from ranks.workloads.stock_trading.runs.train_many import TrainingJob, train_many

from .fixtures import index, stocks

PERIOD = "2017-01-03", "2017-12-29"


def tiny() -> Config:
    return replace(
        demo(),
        features=FeatureConfig(names=("return", "trend"), turbulence=False),
        market=replace(demo().market, episode_days=21),
        model=ModelConfig(window=10, feature_hidden=4, hidden=4),
        ppo=replace(demo().ppo, epochs=8, minibatches=1),
        optim=replace(demo().optim, lr=0.1),  # so that actions leave the no-trade band
        global_batch=4,
        iterations=1,
    )


def argv(out: Path, runs_dir: Path) -> list[str]:
    """With one worker, because each imports torch; a test below has two."""
    period = ["--from", PERIOD[0], "--to", PERIOD[1]]
    sizes = ["--folds", "2", "--seeds", "2", "--preset", "tiny", "--workers", "1"]
    return ["stock-trading", "walk-forward", *sizes, *period, "--out", str(out), "--runs-dir", str(runs_dir)]


@pytest.fixture(scope="module")
def walk_forward_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """(folder of the runs, content of walk_forward.json) of a walk-forward test."""
    folder = tmp_path_factory.mktemp("walk_forward_run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PRESETS, "tiny", tiny)
        assert main(argv(folder / "out", folder / "runs")) == 0
    (home,) = (folder / "runs").iterdir()
    return home, json.loads((folder / "out" / "walk_forward.json").read_text())


def test_runs_have_their_dates_and_the_embargo(walk_forward_run: tuple[Path, dict[str, Any]]) -> None:
    home, found = walk_forward_run
    tests: list[range] = []
    for number, fold in enumerate(found["folds"], start=1):
        for seed in (0, 1):
            settings = json.loads((home / f"fold{number}-seed{seed}" / "run_config.json").read_text())
            days = settings["config"]["data"]
            assert settings["engine"]["seed"] == seed
            assert [days["train_from"], days["train_to"]] == fold["train"]
            assert [days["test_from"], days["test_to"]] == fold["test"]
        train, test = stocks().rows(*fold["train"]), stocks().rows(*fold["test"])
        assert test.start - train.stop == 60 >= tiny().model.window
        assert train.start == stocks().rows(*PERIOD).start
        assert fold["test_days"] == len(test)
        tests.append(test)
    assert all(earlier.stop == later.start for earlier, later in itertools.pairwise(tests))
    assert str(stocks().dates_D[tests[-1].stop - 1]) == PERIOD[1]


def test_metrics_follow_from_the_backtests(walk_forward_run: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    """Metrics computed here from the files of `backtest` equal those of walk_forward.json."""
    home, found = walk_forward_run
    growth = {0: 1.0, 1: 1.0}
    for number, seed in itertools.product((1, 2), (0, 1)):
        out, reported = tmp_path / f"{number}{seed}", found["folds"][number - 1]["policy"][str(seed)]
        run = [f"fold{number}-seed{seed}", "--runs-dir", str(home)]
        assert main(["stock-trading", "backtest", *run, "--out", str(out)]) == 0
        rows = list(csv.DictReader((out / "equity.csv").read_text().splitlines()))
        values = [float(row["value"]) for row in rows]
        returns = [after / before - 1 for before, after in itertools.pairwise(values)]
        assert len(returns) == found["folds"][number - 1]["test_days"]
        assert reported["return"] == pytest.approx(values[-1] / values[0] - 1, abs=1e-9)
        ratio = statistics.mean(returns) / statistics.stdev(returns) * math.sqrt(252)
        assert reported["sharpe"] == pytest.approx(ratio, rel=1e-5)
        deepest = min(value / max(values[: day + 1]) - 1 for day, value in enumerate(values))
        assert reported["max_drawdown"] == pytest.approx(deepest, abs=1e-9)
        assert reported["costs"] == pytest.approx(sum(float(row["fees"]) for row in rows) / values[0], abs=1e-9)
        assert reported["costs"] > 0, "it never traded"
        growth[seed] *= values[-1] / values[0]
        if number == 1:  # all holdings are sold at its end, at 10 basis points
            growth[seed] *= 1 - 0.001 * (1 - float(rows[-1]["cash"]) / values[-1])
    whole = found["all_folds"]
    assert [whole["policy"][str(seed)]["return"] for seed in growth] == pytest.approx([g - 1 for g in growth.values()])
    over = whole["over_seeds"]["return"]
    assert over["mean"] == pytest.approx(statistics.mean(growth.values()) - 1)
    assert over["low"] <= over["mean"] <= over["high"]
    rows = index().rows(found["folds"][0]["test"][0], found["folds"][1]["test"][1])
    growth = float(index().close_DS[rows[-1], 0] / index().close_DS[rows[0], 0])
    assert whole["baselines"][INDEX]["return"] == pytest.approx(growth - 1)
    assert set(whole["baselines"]) == {"buy-and-hold", "equal-weight", "momentum", "min-variance", "random", INDEX}
    span = ["--from", found["folds"][0]["test"][0], "--to", found["folds"][1]["test"][1]]
    for baseline in ("buy-and-hold", "random"):
        assert main(["stock-trading", "backtest", baseline, *span, "--out", str(tmp_path / baseline)]) == 0
        reported = json.loads((tmp_path / baseline / "metrics.json").read_text())
        assert {name: reported[name] for name in whole["baselines"][baseline]} == pytest.approx(
            whole["baselines"][baseline]
        )
    assert {"date", "command", "versions", "hardware", "config", "verdict"} <= set(found)


def test_second_call_trains_nothing_and_gives_the_same(
    walk_forward_run: tuple[Path, dict[str, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    home, found = walk_forward_run
    rows = {path: path.read_bytes() for path in home.glob("*/metrics.jsonl")}
    assert len(rows) == 4
    monkeypatch.setitem(PRESETS, "tiny", tiny)
    assert main(argv(tmp_path, home.parent)) == 0
    assert {path: path.read_bytes() for path in home.glob("*/metrics.jsonl")} == rows
    again = json.loads((tmp_path / "walk_forward.json").read_text())
    assert [again[name] for name in ("folds", "all_folds", "verdict")] == [
        found[name] for name in ("folds", "all_folds", "verdict")
    ]
    lines = capsys.readouterr().out.splitlines()
    assert "no investment advice" in lines[0]
    assert sum(line.startswith(("fold 1, seed", "fold 2, seed")) for line in lines) == 4
    assert lines[-2] == found["verdict"]
    equity = list(csv.DictReader((tmp_path / "equity.csv").read_text().splitlines()))
    assert float(equity[-1]["policy, seed 1"]) - 1 == pytest.approx(
        again["all_folds"]["policy"]["1"]["return"], abs=1e-6
    )
    assert (tmp_path / "walk_forward.png").stat().st_size > 20_000


def test_five_folds_of_the_shipped_prices() -> None:
    folds = make_folds(Config().periods, stocks(), 5, None, None)
    assert [fold.data.train_from for fold in folds] == ["1993-01-04"] * 5
    assert (folds[0].data.test_from, folds[-1].data.test_to) == ("2007-12-31", "2022-12-28")
    for fold in folds:
        assert split_periods(replace(Config(), data=fold.data).periods, stocks()).test == fold.test


def ledgers() -> list[Ledger]:
    config = Config().market
    return [buy_and_hold(stocks(), range(start, start + 50), config) for start in (1_000, 1_050)]


def test_accounts_trade_fold_after_fold() -> None:
    first, second = ledgers()
    config = MarketConfig(slippage_bps=20.0)
    curve = EquityCurve.of([first, second], config)
    assert list(curve.dates_T) == list(stocks().dates_D[999:1_100])
    held = first.value_T[-1] - first.cash_T[-1]
    brought = (first.cash_T[-1] + held * 0.998 * 0.999) / 1e6
    assert curve.value_T[50] == pytest.approx(brought, rel=1e-12)
    assert curve.value_T[-1] == pytest.approx(brought * second.value_T[-1] / 1e6)
    fee = first.commission_T.sum() / 1e6 + held / 1e6 * 0.998 * 0.001 + brought * second.commission_T.sum() / 1e6
    assert curve.metrics()["costs"] == pytest.approx(fee)
    assert EquityCurve.of([first], config).value_T[-1] == pytest.approx(first.value_T[-1] / 1e6)
    with pytest.raises(ValueError, match="a fold from"):
        EquityCurve.of([second, first], config)


def test_verdict_names_the_baselines_that_are_not_beaten() -> None:
    def curve(*values: float) -> EquityCurve:
        days_T = np.datetime64("2020-01-01") + np.arange(len(values))
        return EquityCurve(days_T, np.array(values), *np.zeros((3, len(values))))

    calm, wild, still = curve(1.0, 1.01, 1.02, 1.03), curve(1.0, 1.4, 0.9, 1.3), curve(1.0, 1.0, 1.0, 1.0)
    part = Comparison({0: calm}, {"wild": wild, "still": still})
    sentence = verdict(part, [part, Comparison({0: wild}, {"wild": calm, "still": still})])
    assert "by return (3.0%) it falls short of wild (30.0%)" in sentence
    assert "in single folds also of wild (1)" in sentence.split("Sharpe")[1]
    assert "still" not in sentence.split("Sharpe")[0]


BAD = {
    "no fold": ["--folds", "0"],
    "no seed": ["--seeds", "0"],
    "no worker": ["--workers", "0"],
    "no iteration": ["--iterations", "0"],
    "an unknown preset": ["--preset", "smal"],
    "more folds than days": ["--folds", "9000"],
    "a history that is too short": ["--from", "2022-01-03", "--folds", "1"],
    "a history without its features": ["--from", "1990-02-02"],
    "no such file": ["--data", "nowhere.csv"],
    "a folder that cannot be written": [
        "--folds",
        "1",
        "--from",
        "2017-01-03",
        "--out",
        str(Path(__file__) / "folder"),
    ],
}


@pytest.mark.parametrize("flags", BAD.values(), ids=BAD.keys())
def test_bad_input_gets_one_error_before_anything_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], flags: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["stock-trading", "walk-forward", "--runs-dir", str(tmp_path), *flags]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0].strip() for line in lines] == ["asked", "found", "do"]
    assert list(tmp_path.iterdir()) == []


def test_error_of_a_training_is_raised_and_the_others_save_and_stop(
    walk_forward_run: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    home, _ = walk_forward_run
    (tmp_path / "clash").symlink_to(home / "fold1-seed0")
    other = replace(tiny(), global_batch=8)
    long = replace(other, iterations=5_000)
    todo = [TrainingJob(name, long if name == "long" else other, 0) for name in ("long", "short", "next", "clash")]
    sessions = tmp_path / "long" / "sessions.jsonl"

    def train_all() -> None:
        for _ in train_many(todo, tmp_path, workers=2):
            while not sessions.exists():  # the failing job starts after the end of the third one
                time.sleep(0.01)

    with pytest.raises(UserError) as caught:
        train_all()
    assert "global_batch" in str(caught.value)
    last = json.loads(sessions.read_text().splitlines()[-1])
    assert last["event"] == "stopped"


def test_errors_can_be_pickled() -> None:
    error = pickle.loads(pickle.dumps(UserError("this", "that", "do")))
    assert (error.asked, error.found, error.do) == ("this", "that", "do")
    assert pickle.loads(pickle.dumps(Stopped(15))).exit_code == 143
