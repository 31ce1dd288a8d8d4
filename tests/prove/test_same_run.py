"""`ranks prove same-run` on two toys, and on toys that are broken on purpose.

The other proofs are commands (tests/README.md), L2 of the toy images too, and results of the long ones are committed
in `results/`. That self-play has the same bits on any number of ranks is also tested by
tests/cli/user_files/test_own_workload.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .conftest import BROKEN, TOYS, Outcome


def quick(file: Path, level: str, *values: str, proved: str = "all") -> Any:
    """The values of a test that looks at one level of a quick proof of the levels `proved`."""
    mark = pytest.mark.proof("same-run", str(file), "--quick", "--level", proved)
    return pytest.param(level, *values, marks=mark, id=f"{file.stem}-{level}")


@pytest.mark.parametrize(
    "level",
    [
        quick(TOYS / "images.py", "L3", proved="L3"),
        quick(TOYS / "tictactoe.py", "L1", proved="L1"),
    ],
)
def test_the_same_run_in_every_layout(outcome: Outcome, level: str) -> None:
    assert outcome.code == 0, outcome.printed
    assert outcome.file["verdict"] == "PASS"
    assert outcome.file["raw"][level]
    assert any(check["name"].startswith(level) for check in outcome.file["checks"])


@pytest.mark.parametrize(
    ("level", "seen"),
    [
        quick(BROKEN / "dropped_items.py", "L3", "L3 3 ranks, shares 4,3,1"),
        quick(BROKEN / "dropped_items.py", "L2", "L2 update 0, 3 ranks, shares 4,3,1"),
        quick(BROKEN / "games_by_rank.py", "L1", "L1 rollout, 3 ranks, shares 4,3,1", proved="L1"),
    ],
)
def test_a_broken_workload_fails(outcome: Outcome, level: str, seen: str) -> None:
    assert outcome.code == 1, outcome.printed
    assert seen in outcome.failed
    assert outcome.file["verdict"] == "FAIL"
    assert outcome.file["raw"][level]
