"""What a run says of its cost at the end, and the command that follows it, whatever the end was."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType

import pytest

from ranks.cli.after_run import Cost, at_the_end, cost_lines
from ranks.cli.main import main
from ranks.engine.config import RunConfig
from ranks.errors import GaveUp, Stopped
from ranks.hardware.catalogue.gpus import by_name
from ranks.hardware.catalogue.prices import known_prices
from ranks.hardware.this_machine import ThisMachine, provider_of

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


NO_PRICE = Cost(None, None, None)


def test_what_was_spent_and_what_is_spent_by_the_hour() -> None:
    here = ThisMachine("", ())
    assert cost_lines(Cost(1.8, None, None), 7200.0, here) == [
        "cost: 3.60 since the start of this command; 1.80 an hour until you end the machine"
    ]
    assert "cost: 3.60 of --max-cost 3.50 since" in cost_lines(Cost(1.8, 3.5, None), 7200.0, here)[0]


def test_without_a_price_the_gpus_of_the_catalogue_say_about_what_the_machine_costs() -> None:
    usd = [price.usd_per_gpu_hour or 0.0 for price in known_prices() if price.gpu == by_name("h100")]
    (line,) = cost_lines(NO_PRICE, 1800.0, ThisMachine("", ("NVIDIA H100 80GB HBM3",) * 8))
    hour, spent = (f"{8 * share * min(usd):,.2f} to {8 * share * max(usd):,.2f}" for share in (1.0, 0.5))
    assert line.startswith(
        f"cost: if this machine is rented, it costs about {hour} USD an hour until you end it, {spent}"
    )
    assert re.search(r"estimated from prices of 2\d{3}-[-0-9]+ to 2\d{3}-[-0-9]+ for 8 x H100 SXM; --price gives", line)
    (line,) = cost_lines(NO_PRICE, 1800.0, ThisMachine("RunPod", ("NVIDIA L4",)))
    assert line.startswith("cost: this machine of RunPod costs about 0.80 USD an hour until you end it, 0.40 since")


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        (ThisMachine("RunPod", ()), "this machine of RunPod costs money until you end it; its price is unknown"),
        (ThisMachine("AWS", ("NVIDIA A10G",)), "the price of 1 x NVIDIA A10G is unknown (--price gives it)"),
        (ThisMachine("", ("NVIDIA L4", "NVIDIA A40")), "if this machine is rented, it costs money until you end it"),
        (ThisMachine("", ("Tesla T4",)), "the price of 1 x Tesla T4 is unknown"),
    ],
)
def test_an_unknown_price_is_called_unknown(machine: ThisMachine, said: str) -> None:
    (line,) = cost_lines(NO_PRICE, 10.0, machine)
    assert said in line
    assert "USD" not in line


def test_a_machine_without_gpus_of_no_provider_says_nothing() -> None:
    assert cost_lines(NO_PRICE, 10.0, ThisMachine("", ())) == []


def test_a_rented_machine_is_known_by_its_variables_or_its_firmware(tmp_path: Path) -> None:
    assert provider_of({"RUNPOD_POD_ID": "x"}, tmp_path) == "RunPod"
    assert provider_of({"RUNPOD_POD_ID": ""}, tmp_path) == ""
    (tmp_path / "sys_vendor").write_text("QEMU\n")
    assert provider_of({}, tmp_path) == ""
    (tmp_path / "sys_vendor").write_text("Amazon EC2\n")
    assert provider_of({}, tmp_path) == "AWS"
    (tmp_path / "sys_vendor").write_text("Microsoft Corporation\n")  # also a Hyper-V of one's own
    assert provider_of({}, tmp_path) == ""
    (tmp_path / "chassis_asset_tag").write_text("7783-7084-3265-9085-8269-3286-77\n")
    assert provider_of({}, tmp_path) == "Azure"


DRIVER = """
class NVMLError(Exception): pass
def nvmlInit(): pass
def nvmlShutdown(): pass
def nvmlDeviceGetCount(): return 2
def nvmlDeviceGetHandleByIndex(i): return i
def nvmlDeviceGetName(handle): return "NVIDIA H200"
"""


@pytest.mark.parametrize("error", [None, RuntimeError("a fault")])
def test_every_end_says_what_the_machine_costs(
    error: Exception | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a machine with two GPUs whose driver answers."""
    pynvml = ModuleType("pynvml")
    exec(DRIVER, vars(pynvml))
    monkeypatch.setitem(sys.modules, "pynvml", pynvml)
    with (
        nullcontext() if error is None else pytest.raises(RuntimeError),
        at_the_end(NO_PRICE, tmp_path / "run") as codes,
    ):
        codes.append(0)
        if error is not None:
            raise error
    assert "USD an hour until you end it" in capsys.readouterr().err


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
