"""`ranks prove table stock-trading`: reference values, and trainings on markets whose best policy is known."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ranks.workloads.stock_trading.config import Config
from ranks.workloads.stock_trading.policy import TradingPolicy
from ranks.workloads.stock_trading.reports.saved import load_run
from ranks.workloads.stock_trading.tables import known_answers as known
from ranks.workloads.stock_trading.tables.reference import reference_rows
from ranks.workloads.stock_trading.trainings import Training, train_all

SEEDS, SEEDS_QUICK, ITERATIONS_QUICK = 5, 1, 2
SHARPE_SHARE, MEMORY_LEAD, HALF_WIDTH = 0.8, 1.5, 0.01
KINDS = {
    "martingale": known.martingale,
    "mean-reverting": known.mean_reverting,
    "regimes, LSTM": lambda: known.two_regimes("clstm"),
    "regimes, MLP": lambda: known.two_regimes("mlp"),
}


@dataclass(frozen=True)
class Answer:
    """`found`: of each seed. `passed`: of the mean over the seeds, or of every seed, as `bar` says."""

    market: str
    measure: str
    mean: float
    found: str
    bar: str
    passed: bool


def table(quick: bool = False) -> Mapping[str, Any]:
    """Both tables. `quick`: one seed and a few iterations, the same comparison, which then fails its bars."""
    seeds = range(SEEDS_QUICK if quick else SEEDS)
    settings = {name: make() for name, make in KINDS.items()}
    if quick:
        settings = {name: replace(cfg, iterations=ITERATIONS_QUICK) for name, cfg in settings.items()}
    trained = _train(settings, seeds)
    answers = [*_martingale(trained, settings), _mean_reverting(trained, settings), _regimes(trained, settings)]
    reference = reference_rows()
    return {
        "tables": {"Reference values": [asdict(r) for r in reference], "Known answers": [asdict(a) for a in answers]},
        "passed": all(row.passed for row in reference) and all(answer.passed for answer in answers),
        "facts": {
            "seeds": len(seeds),
            "judged on": f"{known.JUDGED_DAYS:,} days of other seeds, costs included, the likeliest action each day",
        },
    }


Policies = Mapping[str, Sequence[TradingPolicy]]


def _train(settings: Mapping[str, Config], seeds: range) -> Policies:
    with tempfile.TemporaryDirectory(prefix="ranks-table-") as folder:
        trainings = [
            Training(f"{name.replace(', ', '-')}-{seed}", replace(cfg, data=replace(cfg.data, made_seed=seed)), seed)
            for name, cfg in settings.items()
            for seed in seeds
        ]
        for number, one in enumerate(train_all(trainings, Path(folder)), start=1):
            print(f"trained {number}/{len(trainings)}: {one.name}", flush=True)
        names = iter(trainings)
        return {name: [load_run(next(names).name, Path(folder)).policy for _ in seeds] for name in settings}


def _martingale(trained: Policies, settings: Mapping[str, Config]) -> list[Answer]:
    cfg = settings["martingale"]
    found = [known.excess_of(policy, cfg) for policy in trained["martingale"]]
    fair = all(one.mean - one.half_width <= 0 for one in found)
    intervals = ", ".join(f"{one.mean:+.2%} +- {one.half_width:.2%}" for one in found)
    turned = [known.turnover_of(policy, cfg) for policy in trained["martingale"]]
    widest = max(one.half_width for one in found)
    return [
        Answer(
            "martingale",
            "excess return a year, 99.9 % interval",
            float(np.mean([one.mean for one in found])),
            intervals,
            "below 0, or the interval holds 0",
            fair,
        ),
        Answer(
            "martingale", "half-width", widest, f"at most {widest:.2%}", f"<= {HALF_WIDTH:.0%}", widest <= HALF_WIDTH
        ),
        Answer("martingale", "turnover a year", float(np.mean(turned)), _text(turned), "> 0", min(turned) > 0),
    ]


def _mean_reverting(trained: Policies, settings: Mapping[str, Config]) -> Answer:
    cfg = settings["mean-reverting"]
    found = [known.sharpe_of(policy, cfg) for policy in trained["mean-reverting"]]
    low, high, best = known.best_threshold(cfg)
    bar = f">= {SHARPE_SHARE:.0%} of {best:.2f}, the best thresholds' ({low:g}, {high:g})"
    mean = float(np.mean(found))
    return Answer("mean-reverting", "Sharpe ratio", mean, _text(found), bar, mean >= SHARPE_SHARE * best)


def _regimes(trained: Policies, settings: Mapping[str, Config]) -> Answer:
    def sharpes(name: str) -> list[float]:
        return [known.sharpe_of(policy, settings[name]) for policy in trained[name]]

    memory, none = sharpes("regimes, LSTM"), sharpes("regimes, MLP")
    mean, control = float(np.mean(memory)), float(np.mean(none))
    bar = f">= {MEMORY_LEAD:g} x the MLP's {control:.2f} ({_text(none)})"
    return Answer("two regimes", "Sharpe ratio", mean, _text(memory), bar, mean >= MEMORY_LEAD * max(control, 0.0))


def _text(numbers: Sequence[float]) -> str:
    return ", ".join(f"{number:.2f}" for number in numbers)
