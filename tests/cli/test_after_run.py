"""What a run says of its cost at the end, and the command that follows it, whatever the end was."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ranks.cli.after_run import Cost, at_the_end, cost_lines
from ranks.cli.main import main
from ranks.engine.config import RunConfig
from ranks.errors import GaveUp, Stopped

THEN = 'echo "$RANKS_EXIT_CODE $RANKS_RUN_DIR" > ended'


def train(folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "ranks", "train", "./spirals.py", "--gpus", "none", "--ranks", "1", *flags]
    environ = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(argv, cwd=folder, env=environ, capture_output=True, text=True, timeout=300)


def test_a_run_ends_at_its_cost_saves_exports_and_runs_the_command(trained: Path) -> None:
    with (trained / "spirals.py").open("a") as file:
        file.write("\n\ndef example_inputs(model):\n    return (torch.zeros(2, 2),)\n")
    flags = ["--iterations", "1000000", "--name", "paid", "--price", "3600", "--max-cost", "3", "--then", THEN]
    done = train(trained, *flags, "--export", "onnx,safetensors")
    assert done.returncode == 0, done.stderr
    assert "3,600.00 an hour until you end the machine" in done.stderr
    assert (trained / "ended").read_text() == f"0 {trained / 'runs' / 'paid'}\n"
    assert list((trained / "runs" / "paid" / "checkpoints").iterdir())
    assert (trained / "runs" / "paid" / "export" / "model.onnx").stat().st_size > 0


def test_the_command_runs_after_an_exception_too(trained: Path) -> None:
    path = trained / "spirals.py"
    path.write_text(path.read_text().replace("    return Net(cfg.hidden)", "    return Net(1 // (cfg.hidden - 64))"))
    done = train(trained, "--name", "new", "--then", f"{THEN}; exit 3", "--price", "2.5")
    assert done.returncode == 1
    assert (trained / "ended").read_text().startswith("1 ")
    assert "--then ended with exit code 3: the machine may still cost money" in done.stderr
    assert "2.50 an hour until you end the machine" in done.stderr


@pytest.mark.parametrize(
    ("error", "expected"),
    [(Stopped(15), "143"), (GaveUp("no progress"), "3"), (RuntimeError("a fault"), "1"), (KeyboardInterrupt(), None)],
)
def test_every_end_but_a_person_s_ctrl_c(
    error: BaseException, expected: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(type(error)), at_the_end(Cost(None, None, THEN), tmp_path / "run"):
        raise error
    ended = tmp_path / "ended"
    assert (ended.read_text().split()[0] if ended.exists() else None) == expected


@pytest.mark.parametrize(("code", "exported"), [(0, True), (1, False)])
def test_an_export_follows_a_good_end_and_its_failure_is_the_exit_code(
    code: int, exported: bool, tmp_path: Path
) -> None:
    write_and_fail = [sys.executable, "-c", f"open({str(tmp_path / 'exported')!r}, 'w'); raise SystemExit(2)"]
    with at_the_end(Cost(None, None, None), tmp_path / "run", write_and_fail) as codes:
        codes.append(code)
    assert (tmp_path / "exported").exists() == exported
    assert codes[-1] == (2 if exported else code)


def test_the_time_that_the_money_lasts() -> None:
    cost = Cost(price=2.0, max_cost=0.5, then=None)
    assert cost.limited(RunConfig()).max_time == "900.000s"
    assert cost.limited(RunConfig(max_time="10m")).max_time == "10m"
    assert cost.limited(RunConfig(max_time="1h")).max_time == "900.000s"
    assert Cost(2.0, None, None).limited(RunConfig()).max_time is None


def test_a_rented_machine_is_known_by_its_variables() -> None:
    assert cost_lines(None, 10.0, {}) == []
    assert "RunPod" in cost_lines(None, 10.0, {"RUNPOD_POD_ID": "x"})[0]
    assert cost_lines(1.8, 7200.0, {}) == [
        "cost: 3.60 since the start of this command; 1.80 an hour until you end the machine"
    ]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--max-cost", "5"], "--price is missing"),
        (["--price", "-1"], "a number above 0"),
        (["--price", "nan"], "a number above 0"),
        (["--then", " "], "the command is empty"),
    ],
)
def test_bad_flags(flags: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "graph-coloring", *flags]) == 2
    assert said in capsys.readouterr().err
