"""What the experiments of `ranks prove survive` share: the commands, their baseline runs, and the comparison."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from ranks.prove.baseline import BaselineRun, run_baseline
from ranks.prove.kept import files_on_disk, folder_of, newest_kept
from ranks.prove.options import ProofOptions
from ranks.prove.report import Report
from ranks.prove.train_command import RankLayout, TrainCommand, Workspace, fingerprint
from ranks.workloads import load

BASELINE_S = (10.0, 4.0)
"""Seconds that the loop of a baseline run takes, about; and with --quick."""
SAVES, EVALUATIONS = 12, 4
"""In a baseline run."""
PILOT_ITERATIONS = 24


@dataclass
class SurviveProof:
    """The common parts of the experiments. Baseline runs are made when they are first needed."""

    report: Report
    where: Workspace
    workload: str
    options: ProofOptions
    iterations: int
    rng: random.Random
    baselines: dict[tuple[int, str], BaselineRun] = field(default_factory=lambda: dict[tuple[int, str], BaselineRun]())

    @property
    def save_every(self) -> int:
        return max(1, self.iterations // SAVES)

    @property
    def evaluate_every(self) -> int:
        return max(2, self.iterations // EVALUATIONS)

    def command(self, name: str, ranks: int, mode: str) -> TrainCommand:
        """The `ranks train` command of one run."""
        evaluates = hasattr(load(self.workload).Config(), "eval_every")
        flags = (
            *(["--exact"] if mode == "exact" else ["--deterministic", "--threads", "1"]),
            *("--iterations", str(self.iterations), "--save-every", str(self.save_every)),
            *(["--eval-every", str(self.evaluate_every)] if evaluates else []),
            *self.options.train_flags,
        )
        name = f"{name}-{ranks}-{mode}"
        return TrainCommand(self.where, self.workload, name, RankLayout(ranks), flags, self.options.gpus)

    def choose_iterations(self) -> None:
        """Choose the number of iterations so that a baseline run takes about `BASELINE_S` seconds."""
        self.iterations = PILOT_ITERATIONS
        pilot = run_baseline(self.command("pilot", 2, "exact"), PILOT_ITERATIONS, lambda run: "")
        fixed_s = SAVES * pilot.save_s + EVALUATIONS * pilot.evaluation_s
        loop_s = BASELINE_S[self.options.quick] - fixed_s
        self.iterations = max(PILOT_ITERATIONS, min(4000, round(loop_s / pilot.iteration_s)))

    def baseline(self, ranks: int, mode: str) -> BaselineRun:
        """The baseline run of a setting."""
        if (ranks, mode) not in self.baselines:
            found = run_baseline(self.command("baseline", ranks, mode), self.iterations, fingerprint)
            self.baselines[ranks, mode] = found
            self.report.say(f"baseline, {ranks} ranks, {mode}: {found.seconds:.1f} s, fingerprint {found.fingerprint}")
        return self.baselines[ranks, mode]

    @property
    def keeps_files(self) -> bool:
        """Whether a baseline run has kept files."""
        return any(files_on_disk(self.command("baseline", *setting)) for setting in self.baselines)

    def difference(self, run: TrainCommand, baseline: BaselineRun) -> str:
        """How the end of a run differs from the baseline run's; empty if it does not."""
        problems: list[str] = []
        if fingerprint(run) != baseline.fingerprint:
            problems.append("another fingerprint")
        if not run.has_each_iteration_once(self.iterations):
            problems.append("metrics.jsonl does not hold each iteration once")
        if problem := folder_of(run).problem(newest_kept(run)):
            problems.append(problem)
        return "; ".join([*problems, *run.temporaries])
