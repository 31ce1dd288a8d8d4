"""Where the heartbeat counts the time of a rank."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ranks.engine.liveness.beats import Beat, BeatsFile
from ranks.engine.liveness.heartbeat import BEATS_VARIABLE, Heartbeat
from ranks.engine.liveness.work_split import WorkSplit, split_between
from ranks.engine.liveness.work_times import Account

NAP_S = 0.02


@pytest.fixture
def heartbeat(tmp_path: Path) -> tuple[Heartbeat, BeatsFile]:
    beats, mine = BeatsFile(tmp_path / "beats", 1, create=True), Heartbeat()
    mine.connect({BEATS_VARIABLE: str(tmp_path / "beats"), "WORLD_SIZE": "1", "RANK": "0"})
    return mine, beats


def iteration(heartbeat: Heartbeat, beats: BeatsFile, number: int) -> Beat:
    heartbeat.iteration(number, first=False)
    return beats.read()[0]


def test_each_part_of_an_iteration_is_counted_as_what_it_is(heartbeat: tuple[Heartbeat, BeatsFile]) -> None:
    mine, beats = heartbeat
    start_s = time.monotonic()
    before = iteration(mine, beats, 1)
    time.sleep(NAP_S)
    mine.step()
    mine.loads()
    time.sleep(2 * NAP_S)
    mine.loaded()
    mine.sends()
    time.sleep(3 * NAP_S)
    mine.sent()
    with mine.collective(1):
        time.sleep(4 * NAP_S)
    after = iteration(mine, beats, 2)
    whole_s = time.monotonic() - start_s
    split = split_between(before, after)
    for found_s, naps in ((split.compute_s, 1), (split.data_s, 2), (split.send_s, 3), (split.wait_s, 4)):
        assert found_s >= naps * NAP_S
    assert 10 * NAP_S <= split.iteration_s <= whole_s


def test_only_training_counts(heartbeat: tuple[Heartbeat, BeatsFile]) -> None:
    mine, beats = heartbeat
    mine.iteration(0, first=True)
    time.sleep(NAP_S)
    before = iteration(mine, beats, 1)
    mine.may_evaluate()
    start_s = time.monotonic()
    with mine.collective(1):
        time.sleep(NAP_S)
    mine.loads()
    time.sleep(NAP_S)
    mine.loaded()
    napped_s = time.monotonic() - start_s
    after = iteration(mine, beats, 2)
    assert before.numbers[12:16] == (0, 0, 0, 0)
    assert split_between(before, after).iteration_s < napped_s


def test_on_cuda_the_device_is_counted_and_not_the_host(heartbeat: tuple[Heartbeat, BeatsFile]) -> None:
    mine, beats = heartbeat
    before = iteration(mine, beats, 1)
    mine.host_counts(False)
    with mine.collective(1):
        time.sleep(NAP_S)
    mine.loads()
    time.sleep(NAP_S)
    mine.loaded()
    mine.host_counts(True)
    mine.device_worked({Account.COMPUTE: 7.0, Account.DATA: 1.0, Account.WAIT: 2.0})
    split = split_between(before, iteration(mine, beats, 3))
    assert (split.data_s, split.send_s, split.wait_s) == (0.5, 0.0, 1.0)
    assert split.compute_s >= 3.5
    mine.may_evaluate()
    evaluated = iteration(mine, beats, 4)
    mine.may_evaluate()
    mine.device_worked({Account.WAIT: 2.0})
    assert split_between(evaluated, iteration(mine, beats, 5)).wait_s == 0.0, "of no training step"


def test_a_split_is_the_mean_of_the_iterations() -> None:
    assert WorkSplit(0.1, 0.2, 0.3, 0.4).own_s == pytest.approx(0.6)
    assert WorkSplit(0.1, 0.2, 0.3, 0.4).iteration_s == pytest.approx(1.0)
