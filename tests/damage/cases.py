"""One case: a run folder with one or two damages, a command, and what the command must do."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import random
import shutil
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranks.cli.main import main
from ranks.engine.runs.folder import listing
from tests.damage.targets import Target, targets

COMMANDS = ("train", "evaluate", "export", "fingerprint", "runs")
WORKLOAD = str(Path(__file__).parents[1] / "toys" / "window.py")
NAME = "damaged"
BASE_ITERATIONS, ITERATIONS = 8, 10
TWO_DAMAGES = 0.25
"""Share of the cases with two damages."""
NOT_REGULAR = {"fifo", "socket_file", "folder", "link_out", "link_to_itself", "link_to_urandom", "link_to_zero"}
"""Kinds of damage after which a file is no regular file."""
Execute = Callable[[Sequence[str]], tuple[int, str, str]]
"""Runs a command line: exit code, output, error output."""


def training(runs: Path, iterations: int) -> list[str]:
    flags = ["--name", NAME, "--runs-dir", str(runs), "--gpus", "none", "--ranks", "1", "--threads", "1"]
    flags += ["--iterations", str(iterations), "--eval-every", "4", "--shards", "8", "--save-every", "2"]
    return ["train", WORKLOAD, *flags]


def command_line(command: str, runs: Path) -> list[str]:
    if command == "train":
        return training(runs, ITERATIONS)
    named = [] if command == "runs" else [NAME]
    flags = {"evaluate": ["--json", "--gpus", "none"], "export": ["--json"], "runs": ["--json"]}.get(command, [])
    return [command, *named, "--runs-dir", str(runs), *flags]


def in_this_process(argv: Sequence[str]) -> tuple[int, str, str]:
    """An exception that leaves the command counts as a traceback, with exit code 70."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(argv)
        except BaseException:
            code = 70
            traceback.print_exc()
    return code, out.getvalue(), err.getvalue()


# What is right --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Expected:
    """Of the undamaged run. `final`: the fingerprint after all iterations. By iteration of each
    checkpoint: its fingerprint, the metrics of `evaluate`, the sha256 of the exported weights. `named_by`:
    the checkpoints that name a kept file."""

    final: str
    fingerprints: dict[int, str]
    metrics: dict[int, Any]
    weights: dict[int, str]
    named_by: dict[str, list[int]]


def make_base(folder: Path) -> Expected:
    """Train the run that is damaged, and note what its checkpoints give."""
    runs, whole = folder / "runs", folder / "whole" / "runs"
    for argv in (training(runs, BASE_ITERATIONS), training(whole, ITERATIONS)):
        code, _, err = in_this_process(argv)
        assert code == 0, err
    final = in_this_process(["fingerprint", NAME, "--runs-dir", str(whole)])[1].strip()
    fingerprints, metrics, weights = {}, {}, {}
    named_by: dict[str, list[int]] = {}
    for path in listing(runs / NAME / "checkpoints"):
        iteration, copy = int(path.name), folder / "copy" / "runs"
        shutil.copytree(runs / NAME, copy / NAME)
        at = ["--runs-dir", str(copy), "--checkpoint", str(iteration)]
        fingerprints[iteration] = in_this_process(["fingerprint", str(path)])[1].strip()
        evaluated = in_this_process(["evaluate", NAME, *at, "--json", "--gpus", "none"])[1]
        metrics[iteration] = json.loads(evaluated)["metrics"]
        assert in_this_process(["export", NAME, *at])[0] == 0
        weights[iteration] = sha256(copy / NAME / "export" / "model.safetensors")
        shutil.rmtree(copy)
        for part in json.loads((path / "manifest.json").read_text())["kept"]:
            named_by.setdefault(f"kept/{part}", []).append(iteration)
    assert len(fingerprints) >= 3
    assert len(named_by) > 3
    return Expected(final, fingerprints, metrics, weights, named_by)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


# One case -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Damage:
    target: str
    kind: str

    def lost(self, expected: Expected, command: str) -> set[int]:
        """The checkpoints that the command can no longer use: only training needs kept files."""
        target = Path(self.target)
        if self.kind == "leftovers":
            return set()
        if target.parts[0] == "checkpoints":
            return {int(target.parts[1])} if len(target.parts) > 1 else set(expected.fingerprints)
        parts = [part for part in expected.named_by if target in (Path(part), *Path(part).parents)]
        return {n for part in parts for n in expected.named_by[part]} if command == "train" else set()

    def may_refuse(self, command: str) -> bool:
        """Whether the command may end with exit code 2 although a good checkpoint is left."""
        if self.target.endswith(".lock"):
            return command == "train"
        if self.target == "run.json":
            return command != "runs"
        if self.target == "run_config.json":
            return command in ("evaluate", "export")
        return command == "train" and self.target.endswith(".jsonl") and self.kind in NOT_REGULAR


