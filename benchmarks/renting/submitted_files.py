"""The files of `ranks submit sky` and `modal`, executed with the cloud taken away.

    python -m benchmarks.renting.submitted_files --python ENV/bin/python  writes benchmarks/results/submitted_files.json

It takes eight minutes. ENV is an environment with skypilot 0.14 and modal 1.6 (pip install
skypilot modal): their own code reads the files. The commands run in a fresh clone with a fresh environment, which
`tools/environment.py` makes, and a home folder of their own. A real `ranks pull` over a real sshd brings the run home,
and the watcher then ends the job. Modal's function is called by its own `.local()`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from benchmarks.measure import ROOT, origin, write_result
from tests.renting.catalog import write_catalog
from tests.transfer.sshd import LocalSshd

READ_SKY = """
import json, sys, sky
task = sky.Task.from_yaml(sys.argv[1])
resources = next(iter(task.resources))
print(json.dumps({"setup": task.setup, "run": task.run, "num_nodes": task.num_nodes, "autostop":
    str(resources.autostop_config), "image": str(resources.image_id), "version": sky.__version__}))
"""
TRAIN = "--train=--preset demo --iterations 40"
LONG = "--train=--preset demo --iterations 600"
MINUTE = 0.017
"""Hours of one call of Modal's function, which is asked to save a quarter before their end."""
TRIES = 12
CALL = """
import importlib.util, json, sys, modal
spec = importlib.util.spec_from_file_location("app", sys.argv[1])
app = importlib.util.module_from_spec(spec)
spec.loader.exec_module(app)
ends = []
while len(ends) < int(sys.argv[2]):    # as Modal tries again after an error
    try:
        ends.append(app.train.local([]))
    except RuntimeError as error:
        ends.append(str(error))
    if ends[-1] == 0:
        break
print(json.dumps({"modal": modal.__version__, "ends": ends}))
"""


def made(folder: Path) -> Path:
    """The folder of the programs of a fresh environment, of a fresh clone."""
    clone = folder / "clone"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
    subprocess.run([sys.executable, "tools/environment.py", "demo"], cwd=clone, check=True)
    return clone / ".venv" / "bin"


