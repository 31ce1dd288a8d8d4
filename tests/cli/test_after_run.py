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


def test_a_run_ends_after_its_hours_and_says_so(trained: Path) -> None:
    done = train(trained, "--iterations", "1000000", "--name", "short", "--max-hours", "0.0005", "--then", THEN)
    assert done.returncode == 0, done.stderr
    assert "ended at its limit of time or cost; the same command resumes from there" in done.stdout
    assert (trained / "ended").read_text().startswith("0 ")
    assert list((trained / "runs" / "short" / "checkpoints").iterdir())


def test_the_command_runs_after_an_exception_too(trained: Path) -> None:
    path = trained / "spirals.py"
    path.write_text(path.read_text().replace("    return Net(cfg.hidden)", "    return Net(1 // (cfg.hidden - 64))"))
    done = train(trained, "--name", "new", "--then", f"{THEN}; exit 3", "--price", "2.5")
    assert done.returncode == 1
    assert (trained / "ended").read_text().startswith("1 ")
    assert "--then ended with exit code 3: the machine may still cost money" in done.stderr
    assert "2.50 an hour until you end the machine" in done.stderr


TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "1", "-m", "ranks"]


def test_under_torchrun_the_cost_is_said(trained: Path) -> None:
    argv = [*TORCHRUN, "train", "./spirals.py", "--gpus", "none", "--name", "torchrun", "--price", "2.5"]
    done = subprocess.run(argv, cwd=trained, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "2.50 an hour until you end the machine" in done.stderr


@pytest.mark.parametrize(
    ("flags", "do"),
    [
        (["--then", THEN], "run the command after that of torchrun"),
        (["--export", "onnx"], "afterwards: ranks export new --format onnx"),
    ],
)
def test_under_torchrun_nothing_follows_the_run(
    flags: list[str], do: str, trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """torchrun may start the ranks again, after --then has ended the machine."""
    place = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29577"}
    for name, value in (place | {"TORCHELASTIC_RUN_ID": "job"}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(trained)
    assert main(["train", "./spirals.py", "--gpus", "none", "--name", "new", *flags]) == 2
    message = capsys.readouterr().err
    assert "torchrun has started the ranks" in message
    assert do in message
    assert not (trained / "runs" / "new").exists()


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
    assert Cost(2.0, 0.5, None, max_hours=0.1).limited(RunConfig()).max_time == "360.000s"
    assert Cost(2.0, 0.5, None, max_hours=1).limited(RunConfig(max_time="1h")).max_time == "900.000s"
    assert Cost(None, None, None, max_hours=2).limited(RunConfig(max_time="1h")).max_time == "1h"


def test_a_rented_machine_is_known_by_its_variables() -> None:
    unknown = Cost(None, None, None)
    assert cost_lines(unknown, 10.0, {}) == []
    assert "RunPod" in cost_lines(unknown, 10.0, {"RUNPOD_POD_ID": "x"})[0]
    assert cost_lines(Cost(1.8, None, None), 7200.0, {}) == [
        "cost: 3.60 since the start of this command; 1.80 an hour until you end the machine"
    ]
    assert "cost: 3.60 of --max-cost 3.50 since" in cost_lines(Cost(1.8, 3.5, None), 7200.0, {})[0]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--max-cost", "5"], "--price is missing"),
        (["--price", "-1"], "a number above 0"),
        (["--price", "nan"], "a number above 0"),
        (["--max-hours", "0"], "give --max-hours"),
        (["--then", " "], "the command is empty"),
    ],
)
def test_bad_flags(flags: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "graph-coloring", *flags]) == 2
    assert said in capsys.readouterr().err
