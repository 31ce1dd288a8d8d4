"""Reading ahead changes no batch, whatever reads it; and what goes wrong in a worker is named."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from ranks import RunConfig, UserError, World, stream
from ranks.data import DataWorkerError, from_map_style
from ranks.data.loading.tasks import next_worker
from ranks.data.loading.tensor_tree import map_leaves
from ranks.data.stream import Kind, Stream
from ranks.engine.distributed.comm import Comm
from ranks.engine.distributed.rendezvous.process_env import ProcessEnv
from ranks.engine.liveness.beats import BeatsFile, Field
from ranks.engine.liveness.heartbeat import BEATS_VARIABLE, Heartbeat
from tests.data.host_data import NUM_ITEMS, Faulty, Noisy, Points

GLOBAL_BATCH = 17
CONFIG = RunConfig(threads=1, shards=8)
ITERATIONS = [0, 1, 2, 3, 9, 10, 2, 3, 3]
"""In order, a jump as after a resume, back, and one twice."""


@contextmanager
def one_of(size: int, rank: int, config: RunConfig = CONFIG) -> Iterator[World]:
    """The world of one of several ranks, which never speak to each other."""
    world = World(config, ProcessEnv("alone"), torch.device("cpu"), Comm(rank, size, staged=False), "test")
    world.stop.install()
    try:
        yield world
    finally:
        world.leave()


def leaves(batch: Any) -> list[Any]:
    found: list[Any] = []
    map_leaves(lambda leaf: found.append(leaf.tolist() if isinstance(leaf, Tensor) else leaf), batch)
    return found


def cuts(iteration: int) -> tuple[float | None, int | None]:
    """How a learner cuts its batches: at iteration 3 it runs out of memory."""
    return (3.0 if iteration in (3, 9) else None), None


def batches_of(batches: Stream[Any], exact: bool, iterations: Sequence[int] = ITERATIONS) -> list[Any]:
    """The leaves of every micro-batch. Each is then overwritten, as a loss function may do."""
    found: list[Any] = []
    for iteration in iterations:
        batch = batches.at(iteration)
        for piece in batch.by_shard(None) if exact else batch.split(*cuts(iteration)):
            if len(piece.ids):
                for _ in range(2):  # as in the dry runs of the first update
                    gathered = batch.gather(piece.ids)
                    found.append((piece.ids.tolist(), leaves(gathered)))
                    gathered.x_NF.zero_()
    return found


@pytest.mark.parametrize(
    ("size", "rank", "workers", "kind", "exact"),
    [
        (1, 0, 3, "processes", False),
        *((size, rank, workers, "threads", exact) for size, rank, workers, exact in [
            (1, 0, 1, False), (1, 0, 8, True), (3, 1, 1, True), (2, 1, 3, False), (3, 0, 3, True), (3, 2, 8, False),
        ]),
    ],
)  # fmt: skip
def test_batches_are_the_same_with_any_workers_on_any_rank(
    size: int, rank: int, workers: int, kind: Kind, exact: bool
) -> None:
    with one_of(size, rank, replace(CONFIG, exact=exact)) as world:
        expected = batches_of(stream(Points(), GLOBAL_BATCH, world), exact)
        assert batches_of(stream(Points(), GLOBAL_BATCH, world, workers=workers, kind=kind), exact) == expected


def test_the_comparison_finds_a_data_set_that_is_no_function_of_its_ids() -> None:
    with one_of(1, 0) as world:
        here = batches_of(stream(Points(broken=True), GLOBAL_BATCH, world), False)
        assert batches_of(stream(Points(broken=True), GLOBAL_BATCH, world, workers=1, kind="threads"), False) != here


def test_a_batch_stays_as_it_is_while_it_is_used_and_the_rank_gathers_only_what_nobody_foresaw() -> None:
    """Shared memory is filled again only when no tensor uses it. At iteration 10 the micro-batches become smaller."""
    data = Points()
    with one_of(1, 0) as world:
        batches = stream(data, GLOBAL_BATCH, world, workers=2, prefetch=3)
        kept: list[tuple[Tensor, Tensor]] = []
        for iteration in range(20):
            batch = batches.at(iteration)
            pieces = batch.split(None if iteration < 10 else 4.0)
            assert sum(len(piece.ids) for piece in pieces) == batch.num_items > 0
            gathered = [(piece.ids[3:], batch.gather(piece.ids).x_NF[3:]) for piece in pieces]
            kept += gathered if iteration in (1, 2, 12) else []
            assert data.calls == (0 if iteration < 10 else 5), "17 items in pieces of 4 are 5 micro-batches"
        assert all(torch.equal(rows, data.x_NF[ids]) for ids, rows in kept)


class Gated(Points):
    """Gathers a batch only where the test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Semaphore(0)
        self.begun = threading.Semaphore(0)

    def gather(self, ids: Tensor) -> Any:
        self.begun.release()
        self.gate.acquire()
        return super().gather(ids)


def test_the_launcher_sees_how_many_batches_are_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beats, mine = BeatsFile(tmp_path / "beats", 1, create=True), Heartbeat()
    mine.connect({BEATS_VARIABLE: str(tmp_path / "beats"), "WORLD_SIZE": "1", "RANK": "0"})
    monkeypatch.setattr("ranks.data.loading.prefetcher.heartbeat", mine)
    data, seen = Gated(), list[tuple[int, int]]()
    with one_of(1, 0) as world:
        batches = stream(data, GLOBAL_BATCH, world, workers=1, prefetch=4, kind="threads")
        data.gate.release(3)
        for iteration in range(3):
            batch = batches.at(iteration)
            batch.gather(batch.shards.ids)
            if iteration == 0:
                for _ in range(4):  # the worker has begun the fourth, so it has handed in three
                    data.begun.acquire()
            row = beats.read()[0]
            seen.append((row[Field.BATCHES_READY], row[Field.BATCHES_AHEAD]))
        data.gate.release(100)
    assert seen == [(0, 0), (2, 4), (1, 4)]


