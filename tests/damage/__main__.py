"""`python -m tests.damage`: damaged run folders through every command that reads a run.

    python -m tests.damage                            1,000 folders, 50 of them also by real commands
    python -m tests.damage --cases 20 --real 0        a short one
    python -m tests.damage --only 17 --command train  one case again, with all its output

Each command has one process for all folders. A case that takes longer than HANG_S is a hang. The
peak memory of each process is compared with what it needs for undamaged folders.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import selectors
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from ranks.engine.runs import provenance
from tests.damage import cases
from tests.damage.cases import COMMANDS, Expected

HANG_S = 120.0
MORE_MIB = 256
"""How much more memory a process may need for damaged folders than for good ones."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.damage", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--real", type=int, default=50, help="how many of them also through the real commands")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="this case alone")
    parser.add_argument("--command", choices=COMMANDS, help="this command alone")
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    flags = parser.parse_args()
    if flags.worker:
        return work(Path(flags.worker[0]), flags.worker[1], int(flags.worker[2]), flags.cases, flags.seed)
    commands = [flags.command] if flags.command else list(COMMANDS)
    started = time.time()
    with tempfile.TemporaryDirectory(prefix="damage-") as folder:
        base = Path(folder)
        expected = cases.make_base(base)
        (base / "expected.json").write_text(json.dumps(asdict(expected)))
        if flags.only is not None:
            for command in commands:
                execute = cases.in_this_process
                print(cases.run_case(base, base / "work", expected, command, flags.only, flags.seed, execute))
            return 0
        with ThreadPoolExecutor(2) as pool:
            each = pool.submit(lambda: [supervise(base, c, flags.cases, flags.seed) for c in commands])
            by_command = pool.submit(
                lambda: [real(base, expected, c, n, flags.seed) for n in range(flags.real) for c in commands]
            )
            found = [result for results in each.result() for result in results] + by_command.result()
    return report(found, flags.cases, flags.real, flags.seed, time.time() - started, flags.out)


def load(base: Path) -> Expected:
    found = json.loads((base / "expected.json").read_text())
    by_iteration = {
        name: {int(k): v for k, v in found[name].items()} for name in ("fingerprints", "metrics", "weights")
    }
    return Expected(found["final"], named_by=found["named_by"], **by_iteration)


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def work(base: Path, command: str, first: int, num_cases: int, seed: int) -> int:
    """The process of one command: a line of JSON for each case, the first one for a good folder."""
    expected, place = load(base), base / f"work-{command}"
    cases.in_this_process(cases.command_line(command, base / "whole" / "runs"))
    print(json.dumps({"good_mib": peak_mib()}), flush=True)
    for case in range(first, num_cases):
        started = time.monotonic()
        result = cases.run_case(base, place, expected, command, case, seed, cases.in_this_process)
        print(json.dumps({**result, "seconds": time.monotonic() - started, "peak_mib": peak_mib()}), flush=True)
    return 0


def supervise(base: Path, command: str, num_cases: int, seed: int) -> list[dict[str, Any]]:
    """Run the process of one command; after a hang or its death, another one goes on behind the case."""
    found: list[dict[str, Any]] = []
    limit_mib = 0.0
    while len(found) < num_cases:
        argv = ["--worker", str(base), command, str(len(found)), "--cases", str(num_cases), "--seed", str(seed)]
        process = subprocess.Popen([sys.executable, "-m", "tests.damage", *argv], stdout=subprocess.PIPE)
        for line in lines(process):
            result = json.loads(line)
            if "good_mib" in result:
                limit_mib = result["good_mib"] + MORE_MIB
                continue
            if result["peak_mib"] > limit_mib and not result["problem"]:
                result["problem"] = f"it needed {result['peak_mib']:.0f} MiB"
                limit_mib = result["peak_mib"]  # later cases of this process are not to blame
            found.append(result)
            show(result)
        if len(found) < num_cases:
            process.kill()
            process.wait()
            problem = f"a hang of more than {HANG_S:g} s" if process.returncode == -9 else "the process died"
            found.append({"case": len(found), "command": command, "damage": [], "code": None, "problem": problem})
            show(found[-1])
        process.wait()
    print(f"{command}: {num_cases} cases, {sum(bool(r['problem']) for r in found)} problems", flush=True)
    return found


