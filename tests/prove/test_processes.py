"""All processes of a command are found, their listening addresses seen, and killed."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from ranks.prove import processes
from ranks.prove.processes import ListenSampler, ProcessTree, ProofError
from ranks.prove.report import percentile, table_lines

LISTENER = "import socket, time; s = socket.create_server(('{}', 0)); print('ready', flush=True); time.sleep(60)"


def listen(address: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses beyond loopback that a sampler sees of a marked process that listens on `address`."""
    monkeypatch.setenv(processes.MARK, f"{os.getpid()}-test")
    process = subprocess.Popen([sys.executable, "-c", LISTENER.format(address)], stdout=subprocess.PIPE)
    monkeypatch.delenv(processes.MARK)
    try:
        assert process.stdout is not None
        assert process.stdout.readline()
        watch = ListenSampler()
        watch.sample()
        assert watch.addresses
        return watch.beyond_loopback
    finally:
        process.kill()
        process.communicate()


def test_a_listener_beyond_loopback_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert listen("0.0.0.0", monkeypatch) == ["0.0.0.0"]


def test_a_listener_on_loopback_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assert listen("127.0.0.1", monkeypatch) == []


def test_a_listener_of_another_program_is_ignored() -> None:
    with socket.create_server(("127.0.0.1", 0)):
        watch = ListenSampler()
        watch.sample()
        assert not watch.addresses


def test_kill_ends_processes_that_left_the_process_group(tmp_path: Path) -> None:
    script = tmp_path / "spawn.py"
    script.write_text(
        "import subprocess, sys, time\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], start_new_session=True)\n"
        "time.sleep(60)\n"
    )
    tree = ProcessTree(["launch", "--ranks", "2", str(script)], tmp_path / "log", tmp_path)
    assert tree.until(lambda: len(tree.members()) >= 6, 60), tree.tail()
    assert len(tree.ranks()) == 2, "the processes that ranks start have their variables, and are none"
    tree.kill()
    assert tree.members() == []
    assert tree.code == 137


def test_a_process_without_its_mark_is_found_in_the_session(tmp_path: Path) -> None:
    # a killed process has lost its environment variables while it still closes its files
    script = tmp_path / "unmarked.py"
    script.write_text("import os, sys\nos.execve('/bin/sleep', ['sleep', '60'], {})\n")
    tree = ProcessTree(["launch", "--ranks", "1", "--gpus", "none", str(script)], tmp_path / "log", tmp_path)
    assert tree.until(lambda: [*map(name_of, tree.members())].count("sleep") == 1, 60), tree.tail()
    tree.kill()
    assert tree.members() == []


def name_of(pid: int) -> str:
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).name()
    return ""


def test_a_command_that_hangs_is_ended(tmp_path: Path) -> None:
    script = tmp_path / "hang.py"
    script.write_text("import time; time.sleep(60)")
    tree = ProcessTree(["launch", "--ranks", "1", str(script)], tmp_path / "log", tmp_path)
    with pytest.raises(ProofError, match="nothing happened"):
        tree.wait(1.0)
    assert tree.members() == []


def test_a_frozen_process_stands_still_until_it_continues(tmp_path: Path) -> None:
    script = tmp_path / "count.py"
    script.write_text(
        "import pathlib, itertools\n"
        f"for n in itertools.count():\n    pathlib.Path({str(tmp_path / 'n')!r}).write_text(str(n))\n"
    )
    tree = ProcessTree(["launch", "--ranks", "1", "--gpus", "none", str(script)], tmp_path / "log", tmp_path)
    assert tree.until((tmp_path / "n").exists, 60), tree.tail()
    rank = tree.first_rank()
    assert tree.ranks() == [rank]
    assert tree.freeze(rank)
    frozen = (tmp_path / "n").read_text()
    assert tree.until(lambda: psutil.Process(rank).status() == psutil.STATUS_STOPPED, 60)
    assert (tmp_path / "n").read_text() == frozen
    tree.send(signal.SIGCONT, [rank])
    assert tree.until(lambda: (tmp_path / "n").read_text() not in ("", frozen), 60)
    tree.kill()
    assert not tree.freeze(rank)


def test_percentile_is_a_value_that_was_measured() -> None:
    assert percentile([4.0, 1.0, 3.0, 2.0], 0.5) == 2.0
    assert percentile([4.0, 1.0, 3.0, 2.0], 0.95) == 4.0
    assert percentile([7.0], 0.5) == 7.0


def test_columns_of_a_table_are_aligned() -> None:
    assert table_lines(("a", "bb"), [(10, 2), (3, "x")]) == ["a   bb", "10  2", "3   x"]


def test_an_interrupted_proof_leaves_nothing_running(tmp_path: Path) -> None:
    toy = Path(__file__).parent.parent / "toys" / "images.py"
    argv = [sys.executable, "-m", "ranks", "prove", "same-run", str(toy), "--out", str(tmp_path)]
    proof = subprocess.Popen(argv, env={**os.environ, "TMPDIR": str(tmp_path)}, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not processes.marked_processes(f"{proof.pid}-") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert processes.marked_processes(f"{proof.pid}-")
    proof.terminate()
    assert proof.wait(60) == 143
    assert processes.marked_processes(f"{proof.pid}-") == []
    assert list(tmp_path.glob("proof-*")) == []
