"""A forked command sees what an executed one sees, and ends as one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.forked import FORKED_CODE, Popen
from tests.forked.command import ranks_command

RANKS = [sys.executable, "-m", "ranks"]
EXECUTING = Popen.__bases__[0]
PROBE = """
import faulthandler, gc, json, os, re, signal, sys, threading
from dataclasses import dataclass
from pathlib import Path

import torch

@dataclass(frozen=True)
class Config:
    iterations: int = 1

def build(cfg):
    return torch.nn.Linear(1, 1)

def evaluate(model, cfg, world):
    return {}

def train(cfg, world):
    links = [os.readlink(path) for path in Path("/proc/self/fd").iterdir() if path.exists()]
    links = [link for link in links if "pytest" not in link and "socket:" not in link]  # ranks are still connecting
    own = {"TEST_MARK", "RANK", "WORLD_SIZE", "PYTHONUNBUFFERED", "PYTHONFAULTHANDLER", "OMP_NUM_THREADS"}
    shown = Path("/proc/self/environ").read_text().split(chr(0))
    seen = {
        "argv": sys.argv[1:],
        "orig_argv": sys.orig_argv,
        "path": sys.path,
        "variables": sorted(os.environ),
        "own": {name: os.environ[name] for name in own & set(os.environ)},
        "mark in /proc": "TEST_MARK=mine" in shown,
        "folder": os.getcwd(),
        "cores": sorted(os.sched_getaffinity(0)),
        "leads its group": os.getpgid(0) == os.getpid(),
        "leads its session": os.getsid(0) == os.getpid(),
        "descriptors": sorted(re.sub("ranks-[A-Za-z0-9_]+|[0-9]+", "N", link) for link in links),
        "handlers": {str(n): getattr(signal.getsignal(n), "__name__", str(signal.getsignal(n)))
                     for n in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGHUP, signal.SIGXFSZ)},
        "blocked": sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, []))),
        "streams": [(s.fileno(), s.encoding, s.errors, s.line_buffering, s.write_through)
                    for s in (sys.stdin, sys.stdout, sys.stderr)],
        "faulthandler": faulthandler.is_enabled(),
        "threads": [torch.get_num_threads(), threading.current_thread() is threading.main_thread()],
        "random": torch.rand(3).tolist(),
        "gc": gc.isenabled(),
        "standard input": sys.stdin.read(),
    }
    if world.rank == 0:
        Path("seen.json").write_text(json.dumps(seen))
    world.comm.barrier()  # a rank that leaves while another one still connects would break its connection
    print("seen")