def lines(process: subprocess.Popen[bytes]) -> Any:
    """The lines that a process prints; they end with the process, or with its first long silence."""
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        pending = b""
        while selector.select(HANG_S):
            data = os.read(process.stdout.fileno(), 1 << 16)
            if not data:
                return
            *whole, pending = (pending + data).split(b"\n")
            yield from whole


def real(base: Path, expected: Expected, command: str, case: int, seed: int) -> dict[str, Any]:
    """One case through the real command."""

    def execute(argv: Sequence[str]) -> tuple[int, str, str]:
        run = subprocess.run(
            [sys.executable, "-m", "ranks", *argv],
            **{"capture_output": True, "timeout": HANG_S, "env": {**os.environ, "OMP_NUM_THREADS": "1"}},
        )
        return run.returncode, run.stdout.decode(errors="replace"), run.stderr.decode(errors="replace")

    started = time.monotonic()
    try:
        result = cases.run_case(base, base / "work-real", expected, command, case, seed, execute)
    except subprocess.TimeoutExpired:
        problem = f"a hang of more than {HANG_S:g} s"
        result = {"case": case, "command": command, "damage": [], "code": None, "problem": problem}
    show(result)
    return {**result, "real": True, "seconds": time.monotonic() - started}


def show(result: dict[str, Any]) -> None:
    if result["problem"]:
        print(f"FAIL {result['command']} case {result['case']}: {result['problem']}: {result['damage']}", flush=True)
        print("    " + result.get("output", "").replace("\n", "\n    "), flush=True)


def report(found: list[dict[str, Any]], num_cases: int, num_real: int, seed: int, seconds: float, out: Path) -> int:
    """Print the checks and write the result file; the exit code."""
    checks: list[dict[str, Any]] = []
    for command in sorted({result["command"] for result in found}, key=COMMANDS.index):
        for is_real in (False, True):
            mine = [r for r in found if r["command"] == command and bool(r.get("real")) == is_real]
            if not mine:
                continue
            codes = Counter(str(r["code"]) for r in mine)
            bad = sum(bool(r["problem"]) for r in mine)
            text = f"{bad} problems in {len(mine)} folders; exit codes {dict(sorted(codes.items()))}"
            if not is_real:
                text += f"; peak {max(r.get('peak_mib', 0) for r in mine):.0f} MiB"
            name = f"{command}, {'real commands' if is_real else 'one process'}"
            bound = "no traceback, no hang, bounded memory, the newest good checkpoint is taken"
            checks.append({"name": name, "found": text, "bound": bound, "ok": not bad})
            print(f"  {'ok  ' if not bad else 'FAIL'}  {name:<28} {text}")
    verdict = "PASS" if all(check["ok"] for check in checks) else "FAIL"
    kinds = Counter(name for r in found if r["command"] == "train" and not r.get("real") for name in r["damage"])
    content = {
        **{"proof": "damage", "workload": "window.py", "verdict": verdict},
        "command": f"python -m tests.damage --cases {num_cases} --real {num_real} --seed {seed}",
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seconds": round(seconds, 1),
        "versions": provenance.versions(),
        "hardware": provenance.hardware(torch.device("cpu")),
        "git": provenance.git_commit(),
        "checks": checks,
        "raw": {
            "damages": dict(sorted(kinds.items())),
            "slowest_s": round(max(r.get("seconds", 0.0) for r in found), 2),
            "problems": [r for r in found if r["problem"]],
        },
    }
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"damage_window_{time.strftime('%Y-%m-%d', time.gmtime())}.json"
    path.write_text(json.dumps(content, indent=1) + "\n")
    print(f"{verdict}: {sum(c['ok'] for c in checks)} of {len(checks)} checks hold; raw values in {path}")
    return 0 if verdict == "PASS" else 1


if __name__ == "__main__":
    sys.exit(main())
