"""Compare stock-trading's PPO with RecurrentPPO of sb3-contrib: environment steps a CPU second, and Sharpe ratios.

    python benchmarks/trading_recurrent_ppo.py --peer PYTHON --finrl FOLDER [--rounds 3] [--seeds 5] [--quick]

on an idle machine. PYTHON is the interpreter of a virtual environment, FOLDER holds FinRL's environment:

    python3 -m venv peers && peers/bin/pip install torch numpy safetensors sb3-contrib==2.9.2 pandas matplotlib
    git clone https://github.com/AI4Finance-Foundation/FinRL && git -C FinRL checkout 220f9e49
    python benchmarks/trading_recurrent_ppo.py --peer peers/bin/python --finrl FinRL/finrl/meta/env_stock_trading

Three sides trade the 20 shipped stocks of the training days, each on one core: ranks (the default policy, with a shared
memory of the market), RecurrentPPO on the same batched market, and RecurrentPPO on FinRL's own environment. All have
hidden sizes of 128, rollouts of 63 days, 10 epochs of 4 minibatches, so as many updates from a rollout. A side is
measured with several numbers of accounts, sides take turns, and the first rollout of each run is not measured. The best
number of each peer counts.

Then ranks, with each number of accounts, and RecurrentPPO on the batched market, with the best number of either peer,
train on markets with a known optimal policy from equal samples, and are evaluated on one with another seed. (FinRL
trades at the close that it observes, so its returns cannot be compared; RecurrentPPO with the same number of accounts
is used in its place.) A ratio of speeds counts only with a number of accounts whose mean Sharpe ratio on both markets
is not below the interval of the peer's: its mean plus and minus 2 standard deviations of its seeds.

Writes benchmarks/results/trading_recurrent_ppo_DATE.json.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from measure import RESULTS, environment, origin, spread, write_result

PEERS = Path(__file__).resolve().parent / "trading_peers"
sys.path.insert(0, str(PEERS))
import task  # noqa: E402
from task import HORIZON, KNOWN, SP500, Task  # noqa: E402

FINRL_FILE, FINRL_COMMIT = "env_stocktrading.py", "220f9e490996a6e5c84cfad914ff14f2e0c42d22"
FINRL_SHA256 = "f49e6639126f40371e1271a668dedc661060afa95b6399eac9bafbe9bbbb6fae"
ACCOUNTS = {"ours": (64, 128, 256, 512), "sb3": (8, 64, 512), "finrl": (8, 64)}
GOALS = {"finrl": 25.0, "sb3": 2.5}
MEASURED = {"ours": 3, "sb3": 1, "finrl": 1}
"""Rollouts that are measured in a run."""
LR = {"ours": 1e-3, "sb3": 3e-4, "finrl": 3e-4}
"""RecurrentPPO has the default of Stable-Baselines3."""
SAMPLES, SAMPLES_QUICK = 512 * HORIZON * 5, 512 * HORIZON * 2
"""Environment steps of a training for a Sharpe ratio; a multiple of every side's rollouts."""

Result = dict[str, Any]


