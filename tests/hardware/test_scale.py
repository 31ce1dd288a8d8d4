"""The split of an iteration, losses and the law computed by hand; and the command with real ranks."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from ranks.cli.main import main
from ranks.cli.scaling.balance import Balance, balance_table
from ranks.cli.scaling.one_rank import BatchPoint, batch_table, learning_rate, learning_rates
from ranks.cli.scaling.table import limits
from ranks.engine.config import OptimConfig
from ranks.engine.distributed.rendezvous.process_env import available_cores
from ranks.engine.liveness.beats import Collective
from ranks.hardware.scale.law import ScalabilityLaw, fit
from ranks.hardware.scale.loss import Scaling, point
from ranks.hardware.scale.record import RankRecord, TimedCall
from ranks.hardware.scale.split import Parts, ShortRun, TooFewIterations, short_run
from tests.toys import images

TOYS = Path(__file__).parent.parent / "toys"
ITERATIONS = 10


def all_reduce(start_s: float, wait_s: float, end_s: float, issued_s: float | None = None) -> TimedCall:
    issued_s = start_s if issued_s is None else issued_s
    return TimedCall(Collective.ALL_REDUCE, 100, start_s, issued_s, wait_s, end_s)


def record(rank: int, offsets: tuple[float, float, float, float], data_s: float = 0.1) -> RankRecord:
    """One collective in each iteration of a second. `offsets`: of its start, issue, wait and end."""
    start, issued, wait, end = offsets
    calls = tuple(all_reduce(i + start, i + wait, i + end, i + issued) for i in range(ITERATIONS))
    return RankRecord(rank, "cpu", calls, tuple(range(ITERATIONS)), (data_s,) * ITERATIONS, 1000 + rank, 8000)


def rows(count: int = ITERATIONS) -> list[dict[str, float]]:
    """Rows of an iteration of a second, with an evaluation of none."""
    return [
        {"time_s": 5.0 + i, "time/iteration_s": 1.0, "time/data_s": 0.25, "time/samples_per_second": 64.0}
        for i in range(count)
    ]


# The split -------------------------------------------------------------------------------------------------------


def test_waits_before_the_last_call_are_skew_and_those_after_it_communication() -> None:
    fast = record(0, (0.3, 0.3, 0.4, 0.9))
    slow = record(1, (0.6, 0.62, 0.8, 0.9))
    found = short_run([fast, slow], rows())
    first, second = found.ranks
    assert (first.skew, first.communication) == (pytest.approx(0.2), pytest.approx(0.3))
    assert (second.skew, second.communication) == (0.0, pytest.approx(0.1 + 0.02)), "with the time to start it"
    assert (first.data, second.data) == (pytest.approx(0.1), pytest.approx(0.1))
    assert first.total == second.total == pytest.approx(1.0)
    assert found.parts.total == pytest.approx(1.0)
    assert found.items == {"samples": pytest.approx(64)}
    assert (found.iterations, found.collectives) == (ITERATIONS - 2, ITERATIONS - 2), "without the first and the last"
    assert found.peak_bytes == 1001


def test_a_collective_that_ends_behind_work_costs_nothing() -> None:
    hidden = record(0, (0.3, 0.3, 0.8, 0.8))
    found = short_run([hidden, record(1, (0.7, 0.7, 0.8, 0.8))], rows())
    assert found.parts.skew == found.parts.communication == 0.0


def test_one_rank_is_measured_by_its_rows() -> None:
    alone = RankRecord(0, "cpu", (), (), (), 7, 9)
    found = short_run([alone], rows())
    assert (found.parts.compute, found.parts.data) == (pytest.approx(0.75), pytest.approx(0.25))
    assert found.parts.total == pytest.approx(1.0)
    assert found.iterations == ITERATIONS - 1


def test_collectives_that_do_not_match_are_refused() -> None:
    one, other = record(0, (0.3, 0.3, 0.4, 0.9)), record(1, (0.3, 0.3, 0.4, 0.9))
    shorter = RankRecord(1, "cpu", other.calls[:-1], other.first_calls, other.data_s, 0, 0)
    with pytest.raises(ValueError, match="ranks 0 and 1 differ"):
        short_run([one, shorter], rows())
    with pytest.raises(ValueError, match="no collective"):
        short_run([one, other], rows(ITERATIONS + 5))


def test_a_run_of_few_iterations_says_how_long_it_takes() -> None:
    with pytest.raises(TooFewIterations) as short:
        short_run([record(0, (0.3, 0.3, 0.4, 0.9))], rows(3))
    assert short.value.needed_s == pytest.approx(5 + 6 * 1.0)


def test_iterations_before_the_first_update_do_not_count() -> None:
    """Self-play may fill its window first."""
    filling = [
        row | ({"train/grad_norm": 1.0} if i >= 4 else {"time/samples_per_second": 7.0}) for i, row in enumerate(rows())
    ]
    found = short_run([RankRecord(0, "cpu", (), (), (), 7, 9)], filling)
    assert (found.iterations, found.items) == (ITERATIONS - 4, {"samples": pytest.approx(64)})


def test_a_record_survives_its_file() -> None:
    whole = record(1, (0.1, 0.2, 0.3, 0.4))
    assert RankRecord.of_json(json.loads(json.dumps(whole.as_json()))) == whole


# Losses ----------------------------------------------------------------------------------------------------------


def a_run(ranks: int, parts: Parts, samples: float) -> ShortRun:
    return ShortRun((parts,) * ranks, 10, 10, {"samples": samples}, 1000, ("cpu",) * ranks, (8000,) * ranks)


ONE = a_run(1, Parts(compute=0.9, data=0.1), 64)


def test_strong_scaling_is_compared_with_a_part_of_the_work() -> None:
    found = point("strong", [a_run(2, Parts(0.5, 0.2, 0.05, 0.05), 64)], [ONE])
    assert found.efficiency == pytest.approx(0.5 / 0.8)
    assert found.speedup == pytest.approx(1 / 0.8)
    assert found.items_per_s["samples"] == pytest.approx(64 / 0.8)
    assert found.lost.total == pytest.approx(1 - found.efficiency)
    expected = [0.05 / 0.8, 0.2 / 0.8, 0.0, 0.05 / 0.8]
    assert list(vars(found.lost).values()) == [pytest.approx(share) for share in expected]
    assert found.limit == "communication"


def test_weak_scaling_is_compared_with_the_same_work_of_a_rank() -> None:
    found = point("weak", [a_run(2, Parts(1.0, 0.1, 0.1, 0.05), 128)], [ONE])
    assert found.efficiency == pytest.approx(1 / 1.25)
    assert found.speedup == pytest.approx(2 / 1.25)
    assert found.lost.compute == pytest.approx(0.1 / 1.25)


def test_each_round_is_compared_with_its_own_base() -> None:
    slow = a_run(1, Parts(compute=2.0), 64)
    found = point("strong", [a_run(2, Parts(compute=s), 64) for s in (0.5, 1.25)], [ONE, slow])
    assert (found.efficiency_low, found.efficiency_high) == (pytest.approx(0.8), pytest.approx(1.0))
    assert found.efficiency == pytest.approx(1.5 / 1.75)


@pytest.mark.parametrize(
    ("strong", "weak", "words"),
    [
        (Parts(0.8, 0.0, 0.05), Parts(0.9, 0.0, 0.1), "batch of a rank is too small"),
        (Parts(0.8, 0.0, 0.05), Parts(1.6, 0.0, 0.1), "share memory bandwidth, power or cores"),
        (Parts(0.45, 0.3, 0.05), Parts(0.9, 0.0, 0.1), "a larger global batch, fewer and larger updates"),
        (Parts(0.45, 0.0, 0.4), Parts(0.9, 0.0, 0.1), "keep the data decoded"),
        (Parts(0.45, 0.0, 0.05, 0.4), Parts(0.9, 0.0, 0.1), "--shares auto"),
        (Parts(0.45, 0.0, 0.05), Parts(0.9, 0.0, 0.1), "nothing to gain"),
    ],
)
def test_the_limit_has_a_remedy(strong: Parts, weak: Parts, words: str) -> None:
    pairs: list[tuple[Scaling, Parts, int]] = [("strong", strong, 64), ("weak", weak, 128)]
    base = point("strong", [ONE], [ONE])
    found = [base, *(point(kind, [a_run(2, parts, samples)], [ONE]) for kind, parts, samples in pairs)]
    assert words in next(limits(found, "GPUs"))


# The law ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", [ScalabilityLaw(0.1, 0.01), ScalabilityLaw(0.0, 0.02), ScalabilityLaw(0.2, 0.0)])
def test_the_law_is_found_again(law: ScalabilityLaw) -> None:
    found = fit({n: law.speedup(n) for n in (1, 2, 4, 8)})
    assert found is not None
    assert found.contention == pytest.approx(law.contention, abs=1e-9)
    assert found.coherency == pytest.approx(law.coherency, abs=1e-9)


def test_the_peak_of_the_law() -> None:
    law = ScalabilityLaw(0.1, 0.009)
    assert law.peak == pytest.approx(10)
    assert law.speedup(10) > max(law.speedup(9), law.speedup(11))
    assert math.isinf(ScalabilityLaw(0.1, 0.0).peak)
    better = fit({1: 1.0, 2: 2.1, 4: 4.3})
    assert better == ScalabilityLaw(0.0, 0.0), "no number is below zero"


def test_the_law_needs_three_points_and_one_rank() -> None:
    assert fit({1: 1.0, 2: 1.8}) is None
    assert fit({2: 1.0, 4: 1.8, 8: 3.0}) is None


# Real ranks ------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(available_cores() < 2, reason="two ranks need two cores")
def test_two_real_ranks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    short = ["--seconds", "1", "--rounds", "1", "--only", "strong", "--out", str(out), "--json"]
    assert main(["scale", str(TOYS / "images.py"), "--ranks", "1,2", "--train=--global-batch 40", *short]) == 0
    printed = capsys.readouterr().out
    content = json.loads(printed)
    assert content == json.loads((out / "scale.json").read_text())
    assert (out / "scale.png").stat().st_size > 1000
    assert (content["unit"], content["threads"], content["global_batch"], content["laws"]) == ("ranks", 1, 40, {})
    one, two = content["points"]
    assert (one["num_ranks"], two["num_ranks"]) == (1, 2)
    assert one["efficiency"] == pytest.approx(1)
    for found in (one, two):
        assert sum(found["seconds"].values()) == pytest.approx(found["iteration_s"])
        assert sum(found["lost"].values()) == pytest.approx(1 - found["efficiency"])
        assert found["items_per_s"]["samples"] == pytest.approx(40 / found["iteration_s"], rel=0.02)
        assert found["peak_bytes"] > 1e6
    assert one["collectives"] == 0
    assert two["collectives"] == two["iterations"] >= 3, "the gradients and the vote are one bucket"
    assert two["seconds"]["communication"] > 0
    assert min(two["seconds"].values()) >= 0


@pytest.mark.skipif(available_cores() < 2, reason="two ranks need two cores")
def test_shares_of_two_real_ranks(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """On CPU cores they share the memory of the machine, so no rank has a limit of its own."""
    short = ["--seconds", "1", "--rounds", "1", "--shares", "auto", "--json"]
    assert main(["scale", str(TOYS / "images.py"), "--ranks", "2", "--train=--global-batch 40", *short]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["limits"] is None
    assert len(content["shares"]) == 2
    table = balance_table(Balance(("H100", "L4"), (20, 20), (0.1, 0.3), (5, 2), (40, 12)))
    assert [line.split()[-2:] for line in table.splitlines()[:3]] == [["most", "share"], ["40", "5"], ["12", "2"]]


def test_a_workload_that_fails_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "fails.py"
    source = (TOYS / "images.py").read_text()
    path.write_text(source.replace("    with Run.open", '    raise ValueError("no such lens")\n    with Run.open'))
    assert main(["scale", str(path), "--micro-batch", "8", "--rounds", "1", "--seconds", "1"]) == 2
    assert "found: ValueError: no such lens" in capsys.readouterr().err


def test_weak_scaling_needs_a_global_batch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "other.py"
    path.write_text((TOYS / "images.py").read_text().replace("global_batch", "batch"))
    for flags in (["--ranks", "1", "--only", "weak"], ["--global-batch", "8,16"]):
        assert main(["scale", str(path), *flags]) == 2
        assert "has no field global_batch" in capsys.readouterr().err


def test_the_rule_gives_the_learning_rate_of_a_batch() -> None:
    config = images.Config(optim=OptimConfig(lr=0.01, lr_rule="sqrt", base_batch=32))
    assert learning_rate(config, 128) == pytest.approx(0.02)
    assert learning_rate(images.Config(), 128) == pytest.approx(images.Config().optim.lr)
    assert learning_rate(object(), 128) is None
    assert learning_rate(config, None) is None
    assert learning_rate(images.Config(), None) == pytest.approx(images.Config().optim.lr)


def test_the_learning_rate_stands_at_micro_batches_too_and_stays() -> None:
    """They change the passes, not the global batch of 64 that the rule is about."""
    config = images.Config(global_batch=64, optim=OptimConfig(lr=0.01, lr_rule="linear", base_batch=32))
    rates = learning_rates(config, "micro-batch", [16, 32])
    assert rates == {16: pytest.approx(0.02), 32: pytest.approx(0.02)}
    assert learning_rates(config, "global-batch", [16, 32]) == {16: pytest.approx(0.005), 32: pytest.approx(0.01)}
    points = [BatchPoint(size, 0.1, {"samples": 640.0}, 1000, rate) for size, rate in rates.items()]
    text = batch_table("micro-batch", points, "linear from batch 32")
    head, first, *_ = text.splitlines()
    assert head.endswith("learning rate (linear from batch 32)")
    assert first.split()[-1] == "0.02"
    assert "A larger global batch is another training" in text
