"""`ranks forecast` on a real workload, and the forecast of the run that followed."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from ranks.cli.forecasting.measure import ProbedCores, how_it_ended
from ranks.cli.main import main
from tests.toys import images

CURVE = {"num_ranks": 2, "num_bytes": [8, 1024, 1048576], "seconds": [0.001, 0.001, 0.01]}
IMAGES = str(Path(images.__file__))


@pytest.fixture
def link(tmp_path: Path) -> str:
    path = tmp_path / "link.json"
    path.write_text(json.dumps({"device": CURVE, "host": CURVE, "on": "cpu"}))
    return str(path)


@pytest.fixture
def equal_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not measure the cores before and after the recording, which takes eight seconds."""
    monkeypatch.setattr("ranks.cli.forecasting.measure.ProbedCores", lambda _: ProbedCores(0))


SHORT_PROBE = """
import sys
from ranks.hardware.links import cores_probe
cores_probe.PIECE_S, cores_probe.ROUNDS = 0.01, 2
if __name__ == "__main__":
    cores_probe.main(sys.argv[1:])
"""


@pytest.fixture
def shortly_probed_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure the cores with fewer and shorter pieces of work."""
    path = tmp_path / "short_probe.py"
    path.write_text(SHORT_PROBE)
    monkeypatch.setattr("ranks.cli.forecasting.measure.cores_probe", SimpleNamespace(__file__=str(path)))


@pytest.mark.usefixtures("shortly_probed_cores")
def test_a_forecast_and_the_run_after_it(
    link: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    flags = ["--ranks", "1,2", "--link", link, "--profile-seconds", "0.2", "--iterations", "30", "--price", "2"]
    recorded = ["--train=--threads 1", "--save-profile", "p.json"]
    monkeypatch.setattr("os.getloadavg", lambda: (64.0, 0.0, 0.0))
    monkeypatch.setattr("ranks.cli.forecasting.inputs.available_cores", lambda: 16)
    assert main(["forecast", IMAGES, *flags, "--hours", "8", *recorded]) == 0
    text, warnings = capsys.readouterr()
    assert (
        "the load was 64.0 on 16 cores before: with other programs the times of the forecast are too long" in warnings
    )
    for part in (
        "30 iterations",
        "measured: ",
        "2.00 for one GPU an hour",
        "limited by",
        "iterations in 8 h",
        "best: ",
    ):
        assert part in text, part
    assert main(["forecast", IMAGES, "--profile", "p.json", *flags, "--json"]) == 0
    text, warnings = capsys.readouterr()
    assert "the load was" not in warnings, "nothing was measured"
    found = json.loads(text)
    one, two = found["forecasts"]
    assert (one["num_ranks"], two["num_ranks"]) == (1, 2)
    assert one["replayed"]["exposed_s"] == 0
    assert two["replayed"]["exposed_s"] >= 0.0009, "the all-reduce of one bucket, which nothing hides"
    assert two["iteration_s"]["low"] < two["iteration_s"]["middle"] < two["iteration_s"]["high"]
    assert main(["forecast", "--ledger", "--runs-dir", "nowhere"]) == 2
    assert main(["forecast", "--ledger"]) == 0
    assert "no run in runs/ has a forecast" in capsys.readouterr().out
    train = ["train", IMAGES, "--iterations", "30", "--gpus", "none", "--ranks", "1", "--threads", "1"]
    assert main(train) == 0
    capsys.readouterr()
    assert main(["forecast", "--ledger"]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.split()[:2] == ["run", "ranks"]
    assert row.split()[:2] == ["images", "1"]
    assert "%" in row
    assert main(["forecast", "--ledger", "--json"]) == 0
    (compared,) = json.loads(capsys.readouterr().out)
    assert compared["forecast_s"]["low"] < compared["forecast_s"]["middle"] < compared["forecast_s"]["high"]
    assert compared["error"] == pytest.approx(compared["forecast_s"]["middle"] / compared["fact_s"] - 1)
    assert compared["fact_run_s"] > 0
    assert main(["report", "images"]) == 0
    page = (tmp_path / "runs" / "images" / "report" / "report.html").read_text()
    assert "<h2>Forecast and fact, ranks: 1</h2>" in page
    assert "<th>an iteration</th>" in page


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ([], "neither --gpus nor --ranks"),
        (["--gpus", "1", "--ranks", "1"], "give one of them"),
        (["--ranks", "0,2"], "numbers from 1 to 4,096"),
        (["--ranks", "1", "--price", "-2"], "above 0"),
        (["--ranks", "1", "--budget", "20"], "no price is known"),
        (["--ranks", "1", "--watts", "700"], "one of them is missing"),
        (["--ranks", "1", "--deadline", "soon"], "--deadline"),
        (["--ranks", "1", "--profile", "nowhere.json"], "nowhere.json"),
        (["--ranks", "1", "--on", "h100"], "says nothing of a GPU"),
        (["--ranks", "1", "--on", "rtx4091"], "did you mean RTX 4090"),
        (["--gpus", "1", "--prices", "nowhere.csv"], "nowhere.csv"),
        (["--ranks", "1", "--prices", "nowhere.csv"], "prices are of GPUs"),
        (["--gpus", "1", "--price", "3", "--watts", "700", "--kwh", "0.3"], "each of them says what the hour costs"),
        (["--ranks", "1", "--link", "1.2.3gbit"], "that is no rate"),
        (["--ranks", "1", "--train=--no-such-flag 3"], "no-such-flag"),
        (["--ranks", "1", "--train=--name 'a"], "close the quotes"),
        (["--ranks", "1", "--train=--ranks 4"], "flags of ranks forecast"),
        (["--ranks", "2", "--train=--shares 3,1"], "--shares 3,1 ..."),
        (["--ranks", "1", "--billing", "0s"], "a unit above 0"),
        (["--ranks", "128"], "a rank needs at least one"),
    ],
)
def test_wrong_flags(
    flags: list[str],
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["forecast", IMAGES, "--profile-seconds", "0.1", *flags]) == 2
    assert expected in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


FAILING = """
from dataclasses import dataclass
@dataclass(frozen=True)
class Config:
    iterations: int = 3
