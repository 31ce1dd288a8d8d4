"""Compare stock-trading's PPO with RecurrentPPO of sb3-contrib: environment steps a CPU second, and Sharpe ratios.

    python -m benchmarks.on_policy.trading --peer PYTHON --finrl FOLDER [--rounds 3] [--seeds 5] [--quick]
        [--resume FILE]

on an idle machine. PYTHON is the interpreter of a virtual environment, FOLDER holds FinRL's environment:

    python3 -m venv peers && peers/bin/pip install torch numpy safetensors sb3-contrib==2.9.2 pandas matplotlib
    git clone https://github.com/AI4Finance-Foundation/FinRL && git -C FinRL checkout 220f9e49
    python -m benchmarks.on_policy.trading --peer peers/bin/python --finrl FinRL/finrl/meta/env_stock_trading

Three sides trade the 20 shipped stocks of the training days, each on one core: ranks (the policy with a
shared memory of the market, but hardtanh in place of tanh and wider initial actions: `--model.activation hardtanh
--model.log-std 0.8`), RecurrentPPO on the same batched market, and RecurrentPPO on
FinRL's own environment. All have hidden sizes of 128, the same learning rate, and 10 epochs of 4 minibatches from each
rollout. A setting is a number of accounts and a number of days of a rollout. The sides take turns, and the first
rollout of each run is not measured. The fastest setting of each peer counts.

Then ranks, with each of its settings, and RecurrentPPO on the batched market, with 64 accounts and 63 days, train on
markets with a known optimal policy from equal samples (environment steps), each used 10 times, and are evaluated on one
with another seed. Wide actions make a rollout teach more, so RecurrentPPO trains with the initial standard deviation
of ranks too, besides the workload's default. (FinRL trades at the close that it observes, so its returns cannot be
compared.) A ratio of speeds counts only with a setting whose mean Sharpe ratio on both markets is not below any
interval of the peer's: its mean plus and minus 2 standard deviations of its seeds.

Writes benchmarks/results/trading_recurrent_ppo_DATE.json, again after each round of speeds and each seed; an
interrupted run goes on from that file with `--resume`.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.measure import RESULTS, environment, origin, spread, write_result
from benchmarks.on_policy.trading_peers import task
from benchmarks.on_policy.trading_peers.task import KNOWN, SP500, Task

PEERS = Path(__file__).resolve().parent / "trading_peers"

FINRL_FILE, FINRL_COMMIT = "env_stocktrading.py", "220f9e490996a6e5c84cfad914ff14f2e0c42d22"
FINRL_SHA256 = "f49e6639126f40371e1271a668dedc661060afa95b6399eac9bafbe9bbbb6fae"
Setting = tuple[int, int]
"""Accounts, days of a rollout."""
SETTINGS: dict[str, tuple[Setting, ...]] = {
    "ours": ((512, 27), (512, 63)),
    "sb3": ((8, 63), (64, 63), (512, 63)),
    "finrl": ((8, 63), (64, 63)),
}
SHARPE: dict[str, tuple[Setting, ...]] = {"ours": ((512, 27), (512, 63)), "sb3": ((64, 63),)}
"""Settings that are trained for a Sharpe ratio."""
GOALS = {"finrl": 25.0, "sb3": 2.5}
MEASURED = {"ours": 2, "sb3": 1, "finrl": 1}
"""Rollouts that are measured in a run."""
LR = 3e-4
"""The default of both."""
LOG_STDS = {"ours": (0.8,), "sb3": (-0.7, 0.8), "finrl": (-0.7,)}
"""Initial logarithms of the actions' standard deviation: the first for speed, each for Sharpe ratios."""
ACTIVATION = {"ours": "hardtanh", "sb3": "tanh", "finrl": "tanh"}
"""Of the MLPs."""
SAMPLES = 512 * 63 * 3
"""Environment steps of a training for a Sharpe ratio; a multiple of the rollouts of all settings in `SHARPE`."""

Result = dict[str, Any]