def variables(bin_: Path, home: Path) -> dict[str, str]:
    """Those of a new machine: a home folder, and the environment's programs first."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "RANKS_", "VIRTUAL_ENV"))}
    return {**kept, "HOME": str(home), "PATH": f"{bin_}:/usr/local/bin:/usr/bin:/bin"}


def sky_file(folder: Path, bin_: Path, python: str) -> dict[str, Any]:
    """Write the file, let SkyPilot read it, run its commands, pull the run, and see the job end."""
    home = folder / "sky-home"
    write_catalog(home / ".sky/catalogs/v8")
    env = variables(bin_, home)
    submit = ["ranks", "submit", "sky", "graph-coloring", "--gpus", "none", "--ranks", "2", "--image", "me/ranks:1"]
    submit += ["--cloud", "runpod", "--no-forecast", "--name", "away", "--keep", "5", "--max-hours", "2", TRAIN]
    said = subprocess.run(submit, cwd=folder, env={**env, "PATH": f"{env['PATH']}:{Path(python).parent}"}, check=True,
                          capture_output=True, text=True).stdout  # fmt: skip
    read = subprocess.run(
        [python, "-c", READ_SKY, "away.sky.yaml"], cwd=folder, check=True, capture_output=True, text=True
    )
    task = json.loads(read.stdout.splitlines()[-1])
    subprocess.run(["bash", "-c", task["setup"]], env=env, cwd=home, check=True)
    job_env = {**env, "SKYPILOT_NODE_RANK": "0", "SKYPILOT_NODE_IPS": "127.0.0.1", "SKYPILOT_NUM_NODES": "1"}
    log = (folder / "sky-job.log").open("w")
    began = time.monotonic()
    job = subprocess.Popen(["bash", "-c", task["run"]], env=job_env, cwd=home, stdout=log, stderr=log)
    export = home / "work/runs/away/export"
    while job.poll() is None and not export.exists():
        time.sleep(1)
    trained_s = time.monotonic() - began
    (folder / "sshd").mkdir()
    with LocalSshd(folder / "sshd") as sshd:
        pull = [
            "ranks",
            "pull",
            f"{sshd.host}:{home}/work/runs/away",
            f"--ssh={sshd.options}",
            "--runs-dir",
            "home-runs",
        ]
        pulled = subprocess.run(pull, cwd=folder, env=env, capture_output=True, text=True)
    code = job.wait(120)
    watch = (home / "work/runs/.away.autodown.log").read_text()
    for process in psutil.process_iter(["cmdline"]):  # the watcher, which on a rented machine ends with it
        if "autodown" in (process.info["cmdline"] or []) and process.cwd() == str(home / "work"):
            process.kill()
    return {
        "lines_of_submit": said.splitlines()[-4:],
        "read_by_skypilot": task | {"setup": task["setup"].splitlines(), "run": task["run"].splitlines()},
        "trained_s": round(trained_s, 1),
        "pull": pulled.stdout.splitlines() or pulled.stderr.splitlines(),
        "exit_code_of_the_job": code,
        "watcher": watch.splitlines(),
        "job": (folder / "sky-job.log").read_text().splitlines()[-8:],
        "right": code == pulled.returncode == 0
        and "is at home" in watch
        and "autostop" in str(task)
        and "load it there"
        in (folder / "sky-job.log").read_text(),  # pulled before it, the run is exported all the same
    }


def modal_file(folder: Path, bin_: Path, python: str) -> dict[str, Any]:
    """Write the file, and call its function with Modal's own code: again and again while the time limit of a call ends
    it, and once more when the run has finished."""
    env = variables(bin_, folder)
    submit = ["ranks", "submit", "modal", "graph-coloring", "--gpus", "none", "--ranks", "2", "--image", "me/ranks:1"]
    submit += ["--price", "1", "--no-forecast", "--name", "away", "--hours", str(MINUTE), "--starts", str(TRIES), LONG]
    subprocess.run(submit, cwd=folder, env=env, check=True, capture_output=True)
    path = folder / "away_modal.py"
    text = path.read_text()
    assert '"--runs-dir", "/runs"' in text
    path.write_text(text.replace("/runs", f"{folder}/volume"))  # the volume of this machine
    call = [python, "-c", CALL, path.name]
    done = subprocess.run([*call, str(TRIES)], cwd=folder, env=env, capture_output=True, text=True)
    called = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {"ends": done.stderr.splitlines()}
    again = subprocess.run([*call, "1"], cwd=folder, env=env, capture_output=True, text=True)
    sessions = (folder / "volume/away/sessions.jsonl").read_text().splitlines()
    events = [(row["event"], row["iteration"]) for row in map(json.loads, sessions)]
    listed = subprocess.run([f"{Path(python).parent}/modal", "run", "away_modal.py", "--help"], cwd=folder, env=env,
                            capture_output=True, text=True)  # fmt: skip
    origin_app = [
        "ranks",
        "submit",
        "modal",
        "chess-value",
        "--gpus",
        "B200:4",
        "--image",
        "me/ranks:1",
        "--price",
        "25",
    ]
    subprocess.run(
        [*origin_app, "--no-forecast", "--name", "origin"], cwd=folder, env=env, check=True, capture_output=True
    )
    show = [f"{Path(python).parent}/modal", "run", "origin_modal.py", "--help"]
    origin_help = subprocess.run(show, cwd=folder, env=env, capture_output=True, text=True).stdout
    exported = sorted(file.name for file in (folder / "volume/away/export").glob("*"))
    return {
        "called": called,
        "called_again": again.returncode,
        "sessions": events,
        "exported": exported,
        "help_of_modal_run": listed.stdout.splitlines(),
        "help_of_modal_run_with_the_flags_of_the_origin": origin_help.splitlines(),
        "right": done.returncode == again.returncode == 0
        and called["ends"][-1] == 0
        and len(called["ends"]) > 1
        and any(event == "resumed" and iteration > 0 for event, iteration in events)
        and "model.safetensors" in exported
        and "--train-flags" in listed.stdout
        and all(flag in origin_help for flag in ("--max-positions", "--stockfish-games", "--batch-size")),
    }


def main() -> int:
    """Both ways. Exit code 1 where one went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", required=True)
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="submitted-"))
    found: dict[str, Any] = {"origin": origin()}
    found["origin"]["command"] = "python -m benchmarks.renting.submitted_files --python ENV/bin/python"
    try:
        bin_ = made(folder)
        found["sky"] = sky_file(folder, bin_, asked.python)
        found["modal"] = modal_file(folder, bin_, asked.python)
    finally:
        print(json.dumps(found, indent=1).replace(str(folder), "FOLDER"))
        shutil.rmtree(folder, ignore_errors=True)
    write_result("submitted_files", json.loads(json.dumps(found).replace(str(folder), "FOLDER")))
    return 0 if found["sky"]["right"] and found["modal"]["right"] else 1


if __name__ == "__main__":
    sys.exit(main())
