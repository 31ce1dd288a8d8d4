"""benchmarks/selfplay/against_peers.py: the window that it generates is one that the package reads."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

from ranks.chess.core.rules import CHESS
from ranks.selfplay.replay.part import Part, read

PEERS = Path(__file__).parents[2] / "benchmarks" / "selfplay" / "peers"


def test_generated_games_fill_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PEERS))
    window_cost = importlib.import_module("window_cost")
    try:
        parts = [Part.of(window_cost.generated(iteration, 200)) for iteration in range(3)]
    finally:
        for name in ("window_cost", "pace"):
            sys.modules.pop(name, None)
    assert [len(part) for part in parts] == [200, 200, 200]
    batch = read(parts, np.array([599, 0, 200]), CHESS)
    assert (
        batch.state_BW.view(np.uint64) == [parts[2].state_PW[199], parts[0].state_PW[0], parts[1].state_PW[0]]
    ).all()
