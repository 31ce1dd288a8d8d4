"""ranks push and ranks pull, cut 20 times each by SIGKILL at random times: of the command itself, of rsync or ssh here,
or of rsync on the other side. The other machine is a real sshd on the loopback interface, slowed down to a link.

    python -m benchmarks.renting.transfer_cuts        writes benchmarks/results/transfer_cuts.json, in about 15 minutes

After each cut nothing half may be in the place of a whole: no data without equal sums, no run folder whose newest
checkpoint does not verify, none that says it has finished. The run trains on while it is pulled.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from benchmarks.measure import environment, origin, write_result
from ranks.engine.files.jsonl import last_rows
from ranks.engine.runs.checkpoints import checkpoint
from tests.transfer.sshd import LocalSshd, missing_program

CUTS = 20
MB_PER_S = 12
DATA_FILES = (40_000_000, 7_000_000, 3_000_000, *([40_000] * 40))
VICTIMS = ("the command", "rsync here", "ssh here", "rsync there")
SLOW = """
import os, selectors, socket, sys, time
link = socket.create_connection((sys.argv[1], int(sys.argv[2])))
pairs = {0: link.fileno(), link.fileno(): 1}
waiting = selectors.DefaultSelector()
for source in pairs:
    waiting.register(source, selectors.EVENT_READ)
while True:
    for key, _ in waiting.select():
        block = os.read(key.fd, 1 << 16)
        if not block:
            sys.exit()
        time.sleep(len(block) / float(sys.argv[3]))
        while block:
            block = block[os.write(pairs[key.fd], block):]
"""
"""The ProxyCommand of ssh: a link of so many bytes a second."""


class FarMachine:
    """Runs commands of `ranks` against the sshd, and cuts them."""

    def __init__(self, folder: Path, sshd: LocalSshd, seed: int) -> None:
        self.folder, self.random = folder, random.Random(seed)
        proxy = folder / "slow.py"
        proxy.write_text(SLOW)
        self.options = f"{sshd.options} -o 'ProxyCommand={sys.executable} {proxy} %h %p {MB_PER_S * 1e6:.0f}'"
        self.daemon = sshd
        self.done: list[dict[str, Any]] = []

    def start(self, *argv: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "ranks", *argv, f"--ssh={self.options}"]
        return subprocess.Popen(
            command, cwd=self.folder, env=environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    def whole(self, *argv: str) -> str:
        """The output of a command that nobody cuts."""
        process = self.start(*argv)
        said, _ = process.communicate()
        if process.returncode:
            raise RuntimeError(said)
        return said

    def cut(self, whole_s: float, *argv: str) -> dict[str, Any]:
        """Start a command, kill one of its programs at a random time, and wait for the end of all of them."""
        process = self.start(*argv)
        victim = self.random.choice(VICTIMS)
        time.sleep(self.random.uniform(0.1, 0.7) * whole_s)
        killed = self._kill(process, victim)
        if killed and victim != "the command" and self.random.random() < 0.7:  # also before it tries again
            process.kill()
        said, _ = process.communicate()
        deadline_s = time.monotonic() + 30
        while self._programs() and time.monotonic() < deadline_s:
            time.sleep(0.05)
        found = {
            "victim": victim,
            "killed": killed,
            "exit_code": process.returncode,
            "left_over": len(self._programs()),
        }
        found["said"] = said.strip().splitlines()[-1:]
        return found

    def _kill(self, process: subprocess.Popen[str], victim: str) -> bool:
        with contextlib.suppress(psutil.NoSuchProcess):
            if victim == "the command":
                alive = process.poll() is None
                process.kill()
                return alive
            if victim == "rsync there":
                found = [p for p in self._programs() if p.name() == "rsync" and "--server" in p.cmdline()]
            else:
                name = victim.split()[0]
                found = [p for p in self._programs() if p.name() == name and "--server" not in p.cmdline()[1:3]]
            for program in found:
                program.kill()
            return bool(found)
        return False

    def _programs(self) -> list[psutil.Process]:
        """Those of ssh and rsync that belong to this experiment, on both sides."""
        found: list[psutil.Process] = []
        for program in psutil.process_iter(["name", "cmdline"]):
            words = " ".join(program.info["cmdline"] or [])
            if program.info["name"] in ("ssh", "rsync") and str(self.folder) in words:
                found.append(program)
        return found


def sums(folder: Path) -> dict[str, str]:
    """Name -> sha256 of all files below a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def cut_often(
    machine: FarMachine, argv: list[str], whole_s: float, look: Callable[[], list[str]], restart: Callable[[], None]
) -> list[dict[str, Any]]:
    """Cut a command CUTS times; what happened, and what was wrong after each. A command that ends well in between is
    looked at, and `restart` takes away what it has copied."""
    cuts: list[dict[str, Any]] = []
    while sum(cut["killed"] for cut in cuts) < CUTS:
        cuts.append({**machine.cut(whole_s, *argv), "wrong": look()})
        print(len(cuts), cuts[-1], flush=True)
        if cuts[-1]["exit_code"] == 0:
            restart()
    return cuts


