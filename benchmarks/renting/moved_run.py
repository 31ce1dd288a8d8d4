"""A run with --exact is killed on this machine, brought to machines of other kinds, and continues there to its end.

    python -m benchmarks.renting.moved_run --machine A --machine B        writes benchmarks/results/moved_run.json

Three minutes, and two more for each machine. A machine is a Debian root file system with a Python and a torch of its
own; it gets an sshd in process, mount and host-name namespaces. Two of them, made as root in five minutes:

    for d in bookworm trixie; do
        debootstrap --variant=minbase --include=ca-certificates,openssh-server,python3,python3-venv,rsync $d $d
        chroot $d python3 -m venv /opt/ranks-env
    done
    chroot bookworm /opt/ranks-env/bin/pip install torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl    # as here
    chroot trixie /opt/ranks-env/bin/pip install torch==2.11.0    # Python 3.13, the build for CUDA: 3 GB

The run is killed by SIGKILL of all its processes. `ranks pull` brings it home from an sshd of this machine, `ranks
push` takes it to the other one, the same `ranks train` continues there on another number of ranks, and `ranks pull`
brings the end home. With the torch of this machine its fingerprint must be that of the run that nobody interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.measure import ROOT, environment, origin, write_result
from tests.transfer.sshd import LocalSshd, missing_program

ITERATIONS = 150
SAVE_EVERY = 20
KILL_AFTER = 60
"""The run is killed once this checkpoint is there."""
NAME = "moved"
TRAIN = (
    *("ranks", "train", "graph-coloring", "--preset", "demo", "--gpus", "none", "--exact"),
    *("--iterations", str(ITERATIONS), "--save-every", str(SAVE_EVERY)),
)
RANKS_HERE, RANKS_THERE = 2, (4, 1, 3)
ENV = "/opt/ranks-env"
"""The virtual environment of a machine."""
COPY = "/opt/ranks"
PORT = 40122
FACTS = (
    "import sys, json, platform, torch; print(json.dumps(dict(python=sys.version.split()[0], torch=torch.__version__, \
libc=platform.libc_ver()[1], cpu_kernels=torch.backends.cpu.get_cpu_capability(), built_for_cuda=torch.version.cuda)))"
)
LIVES = 'mount --rbind /dev "$0/dev"; mount -t proc proc "$0/proc"; hostname "$1"; mkdir -p "$0/run/sshd"; shift; '
LIVES += 'exec chroot "$0" /usr/sbin/sshd -D -e "$@"'
"""A shell script that starts the sshd of a root file system, in namespaces of its own."""


@dataclass(frozen=True)
class OtherMachine:
    """What ssh reaches: `options` are its arguments."""

    root: Path
    options: str

    host = "root@127.0.0.1"

    def run(self, command: str) -> str:
        """The output of a shell command there, in the folder work with the machine's environment."""
        there = f". {ENV}/bin/activate && mkdir -p work && cd work && {command}"
        return output("ssh", *shlex.split(self.options), self.host, there)


