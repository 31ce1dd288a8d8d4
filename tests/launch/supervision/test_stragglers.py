"""Stragglers, named from recorded windows: who, the cause, and when nobody is."""

from __future__ import annotations

import random

import pytest

from ranks.engine.liveness.beats import ROW, Beat, Field
from ranks.engine.liveness.phases import Phase
from ranks.engine.liveness.work_split import WorkSplit
from ranks.launch.supervision.notice import Notice
from ranks.launch.supervision.stragglers import (
    BASELINE,
    IN_A_ROW,
    LEAST_KNOWN,
    WINDOW_S,
    Stragglers,
    Window,
    WindowReader,
    limit_learnt,
    noise,
    slow_in,
)
from ranks.launch.supervision.uneven import IN_A_ROW as SAMPLES
from ranks.launch.supervision.uneven import UnevenGpus, cause_of
from ranks.launch.telemetry.usage import RankUse

LINK_S = 0.002


def window(
    own_s: list[float], *, data_s: dict[int, float] | None = None, send_s: dict[int, float] | None = None
) -> Window:
    """Ranks that compute for `own_s`, load and send, and then wait for the slowest of them and for the link."""
    data = [(data_s or {}).get(rank, 0.001) for rank in range(len(own_s))]
    send = [(send_s or {}).get(rank, 0.0) for rank in range(len(own_s))]
    busy = [sum(parts) for parts in zip(own_s, data, send, strict=True)]
    return {
        rank: WorkSplit(own_s[rank], data[rank], send[rank], max(busy) - busy[rank] + LINK_S)
        for rank in range(len(own_s))
    }


def said(stragglers: Stragglers, windows: list[Window]) -> list[Notice]:
    return [notice for one in windows for notice in stragglers.judge(one)]


HEALTHY = window([0.020, 0.021, 0.019, 0.020])
SLOW = {
    "compute": window([0.020, 0.021, 0.036, 0.020]),
    "data": window([0.020, 0.021, 0.019, 0.020], data_s={2: 0.02}),
    "network": window([0.020, 0.021, 0.019, 0.020], send_s={2: 0.02}),
}


@pytest.mark.parametrize("cause", list(SLOW))
def test_a_straggler_is_named_once_with_its_cause_and_when_it_keeps_up_again(cause: str) -> None:
    stragglers = Stragglers(hint=lambda rank: f"rank {rank} is hot")
    assert said(stragglers, [HEALTHY] * 5) == []
    assert said(stragglers, [SLOW[cause]] * (IN_A_ROW - 1)) == []
    (named,) = said(stragglers, [SLOW[cause]] * 5)
    assert (named.event, named.rank, named.record["cause"]) == ("straggler", 2, cause)
    assert named.text.startswith(f"rank 2 is a straggler ({cause}): it ")
    assert named.text.endswith("; rank 2 is hot")
    (over,) = said(stragglers, [HEALTHY] * 5)
    assert (over.event, over.rank) == ("straggler_over", 2)


def test_one_of_two_ranks_and_two_of_eight_are_named() -> None:
    (named,) = said(Stragglers(), [window([0.03, 0.05])] * 8)
    assert named.rank == 1
    both = said(Stragglers(), [window([0.03] * 3 + [0.05] + [0.03] * 3 + [0.06])] * 8)
    assert sorted(notice.rank or 0 for notice in both) == [3, 7]


def test_nobody_is_named_before_the_noise_is_known_or_in_single_slow_windows() -> None:
    assert said(Stragglers(), [SLOW["compute"]] * (LEAST_KNOWN - 1)) == []
    stragglers = Stragglers()
    assert said(stragglers, [HEALTHY, HEALTHY, SLOW["compute"], SLOW["compute"]] * 20) == []


def test_a_rank_that_nobody_waits_for_is_no_straggler() -> None:
    """On CUDA, or where a rank works while the gradients are on their way, more work may cost no time."""
    overlapped = {0: WorkSplit(0.02, 0.0, 0.0, 0.02), 1: WorkSplit(0.03, 0.0, 0.0, 0.02)}
    assert slow_in(overlapped, 1.25) == {}
    tiny = {0: WorkSplit(0.0002, 0.0, 0.0, 0.0006), 1: WorkSplit(0.0007, 0.0, 0.0, 0.0001)}
    assert slow_in(tiny, 1.25) == {}, "half a millisecond is nothing to look for"


def test_where_the_run_scatters_more_a_rank_must_be_slower() -> None:
    chance = random.Random(3)
    quiet = [window([0.02 * chance.gauss(1, 0.02) for _ in range(4)]) for _ in range(20)]
    noisy = [window([0.02 * max(0.2, chance.gauss(1, 0.25)) for _ in range(4)]) for _ in range(20)]
    assert limit_learnt(quiet) == 1.25
    assert limit_learnt(noisy) > 1.6
    assert said(Stragglers(), noisy * 5) == []


def test_a_jump_is_not_noise() -> None:
    assert noise([[0.0] * 10 + [0.7] * 10]) == 0.0
    assert noise([[0.0]]) == noise([]) == 0.0
    chance = random.Random(5)
    assert noise([[chance.gauss(0, 0.1) for _ in range(4000)]]) == pytest.approx(0.1, rel=0.1)


