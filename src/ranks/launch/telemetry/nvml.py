"""Use, memory, power, clock and throttling of NVIDIA GPUs, by NVML (the package nvidia-ml-py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from ranks.launch.telemetry.usage import RankUse

THROTTLED: Mapping[str, int] = {
    "hardware slowdown": 0x08,
    "too hot (software)": 0x20,
    "too hot (hardware)": 0x40,
    "power brake": 0x80,
}
"""The bits of nvmlClocksEventReasons that mean trouble. The power cap (0x04) is none: a GPU at full load has it."""
PCIE_GIGATRANSFERS = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0, 6: 64.0}
"""Of one lane, by generation."""


class NvmlCards:
    """The GPUs of the ranks. `close()` ends NVML."""

    def __init__(self, pynvml: Any, entries: Mapping[int, str]) -> None:
        """`pynvml`: the module. `entries`: rank -> its GPU as CUDA_VISIBLE_DEVICES names it, by number or (the start of
        a) UUID. Raises pynvml.NVMLError where there is no driver."""
        self._nvml = pynvml
        pynvml.nvmlInit()
        self._handles = {rank: handle for rank, entry in entries.items() if (handle := self._find(entry)) is not None}

    def close(self) -> None:
        with suppress(self._nvml.NVMLError):
            self._nvml.nvmlShutdown()

    def read(self) -> dict[int, RankUse]:
        """The use of each rank's GPU now; ranks on one GPU have the same numbers."""
        return {rank: self._card(handle) for rank, handle in self._handles.items()}

    def _find(self, entry: str) -> Any | None:
        nvml = self._nvml
        with suppress(nvml.NVMLError):
            if entry.isdigit():
                return nvml.nvmlDeviceGetHandleByIndex(int(entry))
            if entry.startswith("GPU-"):
                handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
                return next((h for h in handles if str(nvml.nvmlDeviceGetUUID(h)).startswith(entry)), None)
            return nvml.nvmlDeviceGetHandleByUUID(entry)
        return None

    def _card(self, handle: Any) -> RankUse:
        nvml = self._nvml

        def ask(function: str, *arguments: Any) -> Any | None:
            """What NVML answers; None where this GPU, a MIG slice or an old driver does not know it."""
            try:
                return getattr(nvml, function)(handle, *arguments)
            except (nvml.NVMLError, AttributeError):
                return None

        use, memory = ask("nvmlDeviceGetUtilizationRates"), ask("nvmlDeviceGetMemoryInfo")
        power_milliwatts = ask("nvmlDeviceGetPowerUsage")
        reasons = ask("nvmlDeviceGetCurrentClocksEventReasons")
        if reasons is None:
            reasons = ask("nvmlDeviceGetCurrentClocksThrottleReasons")  # its name in drivers before 535
        return RankUse(
            gpu_percent=float(use.gpu) if use is not None else None,
            gpu_memory_bytes=float(memory.used) if memory is not None else None,
            power_watts=power_milliwatts / 1000 if power_milliwatts is not None else None,
            clock_mhz=ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM),
            temperature_celsius=ask("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU),
            link_percent=_link_percent(ask),
            throttled=None if reasons is None else tuple(word for word, bit in THROTTLED.items() if reasons & bit),
        )


def _link_percent(ask: Callable[[str], Any | None]) -> float | None:
    """The speed of the PCIe link now, as a share of the best. An idle GPU may slow its link down to save power."""
    now = ask("nvmlDeviceGetCurrPcieLinkGeneration"), ask("nvmlDeviceGetCurrPcieLinkWidth")
    best = ask("nvmlDeviceGetMaxPcieLinkGeneration"), ask("nvmlDeviceGetMaxPcieLinkWidth")
    speeds = [PCIE_GIGATRANSFERS.get(generation or 0, 0.0) * (width or 0) for generation, width in (now, best)]
    return 100 * speeds[0] / speeds[1] if all(speeds) else None
