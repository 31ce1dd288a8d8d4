"""The experiments with hangs: named rightly, ended within their limit, and without effect on the result."""

from __future__ import annotations

import random
import re
import signal
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass

from ranks.engine.liveness.phases import Phase
from ranks.prove.hangs.faults import KINDS, PHASES, Fault, FaultKind, FaultMaker, hanging_workload
from ranks.prove.processes import ProcessTree, ProofError
from ranks.prove.report import percentile, table_lines
from ranks.prove.survive_proof import SurviveProof
from ranks.prove.train_command import LIMIT_S, RankLayout, TrainCommand

SETTINGS = ((2, "exact"), (3, "fast"), (1, "fast"))
"""Ranks and mode of the runs that hang."""
HANGS_OF_A_RUN = 4
TIMEOUT_S = 4.0
"""--hang-timeout of these runs."""
SLACK_S = 6.0
"""How much later than its limit a hang may be reported: the launcher looks once a second, waits for stacks, and the
machine is busy."""
STOP_LIMIT_S = 90.0
"""How long a stop may take while a rank hangs."""
BATCH = 5
"""Runs that hang and are stopped at the same time."""
STOPPED = 128 + signal.SIGTERM
REPORT = re.compile(r"^rank (\d+) (hangs|failed|was ended|lost)\b.*$", re.MULTILINE)


@dataclass(frozen=True)
class Hang:
    """One hang and what the launcher said. `reported_s`: seconds until it did. `problem`: empty if all is right."""

    run: str
    kind: FaultKind
    phase: str
    rank: int
    limit_s: float
    reported_s: float
    said: str
    problem: str


@dataclass(frozen=True)
class HungStop:
    """One SIGTERM during a hang. `seconds`: until the command ended. `said`: its last line."""

    run: str
    kind: FaultKind
    phase: str
    code: int
    seconds: float
    said: str
    problem: str


def hang_runs(proof: SurviveProof, hangs: int) -> None:
    """Make `hangs` hangs, a few in each run, and let the runs end."""
    report, done, wrong, planned = proof.report, list[Hang](), list[str](), plan(hangs, proof)
    runs = [planned[i : i + HANGS_OF_A_RUN] for i in range(0, hangs, HANGS_OF_A_RUN)]
    for index, faults in enumerate(runs):
        ranks, mode = SETTINGS[index % len(SETTINGS)]
        run = command(proof, f"hung-{index}", ranks, mode, ("--hang-timeout", f"{TIMEOUT_S}s"))
        found = hang_one_run(run, proof.rng, faults)
        problem = proof.difference(run, proof.baseline(ranks, mode))
        wrong += [f"{run.name}: {problem}"] if problem else []
        done += found
        for hang in found:
            text = f"{hang.kind} in {hang.phase}, {ranks} ranks: reported after {hang.reported_s:.1f} s"
            report.say(f"{text} (limit {hang.limit_s:.0f}); {hang.problem or 'ok'}")
    report.section("Hangs")
    named = sum(not hang.problem for hang in done)
    report.check("hangs named and restarted", f"{named} of {len(done)}", "all, within their limits", named == hangs)
    report.check("runs that hung", wrong or f"all {len(runs)} equal", "the baseline run's end", not wrong)
    late = [hang.reported_s - hang.limit_s for hang in done]
    report.say(f"reported after the limit: median {percentile(late, 0.5):.1f} s, most {max(late, default=0.0):.1f} s")
    report.raw["hangs"] = [asdict(hang) for hang in done]


def plan(hangs: int, proof: SurviveProof) -> list[tuple[FaultKind, Phase]]:
    """Every kind in every phase, in random order; with --quick in training, which has the shortest limit.

    Collectives and environments are used in training only. One rank alone, or a workload without processes for its
    environments, is stopped instead.
    """
    phases = (Phase.TRAIN,) if proof.options.quick else PHASES
    kept: list[tuple[FaultKind, Phase]] = []
    for phase in phases:
        kinds: list[FaultKind] = [k for k in KINDS if k not in ("collective", "worker") or phase == Phase.TRAIN]
        kept.extend((kind, phase) for kind in kinds)
    shuffled = proof.rng.sample(kept, len(kept))
    return [shuffled[i % len(shuffled)] for i in range(hangs)]


def command(proof: SurviveProof, name: str, ranks: int, mode: str, flags: Sequence[str]) -> TrainCommand:
    """The command of a run that can hang."""
    base = proof.command(name, ranks, mode)
    workload, env = hanging_workload(proof.where.folder, proof.workload, name)
    return TrainCommand(
        proof.where, workload, base.name, RankLayout(ranks), (*base.flags, *flags), proof.options.gpus, env
    )


def hang_one_run(run: TrainCommand, rng: random.Random, faults: Sequence[tuple[FaultKind, Phase]]) -> list[Hang]:
    """Start a run, make the hangs one after the other, and wait for its end."""
    tree = run.start()
    maker = FaultMaker(run, tree, rng, TIMEOUT_S)
    hangs: list[Hang] = []
    for kind, phase in faults:
        said = len(reports(tree))
        sessions = len(run.sessions)
        newest = run.newest

        def ready(phase: Phase = phase, sessions: int = sessions, newest: int = newest) -> bool:
            """Between two hangs a checkpoint is saved: without progress the launcher gives up."""
            return phase == Phase.START or (len(run.sessions) > sessions and run.newest > newest)

        fault = maker.make(kind, phase, ready)
        if fault is None:
            raise ended_before(run, tree, phase)
        if not tree.until(lambda n=said: len(reports(tree)) > n, fault.limit_s + 60.0):
            raise ProofError(f"{run.name} ended with exit code {tree.code} in a hang:\n{tree.tail()}")
        took_s, line = time.monotonic() - fault.made_s, reports(tree)[said]
        problem = wrong_report(fault, line, took_s)
        hangs.append(Hang(run.name, kind, fault.phase.words, fault.rank, fault.limit_s, took_s, line, problem))
    if tree.wait(LIMIT_S) != 0:
        raise ProofError(f"{run.name} ended with exit code {tree.code} after its hangs:\n{tree.tail()}")
    return hangs


