"""`ranks prove table stock-trading`: reference values, and trainings on markets whose optimal policy is known."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ranks.workloads.stock_trading.config import Config
from ranks.workloads.stock_trading.policy.trading_policy import TradingPolicy
from ranks.workloads.stock_trading.runs.train_many import TrainingJob, train_many
from ranks.workloads.stock_trading.runs.trained_run import load_run
from ranks.workloads.stock_trading.tables import known_answers
from ranks.workloads.stock_trading.tables.reference import reference_rows

SEEDS, SEEDS_QUICK, ITERATIONS_QUICK = 5, 1, 2
SHARPE_SHARE, MEMORY_LEAD, HALF_WIDTH = 0.8, 1.5, 0.01
MARKETS = {
    "martingale": known_answers.martingale,
    "mean-reverting": known_answers.mean_reverting,
    "regimes, memory": lambda: known_answers.two_regimes("shared"),
    "regimes, MLP": lambda: known_answers.two_regimes("mlp"),
}


@dataclass(frozen=True)
class KnownAnswer:
    """One row of the table. `found`: the result of each seed. `bar`: the requirement on the mean over seeds or on each
    seed, and `passed` whether it is met."""

    market: str
    measure: str
    mean: float
    found: str
    bar: str
    passed: bool


def table(quick: bool = False) -> Mapping[str, Any]:
    """Both tables. `quick`: one seed and 2 iterations; this makes the same comparisons, but fails them."""
    seeds = range(SEEDS_QUICK if quick else SEEDS)
    configs = {name: make() for name, make in MARKETS.items()}
    if quick:
        configs = {name: replace(cfg, iterations=ITERATIONS_QUICK) for name, cfg in configs.items()}
    policies = _train(configs, seeds)
    answers = [*_martingale(policies, configs), _mean_reverting(policies, configs), _regimes(policies, configs)]
    reference = reference_rows()
    return {
        "tables": {"Reference values": [asdict(r) for r in reference], "Known answers": [asdict(a) for a in answers]},
        "passed": all(row.passed for row in reference) and all(answer.passed for answer in answers),
        "facts": {
            "seeds": len(seeds),
            "evaluated on": f"{known_answers.EVALUATION_DAYS:,} days of other seeds, with costs, most likely actions",
        },
    }


Policies = Mapping[str, Sequence[TradingPolicy]]


def _train(configs: Mapping[str, Config], seeds: range) -> Policies:
    with tempfile.TemporaryDirectory(prefix="ranks-table-") as folder:
        jobs = [
            TrainingJob(
                f"{name.replace(', ', '-')}-{seed}", replace(cfg, data=replace(cfg.data, synthetic_seed=seed)), seed
            )
            for name, cfg in configs.items()
            for seed in seeds
        ]
        for number, job in enumerate(train_many(jobs, Path(folder)), start=1):
            print(f"trained {number}/{len(jobs)}: {job.name}", flush=True)
        names = iter(jobs)
        return {name: [load_run(next(names).name, Path(folder)).policy for _ in seeds] for name in configs}


def _martingale(policies: Policies, configs: Mapping[str, Config]) -> list[KnownAnswer]:
    cfg = configs["martingale"]
    found = [known_answers.excess_return(policy, cfg.periods, cfg.market) for policy in policies["martingale"]]
    fair = all(one.mean - one.half_width <= 0 for one in found)
    intervals = ", ".join(f"{one.mean:+.2%} +- {one.half_width:.2%}" for one in found)
    turned = [known_answers.policy_turnover(policy, cfg.periods, cfg.market) for policy in policies["martingale"]]
    widest = max(one.half_width for one in found)
    return [
        KnownAnswer(
            "martingale",
            "excess return a year, 99.9 % interval",
            float(np.mean([one.mean for one in found])),
            intervals,
            "below 0, or the interval contains 0",
            fair,
        ),
        KnownAnswer(
            "martingale", "half-width", widest, f"at most {widest:.2%}", f"<= {HALF_WIDTH:.0%}", widest <= HALF_WIDTH
        ),
        KnownAnswer("martingale", "turnover a year", float(np.mean(turned)), _text(turned), "> 0", min(turned) > 0),
    ]


def _mean_reverting(policies: Policies, configs: Mapping[str, Config]) -> KnownAnswer:
    cfg = configs["mean-reverting"]
    found = [known_answers.policy_sharpe(policy, cfg.periods, cfg.market) for policy in policies["mean-reverting"]]
    low, high, best = known_answers.best_threshold(cfg.periods, cfg.market)
    bar = f">= {SHARPE_SHARE:.0%} of {best:.2f}, the best thresholds' ({low:g}, {high:g})"
    mean = float(np.mean(found))
    return KnownAnswer("mean-reverting", "Sharpe ratio", mean, _text(found), bar, mean >= SHARPE_SHARE * best)


def _regimes(policies: Policies, configs: Mapping[str, Config]) -> KnownAnswer:
    def sharpes(name: str) -> list[float]:
        cfg = configs[name]
        return [known_answers.policy_sharpe(policy, cfg.periods, cfg.market) for policy in policies[name]]

    memory, none = sharpes("regimes, memory"), sharpes("regimes, MLP")
    mean, control = float(np.mean(memory)), float(np.mean(none))
    bar = f">= {MEMORY_LEAD:g} x the MLP's {control:.2f} ({_text(none)})"
    return KnownAnswer("two regimes", "Sharpe ratio", mean, _text(memory), bar, mean >= MEMORY_LEAD * max(control, 0.0))


def _text(numbers: Sequence[float]) -> str:
    return ", ".join(f"{number:.2f}" for number in numbers)
