"""`ranks runs` on folders that the test writes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ranks.cli.main import main
from ranks.engine.runs.folder import RunFolder


def make_run(folder: Path, rows: list[dict[str, Any]], sessions: list[str], ragged: str = "") -> None:
    folder.mkdir(parents=True)
    (folder / "run_config.json").write_text(json.dumps({"workload": "./mine.py", "engine": {}, "config": {}}))
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + ragged)
    (folder / "sessions.jsonl").write_text("".join(json.dumps({"event": event}) + "\n" for event in sessions))


def listed(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, Any]]:
    assert main(["runs", "--json"]) == 0
    return {line["name"]: line for line in json.loads(capsys.readouterr().out)}


def test_iterations_losses_and_state_of_each_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{"iteration": 1, "train/loss": 2.0, "val/loss": 3.0}, {"iteration": 2, "train/loss": 1.5}]
    make_run(Path("runs/whole"), rows, ["opened", "finished"])
    make_run(Path("runs/broken"), rows[:1], ["opened", "resumed"], ragged='{"iteration": 2, "tra')
    make_run(Path("runs/fresh"), [], ["opened"])
    make_run(Path("runs/.whole.tmp-1"), rows, ["opened"])
    lines = listed(capsys)
    assert set(lines) == {"whole", "broken", "fresh"}
    whole = lines["whole"]
    assert (whole["iterations"], whole["train_loss"], whole["val_loss"]) == (2, 1.5, 3.0)
    assert (whole["state"], whole["workload"]) == ("finished", "mine")
    assert whole["size_bytes"] == sum(path.stat().st_size for path in Path("runs/whole").iterdir())
    assert (lines["broken"]["state"], lines["broken"]["iterations"]) == ("killed", 1)
    assert (lines["fresh"]["iterations"], lines["fresh"]["train_loss"]) == (0, None)


def test_a_locked_run_is_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    make_run(Path("runs/held"), [], ["opened"])
    descriptor = RunFolder(Path("runs/held")).lock()
    assert listed(capsys)["held"]["state"] == "running"
    os.close(descriptor)
    assert listed(capsys)["held"]["state"] == "killed"


def test_goal_reward_ranks_and_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{"iteration": 1, "train/loss": 2.0, "rollout/episode_reward": 9.5}, {"iteration": 2, "train/loss": 1.5}]
    make_run(Path("runs/agent"), rows, ["opened"])
    Path("runs/agent/run_config.json").write_text(
        json.dumps({"workload": "./mine.py", "engine": {"exact": True}, "config": {"iterations": 40}})
    )
    Path("runs/agent/sessions.jsonl").write_text('{"event": "opened", "ranks": 2}\n{"event": "finished"}\n')
    agent = listed(capsys)["agent"]
    assert (agent["goal"], agent["metric"], agent["value"]) == (40, "rollout/episode_reward", 9.5)
    assert (agent["ranks"], agent["mode"], agent["state"]) == (2, "exact", "finished")
    Path("runs/agent/events.jsonl").write_text('{"event": "plan", "iterations": 60}\n{"event": "saved"}\n')
    assert listed(capsys)["agent"]["goal"] == 60, "the plan of the last session counts"
    assert main(["runs"]) == 0
    assert "2 of 60  rollout/episode_reward" in capsys.readouterr().out


def test_the_table_has_one_line_for_each_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["runs"]) == 0
    assert "no runs" in capsys.readouterr().out
    make_run(Path("runs/one"), [{"iteration": 1235, "train/loss": 0.123456}], ["opened", "stopped"])
    make_run(Path("runs/a-longer-name"), [], ["opened"])
    assert main(["runs"]) == 0
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split()[:2] == ["run", "workload"]
    assert first.startswith("a-longer-name  mine")
    assert second.split()[:8] == ["one", "mine", "1,235", "train/loss", "0.1235", "-", "fast", "stopped"]


DAMAGED: dict[str, str | None] = {
    "missing": None,
    "torn": '{"workload": "./mine',
    "an array": "[1, 2]",
    "too deep": '{"config":' * 100_000,
    "parts of another kind": '{"workload": 3, "engine": [], "config": "x"}',
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_run_is_listed_with_the_others(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    make_run(Path("runs/good"), [{"iteration": 3, "train/loss": 2.0}], ["opened", "finished"])
    odd = [{"iteration": "x", "train/loss": "low"}, {"iteration": 4, "train/loss": 10**400}]
    make_run(Path("runs/bad"), odd, ["opened"], ragged='{"a": NaN}\n[1]\n')
    Path("runs/bad/run.json").write_text("{}")
    Path("runs/bad/run_config.json").unlink()
    text = DAMAGED[case]
    if text is not None:
        Path("runs/bad/run_config.json").write_text(text)
    lines = listed(capsys)
    assert set(lines) == {"good", "bad"}
    assert (lines["good"]["iterations"], lines["good"]["state"]) == (3, "finished")
    named = case != "parts of another kind"
    assert lines["bad"]["state"].startswith("damaged (runs/bad/run_config.json: " if named else "killed")
    assert (lines["bad"]["iterations"], lines["bad"]["train_loss"]) == (4, None)
    assert main(["runs"]) == 0


def test_control_characters_of_a_run_do_not_reach_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    make_run(Path("runs/a\x1b[31mred"), [], ["\x1b]0;title\x07"])
    assert main(["runs"]) == 0
    assert "\x1b" not in capsys.readouterr().out
