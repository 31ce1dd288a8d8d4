"""`ranks train` with one rank, with several, and under torchrun; errors, signals, hangs."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ranks.cli.main import main
from tests.cli.conftest import HERE

FLAGS = ["--gpus", "none", "--eval-every", "10"]


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1"}


def test_one_rank_two_ranks_and_torchrun_give_the_same_bits(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "ranks"]
    ours = [sys.executable, "-m", "ranks"]
    for name, start, more in (
        ("one", ours, ["--ranks", "1"]),
        ("two", ours, ["--ranks", "2"]),
        ("torch", torchrun, []),
    ):
        argv = [*start, "train", "./spirals.py", *FLAGS, "--exact", "--iterations", "12", "--name", name, *more]
        done = subprocess.run(argv, cwd=trained, env=environment(), capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        assert "shards" in done.stdout, "the plan was not shown"
        assert main(["fingerprint", name]) == 0
    assert len(set(capsys.readouterr().out.split())) == 1


@pytest.mark.parametrize("num_ranks", ["1", "2"])
def test_an_exception_in_the_workload_shows_its_line(num_ranks: str, trained: Path) -> None:
    path = trained / "spirals.py"
    path.write_text(path.read_text().replace("    return Net(cfg.hidden)", "    return Net(1 // (cfg.hidden - 64))"))
    argv = [sys.executable, "-m", "ranks", "train", "./spirals.py", *FLAGS, "--name", "new", "--ranks", num_ranks]
    done = subprocess.run(argv, cwd=trained, env=environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert done.stderr.count("ZeroDivisionError") == 1
    line = next(i for i, text in enumerate(path.read_text().splitlines(), 1) if "1 // " in text)
    assert f"spirals.py:{line}" in done.stderr or f'spirals.py", line {line}' in done.stderr
    assert done.stderr.startswith("Traceback (most recent call last):\n") == (num_ranks == "1"), done.stderr
    assert not (trained / "runs" / "new").exists()


def test_a_stop_saves_and_sets_the_exit_code(trained: Path) -> None:
    argv = [sys.executable, "-m", "ranks", "train", "./spirals.py", *FLAGS, "--ranks", "1", "--name", "long"]
    argv += ["--iterations", "1000000"]
    process = subprocess.Popen(
        argv, cwd=trained, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("iteration"):
            break
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGTERM
    run = trained / "runs" / "long"
    reached = max(int(path.name) for path in (run / "checkpoints").glob("[0-9]*"))
    assert len((run / "metrics.jsonl").read_text().splitlines()) == reached > 0


def test_a_command_that_looks_at_the_lock_does_not_stop_a_start(
    trained: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """`ranks runs` holds it shared for an instant."""
    monkeypatch.setattr("ranks.launch.run.launch_run", lambda *arguments, **options: 0)
    with (trained / "runs" / ".spirals.lock").open() as reader:
        fcntl.flock(reader, fcntl.LOCK_SH)
        release = threading.Timer(0.3, fcntl.flock, (reader, fcntl.LOCK_UN))
        release.start()
        try:
            assert main(["train", "./spirals.py", *FLAGS, "--ranks", "2"]) == 0, capfd.readouterr().err
        finally:
            release.join()


def test_a_refused_run_restores_the_signal_handlers(refused: Callable[[Sequence[str]], str], trained: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    refused(["train", "./spirals.py", "--ranks", "1", *HERE, "--gpus", "none", "--seed", "8"])
    assert signal.getsignal(signal.SIGTERM) is before


HANGS = """
def hang(iteration: int) -> None:
    import os, signal

    if iteration == 7 and os.environ["RANKS_ATTEMPT"] == "0":
        os.kill(os.getpid(), signal.SIGSTOP)
    while iteration == 13 and os.environ["RANKS_ATTEMPT"] == "1":
        pass


def train("""


def test_one_rank_that_hangs_is_named_and_restarted_and_ends_the_same(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is stopped in one start, and in an endless loop in the next one."""
    path = trained / "spirals.py"
    step = "            run.log(learner.step("
    text = path.read_text().replace("\ndef train(", HANGS).replace(step, f"            hang(iteration)\n{step}")
    path.write_text(text)
    argv = [sys.executable, "-m", "ranks", "train", "./spirals.py", *FLAGS, "--ranks", "1", "--iterations", "20"]
    argv += ["--name", "hung", "--save-every", "2", "--hang-timeout", "3s"]
    done = subprocess.run(argv, cwd=trained, env=environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    first, second = (line for line in done.stderr.splitlines() if line.startswith("rank 0 hangs"))
    assert "in the phase train, after iteration 7, in update 7 of this start" in first
    assert "it is stopped (SIGSTOP or a debugger)" in first
    line = next(i for i, text in enumerate(text.splitlines(), 1) if "while iteration == 13" in text)
    assert second.startswith((f"rank 0 hangs (at spirals.py:{line}): ", f"rank 0 hangs (at spirals.py:{line + 1}): "))
    facts = [json.loads(line) for line in (trained / "runs" / "hung" / "sessions.jsonl").read_text().splitlines()]
    assert [fact["kind"] for fact in facts if fact["event"] == "failed"] == ["hang", "hang"]
    assert main(["fingerprint", "hung"]) == main(["fingerprint", "spirals"]) == 0
    assert len(set(capsys.readouterr().out.split())) == 1
