"""The template of `ranks new --shape self-play`: with and without search, its snapshots, and its score's interval."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranks.cli import templates
from ranks.engine.files.jsonl import read_rows
from ranks.selfplay.snapshots import weights_of
from tests.damage.cases import in_this_process

TEMPLATE = Path(templates.__file__).parent / "self_play.py"
TINY = ("--slots", "8", "--games-per-iteration", "8", "--global-batch", "16", "--width", "4", "--layers", "1")
NO_SEARCH = ("--selfplay.search", "none")


def train(folder: Path, *flags: str) -> tuple[int, str, str]:
    """`ranks train` in this process: exit code, output, errors."""
    place = ["--name", "run", "--runs-dir", str(folder), "--ranks", "1", "--threads", "1", "--hang-timeout", "none"]
    return in_this_process(["train", str(TEMPLATE), *place, *TINY, *flags])


@pytest.mark.parametrize("flags", [(), ("--replay.on-policy",), ("--replay.reuse", "1")], ids=" ".join)
def test_without_search_other_games_than_those_of_the_newest_weights_are_refused(
    flags: tuple[str, ...], tmp_path: Path
) -> None:
    code, _, err = train(tmp_path, *NO_SEARCH, *flags)
    assert code == 2
    assert "asked: --selfplay.search none" in err
    assert "give --replay.on-policy --replay.reuse 1" in err
    assert not (tmp_path / "run").exists()


def test_without_search_it_learns_by_reinforce_keeps_weights_and_gives_the_score_an_interval(tmp_path: Path) -> None:
    on_policy = ("--replay.on-policy", "--replay.reuse", "1")
    short = ("--iterations", "2", "--eval-every", "2", "--eval-games", "6", "--snapshot-every", "1")
    code, _, err = train(tmp_path, *NO_SEARCH, *on_policy, *short)
    assert code == 0, err
    last = read_rows(tmp_path / "run" / "metrics.jsonl")[-1]
    assert "train/entropy" in last
    assert 0 <= last["val/score_low"] <= last["val/score"] <= last["val/score_high"] <= 1
    assert last["val/score_low"] < last["val/score_high"]
    for iteration in (1, 2):
        assert "policy.weight" in weights_of(tmp_path / "run", iteration, "x")
