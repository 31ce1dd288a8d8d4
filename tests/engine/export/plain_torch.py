"""Exported files, used where neither ranks nor safetensors can be imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
class NoRanks:
    def find_spec(self, name, path=None, target=None):
        assert name.split(".")[0] not in ("ranks", "safetensors", "gymnasium"), f"{name} must not be needed"
sys.meta_path.insert(0, NoRanks())
sys.path.insert(0, sys.argv[1])
import torch, model
net = model.load(sys.argv[1])
print(float(eval(sys.argv[2])))
"""


def value_of(expression: str, folder: Path) -> float:
    """What an expression of `net` and `torch` comes to, with the net that is exported in a
    folder."""
    argv = [sys.executable, "-c", PROGRAM, str(folder), expression]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return float(done.stdout)
