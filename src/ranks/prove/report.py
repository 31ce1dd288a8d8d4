"""The result of a proof: each check is printed when it is made, and a JSON file holds all checks and raw values."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from ranks.engine.files.jsonl import strict
from ranks.engine.runs import provenance


@dataclass(frozen=True)
class Check:
    """One comparison: its name, the found value, and the bound."""

    name: str
    found: str
    bound: str
    ok: bool


class Report:
    """Collects and prints checks. `raw`: all measured values by name, for the file."""

    def __init__(self, proof: str, workload: str, settings: Mapping[str, Any]) -> None:
        self.proof, self.workload, self.settings = proof, workload, dict(settings)
        self.checks: list[Check] = []
        self.raw: dict[str, Any] = {}
        self.started = time.time()
        print(f"ranks prove {proof} {workload}", flush=True)

    @property
    def ok(self) -> bool:
        return bool(self.checks) and all(check.ok for check in self.checks)

    def section(self, title: str) -> None:
        print(f"\n{title}", flush=True)

    def say(self, text: str) -> None:
        print(f"  {text}", flush=True)

    def check(self, name: str, found: object, bound: str, ok: bool) -> bool:
        """Record and print one comparison; returns `ok`."""
        self.checks.append(Check(name, str(found), bound, ok))
        print(f"  {'ok  ' if ok else 'FAIL'}  {name:<44} {found}  ({bound})", flush=True)
        return ok

    def aborted(self, name: str, problem: Exception) -> None:
        """Record a failed check for an experiment that could not be carried out; `problem` says why."""
        first, _, rest = str(problem).partition("\n")
        self.check(f"{name} carried out", first.rstrip(":"), "every command ends with the expected exit code", False)
        for line in rest.splitlines():
            self.say(f"  | {line}")
        self.raw["aborted"] = str(problem)

    def goal(self, name: str, found: object, goal: str, met: bool) -> None:
        """Record and print a figure that depends on the machine. Missing its goal does not fail the proof."""
        self.raw.setdefault("goals", {})[name] = {"found": str(found), "goal": goal, "met": met}
        print(f"  {'met ' if met else 'miss'}  {name:<44} {found}  (goal: {goal})", flush=True)

    def finish(self, folder: Path) -> int:
        """Write the file and print the verdict; the exit code."""
        verdict = "PASS" if self.ok else "FAIL"
        day = time.strftime("%Y-%m-%d", time.gmtime(self.started))
        path = folder / f"{self.proof}_{Path(self.workload).stem}_{day}.json"
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        content = {
            "proof": self.proof,
            "workload": Path(self.workload).name,
            "verdict": verdict,
            "command": " ".join(["ranks", *without_out(sys.argv[1:])]),
            "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.started)),
            "seconds": round(time.time() - self.started, 1),
            "settings": self.settings,
            "versions": provenance.versions(),
            "hardware": provenance.hardware(device),
            "git": provenance.git_commit(),
            "checks": [asdict(check) for check in self.checks],
            "raw": self.raw,
        }
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(strict(content), indent=1, default=str) + "\n")
        failed = [check.name for check in self.checks if not check.ok]
        print(f"\n{verdict}: {len(self.checks) - len(failed)} of {len(self.checks)} checks hold; raw values in {path}")
        for name in failed:
            print(f"  failed: {name}")
        return 0 if verdict == "PASS" else 1


def table_lines(header: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """A table as lines of text with aligned columns."""
    cells = [[str(cell) for cell in row] for row in [header, *rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of all values do not exceed; NaN for no values."""
    ordered = sorted(values)
    return ordered[max(0, -(-int(share * 100) * len(ordered) // 100) - 1)] if ordered else float("nan")


def without_out(argv: Sequence[str]) -> list[str]:
    """A command line without `--out FOLDER`, which does not change the result."""
    kept = [part for part in argv if not part.startswith("--out=")]
    at = kept.index("--out") if "--out" in kept else len(kept)
    return [*kept[:at], *kept[at + 2 :]]