def plan(base: Path, case: int, seed: int) -> list[tuple[Target, int]]:
    """The damages of a case, as (target, number of the kind). All pairs are used equally often."""
    pairs = [(target, k) for target in targets(base / "runs" / NAME) for k in range(len(target.kinds))]
    random.Random(f"{seed} order {case // len(pairs)}").shuffle(pairs)
    first = pairs[case % len(pairs)]
    rng = random.Random(f"{seed} second {case}")
    others = [pair for pair in pairs if not related(pair[0].path, first[0].path)]
    return [first, rng.choice(others)] if rng.random() < TWO_DAMAGES else [first]


def related(one: str, other: str) -> bool:
    """Whether two targets are equal, or one is inside the folder of the other."""
    a, b = Path(one), Path(other)
    return a == b or a in b.parents or b in a.parents or a.parent == b.parent != Path()


def damage(base: Path, place: Path, case: int, seed: int) -> list[Damage]:
    """Copy the base run to `place`/runs and damage the copy."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(base / "runs", place / "runs")
    done = []
    for number, (target, k) in enumerate(plan(base, case, seed)):
        path = place / "runs" / NAME / target.path
        target.kinds[k](path, random.Random(f"{seed} {case} {number}"))
        done.append(Damage(target.path, target.kinds[k].__name__))
    return done


def run_case(
    base: Path, place: Path, expected: Expected, command: str, case: int, seed: int, execute: Execute
) -> dict[str, Any]:
    """Carry out one case. `problem` in the result is empty where the command did what it must."""
    done = damage(base, place, case, seed)
    outside = snapshot(place / "outside")
    code, out, err = execute(command_line(command, place / "runs"))
    problem = judge(place / "runs", expected, command, done, code, out, err)
    if not problem and snapshot(place / "outside") != outside:
        problem = "something outside of the run folder was changed"
    names = [f"{d.kind} of {d.target}" for d in done]
    result = {"case": case, "command": command, "damage": names, "code": code, "problem": problem}
    return result | ({"output": (out + err)[-3000:]} if problem else {})


def judge(runs: Path, expected: Expected, command: str, done: Sequence[Damage], code: int, out: str, err: str) -> str:
    """What is wrong with how a command ended; empty where all is right."""
    if "Traceback" in out + err:
        return "a traceback"
    if code not in (0, 2):
        return f"exit code {code}"
    if command == "runs":
        return "" if code == 0 and [run["name"] for run in json.loads(out)] == [NAME] else "the run is not listed"
    lost = {n for d in done for n in d.lost(expected, command)}
    unsure = {n for d in done if d.kind == "odd_fact" for n in d.lost(expected, command)}
    good = max((n for n in expected.fingerprints if n not in lost), default=None)
    allowed = {n for n in (good, *unsure) if n is not None and n >= (good or 0)}
    if code == 2:
        words = err.splitlines()
        if not (any(w.startswith("asked: ") for w in words) or "; " in err):
            return "exit code 2 without a clear error"
        refused = any(d.may_refuse(command) for d in done)
        return "" if refused or good is None else f"refused, although checkpoint {good} is good"
    if not allowed:
        return "no checkpoint is good, and it was not refused"
    return wrong_result(runs, expected, command, allowed, out)


def wrong_result(runs: Path, expected: Expected, command: str, allowed: set[int], out: str) -> str:
    """Why the result of a command that ended well is not that of an allowed checkpoint."""
    run = runs / NAME
    if command == "train":
        newest = listing(run / "checkpoints")[-1]
        found = json.loads((newest / "manifest.json").read_text())["fingerprint"]
        left = [p.name for p in (*run.rglob(".*"), *runs.glob(f".{NAME}.*")) if p.name != f".{NAME}.lock"]
        if left:
            return f"temporaries are left: {left}"
        return "" if (int(newest.name), found) == (ITERATIONS, expected.final) else f"it ended with {newest}, {found}"
    if command == "fingerprint":
        return "" if out.strip() in {expected.fingerprints[n] for n in allowed} else f"another fingerprint: {out}"
    result = json.loads(out)
    iteration = result["iteration"]
    if iteration not in allowed:
        return f"it took checkpoint {iteration}, not {sorted(allowed)}"
    if command == "evaluate":
        return "" if result["metrics"] == expected.metrics[iteration] else f"other metrics: {out}"
    return "" if sha256(run / "export" / "model.safetensors") == expected.weights[iteration] else "other weights"


def snapshot(folder: Path) -> list[tuple[str, int, int]]:
    """Paths, sizes and times of what is in a folder."""
    found = [(path, path.lstat()) for path in sorted(folder.rglob("*"))] if folder.exists() else []
    return [(str(path), stat.st_size, stat.st_mtime_ns) for path, stat in found]
