"""What a person does with a workload of their own: write it, train it on two ranks, kill it, resume, export, load."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

LOAD = """
import sys
import model
import torch
assert not [name for name in sys.modules if name.startswith(("ranks", "numpy.ranks", "safetensors"))]
net = model.load(".")
points = torch.tensor([[0.5, 0.1], [-0.2, 0.3]])
print(tuple(net(points).shape))
"""


def command(*argv: str) -> list[str]:
    return [sys.executable, "-m", "ranks", *argv]


def test_the_file_is_short_and_reads_as_the_users_own(tmp_path: Path) -> None:
    subprocess.run(command("new", "my-task"), cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    text = (tmp_path / "my_task.py").read_text()
    assert len(text.splitlines()) < 100
    assert "ranks train ./my_task.py" in text
    assert "ranks evaluate my_task" in text
    assert "template" not in text


def test_from_nothing_to_weights_in_plain_torch(tmp_path: Path) -> None:
    env = {**os.environ, "OMP_NUM_THREADS": "1"}

    def run(*argv: str) -> str:
        done = subprocess.run(command(*argv), cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("new", "spirals")
    train = ["train", "./spirals.py", "--ranks", "2", "--gpus", "none", "--iterations", "400", "--save-every", "20"]
    metrics = tmp_path / "runs" / "spirals" / "metrics.jsonl"
    killed = subprocess.Popen(command(*train), cwd=tmp_path, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    while killed.poll() is None and not (metrics.exists() and metrics.read_bytes().count(b"\n") >= 30):
        time.sleep(0.05)
    assert killed.poll() is None, killed.stderr and killed.stderr.read().decode()
    killed.send_signal(signal.SIGKILL)
    killed.communicate()

    run(*train)
    rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    assert [row["iteration"] for row in rows] == list(range(400))
    sessions = [json.loads(line)["event"] for line in (metrics.parent / "sessions.jsonl").read_text().splitlines()]
    assert sessions == ["opened", "resumed", "finished"]

    found = json.loads(run("evaluate", "spirals", "--gpus", "none", "--json"))
    assert found["metrics"]["accuracy"] > 0.95
    assert len(run("fingerprint", "spirals").strip()) == 64

    files = [Path(entry["path"]).name for entry in json.loads(run("export", "spirals", "--json"))["files"]]
    assert files == ["model.safetensors", "config.json", "model.py"]
    export = metrics.parent / "export"
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    loaded = subprocess.run([sys.executable, "-c", LOAD], cwd=export, env=plain, capture_output=True, text=True)
    assert loaded.stdout.strip() == "(2, 3)", loaded.stderr