def run(python: str, side: str, one: Task) -> Result:
    """Run one side and return its result. RuntimeError with its error output if it fails."""
    command = [python, str(PEERS / f"{side}.py"), json.dumps(vars(one))]
    done = subprocess.run(command, env=environment(OMP_NUM_THREADS="1"), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{side}: {done.stderr[-3000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    return found | {"side": side, "accounts": one.environments, "source": one.source, "seed": one.seed}


def measure_speed(pythons: Mapping[str, str], finrl: str, rounds: int) -> list[Result]:
    """Every side with every number of accounts, in turn."""
    found: list[Result] = []
    for seed in range(rounds):
        for side, python in pythons.items():
            for accounts in ACCOUNTS[side]:
                found.append(run(python, side, Task(accounts, MEASURED[side], seed, SP500, LR[side], finrl)))
                found[-1]["per_cpu_s"] = found[-1]["steps"] / found[-1]["cpu_s"]
                print(described(found[-1]), flush=True)
    return found


def described(one: Result) -> str:
    """One line about a run of `measure_speed`."""
    text = (
        f"{one['side']}, {one['accounts']} accounts: {one['per_cpu_s']:,.0f} steps a CPU second, {one['updates']} "
        f"updates, {one['parameters']:,} parameters, environment {one['environment_s'] / one['cpu_s']:.1%}"
    )
    return f"{text}, {peak_share(one):.0%} of the peak" if "product_flops" in one else text


def peak_share(one: Result) -> float:
    """Operations of matrix products in a CPU second, as a fraction of those of large matrix products."""
    return one["product_flops"] / one["cpu_s"] / one["peak_flops_per_s"]


def measure_sharpe(pythons: Mapping[str, str], best: Mapping[str, int], seeds: int, samples: int) -> dict[str, Any]:
    """For each known market: Sharpe ratios by seed, ours for each number of accounts, and those of RecurrentPPO on the
    batched market with the best number of either peer, with its interval."""
    found: dict[str, Any] = {}

    def scores(side: str, accounts: int, market: str) -> list[float]:
        values: list[float] = []
        for seed in range(seeds):
            rollouts = samples // (accounts * HORIZON)
            values.append(run(pythons[side], side, Task(accounts, rollouts - 1, seed, market, LR[side]))["score"])
            print(f"{market}, seed {seed}, {side}, {accounts} accounts: Sharpe ratio {values[-1]:.3f}", flush=True)
        return values

    for market in KNOWN:
        ours = {str(accounts): scores("ours", accounts, market) for accounts in ACCOUNTS["ours"]}
        peers: dict[str, Any] = {}
        for accounts in sorted({best["sb3"], best["finrl"]}):
            theirs = scores("sb3", accounts, market)
            mean, deviation = statistics.fmean(theirs), statistics.stdev(theirs) if seeds > 1 else 0.0
            peers[str(accounts)] = {"scores": theirs, "interval": [mean - 2 * deviation, mean + 2 * deviation]}
        found[market] = {"ours": ours, "peers": peers}
    return found


def compare(rates: Mapping[str, Any], best: Mapping[str, int], known: Mapping[str, Any]) -> dict[str, Any]:
    """Our speed by each peer's, with the fastest number of accounts whose Sharpe ratios reach the peer's interval on
    all known markets; where none does, the fastest of all, which does not count."""
    ratios: dict[str, Any] = {}
    for side, goal in GOALS.items():

        def reaches(accounts: str, side: str = side) -> bool:
            lows = {market: one["peers"][str(best[side])]["interval"][0] for market, one in known.items()}
            return all(statistics.fmean(known[market]["ours"][accounts]) >= low for market, low in lows.items())

        ours = rates["ours"]
        reached = [accounts for accounts in ours if reaches(accounts)]
        fastest = max(reached or ours, key=lambda accounts: ours[accounts]["median"])
        ratio = ours[fastest]["median"] / rates[side][str(best[side])]["median"]
        ratios[side] = {"ratio": ratio, "accounts": int(fastest), "goal": goal, "counts": bool(reached)}
        low = "" if reached else ", but our Sharpe ratios are below the peer's interval"
        print(f"ours with {fastest} accounts by {side} with {best[side]}: {ratio:.1f}x (goal {goal:g}x){low}")
    return ratios


def speeds(found: Sequence[Result]) -> dict[str, dict[str, Any]]:
    """Steps a CPU second by side and number of accounts."""
    return {
        side: {
            str(n): spread([f["per_cpu_s"] for f in found if (f["side"], f["accounts"]) == (side, n)], 1) for n in all_n
        }
        for side, all_n in ACCOUNTS.items()
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
    parser.add_argument("--quick", action="store_true", help="few samples, into a temporary folder, as a smoke test")
    args = parser.parse_args()
    pythons = {"ours": sys.executable, "sb3": args.peer, "finrl": args.peer}
    found = measure_speed(pythons, str(finrl_file(args.finrl).resolve()), args.rounds)
    rates = speeds(found)
    best = {side: int(max(rows, key=lambda n: rows[n]["median"])) for side, rows in rates.items()}
    known = measure_sharpe(pythons, best, args.seeds, SAMPLES_QUICK if args.quick else SAMPLES)
    ratios = compare(rates, best, known)
    shares = [peak_share(f) for f in found if (f["side"], f["accounts"]) == ("ours", ratios["finrl"]["accounts"])]
    print(f"share of the peak of matrix products: {statistics.median(shares):.0%}")
    result = {
        "origin": origin(),
        "finrl": {"commit": FINRL_COMMIT, "file": FINRL_FILE, "sha256": FINRL_SHA256},
        "settings": {n.lower(): v for n, v in vars(task).items() if n.isupper() and isinstance(v, int | float)},
        "lr": LR,
        "samples": SAMPLES_QUICK if args.quick else SAMPLES,
        "steps_per_cpu_s": rates,
        "best_accounts": best,
        "ratios": ratios,
        "peak_share": spread(shares),
        "sharpe": known,
        "raw": found,
    }
    folder = Path(tempfile.mkdtemp(prefix="ranks-trading-")) if args.quick else RESULTS
    print(write_result(f"trading_recurrent_ppo_{time.strftime('%Y-%m-%d')}", result, folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
