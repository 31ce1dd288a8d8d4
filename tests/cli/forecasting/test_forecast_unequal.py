"""`ranks forecast` of cards of several kinds and of unequal shares, from a profile file and from a real workload."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ranks.cli.forecasting import inputs
from ranks.cli.forecasting.measure import ProbedCores
from ranks.cli.main import main
from ranks.engine.liveness.beats import Collective
from ranks.hardware.catalogue.links import network_link
from ranks.hardware.forecast.profile import Profile
from ranks.hardware.forecast.trace import Call, IterationTrace, Trace
from ranks.progress import ProgressBar
from tests.toys import images

CURVE = {"num_ranks": 2, "num_bytes": [8, 1024, 1048576], "seconds": [0.001, 0.001, 0.01]}
IMAGES = str(Path(images.__file__))
MIXED = ["--on", "rtx6000ada+rtx4090"]
GB = 10**9


def trace(num_ranks: int, work_s: float, peak_gb: float) -> Trace:
    calls = () if num_ranks == 1 else (Call(Collective.ALL_REDUCE, 400_000_000, work_s, work_s),)
    phases, items = {"compute": 0.9 * work_s, "data": 0.1 * work_s}, {"samples": 64.0}
    iterations = (IterationTrace(work_s, calls),) * 3
    return Trace(num_ranks, iterations, phases, items, 2.0, 0.5, False, 3.0, int(peak_gb * GB))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the profile p.json that one rented RTX 4090 gave: 1.0 s and 16 GB alone, 0.6 s and 10 GB as one of
    two."""
    monkeypatch.chdir(tmp_path)
    write_profile()
    return tmp_path


def write_profile(**changes: Any) -> None:
    facts: dict[str, Any] = {
        "workload": "images",
        "settings": {"exact": False, "shards": 64},
        "iterations": 10_000,
        "eval_every": 1000,
        "save_every": "5m",
        "device": "NVIDIA GeForce RTX 4090",
        "is_gpu": True,
        "threads": {1: 8, 2: 4},
        "recorded": "2026-11-25 12:00",
        "cores": 16,
        "gpus": 1,
        "traces": {1: trace(1, 1.0, 16), 2: trace(2, 0.6, 10)},
    }
    Profile(**(facts | changes)).write(Path("p.json"))


def forecast(*flags: str) -> int:
    return main(["forecast", "images", "--profile", "p.json", *flags])


def as_json(capsys: pytest.CaptureFixture[str], *flags: str) -> Any:
    assert forecast(*flags, "--json") == 0
    return json.loads(capsys.readouterr().out)


