"""Times the phases of an update, by the host's clock or, on CUDA, by events."""

from __future__ import annotations

import time

import torch

Mark = float | torch.cuda.Event


class StepClock:
    """Splits one update into data, compute and exposed communication. CUDA events make the host
    wait for nothing."""

    def __init__(self, device: torch.device) -> None:
        self.on_device = device.type == "cuda"
        """Whether the device's clock counts, not the host's."""
        self._marks: list[tuple[str, Mark]] = []
        self.mark("start")

    def mark(self, phase: str) -> None:
        """Assign the time since the previous mark to `phase`."""
        if self.on_device:
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            self._marks.append((phase, event))
        else:
            self._marks.append((phase, time.perf_counter()))

    def read(self) -> dict[str, float]:
        """Seconds by phase since the last call. Call it when the device has passed the last
        mark."""
        seconds = {"data": 0.0, "compute": 0.0, "communication": 0.0}
        for (_, before), (phase, after) in zip(self._marks, self._marks[1:], strict=False):
            seconds[phase] += _between(before, after)
        self._marks = self._marks[-1:]
        return seconds


def _between(before: Mark, after: Mark) -> float:
    if isinstance(before, torch.cuda.Event) and isinstance(after, torch.cuda.Event):
        return before.elapsed_time(after) / 1000
    assert isinstance(before, float)
    assert isinstance(after, float)
    return after - before
