"""`ranks prove same-run` on the toys, and on twins of them that are broken on purpose."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import TOYS, TWINS, Outcome

Prove = Callable[..., Outcome]


@pytest.mark.parametrize("level", ["L2", "L3"])
def test_supervised_holds(prove: Prove, level: str) -> None:
    outcome = prove("same-run", TOYS / "images.py", "--quick", "--level", level)
    assert outcome.code == 0, outcome.printed
    assert outcome.file["verdict"] == "PASS"
    assert outcome.file["raw"][level]


@pytest.mark.parametrize("level", ["L1", "L3"])
@pytest.mark.parametrize("toy", ["cartpole", "tictactoe"])
def test_experience_holds(prove: Prove, toy: str, level: str) -> None:
    outcome = prove("same-run", TOYS / f"{toy}.py", "--quick", "--level", level)
    assert outcome.code == 0, outcome.printed


@pytest.mark.parametrize(
    ("twin", "level", "seen"),
    [
        ("dropped_items", "L3", "L3 3 ranks, shares 4,3,1"),
        ("dropped_items", "L2", "L2 update 0, 3 ranks, shares 4,3,1"),
        ("luck_of_ranks", "L1", "L1 experience, 3 ranks, shares 4,3,1"),
    ],
)
def test_a_broken_twin_is_seen(prove: Prove, twin: str, level: str, seen: str) -> None:
    outcome = prove("same-run", TWINS / f"{twin}.py", "--quick", "--level", level)
    assert outcome.code == 1, outcome.printed
    assert seen in outcome.failed
    assert outcome.file["verdict"] == "FAIL"
