"""The help pages of the chess commands: complete, and without loading Numba or torch."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ranks.chess import COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_a_help_page_loads_no_heavy_package(command: str) -> None:
    code = f"""
import sys
from ranks.cli.main import main
try:
    main(["chess", {command!r}, "--help"])
except SystemExit as end:
    assert not end.code, end.code
assert not {{"numba", "numpy", "torch", "matplotlib"}} & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"usage: ranks chess {command}")
