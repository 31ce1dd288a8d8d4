"""`ranks prove survive`: kills and stops at any moment lose nothing.

Straight runs give the fingerprints that all other runs must end with. Then runs are killed (SIGKILL to a rank, to the
launcher, to everything; half of the kills while a save is being written), and stopped (SIGTERM at every phase). All
the while the addresses on which the processes listen are sampled.
"""

from __future__ import annotations

import random
import shlex
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from ranks.prove.kills import Kill, KilledRun, Straight, straight_run
from ranks.prove.processes import GONE_S, Listening, ProofError, left_running
from ranks.prove.report import Report, lines_of, percentile
from ranks.prove.stops import AIMS, Stop, StoppedRun, counted
from ranks.prove.trainings import Deal, Place, Training, fingerprint, place
from ranks.workloads import load

SETTINGS = ((2, "fast"), (3, "exact"), (2, "exact"), (3, "fast"))
STRAIGHT_S = (10.0, 4.0)
"""How long the loop of a straight run takes, about; and with --quick."""
SAVES, EVALUATIONS = 12, 4
"""In a straight run."""
PILOT = 24
RECOVERY_S = 10.0
"""Goal for the 95th percentile of the recovery time."""


@dataclass
class Proof:
    """What the experiments have in common; straight runs are made when they are first needed."""

    report: Report
    where: Place
    workload: str
    gpus: str
    iterations: int
    straight_s: float
    chance: random.Random
    train: tuple[str, ...] = ()
    straights: dict[tuple[int, str], Straight] = field(default_factory=lambda: dict[tuple[int, str], Straight]())

    @property
    def save_every(self) -> int:
        return max(1, self.iterations // SAVES)

    @property
    def evaluate_every(self) -> int:
        return max(2, self.iterations // EVALUATIONS)

    def training(self, name: str, ranks: int, mode: str) -> Training:
        evaluates = hasattr(load(self.workload).Config(), "eval_every")
        flags = (
            *(["--exact"] if mode == "exact" else ["--deterministic", "--threads", "1"]),
            *("--iterations", str(self.iterations), "--save-every", str(self.save_every)),
            *(["--eval-every", str(self.evaluate_every)] if evaluates else []),
            *self.train,
        )
        return Training(self.where, self.workload, f"{name}-{ranks}-{mode}", Deal(ranks), flags, self.gpus)

    def choose_iterations(self) -> None:
        """As many as make a straight run take about `straight_s` seconds."""
        self.iterations = PILOT
        run = self.training("pilot", 2, "exact")
        pilot = straight_run(run, PILOT, lambda run: "")
        fixed_s = SAVES * pilot.save_s + EVALUATIONS * pilot.evaluation_s
        self.iterations = max(PILOT, min(4000, round((self.straight_s - fixed_s) / pilot.iteration_s)))

    def straight(self, ranks: int, mode: str) -> Straight:
        if (ranks, mode) not in self.straights:
            run = self.training("straight", ranks, mode)
            found = straight_run(run, self.iterations, fingerprint)
            self.straights[ranks, mode] = found
            self.report.say(f"straight, {ranks} ranks, {mode}: {found.seconds:.1f} s, fingerprint {found.fingerprint}")
        return self.straights[ranks, mode]

    def ends_alike(self, run: Training, straight: Straight) -> str:
        """Empty, or how a run's end differs from the straight run's."""
        problems: list[str] = []
        if fingerprint(run) != straight.fingerprint:
            problems.append("another fingerprint")
        if [row["iteration"] for row in run.rows] != list(range(1, self.iterations + 1)):
            problems.append("metrics.jsonl does not hold each iteration once")
        return "; ".join([*problems, *run.leftovers])


def main(
    workload: str,
    /,
    *,
    runs: int | None = None,
    kills: int = 3,
    sigterms: int | None = None,
    iterations: int | None = None,
    quick: bool = False,
    gpus: str = "none",
    seed: int = 0,
    train: str = "",
    out: Path = Path("results"),
) -> int:
    """Prove that kills and stops lose nothing.

    Args:
        workload: Its name, or the path of your own file.
        runs: Runs that are killed; 10, or 2 with --quick.
        kills: SIGKILLs of each.
        sigterms: Stops; 30, or 5 with --quick.
        iterations: Of a straight run; without it, as many as take about ten seconds.
        quick: Fewer and shorter runs, the same comparison.
        gpus: On which GPUs, as in ranks train; none is the CPU.
        seed: When and whom the signals strike.
        train: Further flags of ranks train for all its runs, in one string: --train="--preset small".
        out: Folder of the result file.
    """
    runs = runs if runs is not None else (2 if quick else 10)
    sigterms = sigterms if sigterms is not None else (5 if quick else 30)
    settings: dict[str, Any] = {
        "runs": runs,
        "kills": kills,
        "sigterms": sigterms,
        "quick": quick,
        "seed": seed,
        "gpus": gpus,
        "train": train,
    }
    report = Report("survive", workload, settings)
    with place() as where, Listening() as listening:
        chance = random.Random(seed)
        flags = tuple(shlex.split(train))
        proof = Proof(report, where, workload, gpus, iterations or 0, STRAIGHT_S[quick], chance, flags)
        try:
            if iterations is None:
                proof.choose_iterations()
            settings |= {"iterations": proof.iterations, "save_every": proof.save_every}
            report.section(f"{proof.iterations} iterations, a checkpoint every {proof.save_every}")
            report.settings = settings
            if runs:
                kill_runs(proof, runs, kills)
            if sigterms:
                stop_runs(proof, sigterms)
        except ProofError as problem:
            report.broke_off("survive", problem)
        left = left_running()
    report.section("All the while")
    beyond, samples = listening.beyond_loopback, listening.samples
    addresses = ", ".join(sorted(listening.addresses)) or "none"
    report.check("listening", f"{addresses} in {samples} samples", "loopback only", samples > 0 and not beyond)
    report.check("left running", left or "nothing", "nothing", not left)
    report.raw |= {"straight": {f"{r} ranks, {m}": asdict(s) for (r, m), s in proof.straights.items()}}
    report.raw["listening"] = dict(listening.addresses)
    return report.finish(out)


def kill_runs(proof: Proof, runs: int, kills: int) -> None:
    """Runs under SIGKILL."""
    report, struck = proof.report, list[Kill]()
    alike, raw = 0, list[dict[str, Any]]()
    for index in range(runs):
        ranks, mode = SETTINGS[index % len(SETTINGS)]
        straight = proof.straight(ranks, mode)
        run = proof.training(f"killed-{index}", ranks, mode)
        wanted = min(kills, max(0, -(-(len(struck) + kills) // 2) - sum(kill.inside_save for kill in struck)))
        inside = [position < wanted for position in range(kills)]
        proof.chance.shuffle(inside)
        done = KilledRun(run, straight, proof.chance).go_through(kills, inside)
        problem = proof.ends_alike(run, straight)
        alike += not problem
        struck += done
        raw.append({"ranks": ranks, "mode": mode, "problem": problem, "kills": [asdict(kill) for kill in done]})
        story = "; ".join([problem or "ends alike", *map(told, done)])
        report.say(f"run {index + 1} of {runs}, {ranks} ranks, {mode}: {story}")
    report.section("SIGKILL")
    inside_save = sum(kill.inside_save for kill in struck)
    recoveries = [kill.recovery_s for kill in struck if kill.recovery_s is not None]
    p50, p95 = percentile(recoveries, 0.50), percentile(recoveries, 0.95)
    slow = [kill for kill in struck if kill.target != "rank" and kill.gone_s is None]
    report.check("runs with the straight run's end", f"{alike} of {runs}", "all, each iteration once", alike == runs)
    report.check(
        "kills",
        f"{len(struck)}, {inside_save} inside a save",
        f"{runs * kills}, half inside a save",
        2 * inside_save >= len(struck) == runs * kills,
    )
    report.check(
        "processes after a launcher's death", f"{len(slow)} outlived it", f"none after {GONE_S:.0f} s", not slow
    )
    cut = len(struck) - len(recoveries)
    found = f"p50 {p50:.2f} s, p95 {p95:.2f} s of {len(recoveries)}, {cut} cut short"
    report.goal("kill to first newly finished iteration", found, f"p95 <= {RECOVERY_S:.0f} s", p95 <= RECOVERY_S)
    report.raw["kills"] = raw


def told(kill: Kill) -> str:
    """A kill in a few words."""
    where = "in a save" if kill.inside_save else f"after iteration {kill.finished}"
    back = "cut short" if kill.recovery_s is None else f"back in {kill.recovery_s:.1f} s"
    return f"{kill.target} {where}, {back}"


def stop_runs(proof: Proof, sigterms: int) -> None:
    """Runs under SIGTERM."""
    report, stops, wrong = proof.report, list[Stop](), list[str]()
    settings = [(2, "fast"), (3, "exact"), (1, "fast")][: max(1, sigterms // 5)]
    series = [
        StoppedRun(proof.training("stopped", *s), proof.straight(*s), proof.evaluate_every, proof.chance)
        for s in settings
    ]
    for index in range(sigterms):
        stop = series[index // len(AIMS) % len(series)].stop(AIMS[index % len(AIMS)])
        stops.append(stop)
    for setting, one in zip(settings, series, strict=True):
        wrong += [problem for run in one.finish() if (problem := proof.ends_alike(run, proof.straight(*setting)))]
    report.section("SIGTERM")
    header = ("run", "phase", "to", "finished", "checkpoint", "code", "seconds", "")
    rows = [
        (s.run, s.phase, s.to, s.boundary, s.checkpoint, s.code, f"{s.seconds:.2f}", s.problem or "ok") for s in stops
    ]
    for line in lines_of(header, rows):
        report.say(line)
    held = sum(not stop.problem for stop in stops)
    report.check(
        "stops",
        f"{held} of {len(stops)}",
        "the last boundary saved, or nothing begun; exit code 143",
        held == len(stops),
    )
    phases = min(4, 1 + sigterms // 10)  # where a stop lands is chance: a few stops need not be spread
    report.check("phases", counted(stops), f"at least {phases}", len(counted(stops)) >= phases)
    report.check("runs continued to their end", wrong or "all alike", "the straight run's end", not wrong)
    report.say(f"from SIGTERM to the end of the command: median {median(s.seconds for s in stops):.2f} s")
    report.raw["stops"] = [asdict(stop) for stop in stops]
