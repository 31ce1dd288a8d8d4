"""A run on a real Slurm cluster of two nodes (slurm_cluster.py) that reaches its time limit: USR1, a save, the queue
again, the end. With --exact its fingerprint must be that of a run that nobody has interrupted.

    python -m benchmarks.renting.slurm_requeue    writes benchmarks/results/slurm_requeue.json, in about eight minutes
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.measure import environment, origin, write_result
from benchmarks.renting.slurm_cluster import LocalSlurm, missing_program

ITERATIONS = 1000
PAUSE_S = 0.07
LIMIT_S = 900.0
POLL_S = 2.0
MINUTES = 2
"""Slurm's time limits are whole minutes, and its signals before them come up to a minute early."""


def main() -> None:
    missing = missing_program()
    if missing is not None or os.geteuid() != 0:
        sys.exit(f"needs root and Debian's slurm-wlm and munge (missing: {missing})")
    with tempfile.TemporaryDirectory(prefix="slurm-") as name:
        folder = Path(name)
        env = prepared(folder)
        work = folder / "work"
        whole = ["--name", "whole", "--gpus", "none", "--ranks", "1"]
        ranks(["train", "./task.py", *whole, "--exact", "--iterations", str(ITERATIONS)], work, {**env, "PAUSE_S": "0"})
        wanted = ranks(["fingerprint", "whole"], work, env).split()[-1]
        cluster = LocalSlurm(folder, env)
        with cluster:
            print("sinfo:", cluster.run("sinfo", "--noheader").strip(), flush=True)
            train = f"--exact --iterations {ITERATIONS} --save-every 1000"
            asked = ["submit", "slurm", "./task.py", "--gpus", "none", "--ranks", "1", "--nodes", "2", "--yes"]
            asked += ["--hours", f"{MINUTES / 60:.4f}", "--price", "1.5", "--partition", "main", f"--train={train}"]
            asked += ["--name=requeued", "--starts", "6"]
            said = cluster.run("ranks", *asked, cwd=work)
            print(said, flush=True)
            number = int(re.findall(r"Submitted batch job (\d+)", said)[0])
            seen = watched(cluster, number)
        output = (work / f"requeued-{number}.out").read_text()
        print(output, flush=True)
        found = ranks(["fingerprint", "requeued"], work, env).split()[-1]
        sessions = (work / "runs" / "requeued" / "sessions.jsonl").read_text()
        checks = {
            "the job was queued again at least once": "saved before the time limit; queued again" in output,
            "the job has completed": seen[-1]["state"] == "COMPLETED",
            "the run has continued from a checkpoint": '"resumed"' in sessions,
            "the fingerprint is that of the uninterrupted run": found == wanted,
            "the model was evaluated and exported": (work / "runs" / "requeued" / "export" / "model.py").exists(),
        }
    content: dict[str, Any] = {
        "origin": origin(),
        "verdict": "PASS" if all(checks.values()) else "FAIL",
        "checks": checks,
        "command": ["ranks", *asked],
        "states": seen,
        "starts": 1 + output.count("queued again"),
        "fingerprint": {"uninterrupted": wanted, "requeued": found},
        "file": said,
        "output": output.replace(str(work), ".").replace(sys.prefix, "VENV"),
    }
    print(content["verdict"], checks, write_result("slurm_requeue", content))
    sys.exit(content["verdict"] != "PASS")


def prepared(folder: Path) -> dict[str, str]:
    """A folder with a workload that sleeps between its iterations; the environment of the cluster."""
    (folder / "work").mkdir()
    bin_ = folder / "bin"
    bin_.mkdir()
    (bin_ / "ranks").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ranks "$@"\n')
    (bin_ / "ranks").chmod(0o755)
    env = environment(PATH=f"{bin_}:{os.environ['PATH']}", OMP_NUM_THREADS="1", PAUSE_S=str(PAUSE_S))
    env = {k: v for k, v in env.items() if not k.endswith("_SOCKET_IFNAME")}
    ranks(["new", "task"], folder / "work", env)
    path = folder / "work" / "task.py"
    text = path.read_text()
    step = re.search(r"\n( +)run\.log\(learner\.step", text)
    assert step is not None
    pause = f'\n{step[1]}__import__("time").sleep(float(__import__("os").environ["PAUSE_S"]))'
    path.write_text(text[: step.start()] + pause + text[step.start() :])
    return env


def ranks(argv: list[str], cwd: Path, env: dict[str, str]) -> str:
    """The output of a command. Raises CalledProcessError."""
    done = subprocess.run([sys.executable, "-m", "ranks", *argv], cwd=cwd, env=env, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"ranks {' '.join(argv)}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def watched(cluster: LocalSlurm, number: int) -> list[dict[str, Any]]:
    """The states of a job until its end, each with the seconds since it was submitted."""
    began_s, seen = time.monotonic(), list[dict[str, Any]]()
    while time.monotonic() - began_s < LIMIT_S:
        job = cluster.job(number)
        now = {"state": job["JobState"], "reason": job["Reason"], "restarts": int(job["Restarts"])}
        if not seen or {k: v for k, v in seen[-1].items() if k != "time_s"} != now:
            seen.append({"time_s": round(time.monotonic() - began_s, 1), **now})
            print(seen[-1], flush=True)
        if now["state"] in ("COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL"):
            break
        time.sleep(POLL_S)
    return seen


if __name__ == "__main__":
    main()