def output(*command: str, cwd: Path | None = None) -> str:
    """The output of a command. Exits where it fails."""
    print("$", shlex.join(command)[-300:], flush=True)
    words = [sys.executable, "-m", *command] if command[0] == "ranks" else command
    done = subprocess.run(
        words, cwd=cwd, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode:
        sys.exit(f"{done.stdout[-3000:]}\nexit code {done.returncode}")
    return done.stdout


def install(root: Path) -> None:
    """This commit's files and what graph-coloring needs, by pip, in the environment of a machine. Its torch stays."""
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    copy = ["rsync", "-a", "--delete", "--from0", "--files-from=-", f"{ROOT}/", f"{root}{COPY}/"]
    subprocess.run(copy, input=files, check=True)
    python = ("chroot", str(root), f"{ENV}/bin/python", "-W", "ignore")
    torch_there = output(*python, "-c", "from importlib.metadata import version; print(version('torch'))").strip()
    (root / "opt/keep-torch.txt").write_text(f"torch=={torch_there}\n")
    output(*python, "-m", "pip", "install", "-q", "-c", "/opt/keep-torch.txt", f"{COPY}[graph-coloring]")


@contextlib.contextmanager
def started(root: Path, folder: Path) -> Iterator[OtherMachine]:
    """The machine of a root file system, while it is up. `folder`: for the keys."""
    folder.mkdir()
    output("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "key"))
    public = root / "run" / "moved-run.pub"
    public.write_bytes((folder / "key.pub").read_bytes())
    sshd = ["-p", str(PORT), "-o", "UsePAM=no", "-o", "StrictModes=no", "-o", "AuthorizedKeysFile=/run/moved-run.pub"]
    command = ["unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "sh", "-c", LIVES, str(root)]
    daemon = subprocess.Popen([*command, f"other-{root.name}", *sshd], stderr=subprocess.DEVNULL)
    options = f"-F none -p {PORT} -i {folder}/key -o UserKnownHostsFile={folder}/known "
    options += "-o StrictHostKeyChecking=accept-new -o LogLevel=ERROR -o ConnectionAttempts=30"
    try:
        yield OtherMachine(root, options)
    finally:
        daemon.kill()  # and with it all processes of the machine
        daemon.wait()
        public.unlink()


def killed(folder: Path) -> int:
    """Start the run here, kill it in the middle; the newest checkpoint that it has left."""
    argv = [sys.executable, "-m", *TRAIN, "--ranks", str(RANKS_HERE), "--name", NAME]
    print("$", shlex.join(argv[2:]), flush=True)
    run = subprocess.Popen(
        argv, cwd=folder, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, process_group=0
    )
    checkpoints = folder / "runs" / NAME / "checkpoints"
    while not (checkpoints / f"{KILL_AFTER:08d}").exists() and run.poll() is None:
        time.sleep(0.02)
    os.killpg(run.pid, signal.SIGKILL)
    if run.wait() != -signal.SIGKILL:
        sys.exit(f"the run ended by itself, with exit code {run.returncode}")
    return max(int(path.name) for path in checkpoints.glob("0*"))


def rows(run: Path) -> dict[int, dict[str, float]]:
    """Iteration -> the metrics of a run."""
    found = dict[int, dict[str, float]]()
    for line in (run / "metrics.jsonl").read_text().splitlines():
        row = json.loads(line)
        found.setdefault(row["iteration"], {}).update(row)
    return found


def compared(moved: Path, whole: Path, keys: Sequence[str] = ("train/loss", "val/loss")) -> dict[str, Any]:
    """How far the metrics of two runs lie apart, relative; the first iteration at which they differ."""
    mine, wanted = rows(moved), rows(whole)
    apart = dict[str, Any]()
    for key in keys:
        both = [
            (i, mine[i][key], wanted[i][key]) for i in sorted(wanted) if key in wanted[i] and key in mine.get(i, {})
        ]
        differ = [i for i, a, b in both if a != b]
        apart[key] = {
            "values": len(both),
            "first iteration that differs": differ[0] if differ else None,
            "largest relative difference": max((abs(a - b) / max(abs(b), 1e-12) for _, a, b in both), default=None),
            "at the end": list(both[-1][1:]) if both else None,
        }
    return apart


def moved_to(machine: OtherMachine, near: LocalSshd, folder: Path, ranks_there: int) -> dict[str, Any]:
    """Bring the killed run home, to the other machine, to its end, and home again."""
    home = folder / f"home-{machine.root.name}"
    home.mkdir()
    near_ssh, there_ssh = f"--ssh={near.options}", f"--ssh={machine.options}"
    steps = [output("ranks", "pull", f"{near.host}:{folder}/runs/{NAME}", near_ssh, cwd=home)]
    machine.run(f"rm -rf runs/{NAME}")
    steps.append(output("ranks", "push", f"runs/{NAME}", f"{machine.host}:work/runs", there_ssh, cwd=home))
    began_s = time.monotonic()
    said = machine.run(f"{shlex.join(TRAIN)} --ranks {ranks_there} --name {NAME}")
    train_s = round(time.monotonic() - began_s, 1)
    steps.append(output("ranks", "pull", f"{machine.host}:work/runs/{NAME}", there_ssh, cwd=home))
    sessions = [json.loads(line) for line in (home / "runs" / NAME / "sessions.jsonl").read_text().splitlines()]
    return {
        "machine": json.loads(machine.run(f"python -W ignore -c {shlex.quote(FACTS)}").splitlines()[-1])
        | {"system": machine.run("sed -n 's/^PRETTY_NAME=//p' /etc/os-release").strip().strip('"')},
        "ranks": ranks_there,
        "steps": [step.strip().splitlines()[-1] for step in steps],
        "train_s": train_s,
        "train": [line for line in said.splitlines() if "continu" in line or "fingerprint" in line or "resum" in line],
        "sessions": [{key: row.get(key) for key in ("event", "iteration", "ranks")} for row in sessions],
        "fingerprint": output("ranks", "fingerprint", str(home / "runs" / NAME)).split()[-1],
        "metrics": compared(home / "runs" / NAME, folder / "runs" / "whole"),
    }


def main() -> int:
    """Exit code 1 where a machine with the torch of this one ends with other bits, or a run is not continued."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--machine", type=Path, action="append", required=True)
    machines = [path.resolve() for path in parser.parse_args().machine]
    if os.geteuid() != 0 or missing_program() is not None:
        sys.exit(f"needs root, debootstrap and Debian's openssh-server and rsync (missing: {missing_program()})")
    found: dict[str, Any] = {"origin": origin()}
    found["origin"]["command"] = "python -m benchmarks.renting.moved_run" + " --machine FOLDER" * len(machines)
    with tempfile.TemporaryDirectory(prefix="moved-run-") as name:
        folder = Path(name)
        (folder / "sshd").mkdir()
        output(*TRAIN, "--ranks", "1", "--name", "whole", cwd=folder)
        wanted = output("ranks", "fingerprint", "whole", cwd=folder).split()[-1]
        found |= {"train": shlex.join(TRAIN), "ranks here": RANKS_HERE, "fingerprint_uninterrupted": wanted}
        found |= {"killed_after_checkpoint": killed(folder), "moved": []}
        with LocalSshd(folder / "sshd") as near:
            for number, root in enumerate(machines):
                install(root)
                with started(root, folder / f"keys-{number}") as machine:
                    row = moved_to(machine, near, folder, RANKS_THERE[number % len(RANKS_THERE)])
                row["torch of this machine"] = row["machine"]["torch"] == torch.__version__
                row["equal fingerprint"] = row["fingerprint"] == wanted
                found["moved"].append(row)
                print(json.dumps(row, indent=1), flush=True)
    checks = {
        "every run has continued from the checkpoint that it brought": all(
            {"event": "resumed", "iteration": found["killed_after_checkpoint"]}.items() <= row["sessions"][-2].items()
            for row in found["moved"]
        ),
        "every run has come to its end": all(row["sessions"][-1]["iteration"] == ITERATIONS for row in found["moved"]),
        "equal torch, equal fingerprint": all(
            row["equal fingerprint"] for row in found["moved"] if row["torch of this machine"]
        ),
    }
    found |= {"verdict": "PASS" if all(checks.values()) else "FAIL", "checks": checks}
    text = json.dumps(found).replace(name, "FOLDER")
    print(found["verdict"], checks, write_result("moved_run", json.loads(text)))
    return found["verdict"] != "PASS"


if __name__ == "__main__":
    sys.exit(main())
