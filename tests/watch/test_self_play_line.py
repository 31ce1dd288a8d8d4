"""Golden text: the line of an iteration of self-play."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from ranks.watch.console import ConsoleView
from ranks.watch.self_play_line import self_play_line

ROW: dict[str, Any] = {
    **{"iteration": 12, "train/loss": 3.25, "rollout/games": 1600.0, "rollout/mean_length": 81.26},
    **{"rollout/first_player_won": 0.4, "rollout/second_player_won": 0.25, "rollout/drawn": 0.35},
    **{"rollout/drawn/stalemate": 0.05, "rollout/drawn/threefold_repetition": 0.2, "rollout/drawn/fifty_moves": 0.0},
    **{"rollout/resigned": 0.0, "rollout/truncated": 0.1},
    **{"selfplay/plies_per_second": 1234.5, "selfplay/simulations_per_second": 39400.0},
    **{"selfplay/evaluations_per_second": 40100.0, "selfplay/target_entropy": 2.1054, "selfplay/policy_kl": 0.3141},
    **{"selfplay/net_share": 0.7, "selfplay/trees_share": 0.12, "selfplay/planes_share": 0.08},
    **{
        "selfplay/records_share": 0.04,
        "selfplay/waiting_device_share": 0.03,
        "selfplay/waiting_ranks_share": 0.02,
        "selfplay/gather_share": 0.01,
    },
}
LINE = (
    "iteration 12: 1,600 games of 81.3 plies; first 40%, second 25%, "
    "drawn 35% (stalemate 5%, threefold repetition 20%, most plies 10%); "
    "1,234 plies/s, 39,400 simulations/s, 40,100 evaluations/s; target entropy 2.11, policy KL 0.314; "
    "net 70%, trees 12%, planes 8%, records 4%, waiting device 3%, waiting ranks 2%, gather 1%"
)


def test_one_line_has_games_results_speeds_targets_and_times() -> None:
    assert self_play_line(ROW) == LINE
    assert self_play_line({**ROW, "rollout/resigned": 0.2}) == LINE.replace("10%); ", "10%), resigned 20%; ")


def test_what_is_missing_or_odd_is_left_out() -> None:
    few = {"iteration": 1, "rollout/games": 4.0, "selfplay/plies_per_second": 9.0, "rollout/mean_length": "long"}
    assert self_play_line(few) == "iteration 1: 4 games; 9 plies/s"
    assert self_play_line({"iteration": 1, "train/loss": 1.0}) is None
    assert self_play_line({"iteration": 1, "rollout/games": 4.0}) is None


def test_the_console_prints_it_for_each_iteration(tmp_path: Path) -> None:
    stream = io.StringIO()
    with ConsoleView(tmp_path, stream=stream, terminal=False):
        rows = [{**ROW, "iteration": iteration} for iteration in (12, 13)]
        (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = stream.getvalue().splitlines()
    assert lines[:2] == [LINE, LINE.replace("iteration 12", "iteration 13")]
