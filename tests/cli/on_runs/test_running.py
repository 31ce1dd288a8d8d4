"""Commands on runs: stop a running one, read its logs, compare two."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ranks.cli.main import main
from ranks.cli.on_runs.newest_run import newest_run
from ranks.engine.files.lock import lock
from ranks.engine.runs.folder import RunFolder


def wait_for(folder: Path, pattern: str, limit_s: float = 120.0) -> None:
    """Until a file of that name has been there. Checkpoints come and go, so no single one is waited for."""
    deadline = time.monotonic() + limit_s
    while not any(folder.glob(pattern)):
        assert time.monotonic() < deadline, f"no {pattern} in {folder}"
        time.sleep(0.05)


def test_a_running_run_is_read_compared_and_stopped(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = [sys.executable, "-m", "ranks", "train", "./spirals.py", "--gpus", "none", "--ranks", "2", "--name", "long"]
    argv += ["--iterations", "1000000", "--optim.lr", "0.007", "--save-every", "1"]
    environ = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(argv, cwd=trained, env=environ, stdout=subprocess.DEVNULL) as process:
        try:
            wait_for(trained / "runs" / "long" / "checkpoints", "0*")
            wait_for(trained / "runs" / "long" / "logs", "rank1.log")
            assert main(["logs", "long"]) == 0
            assert main(["logs", "long", "--follow"]) == 2
            assert "2 ranks have logs" in capsys.readouterr().err
            watch = [sys.executable, "-m", "ranks", "watch", "long"]
            with subprocess.Popen(watch, stdout=subprocess.PIPE, text=True) as watching:
                assert watching.stdout is not None
                assert watching.stdout.readline() == "plan\n"
                assert main(["stop", "long"]) == 0
                seen = watching.stdout.read()
                assert watching.wait(60) == 0
            assert process.wait(60) == 143
        finally:
            process.kill()
    assert "  ranks          2, on cpu" in seen
    assert "iteration" in seen
    assert "not running: stopped at iteration" in seen
    said = capsys.readouterr().out
    assert f"SIGTERM to process {process.pid}" in said
    assert "stopped at iteration " in said
    assert main(["stop", "long"]) == 2
    assert "is not running" in capsys.readouterr().err

    first = next(path.name for path in sorted((trained / "runs").iterdir()) if path.is_dir() and path.name != "long")
    assert main(["compare", first, "long", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["config.optim.lr"]["long"] == "0.007"
    assert rows["config.optim.lr"][first] != "0.007"
    assert "engine.name" not in rows
    assert float(rows["train/loss"]["long"]) > 0
    assert main(["compare", first, "long"]) == 0
    assert main(["compare", "--runs-dir", "runs", first, "--json", "long"]) == 0, "flags before and between"
    assert main(["compare", first, first]) == 2, "one run"
    assert "config.optim.lr" in capsys.readouterr().out


def test_the_logs_of_one_rank(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = next(path for path in (trained / "runs").iterdir() if (path / "run.json").exists())
    log = folder / "logs" / "rank0.log"
    log.parent.mkdir(exist_ok=True)
    log.write_text("".join(f"line {i}\n" for i in range(100)) + "bell \a\n")
    assert main(["logs", folder.name, "--rank", "0", "--lines", "3"]) == 0
    assert capsys.readouterr().out == "line 98\nline 99\nbell ?\n"
    assert main(["logs", folder.name, "--rank", "0", "--lines", "1", "--follow"]) == 0  # it is not running, so it ends
    assert capsys.readouterr().out == "bell ?\n"
    for flags, said in (
        (["--rank", "7"], "has no log of rank 7; it has those of ranks 0"),
        (["--lines", "0"], "--lines 0"),
    ):
        assert main(["logs", folder.name, *flags]) == 2
        assert said in capsys.readouterr().err


def test_a_log_that_is_followed_has_whole_lines(
    trained: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also lines that are written in parts, or with an end of two characters."""
    log = trained / "runs" / "spirals" / "logs" / "rank0.log"
    log.parent.mkdir(exist_ok=True)
    log.write_bytes(b"first\nhalf a")
    parts = [b" line\n", "\u00e9".encode()[:1], "\u00e9".encode()[1:] + b"\r", b"\n10%\r20%\r", b"end"]

    def in_use(folder: RunFolder) -> bool:
        with log.open("ab") as file:
            file.write(parts.pop(0) if parts else b"")
        return bool(parts)

    monkeypatch.setattr(RunFolder, "in_use", in_use)
    monkeypatch.setattr("ranks.cli.on_runs.logs.POLL_S", 0.0)
    assert main(["logs", "spirals", "--follow"]) == 0
    assert capsys.readouterr().out.splitlines() == ["first", "half a line", "\u00e9", "10%", "20%", "end"]


