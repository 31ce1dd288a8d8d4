"""`ranks prove survive` on a toy, and on a twin whose luck no checkpoint holds."""

from __future__ import annotations

from collections.abc import Callable

from .conftest import TOYS, TWINS, Outcome

Prove = Callable[..., Outcome]
SMALL = ("--quick", "--iterations", "1200")


def test_kills_lose_nothing(prove: Prove) -> None:
    outcome = prove("survive", TOYS / "images.py", *SMALL, "--runs", "1", "--kills", "2", "--sigterms", "0")
    assert outcome.code == 0, outcome.printed
    assert len(outcome.file["raw"]["kills"][0]["kills"]) == 2
    assert outcome.file["raw"]["listening"].keys() <= {"127.0.0.1"}


def test_stops_lose_nothing(prove: Prove) -> None:
    outcome = prove("survive", TOYS / "images.py", *SMALL, "--runs", "0", "--sigterms", "5")
    assert outcome.code == 0, outcome.printed
    assert len(outcome.file["raw"]["stops"]) == 5


def test_a_twin_with_unkeyed_noise_is_seen(prove: Prove) -> None:
    outcome = prove("survive", TWINS / "unkeyed_noise.py", *SMALL, "--runs", "1", "--kills", "1", "--sigterms", "0")
    assert outcome.code == 1, outcome.printed
    assert "runs with the straight run's end" in outcome.failed