def push_part(machine: FarMachine) -> dict[str, Any]:
    """Push a folder, cut; it must be there whole or not at all."""
    data, there = machine.folder / "prices", machine.folder / "there"
    data.mkdir()
    for number, size in enumerate(DATA_FILES):
        (data / f"{number}.bin").write_bytes(machine.random.randbytes(size))
    wanted = sums(data)

    def look() -> list[str]:
        found = sums(there / "prices") if (there / "prices").exists() else None
        return [] if found in (None, wanted) else ["half of the data are in the place of the whole"]

    argv = ["push", str(data), f"127.0.0.1:{there}"]
    began_s = time.monotonic()
    machine.whole("push", str(data), f"127.0.0.1:{machine.folder}/measured")
    whole_s = time.monotonic() - began_s
    cuts = cut_often(machine, argv, whole_s, look, lambda: shutil.rmtree(there))
    held = sum(path.stat().st_size for path in there.rglob("*") if path.is_file())
    began_s = time.monotonic()
    said = machine.whole(*argv)
    last_s = time.monotonic() - began_s
    return {
        "bytes": sum(DATA_FILES),
        "seconds_uncut": whole_s,
        "cuts": cuts,
        "bytes_there_before_the_last": held,
        "seconds_of_the_last": last_s,
        "equal": sums(there / "prices") == wanted,
        "said": said.strip().splitlines()[-1],
        "left_in_the_folder": sorted(path.name for path in there.iterdir()),
    }