def ended_before(run: TrainCommand, tree: ProcessTree, phase: Phase) -> ProofError:
    """The error for a run that was over before a hang."""
    if tree.code:
        return ProofError(f"{run.name} ended with exit code {tree.code} before a hang:\n{tree.tail()}")
    return ProofError(f"{run.name} ended before it could hang in {phase.words}: give more --iterations")


def reports(tree: ProcessTree) -> list[str]:
    """The lines so far in which the launcher named a rank, without the proof's folder."""
    said = tree.log.read_text(errors="replace").replace(f"{tree.log.parent}/", "")
    return [match[0] for match in REPORT.finditer(said)]


def wrong_report(fault: Fault, line: str, took_s: float) -> str:
    """What is wrong with the line that reports a hang; empty if nothing is."""
    if took_s > fault.limit_s + SLACK_S:
        return f"reported {took_s - fault.limit_s:.1f} s after its limit"
    if fault.kind == "collective":  # the ranks are in different ones; gloo may notice it itself
        return "" if "hangs" in line or "collective mismatch" in line else f"said: {line}"
    if not line.startswith(f"rank {fault.rank} hangs"):
        return f"it was rank {fault.rank}; said: {line}"
    code = re.search(r"hanging\.py:(\d+)", line)
    at_line = code is not None and int(code[1]) in (fault.line, fault.line + 1)
    right = at_line if fault.line else " is stopped" in line
    return "" if right and fault.phase.words in line else f"the phase or what the rank does is wrong; said: {line}"


# Stops during a hang --------------------------------------------------------------------------------------------------


def stop_hung_runs(proof: SurviveProof, sigterms: int) -> None:
    """Send `sigterms` SIGTERMs to launchers while a rank hangs, a few at a time; then let the runs end."""
    report, stops, wrong = proof.report, list[HungStop](), list[str]()
    faults: list[tuple[FaultKind, Phase]] = [(k, p) for p in PHASES[1:] for k in ("stop", "loop", "c")]
    for first in range(0, sigterms, BATCH):
        numbers = range(first, min(first + BATCH, sigterms))
        settings = [SETTINGS[n % len(SETTINGS)] for n in numbers]
        runs = [
            command(proof, f"hung-stop-{n}", *s, ("--hang-timeout", "10m"))
            for n, s in zip(numbers, settings, strict=True)
        ]
        stops += stop_batch(runs, proof.rng, [faults[n % len(faults)] for n in numbers])
        for run, setting in zip(runs, settings, strict=True):
            run.complete()
            problem = proof.difference(run, proof.baseline(*setting))
            wrong += [f"{run.name}: {problem}"] if problem else []
    report.section("SIGTERM during a hang")
    rows = [(s.run, s.kind, s.phase, s.code, f"{s.seconds:.1f}", s.problem or "ok") for s in stops]
    for line in table_lines(("run", "hang", "phase", "code", "seconds", ""), rows):
        report.say(line)
    held = sum(not stop.problem for stop in stops)
    bound = f"exit code {STOPPED} within {STOP_LIMIT_S:.0f} s, the last line says where it resumes"
    report.check("stops during a hang", f"{held} of {len(stops)}", bound, held == sigterms)
    report.check("runs continued after them", wrong or "all equal", "the baseline run's end", not wrong)
    report.raw["hung_stops"] = [asdict(stop) for stop in stops]


def stop_batch(
    runs: Sequence[TrainCommand], rng: random.Random, faults: Sequence[tuple[FaultKind, Phase]]
) -> list[HungStop]:
    """Make a rank of each run hang, one run after the other, stop them all, and wait for their ends."""
    with ThreadPoolExecutor(len(runs)) as pool:
        ends: list[Future[HungStop]] = []
        for run, (kind, phase) in zip(runs, faults, strict=True):
            tree = run.start()
            fault = FaultMaker(run, tree, rng, 600.0).make(kind, phase, lambda run=run: len(run.sessions) > 0)
            if fault is None:
                raise ended_before(run, tree, phase)
            before = run.newest
            tree.send(signal.SIGTERM, [tree.launcher])
            ends.append(pool.submit(wait_for_stop, run, tree, fault, before, time.monotonic()))
        return [end.result() for end in ends]


def wait_for_stop(run: TrainCommand, tree: ProcessTree, fault: Fault, before: int, sent_s: float) -> HungStop:
    """Wait for the end of a command that got SIGTERM during a hang. `before`: its newest checkpoint then. On a busy
    machine the first rank may still write another one, while a rank hangs that is ahead of it."""
    code = tree.wait(2 * STOP_LIMIT_S)
    seconds, said = time.monotonic() - sent_s, "".join(tree.tail().splitlines()[-1:])
    words = ("without", "after") if run.newest > before else ("without",)
    expected = [f"stopped {word} a save; resumes at {run.newest}" for word in words]
    problem = f"exit code {code}" if code != STOPPED else ""
    problem = problem or (f"said: {said}" if said not in expected else "")
    problem = problem or (f"took {seconds:.0f} s" if seconds > STOP_LIMIT_S else "")
    return HungStop(run.name, fault.kind, fault.phase.words, code, seconds, said, problem)
