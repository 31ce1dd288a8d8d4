"""`ranks prove survive`: kill and stop runs at any moment; they must end with the fingerprint of an undisturbed run.

Baseline runs give the fingerprints. Then runs are killed (SIGKILL to a rank, to a process that a rank has started, such
as one that loads its data, to the launcher or to all processes; half of the kills inside a save; with kept files a
quarter of them before a save names a new file), stopped (SIGTERM in every phase), made to hang in every phase, and
stopped while they hang. Kept files are damaged on purpose. Meanwhile the addresses on which the processes listen are
sampled.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import asdict
from statistics import median
from typing import Any

from ranks.prove.crashes.damage import DAMAGES, QUICK_DAMAGES, damage_runs
from ranks.prove.crashes.kills import Kill, KilledRun, Moment
from ranks.prove.crashes.stops import AIMS, Stop, StoppedRun, count_phases
from ranks.prove.hangs.prove_hangs import hang_runs, stop_hung_runs
from ranks.prove.options import ProofOptions
from ranks.prove.processes import GONE_S, ListenSampler, ProofError, left_running
from ranks.prove.report import Report, percentile, table_lines
from ranks.prove.survive_proof import SurviveProof
from ranks.prove.train_command import workspace

SETTINGS = ((2, "fast"), (3, "exact"), (2, "exact"), (3, "fast"))
EXTRA_RUNS = 4
"""Most runs that are added because a run ended before a kill could hit it, or hit one of its saves."""
RECOVERY_S = 10.0
"""Goal for the 95th percentile of the recovery time."""


def prove_survive(
    workload: str,
    options: ProofOptions,
    *,
    runs: int | None = None,
    kills: int = 3,
    sigterms: int | None = None,
    hangs: int | None = None,
    hung_sigterms: int | None = None,
    damages: int | None = None,
) -> int:
    """Run the proof with `runs` runs of `kills` kills each, `sigterms` stops, `hangs` hangs, `hung_sigterms` stops
    during a hang and `damages` runs with damaged kept files; the exit code."""
    runs = runs if runs is not None else (2 if options.quick else 10)
    sigterms = sigterms if sigterms is not None else (5 if options.quick else 30)
    hangs = hangs if hangs is not None else (4 if options.quick else 60)
    hung_sigterms = hung_sigterms if hung_sigterms is not None else (2 if options.quick else 20)
    damages = damages if damages is not None else (QUICK_DAMAGES if options.quick else len(DAMAGES))
    settings = options.settings(
        runs=runs, kills=kills, sigterms=sigterms, hangs=hangs, hung_sigterms=hung_sigterms, damages=damages
    )
    report = Report("survive", workload, settings)
    with workspace() as where, ListenSampler() as listening:
        proof = SurviveProof(report, where, workload, options, options.iterations or 0, random.Random(options.seed))
        try:
            if options.iterations is None:
                proof.choose_iterations()
            report.settings = settings | {"iterations": proof.iterations, "save_every": proof.save_every}
            report.section(f"{proof.iterations} iterations, a checkpoint every {proof.save_every}")
            if runs:
                kill_runs(proof, runs, kills)
            if sigterms:
                stop_runs(proof, sigterms)
            if hangs:
                hang_runs(proof, hangs)
            if hung_sigterms:
                stop_hung_runs(proof, hung_sigterms)
            if damages:
                damage_runs(proof, damages)
        except ProofError as problem:
            report.aborted("survive", problem)
        left = left_running()
    report.section("Processes and addresses")
    beyond, samples = listening.beyond_loopback, listening.samples
    addresses = ", ".join(sorted(listening.addresses)) or "none"
    report.check("listening", f"{addresses} in {samples} samples", "loopback only", samples > 0 and not beyond)
    report.check("left running", left or "nothing", "nothing", not left)
    report.raw |= {"baseline": {f"{r} ranks, {m}": asdict(run) for (r, m), run in proof.baselines.items()}}
    report.raw["listening"] = dict(listening.addresses)
    return report.finish(options.out)


def kill_runs(proof: SurviveProof, runs: int, kills: int) -> None:
    """Kill `runs` runs `kills` times each, half of the kills inside a save. Where a run keeps files, half of the others
    come when a file is written and not yet named by a checkpoint.

    A run may end before a kill hits. Then at most `EXTRA_RUNS` further runs get the missing kills.
    """
    report, done, equal, count, raw = proof.report, list[Kill](), 0, 0, list[dict[str, Any]]()
    planned = runs * kills
    while count < runs or (_missing(done, planned) and count < runs + EXTRA_RUNS):
        ranks, mode = SETTINGS[count % len(SETTINGS)]
        baseline, run = proof.baseline(ranks, mode), proof.command(f"killed-{count}", ranks, mode)
        inside = sum(kill.inside_save for kill in done)
        if count < runs:
            num_kills = kills
            wanted = min(kills, max(0, -(-(len(done) + kills) // 2) - inside))
        else:
            num_kills = wanted = min(kills, _missing(done, planned))
        others = num_kills - wanted
        before_naming = -(-others // 2) if proof.keeps_files else 0
        moments = list[Moment](["save"]) * wanted + list[Moment](["kept file"]) * before_naming
        moments += list[Moment](["any"]) * (others - before_naming)
        proof.rng.shuffle(moments)
        found = KilledRun(run, baseline, proof.rng).complete(moments)
        problem = proof.difference(run, baseline)
        count, equal, done = count + 1, equal + (not problem), [*done, *found]
        raw.append({"ranks": ranks, "mode": mode, "problem": problem, "kills": [asdict(kill) for kill in found]})
        text = "; ".join([problem or "ends like the baseline run", *map(describe_kill, found)])
        report.say(f"run {count} of {runs}, {ranks} ranks, {mode}: {text}")
    report.section("SIGKILL")
    inside = sum(kill.inside_save for kill in done)
    recoveries = [kill.recovery_s for kill in done if kill.recovery_s is not None]
    p50, p95 = percentile(recoveries, 0.50), percentile(recoveries, 0.95)
    slow = [kill for kill in done if kill.target in ("launcher", "all") and kill.gone_s is None]
    report.check("runs with the baseline run's end", f"{equal} of {count}", "all, each iteration once", equal == count)
    report.check(
        "kills", f"{len(done)}, {inside} inside a save", f"{planned}, half inside a save", not _missing(done, planned)
    )
    if proof.keeps_files:
        fates = Counter(fate for kill in done for fate in kill.kept.values())
        unnamed = sum(bool(kill.kept) for kill in done)
        text = f"{unnamed} of {len(done)}; the files: {', '.join(f'{n} {fate}' for fate, n in fates.items()) or 'none'}"
        report.check("kills between a kept file and its save", text, "at least one, no end differs", unnamed > 0)
    report.check("processes after a launcher's death", f"{len(slow)} still ran", f"none after {GONE_S:.0f} s", not slow)
    cut = len(done) - len(recoveries)
    text = f"p50 {p50:.2f} s, p95 {p95:.2f} s of {len(recoveries)}, {cut} cut short"
    report.goal("kill to first newly finished iteration", text, f"p95 <= {RECOVERY_S:.0f} s", p95 <= RECOVERY_S)
    report.raw["kills"] = raw


def _missing(done: list[Kill], planned: int) -> int:
    """How many kills are missing: of all that are planned, or of the half that must hit a save."""
    inside = sum(kill.inside_save for kill in done)
    return max(planned - len(done), -(-planned // 2) - inside, 0)


def describe_kill(kill: Kill) -> str:
    """A kill in a few words."""
    where = "in a save" if kill.inside_save else f"after iteration {kill.finished}"
    end = "next kill before it recovered" if kill.recovery_s is None else f"recovered in {kill.recovery_s:.1f} s"
    kept = "".join(f", {name[:16]} {fate}" for name, fate in kill.kept.items())
    return f"{kill.target} killed {where}{kept}, {end}"


def stop_runs(proof: SurviveProof, sigterms: int) -> None:
    """Stop runs with SIGTERM, and let them end."""
    report, stops, wrong = proof.report, list[Stop](), list[str]()
    settings = [(2, "fast"), (3, "exact"), (1, "fast")][: max(1, sigterms // 5)]
    series = [
        StoppedRun(proof.command("stopped", *s), proof.baseline(*s), proof.evaluate_every, proof.rng) for s in settings
    ]
    for index in range(sigterms):
        stops.append(series[index // len(AIMS) % len(series)].stop(AIMS[index % len(AIMS)]))
    for setting, stopped in zip(settings, series, strict=True):
        wrong += [problem for run in stopped.finish() if (problem := proof.difference(run, proof.baseline(*setting)))]
    report.section("SIGTERM")
    header = ("run", "phase", "to", "finished", "checkpoint", "code", "seconds", "")
    rows = [
        (s.run, s.phase, s.to, s.boundary, s.checkpoint, s.code, f"{s.seconds:.2f}", s.problem or "ok") for s in stops
    ]
    for line in table_lines(header, rows):
        report.say(line)
    held = sum(not stop.problem for stop in stops)
    report.check(
        "stops",
        f"{held} of {len(stops)}",
        "the last finished iteration saved, or no run folder; exit code 143",
        held == len(stops),
    )
    phases = min(4, 1 + sigterms // 10)  # the phase that a stop hits is random, so few stops may hit few phases
    found = count_phases(stops)
    report.check("phases", found, f"at least {phases}", len(found) >= phases)
    report.check("runs continued to their end", wrong or "all equal", "the baseline run's end", not wrong)
    report.say(f"from SIGTERM to the end of the command: median {median(s.seconds for s in stops):.2f} s")
    report.raw["stops"] = [asdict(stop) for stop in stops]
