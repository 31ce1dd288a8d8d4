"""A thread of the launcher that samples what the ranks use, every five seconds.

The ranks do nothing for it. It is a thread because a driver may take long to answer; then the rows are missing, and the
watchdog goes on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from ranks.engine.liveness.beats import Beat, BeatsFile, Field
from ranks.engine.liveness.work_split import split_between
from ranks.errors import UserError
from ranks.launch.telemetry.amd import AmdCards, amd_devices
from ranks.launch.telemetry.nvml import NvmlCards
from ranks.launch.telemetry.processes import ProcessUse
from ranks.launch.telemetry.telemetry_file import TelemetryFile
from ranks.launch.telemetry.usage import RankUse, row_of

INTERVAL_S = 5.0
CLOSE_S = 2.0
"""How long the end of a run waits for a sample that is under way."""


class Cards(Protocol):
    """GPUs that can be asked."""

    def read(self) -> Mapping[int, RankUse]: ...
    def close(self) -> None: ...


class Telemetry:
    """Samples the ranks of the present attempt while it is entered.

    `latest`: the newest sample, `cpu_s`: the CPU seconds that all samples have cost.
    """

    def __init__(
        self,
        run_dir: Path | None,
        entries: Mapping[int, str],
        say: Callable[[str], None],
        *,
        interval_s: float = INTERVAL_S,
        open_cards: Callable[[Mapping[int, str]], Cards | None] | None = None,
    ) -> None:
        """`run_dir`: where the rows are written; None for a script of the user. `entries`: rank -> its GPU, as
        CUDA_VISIBLE_DEVICES names it."""
        self.latest: Mapping[int, RankUse] = {}
        self.samples, self.cpu_s = 0, 0.0
        self._file = TelemetryFile(run_dir) if run_dir is not None else None
        self._entries, self._say, self._interval_s = entries, say, interval_s
        self._open_cards = open_cards or find_cards
        self._processes = ProcessUse()
        self._ranks: tuple[Mapping[int, int], BeatsFile] | None = None
        self._before: Sequence[Beat] = ()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="ranks-telemetry", daemon=True)

    def __enter__(self) -> Telemetry:
        if self._file is not None:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(CLOSE_S)

    def follow(self, pids: Mapping[int, int], beats: BeatsFile) -> None:
        """Sample these ranks from now on. `pids`: rank -> process id."""
        self._before, self._ranks, self.latest = (), (dict(pids), beats), {}

    def _follow(self) -> None:
        with ExitStack() as closing:
            cards = self._open_cards(self._entries) if self._entries else None
            if cards is not None:
                closing.callback(cards.close)
            if self._file is not None:
                closing.callback(self._file.close)
            while not self._closing.wait(self._interval_s):
                try:
                    self.sample(cards)
                except (UserError, OSError) as error:
                    self._say(f"no more telemetry is written ({_reason(error)}); the run continues")
                    self._file = None

    def sample(self, cards: Cards | None) -> None:
        """Take one sample, keep it, and append a row. Raises UserError and OSError where that cannot be written."""
        if self._ranks is None:
            return
        began_s = time.thread_time()
        pids, beats = self._ranks
        use = dict(self._processes.read(pids))
        for rank, card in (cards.read() if cards is not None else {}).items():
            use[rank] = use.get(rank, RankUse()).plus(card)
        rows = beats.read()
        row: dict[str, Any] = {
            "time": round(time.time(), 3),
            "iteration": min(row[Field.ITERATION] for row in rows),
            **row_of(use),
            **times_of(self._before, rows),
            **queues_of(rows),
        }
        self._before, self.latest, self.samples = rows, use, self.samples + 1
        if self._file is not None and use:
            self._file.append({**row, "sampling_cpu_s": round(self.cpu_s, 4)})
        self.cpu_s += time.thread_time() - began_s


def times_of(before: Sequence[Beat], now: Sequence[Beat]) -> dict[str, float]:
    """Where each rank's time went in the iterations of training since the last sample, in seconds an iteration."""
    found: dict[str, float] = {}
    for rank, (then, row) in enumerate(zip(before, now, strict=False)):
        if row[Field.ITERATION] > then[Field.ITERATION] and row[Field.PID] == then[Field.PID]:
            split = split_between(then, row)
            for name in ("compute_s", "data_s", "send_s", "wait_s"):
                found[f"use/rank{rank}/{name}"] = round(getattr(split, name), 6)
    return found


def queues_of(now: Sequence[Beat]) -> dict[str, int]:
    """How many of the micro-batches that each rank's data workers read ahead were ready when it asked for a batch."""
    found: dict[str, int] = {}
    for rank, row in enumerate(now):
        if row[Field.BATCHES_AHEAD]:
            found[f"use/rank{rank}/batches_ready"] = row[Field.BATCHES_READY]
            found[f"use/rank{rank}/batches_ahead"] = row[Field.BATCHES_AHEAD]
    return found


def find_cards(entries: Mapping[int, str]) -> Cards | None:
    """The GPUs of the ranks; None where there is no driver that can be asked."""
    pynvml: Any = import_module("pynvml")
    with suppress(pynvml.NVMLError):
        return NvmlCards(pynvml, entries)
    return AmdCards(entries) if amd_devices() else None


def _reason(error: UserError | OSError) -> str:
    return error.found if isinstance(error, UserError) else str(error)
