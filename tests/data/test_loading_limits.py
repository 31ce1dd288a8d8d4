"""What workers and the rank give each other stays within limits of the system, and survives the end of a process."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from ranks import stream
from ranks.data import DataWorkerError, from_map_style
from ranks.data.loading.process_workers import MOST_SENT
from tests.data.host_data import KeptClips, Points
from tests.data.test_loading import CONFIG, one_of

needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="looks at processes in /proc")
ONE_ITEM = replace(CONFIG, micro_batch=1)


class Repeated(Points):
    """The same points many times over."""

    def __len__(self) -> int:
        return 20 * MOST_SENT

    def gather(self, ids: torch.Tensor) -> Any:
        return super().gather(ids % super().__len__())


def test_a_worker_gets_more_micro_batches_than_fit_into_its_socket() -> None:
    """In one iteration, for one worker. A rank that sends them all at once and a worker that answers wait forever."""
    data = Repeated()
    with one_of(1, 0, ONE_ITEM) as world:
        reading = threading.Thread(target=lambda: stream(data, len(data), world, workers=1).at(0), daemon=True)
        reading.start()
        reading.join(120)
        assert not reading.is_alive()


@needs_proc
def test_batches_need_no_open_files() -> None:
    """A rank that holds hundreds of micro-batches may open 1,024 files by default."""
    data = Repeated()
    with one_of(1, 0, ONE_ITEM) as world:
        batches = stream(data, 300, world, workers=1)
        before = len(os.listdir("/proc/self/fd"))
        batch = batches.at(0)
        kept = [batch.gather(piece.ids) for piece in batch.split(None, 1)]
        (worker,) = workers_here()
        assert len(kept) == 300
        assert len(os.listdir("/proc/self/fd")) < before + 20
        assert len(os.listdir(f"/proc/{worker}/fd")) < 100


def workers_here() -> list[int]:
    """The worker processes of this process: the children of the server, which is its child."""
    parents = {int(name): parent_of(int(name)) for name in os.listdir("/proc") if name.isdigit()}
    return [pid for pid, parent in parents.items() if parents.get(parent) == os.getpid()]


def parent_of(pid: int) -> int:
    """0 for a process that has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next(int(line.split()[1]) for line in lines if line.startswith("PPid"))


def test_a_data_set_may_keep_what_collate_made() -> None:
    found: list[list[int]] = []
    with one_of(1, 0) as world:
        batches = stream(from_map_style(KeptClips(), sha256="kept"), 2, world, workers=1)
        for iteration in range(60):
            batch = batches.at(iteration)
            clips_B3P = batch.gather(batch.shards.ids)
            assert (clips_B3P == batch.shards.ids[:, None, None]).all()
            found.append(batch.shards.ids.tolist())
            del clips_B3P, batch
    assert len({item for ids in found for item in ids}) == len(KeptClips())


@needs_proc
def test_the_end_of_the_server_of_workers_loses_them() -> None:
    """Also where workers have finished tasks that the rank has not read yet."""
    with one_of(1, 0) as world:
        batches = stream(Points(), 4, world, workers=2, prefetch=4)
        batches.at(0)
        os.kill(parent_of(workers_here()[0]), signal.SIGKILL)
        with pytest.raises(DataWorkerError, match="lost data worker"):
            [batches.at(iteration) for iteration in range(1, 40)]
