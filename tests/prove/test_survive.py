"""`ranks prove survive` on a toy, and on a twin whose luck no checkpoint holds."""

from __future__ import annotations

import pytest

from .conftest import TOYS, TWINS, Outcome

SMALL = ("--quick", "--iterations", "1200", "--runs", "1")
KILLS_AND_STOPS = ("survive", str(TOYS / "images.py"), *SMALL, "--kills", "2", "--sigterms", "5")


@pytest.mark.proof(*KILLS_AND_STOPS)
def test_kills_lose_nothing(outcome: Outcome) -> None:
    assert outcome.code == 0, outcome.printed
    assert len(outcome.file["raw"]["kills"][0]["kills"]) == 2
    assert outcome.file["raw"]["listening"].keys() <= {"127.0.0.1"}


@pytest.mark.proof(*KILLS_AND_STOPS)
def test_stops_lose_nothing(outcome: Outcome) -> None:
    assert outcome.code == 0, outcome.printed
    assert len(outcome.file["raw"]["stops"]) == 5


@pytest.mark.proof("survive", str(TWINS / "unkeyed_noise.py"), *SMALL, "--kills", "1", "--sigterms", "0")
def test_a_twin_with_unkeyed_noise_is_seen(outcome: Outcome) -> None:
    assert outcome.code == 1, outcome.printed
    assert "runs with the straight run's end" in outcome.failed