def pull_part(machine: FarMachine) -> dict[str, Any]:
    """Pull a run that trains, cut; then let it end, pull the rest, and continue a pulled copy."""
    far, here = machine.folder / "far", machine.folder / "here"
    far.mkdir()
    ranks(["new", "task"], far)
    path = far / "task.py"
    step = "            run.log(learner.step("
    text = path.read_text()
    assert step in text
    path.write_text(text.replace(step, f'            __import__("time").sleep(0.3)\n{step}'))
    settings = ["./task.py", "--gpus", "none", "--ranks", "1", "--exact", "--hidden", "1200", "--eval-every", "1000000"]
    long, train = ["--iterations", "100000"], ["train", *settings, "--save-every", "10"]
    schedule = ["--optim.schedule-updates", "100000"]
    trainer = subprocess.Popen(
        [sys.executable, "-m", "ranks", *train, *long, *schedule], cwd=far, env=environment(), stdout=subprocess.DEVNULL
    )
    try:
        while len(list((far / "runs" / "task" / "checkpoints").glob("0*"))) < 2:
            time.sleep(0.5)

        def look() -> list[str]:
            run = here / "task"
            if not run.exists():
                return []
            damage: list[str] = []
            newest = checkpoint.newest(run / "checkpoints", damage, resume=True)
            wrong = ["no checkpoint verifies"] if newest is None else []
            if newest is not None and (run / "metrics.jsonl").stat().st_size < newest.manifest.metrics_bytes:
                wrong.append("rows of the checkpoint are missing")
            if next(last_rows(run / "sessions.jsonl"), {}).get("event") == "finished":
                wrong.append("a run that trains is taken for a finished one")
            return wrong + damage

        argv = ["pull", f"127.0.0.1:{far}/runs/task", "--runs-dir", str(here)]
        began_s = time.monotonic()
        machine.whole("pull", f"127.0.0.1:{far}/runs/task", "--runs-dir", str(machine.folder / "measured-runs"))
        whole_s = time.monotonic() - began_s
        cuts = cut_often(machine, argv, whole_s, look, lambda: shutil.rmtree(here))
        last = machine.whole(*argv).strip().splitlines()[-1]
        wrong = look()
    finally:
        trainer.terminate()
        trainer.wait()
    pulled = checkpoint.newest(here / "task" / "checkpoints", [])
    assert pulled is not None
    goal = ["--iterations", str(pulled.iteration + 25)]
    (here / "task.py").write_text(path.read_text())
    (machine.folder / "task.py").write_text(path.read_text())
    ranks([*train, *goal, *schedule, "--runs-dir", str(here)], machine.folder)
    ranks([*train, *goal, *schedule, "--name", "whole", "--runs-dir", str(machine.folder / "whole")], machine.folder)
    ends = [ranks(["fingerprint", str(machine.folder / p)], far).split()[-1] for p in ("here/task", "whole/whole")]
    return {
        "bytes_of_a_checkpoint": sum(about["bytes"] for about in pulled.manifest.files.values()),
        "seconds_uncut": whole_s,
        "cuts": cuts,
        "said": last,
        "wrong_at_the_end": wrong,
        "pulled_iteration": pulled.iteration,
        "fingerprint_continued_here": ends[0],
        "fingerprint_of_a_run_that_nobody_moved": ends[1],
    }


def ranks(argv: list[str], cwd: Path) -> str:
    """The output of a command. RuntimeError: what it said."""
    command = [sys.executable, "-m", "ranks", *argv]
    done = subprocess.run(command, cwd=cwd, env=environment(), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{argv}: {done.stdout[-1500:]}{done.stderr[-1500:]}")
    return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=20)
    seed = parser.parse_args().seed
    missing = missing_program()
    if missing is not None:
        sys.exit(f"there is no {missing} here")
    with tempfile.TemporaryDirectory(prefix="ranks-cuts-") as name, LocalSshd(Path(name)) as sshd:
        machine = FarMachine(Path(name), sshd, seed)
        push, pull = push_part(machine), pull_part(machine)
    cuts = [*push["cuts"], *pull["cuts"]]
    checks = {
        "push: the sums are equal at the end": push["equal"] and push["left_in_the_folder"] == ["prices"],
        "push: 20 cuts, nothing half in the place of the whole": not any(cut["wrong"] for cut in push["cuts"]),
        "pull: 20 cuts, no half run taken for a whole one": not any(cut["wrong"] for cut in pull["cuts"]),
        "pull: the end verifies": not pull["wrong_at_the_end"],
        "a pulled run continues with the bits of one that nobody moved": pull["fingerprint_continued_here"]
        == pull["fingerprint_of_a_run_that_nobody_moved"],
        "no program is left over after a cut": not any(cut["left_over"] for cut in cuts),
    }
    verdict = "PASS" if all(checks.values()) else "FAIL"
    content = {"origin": origin(), "seed": seed, "verdict": verdict, "checks": checks, "push": push, "pull": pull}
    print(verdict, checks, write_result("transfer_cuts", content))
    sys.exit(verdict != "PASS")


if __name__ == "__main__":
    main()