def run(python: str, side: str, one: Task) -> Result:
    """Run one side and return its result. RuntimeError with its error output if it fails."""
    command = [python, str(PEERS / f"{side}.py"), json.dumps(vars(one))]
    done = subprocess.run(command, env=environment(OMP_NUM_THREADS="1"), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{side}: {done.stderr[-3000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    asked = {"side": side, "setting": label((one.environments, one.horizon)), "log_std": one.log_std, "seed": one.seed}
    return found | asked


def label(setting: Setting) -> str:
    """For example 512x21."""
    return f"{setting[0]}x{setting[1]}"


def measure_speed(pythons: Mapping[str, str], finrl: str, seed: int) -> list[Result]:
    """Every side with every setting once."""
    found: list[Result] = []
    for side, python in pythons.items():
        for accounts, horizon in SETTINGS[side]:
            log_std, activation = LOG_STDS[side][0], ACTIVATION[side]
            one = Task(accounts, horizon, MEASURED[side], seed, SP500, LR, log_std, activation, finrl)
            found.append(run(python, side, one))
            found[-1]["per_cpu_s"] = found[-1]["steps"] / found[-1]["cpu_s"]
            print(described(found[-1]), flush=True)
    return found


def described(one: Result) -> str:
    """One line about a run of `measure_speed`."""
    text = (
        f"{one['side']}, {one['setting']}: {one['per_cpu_s']:,.0f} steps a CPU second, {one['updates']} "
        f"updates, {one['parameters']:,} parameters, environment {one['environment_s'] / one['cpu_s']:.1%}"
    )
    return f"{text}, {peak_share(one):.0%} of the peak" if "product_flops" in one else text


def peak_share(one: Result) -> float:
    """Operations of matrix products in a CPU second, as a fraction of those of large matrix products."""
    return one["product_flops"] / one["cpu_s"] / one["peak_flops_per_s"]


def measure_sharpe(pythons: Mapping[str, str], seed: int) -> list[Result]:
    """One training of each setting in `SHARPE` on each known market."""
    found: list[Result] = []
    for market in KNOWN:
        for side, settings in SHARPE.items():
            for (accounts, horizon), log_std in itertools.product(settings, LOG_STDS[side]):
                iterations = SAMPLES // (accounts * horizon) - 1
                one = Task(accounts, horizon, iterations, seed, market, LR, log_std, ACTIVATION[side])
                found.append(run(pythons[side], side, one) | {"market": market})
                where = f"{market}, seed {seed}, {side}, {found[-1]['setting']}, log std {log_std:g}"
                print(f"{where}: Sharpe ratio {found[-1]['score']:.3f}", flush=True)
    return found


def sharpe_ratios(found: Sequence[Result]) -> dict[str, Any]:
    """For each known market: Sharpe ratios by setting, one for each seed, and the intervals of the peer's."""

    def scores(market: str, side: str, setting: Setting, log_std: float) -> list[float]:
        asked = market, side, label(setting), log_std
        return [f["score"] for f in found if (f["market"], f["side"], f["setting"], f["log_std"]) == asked]

    rows: dict[str, Any] = {}
    for market in KNOWN:
        ours = {label(one): scores(market, "ours", one, LOG_STDS["ours"][0]) for one in SHARPE["ours"]}
        peers: dict[str, Any] = {}
        for one, log_std in itertools.product(SHARPE["sb3"], LOG_STDS["sb3"]):
            theirs = scores(market, "sb3", one, log_std)
            mean, deviation = statistics.fmean(theirs), statistics.stdev(theirs) if len(theirs) > 1 else 0.0
            interval = [mean - 2 * deviation, mean + 2 * deviation]
            peers[f"{label(one)}, log std {log_std:g}"] = {"scores": theirs, "interval": interval}
        rows[market] = {"ours": ours, "peers": peers}
    return rows


def compare(rates: Mapping[str, Any], best: Mapping[str, str], known: Mapping[str, Any]) -> dict[str, Any]:
    """Our speed by each peer's, with each setting, and with the fastest one whose Sharpe ratios reach the peer's
    interval on all known markets; where none does, the fastest of all, which does not count."""

    def reaches(setting: str) -> bool:
        lows = {market: max(peer["interval"][0] for peer in one["peers"].values()) for market, one in known.items()}
        return all(statistics.fmean(known[market]["ours"][setting]) >= low for market, low in lows.items())

    ours = {label(setting): rates["ours"][label(setting)]["median"] for setting in SHARPE["ours"]}
    reached = [setting for setting in ours if reaches(setting)]
    fastest = max(reached or ours, key=lambda setting: ours[setting])
    ratios: dict[str, Any] = {}
    for side, goal in GOALS.items():
        by_setting = {setting: rate / rates[side][best[side]]["median"] for setting, rate in ours.items()}
        ratios[side] = {"ratio": by_setting[fastest], "setting": fastest, "goal": goal, "counts": bool(reached)}
        ratios[side] |= {"by_setting": by_setting, "reached": reached}
    return ratios


def describe_ratio(side: str, one: Mapping[str, Any], best: Mapping[str, str]) -> str:
    """One line about a ratio of `compare`."""
    low = "" if one["counts"] else ", but our Sharpe ratios are below the peer's interval"
    return f"ours, {one['setting']}, by {side}, {best[side]}: {one['ratio']:.1f}x (goal {one['goal']:g}x){low}"


def speeds(found: Sequence[Result]) -> dict[str, dict[str, Any]]:
    """Steps a CPU second by side and setting."""
    return {
        side: {
            label(n): spread([f["per_cpu_s"] for f in found if (f["side"], f["setting"]) == (side, label(n))], 1)
            for n in settings
        }
        for side, settings in SETTINGS.items()
    }


def summary(found: Sequence[Result], trained: Sequence[Result]) -> Result:
    """The result file, from all runs so far."""
    rates = speeds(found)
    best = {side: max(rows, key=lambda n: rows[n]["median"]) for side, rows in rates.items()}
    known = sharpe_ratios(trained)
    ratios = compare(rates, best, known)
    shares = [peak_share(f) for f in found if (f["side"], f["setting"]) == ("ours", ratios["finrl"]["setting"])]
    return {
        "origin": origin(),
        "finrl": {"commit": FINRL_COMMIT, "file": FINRL_FILE, "sha256": FINRL_SHA256},
        "settings": {n.lower(): v for n, v in vars(task).items() if n.isupper() and isinstance(v, int | float)},
        "lr": LR,
        "log_stds": LOG_STDS,
        "activation": ACTIVATION,
        "samples": SAMPLES,
        "steps_per_cpu_s": rates,
        "best_settings": best,
        "ratios": ratios,
        "peak_share": spread(shares),
        "sharpe": known,
        "raw": [*found, *trained],
    }


def finrl_file(folder: Path) -> Path:
    """FinRL's environment. Ends with a message where it is missing or another version."""
    path = folder / FINRL_FILE
    if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != FINRL_SHA256:
        sys.exit(f"--finrl {folder}: no {FINRL_FILE} of commit {FINRL_COMMIT[:8]} there; see --help")
    return path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", required=True, help="Python interpreter with sb3-contrib")
    parser.add_argument("--finrl", required=True, type=Path, help=f"folder with FinRL's {FINRL_FILE}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=5, help="seeds of each market with a known optimal policy")
    parser.add_argument("--resume", type=Path, help="result file of an interrupted run; what it has is not repeated")
    parser.add_argument(
        "--quick", action="store_true", help="one round and seed, into a temporary folder, as a smoke test"
    )
    args = parser.parse_args()
    if args.quick:
        args.rounds = args.seeds = 1
    if min(args.rounds, args.seeds) < 1:
        parser.error("--rounds and --seeds must be 1 or more")
    if args.resume and not args.resume.is_file():
        parser.error(f"--resume {args.resume}: no such file")
    pythons = {"ours": sys.executable, "sb3": args.peer, "finrl": args.peer}
    finrl = str(finrl_file(args.finrl).resolve())
    folder = Path(tempfile.mkdtemp(prefix="ranks-trading-")) if args.quick else RESULTS
    earlier = json.loads(args.resume.read_text())["raw"] if args.resume else []
    found: list[Result] = [one for one in earlier if "per_cpu_s" in one]
    trained: list[Result] = [one for one in earlier if "market" in one]

    def save() -> Path:
        return write_result(f"trading_recurrent_ppo_{time.strftime('%Y-%m-%d')}", summary(found, trained), folder)

    for number in range(max(args.rounds, args.seeds)):
        if number < args.rounds and number not in {one["seed"] for one in found}:
            found += measure_speed(pythons, finrl, number)
            if trained:
                save()
        if number < args.seeds and number not in {one["seed"] for one in trained}:
            trained += measure_sharpe(pythons, number)
            save()
    result, path = summary(found, trained), save()
    for side, one in result["ratios"].items():
        print(describe_ratio(side, one, result["best_settings"]))
    print(f"share of the peak of matrix products: {result['peak_share']['median']:.0%}\n{path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
