"""Damage kept files of a killed run on purpose. The next start must take an older checkpoint, or write the file again,
say so, and end like the baseline run."""

from __future__ import annotations

import os
import random
import shutil
import signal
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from ranks.engine.runs.folder import TEMPORARY
from ranks.prove.crashes.freeze import freeze_when
from ranks.prove.kept import is_intact, named_by_checkpoints, needed_by_checkpoints, unnamed_files
from ranks.prove.processes import ProofError
from ranks.prove.survive_proof import SurviveProof
from ranks.prove.train_command import LIMIT_S, TrainCommand

Which = Literal["newest", "unnamed", "every"]
"""A file that only the newest checkpoint names, that no checkpoint names yet, or that every checkpoint names."""
SETTING = (2, "exact")
KILL_AFTER = 0.6
"""The run is killed after this share of its iterations."""
BAD_INPUT = 2


@dataclass(frozen=True)
class Damage:
    """One damaged file and what the next start did. `resumed`: the iteration at which it continued; None where it
    ended with exit code 2, as it must where every checkpoint names the file; the file was then put back. `problem`:
    empty if all is right."""

    kind: str
    which: str
    file: str
    newest: int
    resumed: int | None
    problem: str


def flip_bit(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def truncate(path: Path, rng: random.Random) -> None:
    os.truncate(path, rng.randrange(path.stat().st_size))


def remove(path: Path, rng: random.Random) -> None:
    path.unlink()


def replace_by_fifo(path: Path, rng: random.Random) -> None:
    path.unlink()
    os.mkfifo(path)


def replace_by_link(path: Path, rng: random.Random) -> None:
    """To the same content, outside of the run."""
    outside = path.parents[3] / f"outside-{path.parents[2].name}"
    shutil.move(path, outside)
    path.symlink_to(outside)


def leave_half(path: Path, rng: random.Random) -> None:
    """What a process leaves that is killed while it writes this file."""
    content = path.read_bytes()
    half = path.with_name(f"{TEMPORARY}{path.name[:8]}-{rng.randrange(2**15)}")
    half.write_bytes(content[: len(content) // 2])
    path.unlink()


WORDS: dict[Callable[[Path, random.Random], None], str] = {
    flip_bit: "one bit flipped",
    truncate: "truncated",
    remove: "removed",
    replace_by_fifo: "replaced by a FIFO",
    replace_by_link: "replaced by a link",
    leave_half: "left half-written",
}
DAMAGES: tuple[tuple[Callable[[Path, random.Random], None], Which], ...] = (
    (flip_bit, "newest"),
    (leave_half, "unnamed"),
    (truncate, "unnamed"),
    (flip_bit, "every"),
    (truncate, "newest"),
    (remove, "newest"),
    (replace_by_fifo, "newest"),
    (replace_by_link, "newest"),
    (flip_bit, "unnamed"),
    (remove, "unnamed"),
    (replace_by_fifo, "unnamed"),
)
QUICK_DAMAGES = 4


def damage_runs(proof: SurviveProof, damages: int) -> None:
    """Kill a run, damage a file in each of `damages` copies of it, and let the copies end."""
    report = proof.report
    report.section("Damaged kept files")
    if not proof.baselines:
        proof.baseline(*SETTING)
    if not proof.keeps_files:
        report.say("this workload keeps no files")
        return
    killed = kill_before_naming(proof, proof.command("damaged", *SETTING), proof.baseline(*SETTING).iteration_s)
    done: list[Damage] = []
    for number, (damage, which) in enumerate(DAMAGES[i % len(DAMAGES)] for i in range(damages)):
        run = killed.variant(f"damaged-{number}")
        shutil.copytree(killed.folder, run.folder)
        found = damage_one(proof, run, damage, which)
        if found is None:
            report.say(f"no file is named by every checkpoint, so none was {WORDS[damage]}")
            continue
        done.append(found)
        where = "ended with an error, went on with the file" if found.resumed is None else f"resumed at {found.resumed}"
        text = f"{found.kind}, named by {found.which}, newest checkpoint {found.newest}: {where}"
        report.say(f"{found.file[:24]}... {text}; {found.problem or 'ends like the baseline run'}")
    right = sum(not damage.problem for damage in done)
    bound = "all name the file, or write it again, and end like the baseline run"
    report.check("runs with a damaged kept file", f"{right} of {len(done)}", bound, bool(done) and right == len(done))
    report.raw["damages"] = [asdict(damage) for damage in done]


def kill_before_naming(proof: SurviveProof, run: TrainCommand, iteration_s: float) -> TrainCommand:
    """Kill a run that has two checkpoints and a file that no checkpoint names yet. Raises ProofError."""
    target = int(KILL_AFTER * proof.iterations)

    def is_moment() -> bool:
        return run.newest >= target and bool(unnamed_files(run))

    tree = run.start()
    frozen = tree.until(lambda: run.newest >= 0, LIMIT_S) and freeze_when(is_moment, tree, proof.rng, iteration_s / 4)
    if not frozen:
        raise ProofError(f"{run.name} ended with exit code {tree.code} before it was killed:\n{tree.tail()}")
    tree.send(signal.SIGKILL, tree.members())
    tree.kill()
    return run


def choose_file(run: TrainCommand, which: Which, rng: random.Random) -> str | None:
    """A file of a kind that training needs; None where every checkpoint must name it and there is none. Raises
    ProofError."""
    named = needed_by_checkpoints(run)
    older, newest = [named[iteration].keys() for iteration in sorted(named)[-2:]]
    chosen = {
        "newest": newest - older,
        "unnamed": {*unnamed_files(run)},
        "every": {name for name in newest if all(name in of for of in named.values())},
    }[which]
    if not chosen and which != "every":
        raise ProofError(f"{run.name} has no kept file that {which} names")
    return rng.choice(sorted(chosen)) if chosen else None


def damage_one(
    proof: SurviveProof, run: TrainCommand, damage: Callable[[Path, random.Random], None], which: Which
) -> Damage | None:
    """Damage a file of a killed run and run it to its end. None where it has no such file."""
    named, name = named_by_checkpoints(run), choose_file(run, which, proof.rng)
    if name is None:
        return None
    path, sessions, problems, newest = run.folder / "kept" / name, len(run.sessions), list[str](), max(named)
    expected = {"newest": max((n for n, kept in named.items() if name not in kept), default=0)}.get(which, newest)
    copy = path.read_bytes()
    damage(path, proof.rng)
    if which == "every":
        tree = run.start()
        if tree.wait(LIMIT_S) != BAD_INPUT or name not in tree.tail():
            problems.append(f"exit code {tree.code}, and it printed: {tree.tail()[-300:]}")
        if len(named_by_checkpoints(run)) != len(named) or path.read_bytes() == copy:
            problems.append("the start that failed has changed the run")
        path.write_bytes(copy)
    run.complete()
    resumed = int(run.sessions[sessions]["iteration"])
    if resumed != expected:
        problems.append(f"resumed at {resumed}, not at {expected}")
    if which == "newest" and not any(name in str(event.get("text")) for event in run.events):
        problems.append("no warning names the file")
    if path.exists() and not is_intact(run, name):
        problems.append("the file is still damaged")
    if different := proof.difference(run, proof.baseline(*SETTING)):
        problems.append(different)
    words = {"newest": "the newest checkpoint", "unnamed": "no checkpoint yet", "every": "every checkpoint"}[which]
    return Damage(WORDS[damage], words, name, newest, None if which == "every" else resumed, "; ".join(problems))
