"""`ranks prove survive` on a toy, and on one whose random numbers no checkpoint holds.

No result depends on the speed of the machine. For a kill inside a save, the proof watches the checkpoint folder. When
the temporary folder of a save appears, it freezes the process that saves (SIGSTOP) and looks again: if the folder is
still there, the kill falls inside the save for certain. If not, the process continues and the next save is awaited. If
a run ends before a save was hit, a further run gets the kill, at most four. Times are goals, which fail nothing.
"""

from __future__ import annotations

import pytest

from .conftest import BROKEN, TOYS, Outcome

SMALL = ("--quick", "--iterations", "300", "--runs", "1")
HANGS = ("--hangs", "2", "--hung-sigterms", "1", "--train=--stop-grace 2s")
KILLS_AND_STOPS = ("survive", str(TOYS / "images.py"), *SMALL, "--kills", "2", "--sigterms", "5", *HANGS)
NO_STOPS = ("--kills", "1", "--sigterms", "0", "--hangs", "0", "--hung-sigterms", "0")


@pytest.mark.proof(*KILLS_AND_STOPS)
def test_kills_lose_nothing(outcome: Outcome) -> None:
    assert outcome.code == 0, outcome.printed
    kills = [kill for run in outcome.file["raw"]["kills"] for kill in run["kills"]]
    assert len(kills) >= 2
    assert any(kill["inside_save"] for kill in kills)
    assert outcome.file["raw"]["listening"].keys() <= {"127.0.0.1"}


@pytest.mark.proof(*KILLS_AND_STOPS)
def test_stops_lose_nothing(outcome: Outcome) -> None:
    assert outcome.code == 0, outcome.printed
    assert len(outcome.file["raw"]["stops"]) == 5


@pytest.mark.proof(*KILLS_AND_STOPS)
def test_hangs_lose_nothing(outcome: Outcome) -> None:
    assert outcome.code == 0, outcome.printed
    assert [hang["problem"] for hang in outcome.file["raw"]["hangs"]] == ["", ""]
    assert [stop["code"] for stop in outcome.file["raw"]["hung_stops"]] == [143]


@pytest.mark.proof("survive", str(BROKEN / "unkeyed_noise.py"), *SMALL, *NO_STOPS)
def test_noise_that_no_checkpoint_holds_fails(outcome: Outcome) -> None:
    assert outcome.code == 1, outcome.printed
    assert "runs with the baseline run's end" in outcome.failed
