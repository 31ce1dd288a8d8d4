"""Compare recurrent PPO with RecurrentPPO of sb3-contrib: environment steps per second, end to end, and Sharpe ratios.

    python benchmarks/trading_recurrent_ppo.py --peer PYTHON [--rounds 3] [--quick]         on an idle machine

PYTHON is the interpreter of a separate virtual environment:

    python3 -m venv peers && peers/bin/pip install torch numpy gymnasium safetensors sb3-contrib==2.9.2

Both sides trade the same batched market (20 shipped stocks, rollouts of 63 days) with LSTMs of the same sizes for actor
and critic. Both make the same number of updates from the same number of samples: 10 epochs of 4 minibatches. They run
in turn with 8, 64 and 512 accounts; the first rollout of each run is not measured. Then both train on a mean-reverting
market with several seeds, and are evaluated on a market with another seed.

Writes benchmarks/results/trading_recurrent_ppo_DATE.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from measure import environment, origin, spread, write_result

PEERS = Path(__file__).resolve().parent / "trading_peers"
ACCOUNTS = (8, 64, 512)
GOAL = 25.0


def run(python: str, side: str, task: dict[str, Any]) -> dict[str, Any]:
    """Run one side and return its result. RuntimeError with its error output if it fails."""
    command = [python, str(PEERS / f"{side}.py"), json.dumps(task)]
    env = environment(OMP_NUM_THREADS=str(task["threads"]))
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{side}: {done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", required=True, help="Python interpreter with sb3-contrib")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds of the mean-reverting market")
    parser.add_argument("--quick", action="store_true", help="one round without Sharpe ratios, as a smoke test")
    args = parser.parse_args()
    interpreters = {"ours": sys.executable, "sb3": args.peer}
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    rounds, found = 1 if args.quick else args.rounds, []
    for turn in range(rounds):
        for accounts in ACCOUNTS:
            for side, python in interpreters.items():
                task = {"environments": accounts, "seed": turn, "threads": threads, "source": "sp500"}
                task["iterations"] = 1 if accounts == 512 and side == "sb3" else 2
                result = run(python, side, task)
                result |= {"side": side, "accounts": accounts, "per_s": result["steps"] / result["seconds"]}
                found.append(result)
                share = result["environment_s"] / result["seconds"]
                print(
                    f"{side}, {accounts} accounts: {result['per_s']:,.0f} steps/s, {result['updates']} updates, "
                    f"{result['parameters']:,} parameters, environment {share:.1%}",
                    flush=True,
                )
    rates = {
        side: {n: spread([f["per_s"] for f in found if (f["side"], f["accounts"]) == (side, n)], 1) for n in ACCOUNTS}
        for side in interpreters
    }
    best = {side: max(rows.values(), key=lambda row: row["median"])["median"] for side, rows in rates.items()}
    ratio = best["ours"] / best["sb3"]
    print(f"best of each: {best['ours']:,.0f} by {best['sb3']:,.0f} steps/s: {ratio:.1f}x (goal {GOAL:g}x)")
    scores: dict[str, list[float]] = {side: [] for side in interpreters}
    if not args.quick:
        for seed in range(args.seeds):
            for side, python in interpreters.items():
                task = {
                    "environments": 64,
                    "iterations": 39,
                    "seed": seed,
                    "threads": threads,
                    "source": "mean-reverting",
                }
                scores[side].append(run(python, side, task)["score"])
                print(f"{side}, seed {seed}: Sharpe ratio {scores[side][-1]:.3f} on evaluation days", flush=True)
        low, high = np.mean(scores["sb3"]) + np.array([-1, 1]) * 2.0 * np.std(scores["sb3"], ddof=1)
        print(f"ours {np.mean(scores['ours']):.3f}, theirs {np.mean(scores['sb3']):.3f} ({low:.3f} to {high:.3f})")
    result = {
        "origin": origin(),
        "steps_per_s": rates,
        "ratio_of_best": ratio,
        "goal": GOAL,
        "scores": scores,
        "raw": found,
    }
    print(write_result(f"trading_recurrent_ppo_{time.strftime('%Y-%m-%d')}", result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
