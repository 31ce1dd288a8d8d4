"""Proofs are run as a person runs them: through the command line, in a folder of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

TOYS = Path(__file__).parent.parent / "toys"
TWINS = Path(__file__).parent / "twins"


@dataclass(frozen=True)
class Outcome:
    """How a proof ended, what it printed, what its file says."""

    code: int
    printed: str
    file: dict[str, Any]

    @property
    def failed(self) -> list[str]:
        return [check["name"] for check in self.file["checks"] if not check["ok"]]


@pytest.fixture
def prove(tmp_path: Path) -> Callable[..., Outcome]:
    """`prove("same-run", path, "--quick", ...)`."""

    def run(*arguments: object) -> Outcome:
        argv = [sys.executable, "-m", "ranks", "prove", *map(str, arguments), "--out", str(tmp_path / "results")]
        env = {**os.environ, "TMPDIR": str(tmp_path)}
        done = subprocess.run(argv, capture_output=True, text=True, env=env, timeout=600)
        files = list((tmp_path / "results").glob("*.json"))
        assert len(files) == 1, done.stdout + done.stderr
        return Outcome(done.returncode, done.stdout + done.stderr, json.loads(files[0].read_text()))

    return run
