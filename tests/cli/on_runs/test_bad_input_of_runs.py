"""Bad input where a run exists: its folder, its files, its settings."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from ranks.cli.main import main
from ranks.engine.runs.folder import RunFolder
from tests.cli.conftest import HERE
from tests.cli.test_bad_input import Refused

WITH_A_RUN: dict[str, tuple[list[str], str]] = {
    "nearest run": (["evaluate", "spirls"], "did you mean spirals?"),
    "checkpoint of no iteration": (["evaluate", "spirals", "--checkpoint", "7"], "it holds"),
    "an unknown format": (["export", "spirals", "--format", "onx"], "there is no format 'onx'"),
    "onnx without an example": (["export", "spirals", "--format", "onnx"], "has no example_inputs"),
    "onnx after a training, without an example": (
        ["train", "./spirals.py", "--name", "new", *HERE, "--gpus", "none", "--export", "onnx"],
        "./spirals.py has no example_inputs",
    ),
    "an unknown format of a training": (["train", "./spirals.py", "--export", "onx"], "there is no format 'onx'"),
    "checkpoint by a word": (["export", "spirals", "--checkpoint", "newest"], "latest"),
    "new over an old file": (["new", "spirals"], "there already"),
    "another identity": (
        ["train", "./spirals.py", "--ranks", "1", *HERE, "--gpus", "none", "--hidden", "8"],
        "was 64, now 8",
    ),
    "own file without its ending": (["train", "spirals"], "did you mean ./spirals.py?"),
    "more iterations": (
        ["train", "./spirals.py", "--ranks", "1", *HERE, "--gpus", "none", "--iterations", "30"],
        "to train longer under this name, add --optim.schedule-updates 20: the learning rate is 0 after it",
    ),
    "another seed": (
        ["train", "./spirals.py", "--ranks", "1", *HERE, "--gpus", "none", "--seed", "8"],
        "seed was 0, now 8",
    ),
    "another identity on two ranks": (
        ["train", "./spirals.py", "--ranks", "2", "--gpus", "none", "--seed", "8", "--hidden", "8"],
        "it is another run\n",
    ),
}


@pytest.mark.parametrize("case", WITH_A_RUN)
def test_refused_where_a_run_exists(case: str, refused: Refused, trained: Path) -> None:
    argv, answer = WITH_A_RUN[case]
    """The run stays as it is: its checkpoints, and the sessions that `ranks runs` reads its state from."""
    sessions = trained / "runs" / "spirals" / "sessions.jsonl"
    before = newest_checkpoint(trained).stat().st_mtime_ns, sessions.read_text()
    assert answer in refused(argv)
    assert (newest_checkpoint(trained).stat().st_mtime_ns, sessions.read_text()) == before


OF_A_RUN = ("report", "watch", "evaluate", "export", "fingerprint", "logs", "stop", "compare")


@pytest.mark.parametrize("command", OF_A_RUN)
def test_a_folder_that_is_no_run(command: str, refused: Refused, trained: Path) -> None:
    """A half-deleted run, and any other folder."""
    (trained / "runs" / "emptied").mkdir()
    (trained / "photos").mkdir()
    more = ["spirals"] if command == "compare" else []
    assert "runs/emptied is no run folder: it has no run.json" in refused([command, "emptied", *more])
    assert "photos is no run folder" in refused([command, "./photos", *more])


@pytest.mark.parametrize("num_ranks", ["1", "2"])
def test_a_run_in_use_is_refused(num_ranks: str, refused: Refused, trained: Path) -> None:
    descriptor = RunFolder(Path("runs/spirals")).lock()
    try:
        message = refused(["train", "./spirals.py", "--ranks", num_ranks, "--gpus", "none"])
    finally:
        os.close(descriptor)
    assert f"process {os.getpid()}" in message


def test_a_damaged_checkpoint_is_named_and_an_older_one_is_used(
    refused: Refused, trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    newest = newest_checkpoint(trained)
    weights = newest / "learner.safetensors"
    content = bytearray(weights.read_bytes())
    content[-5] ^= 1
    weights.write_bytes(content)
    assert "learner.safetensors" in refused(["fingerprint", str(newest)])
    assert "learner.safetensors" in refused(["evaluate", "spirals", "--checkpoint", newest.name])
    assert main(["evaluate", "spirals", "--gpus", "none"]) == 0
    shown = capsys.readouterr()
    assert "iteration 10" in shown.out
    assert "learner.safetensors" in shown.err


def test_a_newer_checkpoint_format_is_refused_in_one_line(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from ranks.engine.runs.checkpoints.manifest import FORMAT, sealed

    path = newest_checkpoint(trained) / "manifest.json"
    path.write_bytes(sealed(json.loads(path.read_text()) | {"format": FORMAT + 1}))
    assert main(["fingerprint", str(newest_checkpoint(trained))]) == 2
    message = capsys.readouterr().err
    assert message.endswith("; update ranks\n")
    assert message.count("\n") == 1


def test_a_run_of_another_version_is_refused(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = trained / "runs" / "spirals" / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 99}))
    for command in OF_A_RUN:
        more = ["spirals"] if command == "compare" else []
        assert main([command, "spirals", *more]) == 2, command
        message = capsys.readouterr().err
        assert "its format is 99" in message
        assert message.endswith("; update ranks\n")


def test_a_saved_setting_of_the_wrong_type_is_named(refused: Refused, trained: Path) -> None:
    path = trained / "runs" / "spirals" / "run_config.json"
    settings = json.loads(path.read_text())
    settings["config"]["hidden"] = "wide"
    path.write_text(json.dumps(settings))
    assert "config.hidden" in refused(["evaluate", "spirals"])


def test_a_saved_setting_that_was_changed_is_noticed(refused: Refused, trained: Path) -> None:
    """A wrong value in run_config.json would give wrong results of evaluate."""
    path = trained / "runs" / "spirals" / "run_config.json"
    settings = json.loads(path.read_text())
    settings["config"]["hidden"] += 1
    path.write_text(json.dumps(settings))
    for command in ("evaluate", "export"):
        message = refused([command, "spirals"])
        assert "run.json and run_config.json disagree: config.hidden was 64, now 65" in message
    settings["config"]["hidden"] -= 1
    settings["config"]["iterations"] += 1  # may change between sessions
    path.write_text(json.dumps(settings))
    assert main(["evaluate", "spirals", "--gpus", "none"]) == 0


def test_names_in_run_json_that_leave_the_folder_are_not_read(
    trained: Path, refused: Refused, capsys: pytest.CaptureFixture[str]
) -> None:
    """The sha256 of /dev/zero would never be computed."""
    path = trained / "runs" / "spirals" / "run.json"
    run = json.loads(path.read_text())
    for name in ("/dev/zero", "../../../../../../../../../../dev/zero"):
        run["code"]["files"] = {name: "0" * 64}
        path.write_text(json.dumps(run))
        assert main(["evaluate", "spirals", "--gpus", "none"]) == 0
    run["code"] = [3]
    path.write_text(json.dumps(run))
    assert main(["evaluate", "spirals", "--gpus", "none"]) == 0
    del run["code"]
    path.write_text(json.dumps(run | {"identity": 3}))
    capsys.readouterr()
    assert "it has no valid identity" in refused(["evaluate", "spirals"])
    path.write_text(json.dumps(run | {"format": "x"}))
    assert "its format is 'x'" in refused(["evaluate", "spirals"])


def test_a_full_disk_is_one_error_in_every_command(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(argv: list[str]) -> int:
        raise OSError(errno.ENOSPC, "No space left on device", "results/x.json")

    monkeypatch.setattr("ranks.cli.main.dispatch", write)
    assert "found: No space left on device: results/x.json" in refused(["prove", "table"])


def test_flags_of_a_workload_must_not_shadow_those_of_every_run(refused: Refused, trained: Path) -> None:
    path = trained / "spirals.py"
    path.write_text(path.read_text().replace("hidden: int = 64", "hidden: int = 64\n    seed: int = 3"))
    assert "seed" in refused(["train", "./spirals.py", "--print-config"])


def newest_checkpoint(folder: Path) -> Path:
    return max((folder / "runs" / "spirals" / "checkpoints").glob("[0-9]*"))