def build(cfg): ...
def train(cfg, world): raise ValueError("there is no data at /nowhere")
def evaluate(model, cfg, world): ...
"""


@pytest.mark.usefixtures("equal_cores")
def test_a_workload_that_fails_its_dry_run_of_unequal_ranks(
    link: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "failing.py").write_text(FAILING)
    assert main(["forecast", "./failing.py", "--ranks", "2", "--shares", "3,1", "--link", link]) == 2
    assert "ValueError: there is no data at /nowhere" in capsys.readouterr().err


@pytest.mark.usefixtures("equal_cores")
def test_a_workload_that_fails_its_dry_run(
    link: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "failing.py").write_text(FAILING)
    assert main(["forecast", "./failing.py", "--ranks", "1,2", "--link", link]) == 2
    message = capsys.readouterr().err
    assert "its dry run as rank 0 of 1 ended with exit code 1: ValueError: there is no data at /nowhere" in message
    assert "ranks train ./failing.py" in message


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (2, "ended with exit code 2"),
        (-9, "was killed (SIGKILL), which the kernel does where memory runs out"),
        (-11, "was ended by SIGSEGV"),
    ],
)
def test_how_a_dry_run_ended(code: int, expected: str) -> None:
    assert how_it_ended(code) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gpu,cost\nH100,2.5\n", "other columns: cost, gpu"),
        ("AcceleratorName,AcceleratorCount,Price\nH100,8,cheap\n", "line 2: Price is 'cheap', not a number"),
        ("AcceleratorName,AcceleratorCount,Price\nH100,1,299\n", "299 USD per GPU and hour"),  # cents
        ("AcceleratorName,AcceleratorCount,Price\nL4,1,80\n", "L4 for 80 USD an hour, where 0."),  # cents
        ("AcceleratorName,AcceleratorCount,Price\nH100,8,17228\n", "2153.5 USD per GPU and hour"),  # a month
    ],
)
def test_a_file_of_prices_with_other_columns_or_units(
    text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prices.csv").write_text(text)
    assert main(["forecast", IMAGES, "--gpus", "1,8", "--on", "h200", "--prices", "prices.csv"]) == 2
    message = capsys.readouterr().err
    assert "the prices in prices.csv" in message
    assert said in message


ALONE = json.dumps({"device": CURVE | {"num_ranks": 1}, "host": CURVE})
UNEVEN = json.dumps({"device": CURVE | {"seconds": [1.0]}, "host": CURVE})


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"device": 3, "host": 4}', ALONE, UNEVEN])
def test_a_file_that_is_no_link(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link.json").write_text(text)
    assert main(["forecast", IMAGES, "--ranks", "1", "--link", "link.json"]) == 2
    assert "--link link.json" in capsys.readouterr().err
