"""How long the nets of benchmarks/chess_spiking/strength.py had trained."""

from __future__ import annotations

from benchmarks.chess_spiking.strength import training_until


def test_training_counts_up_to_the_weights_that_play() -> None:
    metrics = [{"iteration": n, "rollout/games": 200.0, "time_s": 360.0 * n} for n in range(1, 5)]
    sessions = [{"event": "opened", "ranks": 2}, {"event": "stopped"}, {"ranks": 1}, {"ranks": 1}]
    assert training_until(3, metrics, sessions) == {"iterations": 3, "games": 600.0, "hours": 0.3, "ranks": "2, then 1"}
    assert training_until(0, metrics, sessions[:1]) == {"iterations": 0, "games": 0, "hours": 0.0, "ranks": "2"}
