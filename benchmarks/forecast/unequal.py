"""Forecasts of two unequal ranks against facts: with equal shares, and with shares by speed.

    python -m benchmarks.forecast.unequal [--slow 1.5,2,3] [--seconds 8] [--result FILE]          about three minutes

The passes of a rank sleep as long as they should take (network_jobs/sleeper.py), those of the second rank longer by a
factor, so two CPU cores suffice; the engine, its buckets and gloo are real. A forecast sees rank 0 alone and rank 0 of
two equal ones, a link probe, and the factor. So this tests the line over shares, the replay of unequal ranks and the
rule of shares. It does not test how fast a card is by its data sheet, and says nothing of GPUs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.measure import RESULTS, environment, origin
from ranks.cli.flags.settings import resolve
from ranks.cli.forecasting.measure import measure_profile, probe_link
from ranks.hardware.forecast.job import Speedup
from ranks.hardware.forecast.profile import Profile
from ranks.hardware.forecast.rental import Rental
from ranks.hardware.forecast.unequal import RankDevice, UnequalForecast, forecast_unequal, shares_by_speed
from ranks.hardware.links.curve import Link

SLEEPER = Path(__file__).parent / "network_jobs" / "sleeper.py"
JOB = ("--forward-ms=1.5", "--backward-ms=3", "--fixed-ms=5", "--loading-ms=0.3", "--jitter=0.02", "--megabytes=4")
FLAGS = (*JOB, "--bucket-megabytes=1", "--threads=1")
DROPPED, LEAST, LIMIT_S = 2, 10, 300.0
FREE = Rental(None, 0.0, 0.0, 1.0)


def devices_of(slow: float) -> list[RankDevice]:
    """The recorded device, and one that is slower by a factor that is certain."""
    return [RankDevice(name, Speedup(speed, speed, speed), None) for name, speed in (("fast", 1.0), ("slow", 1 / slow))]


def fact_s(slow: float, shares: tuple[int, ...], iterations: int) -> float:
    """Mean seconds of an iteration of two real ranks."""
    with tempfile.TemporaryDirectory(prefix="ranks-unequal-") as folder:
        given = ",".join(map(str, shares))
        argv = [sys.executable, "-m", "ranks", "train", str(SLEEPER), *FLAGS, f"--slow-last={slow}"]
        argv += ["--gpus=none", "--ranks=2", f"--shares={given}", f"--iterations={iterations}", f"--runs-dir={folder}"]
        done = subprocess.run(argv, env=environment(), capture_output=True, text=True, timeout=LIMIT_S)
        if done.returncode:
            raise RuntimeError(done.stderr[-2000:])
        rows = [json.loads(line) for line in (Path(folder) / "sleeper" / "metrics.jsonl").open(encoding="utf-8")]
    return statistics.fmean(row["time/iteration_s"] - row["time/save_s"] for row in rows[DROPPED:])


def compare(profile: Profile, link: Link, slow: float, shares: tuple[int, ...], seconds: float) -> dict[str, Any]:
    """One run and its forecast."""
    found: UnequalForecast = forecast_unequal(profile, devices_of(slow), shares, link, FREE)
    interval = found.whole.iteration_s
    load = os.getloadavg()[0]
    fact = fact_s(slow, shares, DROPPED + max(LEAST, round(seconds / interval.middle)))
    return {
        "slow": slow,
        "shares": list(shares),
        "shards": list(found.whole.shards_per_rank),
        "forecast_s": [interval.low, interval.middle, interval.high],
        "fact_s": fact,
        "error": interval.middle / fact - 1,
        "within": interval.low <= fact <= interval.high,
        "limited_by": found.whole.limited_by,
        "load": load,
    }


def summary(cases: list[dict[str, Any]]) -> dict[str, Any]:
    """How far forecasts are from facts."""
    errors = [abs(case["error"]) for case in cases]
    within = sum(case["within"] for case in cases)
    return {
        "cases": len(cases),
        "median_error": statistics.median(errors),
        "largest_error": max(errors),
        "within": within,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slow", default="1.5,2,3", help="by how much the second rank is slower")
    parser.add_argument("--seconds", type=float, default=8.0, help="of each run")
    parser.add_argument("--result", type=Path, default=RESULTS / f"forecast_unequal_{time.strftime('%Y-%m-%d')}.json")
    asked, began = parser.parse_args(), origin()
    settings = resolve(str(SLEEPER), list(FLAGS), outline=True)
    profile = measure_profile(settings, list(FLAGS), [1, 2], "cpu", 5.0)
    link, cases = probe_link("none"), list[dict[str, Any]]()
    for slow in map(float, asked.slow.split(",")):
        by_speed = shares_by_speed(profile, devices_of(slow))
        for shares in dict.fromkeys([(1, 1), by_speed or (1, 1)]):
            case = compare(profile, link, slow, shares, asked.seconds)
            cases.append(case)
            low, middle, high = (1000 * seconds for seconds in case["forecast_s"])
            shown = f"forecast {middle:.0f} ms ({low:.0f} to {high:.0f}), fact {1000 * case['fact_s']:.0f} ms"
            print(
                f"{slow:g} times slower, shares {shares}: {shown}, {case['error']:+.1%}, load {case['load']:.1f}",
                flush=True,
            )
    content = {"origin": began, "summary": summary(cases), "cases": cases}
    asked.result.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(content["summary"]), asked.result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
