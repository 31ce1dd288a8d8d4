"""Ranks that are forked from a process with torch behave like ranks that were executed."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from ranks.launch.processes.orphan_reaper import PR_GET_CHILD_SUBREAPER, subreaper
from ranks.launch.processes.start import split_module_command

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="ranks are forked on Linux only")

LAUNCHER = """
import contextlib, os, sys, time
from ranks.launch.processes.orphan_reaper import subreaper
from ranks.launch.processes.start import Starter

parent = subreaper()
parent.__enter__()
with contextlib.closing(Starter([sys.executable, "-m", "rank_module", "argument"], dict(os.environ), ())) as start:
    ranks = [start({**os.environ, "RANK": str(rank), "LAUNCHER": str(os.getpid())}, 1, 2) for rank in range(2)]
    while None in (codes := [rank.poll() for rank in ranks]):
        time.sleep(0.01)
sys.exit(codes != [7, 8])
"""
RANK = """
import json, os, random, signal, sys
from pathlib import Path
had_torch = "torch" in sys.modules
import numpy
rank = int(os.environ["RANK"])
facts = dict(
    name=Path("/proc/self/comm").read_text().strip(), had_torch=had_torch, argv=sys.argv[1:], main=__name__,
    child=os.getppid() == int(os.environ["LAUNCHER"]), leads_group=os.getpgid(0) == os.getpid(), pid=os.getpid(),
    numpy=numpy.random.random(), python=random.random(), stdin=os.readlink("/proc/self/fd/0"),
)
Path(f"rank{rank}.part").write_text(json.dumps(facts))
os.rename(f"rank{rank}.part", f"rank{rank}.json")
print(f"printed by {rank}\\n", end="", flush=True)  # in one write: the ranks share the pipe
if "WAIT" in os.environ:
    signal.pause()
sys.exit(7 + rank)
"""


def launch(folder: Path, **variables: str) -> subprocess.Popen[str]:
    (folder / "rank_module.py").write_text(RANK)
    env = os.environ | variables
    argv = [sys.executable, "-c", LAUNCHER]
    pipe = subprocess.PIPE
    return subprocess.Popen(argv, cwd=folder, env=env, text=True, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe)


def facts_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(2)]


def test_forked_ranks_have_their_own_identity(tmp_path: Path) -> None:
    launcher = launch(tmp_path)
    out, err = launcher.communicate()
    assert launcher.returncode == 0, err
    assert sorted(out.splitlines()) == ["printed by 0", "printed by 1"]
    first, second = facts_of(tmp_path)
    for rank, facts in enumerate((first, second)):
        assert facts["name"] == f"rank {rank}"
        assert [facts[name] for name in ("had_torch", "child", "leads_group")] == [True] * 3
        assert (facts["argv"], facts["main"], facts["stdin"]) == (["argument"], "__main__", "/dev/null")
    assert first["numpy"] != second["numpy"]
    assert first["python"] != second["python"]


def test_without_a_server_ranks_are_executed(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('broken')")
    launcher = launch(tmp_path)
    _, err = launcher.communicate()
    assert launcher.returncode == 0, err
    assert [facts["had_torch"] for facts in facts_of(tmp_path)] == [False, False]


NO_SECOND_FORK = """
import os
server, fork = os.getpid(), os.fork
def limited():
    if os.getpid() != server:
        raise BlockingIOError(11, "Resource temporarily unavailable")
    return fork()
