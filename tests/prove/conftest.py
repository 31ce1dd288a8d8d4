"""Proofs are run as a user runs them: through the command line, in folders of their own, several at a time."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

TOYS = Path(__file__).parent.parent / "toys"
BROKEN = Path(__file__).parent / "broken_workloads"
Arguments = tuple[str, ...]
LIMIT_S = 1800
"""A proof that takes longer hangs."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "proof(*arguments): the test looks at the outcome of `ranks prove ARGUMENTS`")


@dataclass(frozen=True)
class Outcome:
    """The end of a proof: exit code, output, content of its file."""

    code: int
    printed: str
    file: dict[str, Any]

    @property
    def failed(self) -> list[str]:
        return [check["name"] for check in self.file["checks"] if not check["ok"]]


def prove(arguments: Arguments, folder: Path) -> Outcome:
    """Run `ranks prove ARGUMENTS`, with its temporary files and its result in `folder`."""
    argv = [sys.executable, "-m", "ranks", "prove", *arguments, "--out", str(folder / "results")]
    env = {**os.environ, "TMPDIR": str(folder)}
    done = subprocess.run(argv, capture_output=True, text=True, env=env, timeout=LIMIT_S)
    files = list((folder / "results").glob("*.json"))
    assert len(files) == 1, done.stdout + done.stderr
    return Outcome(done.returncode, done.stdout + done.stderr, json.loads(files[0].read_text()))


def prove_once(arguments: Arguments, shared: Path, cancelled: threading.Event) -> Outcome:
    """Run a proof, or read its outcome where another test, also one of another xdist worker, has run it."""
    folder = shared / f"proof-{hashlib.sha256(' '.join(arguments).encode()).hexdigest()[:16]}"
    folder.mkdir(exist_ok=True)
    kept = folder / "outcome.json"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if kept.exists():
            return Outcome(**json.loads(kept.read_text()))
        if cancelled.is_set():
            raise RuntimeError("cancelled")
        outcome = prove(arguments, folder)
        kept.write_text(json.dumps(asdict(outcome)))
        return outcome


@pytest.fixture(scope="session")
def outcomes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[Arguments, Future[Outcome]]]:
    """The proofs that the chosen tests look at, each run once.

    Without xdist two run at a time, because half of a proof is waiting. A worker of xdist has every test of the session
    in its list but runs only some, so each of its proofs starts when a test asks for it.
    """
    in_worker = "PYTEST_XDIST_WORKER" in os.environ
    shared = tmp_path_factory.getbasetemp().parent if in_worker else tmp_path_factory.getbasetemp()
    marks = [mark for item in request.session.items for mark in item.iter_markers("proof")]
    cancelled = threading.Event()
    with ThreadPoolExecutor(2) as pool:
        yield (
            LazyProofs(pool, shared, cancelled)
            if in_worker
            else {
                arguments: pool.submit(prove_once, arguments, shared, cancelled)
                for arguments in dict.fromkeys(mark.args for mark in marks)
            }
        )
        cancelled.set()


class LazyProofs(dict[Arguments, "Future[Outcome]"]):
    """Starts a proof when its outcome is first looked up."""

    def __init__(self, pool: ThreadPoolExecutor, shared: Path, cancelled: threading.Event) -> None:
        super().__init__()
        self.pool, self.shared, self.cancelled = pool, shared, cancelled

    def __missing__(self, arguments: Arguments) -> Future[Outcome]:
        self[arguments] = self.pool.submit(prove_once, arguments, self.shared, self.cancelled)
        return self[arguments]


@pytest.fixture
def outcome(request: pytest.FixtureRequest, outcomes: Mapping[Arguments, Future[Outcome]]) -> Outcome:
    """The outcome of the proof that the test's mark names."""
    mark = request.node.get_closest_marker("proof")
    return outcomes[mark.args].result()