def test_a_run_that_another_host_or_process_holds_is_not_signalled(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = next(path for path in (trained / "runs").iterdir() if (path / "run.json").exists())
    file = folder.parent / f".{folder.name}.lock"
    descriptor = lock(file, "a test")
    try:
        file.write_text("process 77 on elsewhere since 2026-01-01 00:00:00")
        assert main(["stop", folder.name]) == 2
        assert "ssh elsewhere kill -TERM 77" in capsys.readouterr().err
        file.write_text(f"process 9999999 on {os.uname().nodename} since 2026-01-01 00:00:00")
        assert main(["stop", folder.name]) == 2
        assert "is gone or in another container" in capsys.readouterr().err
        with subprocess.Popen(["sleep", "60"]) as other:  # as with a reused id, or with that of another container
            file.write_text(f"process {other.pid} on {os.uname().nodename} since 2026-01-01 00:00:00")
            assert main(["stop", folder.name]) == 2
            assert other.poll() is None
            other.kill()
            assert other.wait() == -signal.SIGKILL
        assert "is gone or in another container" in capsys.readouterr().err
        file.write_text("no name")
        assert main(["stop", folder.name]) == 2
        assert "does not say which process" in capsys.readouterr().err
    finally:
        os.close(descriptor)


def test_bad_names(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for argv in (["stop", "nothing"], ["logs", "nothing"], ["compare", "nothing", "nobody"]):
        assert main(argv) == 2
        assert "no run nothing" in capsys.readouterr().err
    assert main(["compare", "one"]) == 2
    assert "1 runs are nothing to compare" in capsys.readouterr().err


def test_a_run_on_another_machine_is_watched_over_ssh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text('#!/bin/sh\necho "$@"\ncase "$2" in gone) exit 255;; bare) exec no-such-command;; esac\n')
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert main(["watch", "box:my run"]) == 0
    assert capfd.readouterr().out == "-t box ranks watch 'my run' --runs-dir runs --ssh-host box\n"
    assert main(["watch", "box:", "--price", "2.5"]) == 0
    assert capfd.readouterr().out == "-t box ranks watch --runs-dir runs --price 2.5 --ssh-host box\n"
    assert main(["watch", "gone:run"]) == 2
    assert "ssh gone failed" in capfd.readouterr().err
    assert main(["watch", "bare:run"]) == 2
    message = capfd.readouterr().err
    assert "found: ssh finds no command ranks on bare" in message
    assert "until this works: ssh bare ranks runs" in message
    assert main(["watch", "-oProxyCommand=x:run"]) == 2


def test_watch_without_a_name_takes_the_newest_run(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(trained / "runs" / "spirals", trained / "runs" / "older")
    for number, name in enumerate(("metrics.jsonl", "sessions.jsonl")):
        os.utime(trained / "runs" / "older" / name, (1e9 + number, 1e9 + number))
    assert main(["watch"]) == 0
    assert capsys.readouterr().out.startswith("runs/spirals: the newest run in runs/\nplan\n")
    descriptor = RunFolder(trained / "runs" / "older").lock()
    try:
        assert newest_run(trained / "runs", "ranks watch") == trained / "runs" / "older", "it is running"
    finally:
        os.close(descriptor)
    assert main(["watch", "--runs-dir", "empty"]) == 2
    assert "found: there are no runs in empty/" in capsys.readouterr().err


def test_the_tensorboard_of_a_run_on_another_machine(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`ranks watch box:spirals` runs this command on the box."""
    folder = trained / "runs" / "spirals" / "tensorboard"
    command = f"tensorboard --logdir {folder} --host 127.0.0.1 --port 6006"
    proposed = f"TensorBoard, from your machine: ssh -t -L 6006:127.0.0.1:6006 box '{command}', then open http://127.0.0.1:6006/\n"
    assert main(["watch", "spirals", "--ssh-host", "box"]) == 0
    assert proposed in capsys.readouterr().out
    shutil.rmtree(folder)
    assert main(["watch", "spirals", "--ssh-host", "box"]) == 0
    assert "TensorBoard" not in capsys.readouterr().out