def test_random_items_are_keyed_by_epoch_and_id() -> None:
    state = torch.get_rng_state()

    def epochs(random: bool, **how: Any) -> list[Any]:
        with one_of(1, 0) as world:
            batches = stream(from_map_style(Noisy(), sha256="noisy", random=random), 10, world, **how)
            found: list[Any] = []
            for iteration in range(10):
                batch = batches.at(iteration)
                for item, x in zip(batch.shards.ids.tolist(), batch.gather(batch.shards.ids)["x"], strict=True):
                    found.append((iteration // 5, item, x.tolist()))
            return found

    here = epochs(True)
    assert torch.equal(state, torch.get_rng_state()), "loading has changed the generator that dropout draws from"
    assert sorted(epochs(True, workers=3)) == sorted(here)
    assert sorted(epochs(False, workers=1, kind="threads")) != sorted(epochs(False)), "the check cannot fail"
    by_item = {(epoch, item): x for epoch, item, x in here}
    assert all(by_item[0, item] != by_item[1, item] for item in range(NUM_ITEMS)), "the same in each epoch"
    with pytest.raises(UserError, match="generators that all threads share"), one_of(1, 0) as world:
        stream(from_map_style(Noisy(), random=True), 10, world, workers=1, kind="threads")


def iteration_with(batches: Stream[Any], item: int) -> int:
    return next(i for i in range(batches.iterations_per_epoch) if item in batches.shards(i).ids.tolist())


def gone(pids: Sequence[int]) -> bool:
    """Whether all processes have ended; waits for it."""
    deadline_s = time.monotonic() + 30
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_a_worker_that_raises_hangs_or_dies_is_named_with_its_item(tmp_path: Path) -> None:
    """All in one stream. An item that is read ahead fails only the iteration that needs it."""
    raising, killing, hanging = 10, 20, 30
    with one_of(1, 0, replace(CONFIG, hang_timeout="4s")) as world:
        data = Faulty({}, tmp_path)
        order = [int(stream(data, 1, world, "clips").shards(i).ids) for i in range(NUM_ITEMS)]
        data.bad_items = {order[raising]: "raise", order[killing]: "kill", order[hanging]: "hang"}
        batches = stream(data, 1, world, "clips", workers=3, prefetch=1)

        def error_of(iteration: int) -> DataWorkerError:
            with pytest.raises(DataWorkerError, match=r"^(lost )?data worker \d \(process \d+\) at item ") as caught:
                batches.at(iteration)
            item = order[iteration]
            assert f" at item {item} (clips/{item}.mp4) of the clips data set: it " in str(caught.value)
            return caught.value

        for iteration in (raising - 2, raising - 1):
            batch = batches.at(iteration)
            assert batch.gather(batch.shards.ids).tolist() == [order[iteration]]
        error = error_of(raising)
        assert "it raised ValueError: cannot decode (at " in str(error)
        assert "host_data.py:" in str(error)
        assert "in gather" in error.__notes__[0], "the worker's own traceback"
        assert "it was killed by SIGKILL" in str(error_of(killing))
        assert "it hangs, no progress for 8 s in the phase waiting for data" in str(error_of(hanging))
    assert len(list(tmp_path.iterdir())) == 3
    assert gone([int(path.name) for path in tmp_path.iterdir()]), "a worker is left, also the one that hangs"


def test_workers_take_turns_and_a_slow_one_is_passed_over() -> None:
    assert [next_worker(number, {0: 1, 1: 2, 2: 1}) for number in range(4)] == [0, 1, 2, 0]
    assert [next_worker(number, {0: 1, 1: 3, 2: 1}) for number in range(4)] == [0, 0, 2, 0]
    assert next_worker(7, {2: 5}) == 2


def test_threads_name_the_item_and_keep_the_cause(tmp_path: Path) -> None:
    with one_of(1, 0, replace(CONFIG, hang_timeout="4s")) as world:
        batches = stream(Faulty({11: "raise"}, tmp_path), 5, world, workers=2, kind="threads")
        with pytest.raises(DataWorkerError, match=r"at item 11 \(clips/11.mp4\) .*: it raised ValueError") as caught:
            batches.at(iteration_with(batches, 11))
        assert "cannot decode" in caught.value.__notes__[0]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"workers": -1}, "a number of workers is"),
        ({"workers": 10**6}, "a number of workers is"),
        ({"workers": 1, "prefetch": 0}, "reads at least one batch"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(arguments: dict[str, Any], found: str) -> None:
    with one_of(1, 0) as world, pytest.raises(UserError, match=found):
        stream(Points(), GLOBAL_BATCH, world, **arguments)


def test_a_data_set_that_no_other_process_can_have_is_refused() -> None:
    data = Points()
    data.__dict__["lock"] = threading.Lock()
    with one_of(1, 0) as world, pytest.raises(UserError, match="cannot be sent to another process"):
        stream(data, GLOBAL_BATCH, world, workers=1)


def test_a_class_of_the_main_program_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Points, "__module__", "__main__")
    monkeypatch.setattr(sys.modules["__main__"], "Points", Points, raising=False)
    with one_of(1, 0) as world, pytest.raises(UserError, match="Points is defined in the program itself"):
        stream(Points(), GLOBAL_BATCH, world, workers=1).at(0)
