"""Environments in subprocesses: signals, exits, hangs, crashes, and the spawn start method."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
import torch

from ranks import UserError
from ranks.cli.main import main
from tests.cli.conftest import ranks
from tests.forked import FORKED_CODE
from tests.rl.fixtures import single_rank

pytest.importorskip("gymnasium")
from ranks.rl.gymnasium.env_pools import SubprocessEnvs
from ranks.rl.gymnasium.environments import from_gymnasium
from ranks.rl.gymnasium.replayed_vec_env import ReplayedVecEnv
from tests.rl.environments.gymnasium_envs import CPU, Game

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
TINY = [
    *(
        "--gpus",
        "none",
        "--n-envs",
        "4",
        "--n-steps",
        "12",
        "--hidden",
        "8",
        "--eval-every",
        "1000000",
        "--eval-episodes",
        "1",
    ),
    *("--ppo.epochs", "1", "--ppo.minibatches", "2", "--workers"),
]
TIMEOUT_S = 120


def pool_of(environment: ReplayedVecEnv) -> SubprocessEnvs:
    assert isinstance(environment.pool, SubprocessEnvs)
    return environment.pool


def test_workers_ignore_signals_and_exit_when_closed() -> None:
    """Ctrl-C and Slurm signal all processes; the rank must still be able to step its
    environments."""
    with single_rank() as world:
        world.session.attached = True
        environment = from_gymnasium(Game, 0, CPU, workers=True)(range(2))
        processes = pool_of(environment).processes
        for signum in (signal.SIGTERM, signal.SIGINT):
            for process in processes:
                assert process.pid is not None
                os.kill(process.pid, signum)
            environment.step(torch.zeros(2))
        assert world.stop.received == 0
        environment.close()
        assert [process.exitcode for process in processes] == [0, 0]
        environment.close()


def test_a_worker_that_dies_is_reported_with_its_environment() -> None:
    environment = from_gymnasium(Game, 0, CPU, workers=True)(range(5, 7))
    pool_of(environment).processes[1].kill()
    with pytest.raises(UserError, match=r"environment 6\nfound: its process \d+ ended by signal 9"):
        environment.step(torch.zeros(2))
    environment.close()


ORPHANS = """
import ctypes, multiprocessing, os, sys, time
import torch
from tests.rl.environments.gymnasium_envs import Game
from ranks.rl.gymnasium.environments import from_gymnasium

class Hangs(Game):
    def step(self, action):
        os.write(1, b"hangs\\n")  # in one piece, unlike print
        HANG

BEFORE
environment = from_gymnasium(Hangs, 0, torch.device("cpu"), workers=True)(range(2))
os.write(1, b"began\\n")
END
"""


IDLE, HANGS_NOW = "os._exit(1)", "environment.step(torch.zeros(2))"


@pytest.mark.parametrize(
    ("before", "end"),
    [
        ("", IDLE),
        ("", HANGS_NOW),
        ("sys.platform = 'elsewhere'", HANGS_NOW),
        ("multiprocessing.set_start_method('forkserver')", HANGS_NOW),
        ("# with the GIL held", HANGS_NOW),
    ],
    ids=["idle", "here", "elsewhere", "forkserver", "in C"],
)
def test_workers_end_when_their_rank_is_killed(before: str, end: str) -> None:
    """Standard output closes when the last process that holds it ends, so this test waits for the
    workers."""
    hang = "ctypes.PyDLL(None).sleep(10**6)" if before.startswith("#") else "time.sleep(10**6)"
    code = ORPHANS.replace("BEFORE", before).replace("END", end).replace("HANG", hang)
    with subprocess.Popen([*FORKED_CODE, code], stdout=subprocess.PIPE, text=True) as rank:
        assert rank.stdout is not None
        lines = [rank.stdout.readline() for _ in range(3 if "step" in end else 1)]
        rank.kill()
        rank.communicate(timeout=TIMEOUT_S)
    assert lines == ["began\n", "hangs\n", "hangs\n"][: len(lines)]


# Whole runs -----------------------------------------------------------------------------------------------------------

HANGS = """
class Hangs(gymnasium.Wrapper):
    def step(self, action):
        if os.path.exists("hang"):
            open("hangs", "a").close()
            time.sleep(10**6)
        return self.env.step(action)


def make("""


def workload(name: str, wrapper: str, imports: str, top: str = "") -> Path:
    """Write the template with the code `top` before `make`, whose environments get the wrapper
    `wrapper`."""
    assert main(["new", name, "--shape", "on-policy"]) == 0
    path = Path(f"{name}.py")
    text = path.read_text().replace("import gymnasium\n", f"{imports}\nimport gymnasium\n", 1)
    text = text.replace("def make(", top, 1) if top else text
    path.write_text(text.replace("return make_env(cfg.env)", f"return {wrapper}(make_env(cfg.env))"))
    return path


def test_a_run_with_a_hanging_environment_stops_and_saves_the_start_of_the_iteration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = workload("hanging", "Hangs", "import os\nimport time\n", HANGS)
    command = [sys.executable, "-m", "ranks", "train", f"./{path}", *TINY, "--ranks", "1", "--iterations", "1000000"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as run:
        try:
            metrics = tmp_path / "runs" / "hanging" / "metrics.jsonl"
            wait_until(lambda: metrics.exists() and metrics.stat().st_size > 0)
            (tmp_path / "hang").touch()
            wait_until((tmp_path / "hangs").exists)
            workers = psutil.Process(run.pid).children(recursive=True)
            assert len(workers) >= 4
            run.send_signal(signal.SIGTERM)
            _, said = run.communicate(timeout=TIMEOUT_S)
        finally:
            run.kill()
    assert run.returncode == 128 + signal.SIGTERM, said
    assert "Traceback" not in said
    assert not [worker for worker in workers if worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE]
    saved = [int(path.name) for path in (tmp_path / "runs" / "hanging" / "checkpoints").glob("[0-9]*")]
    assert max(saved) == len(metrics.read_text().splitlines()) > 0


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(TIMEOUT_S * 20):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("the condition never became true")


def test_spawned_workers_load_the_users_file_and_its_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Spawned workers have no copy of the rank's modules (everywhere but on Linux before Python
    3.14)."""
    monkeypatch.chdir(tmp_path)
    Path("helper.py").write_text("import gymnasium\n\n\nclass Wrapper(gymnasium.Wrapper):\n    pass\n")
    choice = 'import multiprocessing\nmultiprocessing.set_start_method("spawn", force=True)\nfrom helper import Wrapper'
    path = workload("spawning", "Wrapper", choice)
    two = ["2" if value == "4" else value for value in TINY]  # environments; each spawned worker imports torch
    for name, argv in (("spawned", two), ("in-process", two[:-1])):
        done = ranks("train", f"./{path}", *argv, "--ranks", "1", "--iterations", "1", "--name", name, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    capsys.readouterr()
    assert main(["fingerprint", "spawned"]) == main(["fingerprint", "in-process"]) == 0
    assert len(set(capsys.readouterr().out.split())) == 1