"""


def seen_by(start: Any, folder: Path, *flags: str) -> dict[str, Any]:
    """What the probe sees in a process that `start`, a class like subprocess.Popen, has made."""
    argv = [*RANKS, "train", "./probe.py", "--gpus", "none", "--threads", "1", *flags]
    env = {**os.environ, "TEST_MARK": "mine"}
    pipe = subprocess.PIPE
    with start(argv, cwd=folder, env=env, stdin=pipe, stdout=pipe, stderr=pipe, text=True, process_group=0) as process:
        out, err = process.communicate("typed", timeout=120)
    assert process.returncode == 0, err
    assert "seen" in out
    return json.loads((folder / "seen.json").read_text())


@pytest.mark.skipif(sys.platform != "linux", reason="commands are forked on Linux only")
@pytest.mark.parametrize(
    "flags", [("--ranks", "1", "--hang-timeout", "none"), ("--ranks", "2")], ids=["alone", "ranks"]
)
def test_a_forked_command_and_its_ranks_see_what_executed_ones_see(tmp_path: Path, flags: tuple[str, ...]) -> None:
    (tmp_path / "probe.py").write_text(PROBE)
    forked, executed = (seen_by(start, tmp_path, *flags) for start in (Popen, EXECUTING))
    assert forked == executed
    assert forked["mark in /proc"]
    assert forked["standard input"] == ("" if "2" in flags else "typed"), "several ranks have no standard input"


@pytest.mark.skipif(sys.platform != "linux", reason="commands are forked on Linux only")
def test_a_forked_command_is_a_child_that_ends_as_an_executed_one(tmp_path: Path) -> None:
    with Popen([*RANKS, "--version"], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert psutil.Process(process.pid).ppid() == os.getpid()
        assert process.communicate(timeout=60)[0].startswith("ranks ")
    assert process.returncode == 0
    with Popen([*RANKS, "trian"], stderr=subprocess.PIPE, text=True) as process:
        assert "did you mean train?" in process.communicate(timeout=60)[1]
    assert process.returncode == 2
    (tmp_path / "broken.py").write_text("raise ValueError('of the workload')")
    with Popen([*RANKS, "train", "./broken.py"], cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        said = process.communicate(timeout=60)[1]
    assert process.returncode == 2
    assert "of the workload" in said


@pytest.mark.skipif(sys.platform != "linux", reason="commands are forked on Linux only")
def test_a_killed_command_takes_its_ranks_with_it(tmp_path: Path) -> None:
    wait = "    Path(f'began{world.rank}').touch()\n    while True: signal.pause()\n"
    (tmp_path / "probe.py").write_text(PROBE.replace("    links =", f"{wait}    links ="))
    argv = [*RANKS, "train", "./probe.py", "--gpus", "none", "--ranks", "2"]
    with Popen(argv, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while not all((tmp_path / f"began{rank}").exists() for rank in (0, 1)):
            assert process.poll() is None
            time.sleep(0.02)
        family = psutil.Process(process.pid).children(recursive=True)
        assert len(family) >= 3, "the launcher's server and two ranks"
        process.kill()
    assert process.returncode == -9
    _, alive = psutil.wait_procs(family, timeout=60)
    assert alive == []


def test_only_a_module_of_ranks_with_the_variables_of_the_server_is_forked() -> None:
    env = dict(os.environ)
    found = ranks_command([sys.executable, "-P", "-m", "ranks", "train", "-m"], env)
    assert found is not None
    assert (found.module, found.arguments, found.imports_from_cwd) == ("ranks", ["train", "-m"], False)
    assert ranks_command([*RANKS], {**env, "PYTHONUNBUFFERED": "1"}) is not None
    assert ranks_command([*FORKED_CODE, "0"], env) is not None
    for argv in ("ranks", ["ranks"], [sys.executable, "-c", "0"], [sys.executable, "-m", "pdb"], ["sh", *RANKS]):
        assert ranks_command(argv, env) is None
    assert ranks_command(RANKS, {**env, "OMP_NUM_THREADS": "7"}) is None
    assert ranks_command(RANKS, {**env, "PYTHONPATH": "/elsewhere"}) is None


@pytest.mark.skipif(sys.platform != "linux", reason="commands are forked on Linux only")
def test_a_thread_of_a_forked_command_starts_commands(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "import ranks.sigterm\n"
        "def start(module):\n"
        "    return subprocess.run([sys.executable, '-m', module, '--version'], capture_output=True, text=True)\n"
        "with ThreadPoolExecutor(1) as pool:\n"
        "    ended = [start('ranks'), start('ranks.sigterm'), pool.submit(start, 'ranks').result()]\n"
        "print([(done.returncode, done.stdout[:5], done.stderr) for done in ended])\n"
    )
    with Popen([*FORKED_CODE, code], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        said = process.communicate(timeout=60)[0]
    assert said == "[(0, 'ranks', ''), (0, '', ''), (0, 'ranks', '')]\n"


@pytest.mark.skipif(sys.platform != "linux", reason="commands are forked on Linux only")
def test_a_command_that_cannot_start_fails_at_once_and_the_next_one_starts(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="ended before it had its folder"):
        Popen([*RANKS, "--version"], cwd=tmp_path / "missing")
    with Popen([*RANKS, "--version"], stdout=subprocess.PIPE, text=True) as process:
        assert process.communicate(timeout=60)[0].startswith("ranks ")
