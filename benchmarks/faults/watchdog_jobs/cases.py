"""The cases of watchdog.py, drawn from a seed before the first one runs."""

from __future__ import annotations

import random
from typing import Any

from benchmarks.faults.watchdog_jobs.hangs import HANGS

SEED = 17
LONG_ITERATIONS, LONG_STEP_MS = 10_000, 20.0
Case = dict[str, Any]


def hang_cases() -> list[Case]:
    """Each cause once, on a drawn rank and at a drawn iteration."""
    chance = random.Random(SEED)
    found: list[Case] = []
    for cause, hang in HANGS.items():
        rank = chance.randrange(2) if hang.rank is None else hang.rank
        at = chance.randrange(150, 250)
        settings = {"hang": cause, "rank": rank, "at": at, "eval_every": 60, "save_every_updates": 60}
        found.append({"kind": "hangs", "key": f"hang: {cause}", "ranks": 2, "cause": cause, "settings": settings})
    return found


def straggler_cases() -> list[Case]:
    """60: 12 with a CPU quota on one of two ranks that compute; 16 each that compute, load or send longer."""
    chance = random.Random(SEED + 1)
    kinds = ["quota"] * 12 + ["compute"] * 16 + ["data"] * 16 + ["network"] * 16
    found: list[Case] = []
    for index, kind in enumerate(kinds):
        ranks = 2 if kind == "quota" else chance.choice([2, 3, 4, 8])
        compute_ms, load_ms = chance.uniform(15, 60), chance.uniform(0.5, 10)
        rank, slowdown = chance.randrange(ranks), chance.uniform(1.4, 3.0)
        settings = {"compute_ms": round(compute_ms, 1), "load_ms": round(load_ms, 1), "rank": rank}
        settings |= {"jitter": round(chance.uniform(0.0, 0.15), 3), "eval_every": 400, "iterations": 100_000}
        if kind == "quota":
            settings |= {"burn": True, "jitter": 0.05}
        else:
            extra_ms = (slowdown - 1) * (compute_ms + load_ms)
            at = int(chance.uniform(8, 14) * 1000 / (compute_ms + load_ms + 2))
            settings |= {"slow": kind, "extra_ms": round(extra_ms, 1), "at": at}
        case = {"kind": "stragglers", "key": f"straggler {index}: {kind}", "ranks": ranks, "cause": kind}
        found.append(case | {"slowdown": round(slowdown, 2), "settings": settings})
    return found


def clean_cases() -> list[Case]:
    """20: 15 that sleep on 2 to 8 ranks, 5 that compute on 2."""
    chance = random.Random(SEED + 2)
    found: list[Case] = []
    for index in range(20):
        burns = index % 4 == 3
        ranks = 2 if burns else chance.choice([2, 3, 4, 8])
        settings = {"compute_ms": round(chance.uniform(10, 60), 1), "load_ms": round(chance.uniform(0.5, 10), 1)}
        settings |= {"jitter": round(chance.uniform(0.0, 0.2), 3), "eval_every": 200, "save_every_updates": 200}
        settings |= {"iterations": 100_000} | ({"burn": True} if burns else {})
        found.append({"kind": "clean", "key": f"clean {index}", "ranks": ranks, "settings": settings})
    return found


def long_case(iterations: int) -> Case:
    """Steps of 20 ms that compute, with evaluations of up to two seconds and saves."""
    settings = {"compute_ms": LONG_STEP_MS - 1, "load_ms": 1.0, "burn": True, "iterations": iterations}
    settings |= {"eval_every": 500, "evaluate_ms": 2000.0, "save_every_updates": 250}
    return {"kind": "long", "key": "long", "ranks": 2, "settings": settings}