def test_a_link_that_becomes_slow_is_named_without_a_rank() -> None:
    stragglers, slow = Stragglers(), {r: WorkSplit(0.02, 0.001, 0.0, 0.02) for r in range(4)}
    assert said(stragglers, [HEALTHY] * (BASELINE + LEAST_KNOWN)) == []
    (named,) = said(stragglers, [slow] * 5)
    assert (named.event, named.rank, named.record["cause"]) == ("straggler", None, "network")
    assert "every rank waits 20 ms an iteration, 2.0 ms before" in named.text
    (over,) = said(stragglers, [HEALTHY] * 5)
    assert over.event == "straggler_over"


def test_a_straggler_is_not_taken_for_a_slow_link() -> None:
    stragglers = Stragglers()
    said(stragglers, [HEALTHY] * (BASELINE + LEAST_KNOWN))
    assert [notice.rank for notice in said(stragglers, [SLOW["compute"]] * 8)] == [2]


# Windows from rows ----------------------------------------------------------------------------------------------------


def beat(iteration: int, phase: Phase = Phase.TRAIN, **fields: int) -> Beat:
    numbers = [0] * ROW
    numbers[Field.PID], numbers[Field.PHASE], numbers[Field.ITERATION] = 1, phase, iteration
    for name, value in fields.items():
        numbers[Field[name]] = value
    return Beat(tuple(numbers))


def test_a_window_has_the_mean_times_of_an_iteration() -> None:
    reader = WindowReader()
    assert reader.read({0: beat(10), 1: beat(10)}, 0.0) is None
    later = {0: beat(30, COMPUTE_NS=400_000_000, WAIT_NS=100_000_000), 1: beat(31, DATA_NS=210_000_000)}
    assert reader.read(later, WINDOW_S - 1) is None, "too short"
    found = reader.read(later, WINDOW_S)
    assert found == {0: WorkSplit(0.02, 0.0, 0.0, 0.005), 1: WorkSplit(0.0, 0.01, 0.0, 0.0)}


def test_long_iterations_are_compared_where_all_ranks_are_in_the_same_one() -> None:
    reader = WindowReader()
    reader.read({0: beat(1), 1: beat(1)}, 0.0)
    assert reader.read({0: beat(3), 1: beat(2)}, 100.0) is None
    assert reader.read({0: beat(3), 1: beat(3)}, 101.0) is not None


def test_ranks_that_start_or_end_are_not_compared() -> None:
    reader = WindowReader()
    for phase in (Phase.START, Phase.FIRST_ITERATION, Phase.FINISH):
        reader.read({0: beat(1), 1: beat(1)}, 0.0)
        assert reader.read({0: beat(50), 1: beat(50, phase)}, 10.0) is None
        assert reader.read({0: beat(51), 1: beat(51)}, 20.0) is None, "a new window begins"


# One GPU works, the others do not -------------------------------------------------------------------------------------


def test_one_busy_gpu_is_named_after_some_samples_with_the_cause() -> None:
    uneven = UnevenGpus()
    uses = {0: RankUse(gpu_percent=98.0), 1: RankUse(gpu_percent=10.0), 2: RankUse(gpu_percent=7.0)}
    rows = {0: beat(5, Phase.SAVE), 1: beat(5, WAITING=1), 2: beat(5, WAITING=1)}
    found = [uneven.look(sample, uses, rows, {}, ()) for sample in (1, 1, 2, 3, 4, 5)]
    (notice,) = filter(None, found)
    assert found.index(notice) == SAMPLES, "a sample that was seen before does not count"
    assert notice.text == (
        "the GPU of rank 0 is at 98 %, the others at 10 % or less: rank 0 is in the phase save, and the others wait "
        "for it"
    )


def test_gpus_that_take_turns_are_no_event_until_one_works_alone() -> None:
    uneven, rows = UnevenGpus(), {0: beat(5), 1: beat(5)}
    found: list[int | None] = []
    for sample, busy in enumerate([0, 1, 0, 1, 1, 1, 1, 0, 0, 0], start=1):
        uses = {rank: RankUse(gpu_percent=98.0 if rank == busy else 3.0) for rank in rows}
        notice = uneven.look(sample, uses, rows, {}, ())
        found.append(notice.rank if notice is not None else None)
    assert found == [None, None, None, None, None, 1, None, None, None, 0]


def test_why_the_other_gpus_are_idle() -> None:
    rows = {0: beat(5), 1: beat(5)}
    mine = WorkSplit(0.1, 0.0, 0.0, 0.0)
    waits, loads = WorkSplit(0.01, 0.0, 0.0, 0.09), WorkSplit(0.01, 0.09, 0.0, 0.0)
    assert cause_of(0, rows, {0: mine, 1: waits}, {0}) == "rank 0 is a straggler, and the others wait for it"
    assert cause_of(0, rows, {0: mine, 1: waits}, ()).startswith("the others wait for rank 0 in collectives")
    assert cause_of(0, rows, {0: mine, 1: loads}, ()) == "the others wait for their data"
    assert cause_of(0, rows, {0: mine, 1: mine}, ()).startswith("unknown")
    assert cause_of(0, rows, {}, ()).startswith("unknown")


def test_gpus_that_are_alike_or_unknown_are_no_event() -> None:
    uneven, rows = UnevenGpus(), {0: beat(5), 1: beat(5)}
    for sample, percents in enumerate([(98.0, 60.0), (40.0, 3.0), (None, None), (98.0, None)] * 3, start=1):
        uses = {rank: RankUse(gpu_percent=percent) for rank, percent in enumerate(percents)}
        assert uneven.look(sample, uses, rows, {}, ()) is None