os.fork = limited
"""
PATIENT = "import ranks.launch.processes.fork_server as fork_server\nfork_server.REPLY_S = 1e5\n"


@pytest.mark.parametrize("forks", ["none", "the first"])
def test_a_server_that_cannot_fork_says_so_at_once(forks: str, tmp_path: Path) -> None:
    """At the limit of processes. Then the ranks are executed; the launcher does not wait for an answer."""
    limit = NO_SECOND_FORK if forks == "the first" else NO_SECOND_FORK.replace("!= server", "")
    (tmp_path / "sitecustomize.py").write_text(limit)
    (tmp_path / "rank_module.py").write_text(RANK)
    argv = [sys.executable, "-c", PATIENT + LAUNCHER]
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, cwd=tmp_path, env=env, text=True, stdout=pipe, stderr=pipe) as launcher:
        try:
            _, err = launcher.communicate(timeout=100)
        finally:
            launcher.kill()
    assert launcher.returncode == 0, err
    assert [facts["had_torch"] for facts in facts_of(tmp_path)] == [False, False]


def test_a_stop_is_answered_before_torch_is_imported(tmp_path: Path) -> None:
    """The first rank cannot be forked yet."""
    (tmp_path / "torch.py").write_text("import time\nopen('importing', 'w').close()\ntime.sleep(600)\n")
    script = (
        "import sys\nfrom pathlib import Path\nfrom ranks.launch.placement import Placement\n"
        "from ranks.launch.run import launch_run\n"
        "argv = [sys.executable, '-m', 'rank_module']\n"
        "sys.exit(launch_run(argv, Placement(('cpu',), threads=1), Path('runs/x')))\n"
    )
    (tmp_path / "runs").mkdir()
    launcher = subprocess.Popen([sys.executable, "-c", script], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "importing").exists():
        assert launcher.poll() is None, launcher.communicate()[1]
        time.sleep(0.01)
    children = psutil.Process(launcher.pid).children(recursive=True)
    launcher.send_signal(signal.SIGINT)
    _, err = launcher.communicate()
    assert launcher.returncode == 130, err
    assert "waiting for it to stop" in err
    _, alive = psutil.wait_procs(children, timeout=60)
    assert alive == []


def test_forked_ranks_die_with_their_launcher(tmp_path: Path) -> None:
    launcher = launch(tmp_path, WAIT="1")
    while not all((tmp_path / f"rank{rank}.json").exists() for rank in range(2)):
        assert launcher.poll() is None, launcher.communicate()[1]
        time.sleep(0.01)
    children = psutil.Process(launcher.pid).children(recursive=True)
    assert {facts["pid"] for facts in facts_of(tmp_path)} < {child.pid for child in children}
    launcher.send_signal(signal.SIGKILL)
    launcher.communicate()
    _, alive = psutil.wait_procs(children, timeout=60)
    assert alive == []


def test_the_server_dies_with_a_launcher_that_is_killed_during_the_import_of_torch(tmp_path: Path) -> None:
    """It holds the lock of the run."""
    (tmp_path / "torch.py").write_text("import time\nopen('importing', 'w').close()\ntime.sleep(600)\n")
    launcher = launch(tmp_path)
    while not (tmp_path / "importing").exists():
        assert launcher.poll() is None, launcher.communicate()[1]
        time.sleep(0.01)
    children = psutil.Process(launcher.pid).children(recursive=True)
    assert children
    launcher.send_signal(signal.SIGKILL)
    launcher.communicate()
    _, alive = psutil.wait_procs(children, timeout=60)
    for process in alive:
        process.kill()
    assert alive == []


FORKED_WITHOUT_LAUNCHER = """
import json, os, socket, sys
from ranks.launch.processes.fork_server import serve
from ranks.launch.processes.orphan_reaper import subreaper

parent = subreaper()
parent.__enter__()  # as an init process of a container that is not process 1
launcher = os.fork()
if not launcher:
    os._exit(0)
os.waitpid(launcher, 0)
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
server = os.fork()
if not server:
    ours.close()
    serve(theirs)
    os._exit(0)
theirs.close()
assert ours.recv(32) == b"ready"
socket.send_fds(ours, [json.dumps({"module": [], "env": {}, "launcher": launcher}).encode()], [1, 2])
rank = int(ours.recv(32))
print(rank, flush=True)
assert os.waitstatus_to_exitcode(os.waitpid(rank, 0)[1]) == 137
ours.close()
os.waitpid(server, 0)
"""


def test_a_launcher_in_a_process_leaves_it_without_orphans_of_others() -> None:
    libc, now, before = ctypes.CDLL(None), ctypes.c_int(-1), ctypes.c_int(-1)
    libc.prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(before))
    with subreaper():
        libc.prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(now))
        assert now.value == 1
    libc.prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(now))
    assert now.value == before.value


def test_a_rank_whose_launcher_is_gone_ends_under_any_subreaper() -> None:
    argv = [sys.executable, "-c", FORKED_WITHOUT_LAUNCHER]
    with subprocess.Popen(argv, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as parent:
        try:
            _, err = parent.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            for process in psutil.Process(parent.pid).children(recursive=True):
                process.kill()
            raise
    assert parent.returncode == 0, err


@pytest.mark.parametrize(
    ("argv", "parts"),
    [
        ("python -P -m ranks train x -m", (["python", "-P"], ["ranks", "train", "x", "-m"])),
        ("python -m ranks", (["python"], ["ranks"])),
        ("python script.py -m ranks", (["python", "script.py", "-m", "ranks"], [])),
        ("python script.py", (["python", "script.py"], [])),
    ],
)
def test_only_a_module_command_is_split(argv: str, parts: tuple[list[str], list[str]]) -> None:
    assert split_module_command(argv.split()) == parts