def test_two_unlike_cards(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = as_json(capsys, *MIXED, "--price", "1")
    by_speed, equal, ada, rtx4090 = found["forecasts"]
    assert [row["name"] for row in (ada, rtx4090)] == ["RTX 6000 Ada alone", "RTX 4090 alone"]
    assert sum(by_speed["shards_per_rank"]) == 64
    assert by_speed["shards_per_rank"][0] > 32, "the faster card carries more"
    assert equal["shards_per_rank"] == [32, 32]
    assert by_speed["iteration_s"]["middle"] < equal["iteration_s"]["middle"]
    assert equal["iteration_s"]["middle"] > 0.6, "the slow card, and the all-reduce"
    assert rtx4090["iteration_s"]["middle"] == pytest.approx(1.0)
    slow = found["ranks_with_equal_shares"][1]
    assert slow["work_s"] == pytest.approx(0.6)
    assert found["ranks_with_equal_shares"][0]["waits_s"] > slow["waits_s"] + 0.1
    assert by_speed["cost"]["middle"] == pytest.approx(2 * by_speed["paid_s"] / 3600)
    assert ada["cost"]["middle"] == pytest.approx(ada["paid_s"] / 3600)
    noted = [json.loads(line) for line in (here / "runs" / "forecasts.jsonl").read_text().splitlines()]
    assert [(row["device"], row["ranks"], row["threads"]) for row in noted] == [
        ("RTX 6000 Ada", 2, None),
        ("RTX 6000 Ada", 2, None),
        ("RTX 6000 Ada", 1, None),
        ("RTX 4090", 1, None),
    ]
    assert noted[0]["guessed"] == "RTX 6000 Ada+RTX 4090, recorded on NVIDIA GeForce RTX 4090"


def test_a_forecast_for_another_card_is_noted_under_its_name(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    as_json(capsys, "--gpus", "1,2", "--on", "l40s")
    noted = [json.loads(line) for line in (here / "runs" / "forecasts.jsonl").read_text().splitlines()]
    assert [(row["device"], row["ranks"]) for row in noted] == [("L40S", 1), ("L40S", 2)]


def test_what_is_said(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert forecast(*MIXED, "--hours", "2") == 0
    text = capsys.readouterr().out
    for part in (
        "guess: 1.45 (0.95 to 2.21) times as fast: recorded on RTX 4090; RTX 6000 Ada has",
        "the slowest card of RTX 6000 Ada and RTX 4090, right within 40%",
        "RTX 6000 Ada unknown: give --price",
        "equal shares: RTX 6000 Ada waits ",
        " for RTX 4090 and the link; with the shares above an iteration takes ",
        "compute, RTX 4090 (rank 1)",
        "iterations in 2 h",
        "ranks scale ... --gpus 2 --shares auto",
    ):
        assert part in text, part
    assert "cost (90 %)" not in text, "with one price unknown, costs cannot be compared"


def test_the_price_of_unlike_cards_is_their_sum(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header = "provider,gpu,num_gpus,price_usd_per_gpu_hour,spot_usd_per_gpu_hour,date,source\n"
    Path("prices.csv").write_text(f"{header}Me,rtx6000ada,1,0.90,,2026-11,bill\nMe,rtx4090,1,0.50,,2026-11,bill\n")
    found = as_json(capsys, *MIXED, "--prices", "prices.csv")
    row = found["forecasts"][0]
    assert row["cost"]["middle"] == pytest.approx((0.9 + 0.5) * row["paid_s"] / 3600)
    assert "RTX 6000 Ada 0.90" in row["price"]["source"]


def test_a_card_that_holds_less_carries_less(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An L4 has 21.8 GB to give. A rank alone needs 60 GB, one of two 32 GB: 4 GB and 0.875 GB for each shard."""
    write_profile(traces={1: trace(1, 1.0, 60), 2: trace(2, 0.6, 32)})
    found = as_json(capsys, "--on", "l40s+l4")
    assert found["forecasts"][0]["shards_per_rank"][1] <= 20
    assert [row["fits"] for row in found["forecasts"]] == [True, False, False, False]
    assert found["best"] == found["forecasts"][0]["name"]
    assert forecast("--on", "l40s+l4", "--shares", "1,1") == 0
    text = capsys.readouterr().out
    assert "rank 1 needs 32.0 GB, and L4 can give it 21.8 GB" in text
    assert "none of these fits" in text


def test_shares_of_real_equal_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """On CPU cores, and the run with these shares is the one that the ledger compares. A line about the progress is no
    part of the JSON. The cores are not measured, which test_forecast.py does."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ranks.cli.forecasting.measure.ProbedCores", lambda _: ProbedCores(0))
    monkeypatch.setattr("ranks.cli.forecasting.measure.ProgressBar", partial(ProgressBar, log_every_s=0.0))
    Path("link.json").write_text(json.dumps({"device": CURVE, "host": CURVE, "on": "cpu"}))
    flags = ["--ranks", "2", "--shares", "3,1", "--link", "link.json", "--profile-seconds", "0.2"]
    assert main(["forecast", IMAGES, *flags, "--iterations", "30", "--json"]) == 0
    shown = capsys.readouterr()
    assert "profile 2 of 2" in shown.err
    found = json.loads(shown.out)
    assert found["forecasts"][0]["shards_per_rank"] == [48, 16]
    assert found["ranks"][0]["work_s"] >= found["ranks"][1]["work_s"]
    noted = [json.loads(line) for line in Path("runs/forecasts.jsonl").read_text().splitlines()]
    assert [row["shards_per_rank"] for row in noted] == [[48, 16], [32, 32]]
    assert noted[0]["threads"] == noted[1]["threads"] > 0


def test_one_rank_of_a_profile_of_cores_measures_nothing(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has no link. Two ranks have one, which is measured on this machine."""
    write_profile(device="EPYC", is_gpu=False)
    probed: list[str] = []

    def probe_link(gpus: str) -> Any:
        probed.append(gpus)
        return network_link(1.0)

    monkeypatch.setattr(inputs, "probe_link", probe_link)
    assert forecast("--ranks", "1") == 0
    assert probed == []
    assert forecast("--ranks", "1,2") == 0
    assert probed == ["none"]
    capsys.readouterr()


@pytest.mark.parametrize(
    ("flags", "around_s"),
    [
        (["--gpus", "1"], 300),
        (["--gpus", "1", "--setup", "10m", "--transfer", "1h"], 4200),
        (["--gpus", "1", "--watts", "700", "--kwh", "0.3"], 0),
        (["--gpus", "1", "--watts", "700", "--kwh", "0.3", "--setup", "1m"], 60),
        (["--on", "rtx6000ada+rtx4090"], 300),
    ],
)
def test_set_up_and_transfer_are_a_part_of_the_job(
    flags: list[str], around_s: float, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for found in as_json(capsys, *flags)["forecasts"]:
        assert found["job_s"]["middle"] == pytest.approx(found["run_s"]["middle"] + around_s)
    assert forecast(*flags) == 0
    text = capsys.readouterr().out
    assert "whole job (90 %)" in text
    assert ("job      set-up" in text) == (around_s > 0 or "--watts" in flags)


@pytest.mark.parametrize(
    ("flags", "seconds", "said"),
    [
        (["--gpus", "2"], 0.6, "busy CPU cores: 6.7; those of the run's machine are unknown: give --cores"),
        (["--gpus", "2", "--cores", "2"], 2.0, "busy CPU cores: 6.7; the machine has 2"),
        (["--gpus", "2", "--shares", "1,1", "--cores", "2"], 2.0, "busy CPU cores: 6.7; the machine has 2"),
        (["--gpus", "1"], 1.0, "how many CPU cores ranks need is unknown; the machine has 16"),
    ],
)
def test_the_cores_of_the_machine_limit_its_ranks(
    flags: list[str], seconds: float, said: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The profile was recorded on a machine with one GPU and 16 cores: those of one with two GPUs are unknown."""
    write_profile(traces={1: trace(1, 1.0, 16), 2: replace(trace(2, 0.6, 10), host_cpu_s=2.0)})
    found = as_json(capsys, *flags)["forecasts"][0]
    assert found["iteration_s"]["middle"] == pytest.approx(seconds, rel=0.1)
    assert (found["limited_by"] == "the host's cores") == ("--cores" in flags)
    assert forecast(*flags) == 0
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--on", "rtx6000ada+rtx4091"], "did you mean RTX 4090"),
        (["--on", "rtx4090+"], "'' is no card"),
        (["--on", "rtx4090*0+l4"], "'rtx4090*0' is no card"),
        (["--on", "rtx4090*1"], '--on "RTX 4090" --gpus 1'),
        (["--gpus", "2", "--cores", "0"], "--cores 0"),
        ([*MIXED, "--gpus", "4"], "--on names 2 cards"),
        ([*MIXED, "--gpus", "1,2"], "--on names 2 cards"),
        ([*MIXED, "--ranks", "2"], "--ranks is for CPU cores"),
        ([*MIXED, "--shares", "3,2,1"], "give one share for each of them"),
        ([*MIXED, "--shares", "0,0"], "not all zero"),
        ([*MIXED, "--shares", "3,-1"], "not negative"),
        (["--gpus", "1,2", "--shares", "3,1"], "one number of ranks is needed"),
        (["--gpus", "1", "--shares", "3"], "2 or more"),
        (["--on", "rtx6000ada*2+rtx4090"], "not 3"),
        (["--on", "h200+a100"], "knows no link between H200 SXM and A100 80GB SXM"),
        ([*MIXED, "--budget", "20"], "no price is known"),
        ([*MIXED, "--train=--preset small"], "--profile with --train"),
    ],
)
def test_wrong_flags(flags: list[str], said: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert forecast(*flags) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("peaks_gb", "said"),
    [
        ((90, 60), "a rank with one of 64 shards needs 30.9 GB, and RTX 4090 can give it 21.8 GB"),
        ((90, 45), "all cards together hold 46 of 64 shards"),
    ],
)
def test_cards_that_are_too_small(
    peaks_gb: tuple[float, float], said: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_profile(traces={1: trace(1, 1.0, peaks_gb[0]), 2: trace(2, 0.6, peaks_gb[1])})
    assert forecast(*MIXED) == 2
    assert said in capsys.readouterr().err


def test_a_profile_of_cores_with_other_threads_alone(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_profile(device="EPYC", is_gpu=False)
    assert forecast("--ranks", "2", "--shares", "3,1") == 2
    message = capsys.readouterr().err
    assert "one rank alone was recorded with 8 threads, one of 2 with 4" in message
    assert forecast(*MIXED) == 2
    assert "it was recorded on a CPU" in capsys.readouterr().err
