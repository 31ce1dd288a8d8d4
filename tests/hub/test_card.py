"""The commands of the model card."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from ranks.engine.export.about import ExportAbout
from ranks.hub.card import CardFacts, train_command, use_lines, without_folders
from ranks.workloads import WORKLOADS

EXTRAS = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["optional-dependencies"]


@pytest.mark.parametrize("workload", WORKLOADS)
def test_the_card_installs_what_a_workload_needs(workload: str) -> None:
    assert workload in EXTRAS
    assert use_of(workload)[0] == f"pip install 'ranks[hub,{workload}]'"


def test_the_card_of_a_file_of_one_s_own_installs_the_hub_alone() -> None:
    lines = use_of("mine.py")
    assert lines[0] == "pip install 'ranks[hub]'"
    assert any(line.startswith("ranks train ./mine.py --width 32 --name more --init-from ") for line in lines)


def test_the_training_command_says_what_was_switched_off() -> None:
    defaults = {"engine": {}, "config": {"sources": {"full_weight_elo": 2400.0}, "width": 64, "kind": "nnue"}}
    settings = {"engine": {}, "config": {"sources": {"full_weight_elo": None}, "width": 32, "kind": "nnue"}}
    expected = "ranks train chess-value --sources.full-weight-elo none --width 32"
    assert train_command("chess-value", settings, defaults) == expected


@pytest.mark.parametrize(
    ("setting", "shown"),
    [
        ("/home/alice/games.pgn", "games.pgn"),
        ("~/my games/a.pgn", "a.pgn"),
        ("/data", "data"),
        ("/engines/lc0 --weights=/nets/t1.pb", "lc0 --weights=t1.pb"),
        ("lc0 --weights=/home/alice/t1.pb --backend cpu", "lc0 --weights=t1.pb --backend cpu"),
        ("games/a.pgn", "games/a.pgn"),
        ("https://example.org/a/b", "https://example.org/a/b"),
        ("1/2-1/2", "1/2-1/2"),
        (["/a/b", 3, None], ["b", 3, None]),
    ],
)
def test_folders_of_this_machine_are_cut(setting: object, shown: object) -> None:
    assert without_folders({"x": {"y": setting}}) == {"x": {"y": shown}}


def use_of(workload: str) -> list[str]:
    about = ExportAbout(workload, "demo", 1, 0, {}, {}, {})
    command = train_command(workload, {"engine": {}, "config": {"width": 32}}, {"engine": {}, "config": {"width": 64}})
    return [*use_lines(CardFacts(about, [], {}, {}, command, None, None), "me/net", "models/me/net")]
