"""Where the time goes, on the host's clock or the device's."""

from __future__ import annotations

import time

import torch


class StepClock:
    """Splits one update into data, compute and exposed communication; on CUDA by events, so that nothing waits."""

    def __init__(self, device: torch.device) -> None:
        self._cuda = device.type == "cuda"
        self._marks: list[tuple[str, float | torch.cuda.Event]] = []
        self.mark("start")

    def mark(self, phase: str) -> None:
        """The time since the mark before was spent on `phase`."""
        if self._cuda:
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            self._marks.append((phase, event))
        else:
            self._marks.append((phase, time.perf_counter()))

    def read(self) -> dict[str, float]:
        """Seconds by phase since the last reading; call it once the device has passed the last mark."""
        seconds = {"data": 0.0, "compute": 0.0, "communication": 0.0}
        for (_, before), (phase, after) in zip(self._marks, self._marks[1:], strict=False):
            if isinstance(before, float):
                assert isinstance(after, float)
                seconds[phase] += after - before
            else:
                assert not isinstance(after, float)
                seconds[phase] += before.elapsed_time(after) / 1000
        self._marks = self._marks[-1:]
        return seconds
