"""Proofs are run as a person runs them: through the command line, in folders of their own, two at a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

TOYS = Path(__file__).parent.parent / "toys"
TWINS = Path(__file__).parent / "twins"
Arguments = tuple[str, ...]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "proof(*arguments): the test looks at the outcome of `ranks prove ARGUMENTS`")


@dataclass(frozen=True)
class Outcome:
    """How a proof ended, what it printed, what its file says."""

    code: int
    printed: str
    file: dict[str, Any]

    @property
    def failed(self) -> list[str]:
        return [check["name"] for check in self.file["checks"] if not check["ok"]]


def prove(arguments: Arguments, folder: Path) -> Outcome:
    """`ranks prove ARGUMENTS`, with its files and its result in `folder`."""
    argv = [sys.executable, "-m", "ranks", "prove", *arguments, "--out", str(folder / "results")]
    env = {**os.environ, "TMPDIR": str(folder)}
    done = subprocess.run(argv, capture_output=True, text=True, env=env, timeout=600)
    files = list((folder / "results").glob("*.json"))
    assert len(files) == 1, done.stdout + done.stderr
    return Outcome(done.returncode, done.stdout + done.stderr, json.loads(files[0].read_text()))


@pytest.fixture(scope="session")
def outcomes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[Arguments, Future[Outcome]]]:
    """Each proof that a chosen test looks at is run once. Half of a proof is waiting, so two share the cores."""
    marks = [mark for item in request.session.items for mark in item.iter_markers("proof")]
    pool = ThreadPoolExecutor(2)
    yield {a: pool.submit(prove, a, tmp_path_factory.mktemp("proof")) for a in dict.fromkeys(m.args for m in marks)}
    pool.shutdown(cancel_futures=True)


@pytest.fixture
def outcome(request: pytest.FixtureRequest, outcomes: Mapping[Arguments, Future[Outcome]]) -> Outcome:
    """What came of the proof that the test's mark names."""
    mark = request.node.get_closest_marker("proof")
    return outcomes[mark.args].result()
