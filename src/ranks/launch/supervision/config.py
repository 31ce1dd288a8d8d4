"""What a launcher is asked to run, and by which rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ranks.launch.logs import LogFolder

VISIBLE = "CUDA_VISIBLE_DEVICES"
OnHang = Literal["restart", "report"]


@dataclass(frozen=True)
class HangRules:
    """When a rank hangs, and what follows."""

    timeout_s: float = 300.0
    """Without progress in a training step; other phases have multiples of it (`liveness/phases.py`)."""
    on_hang: OnHang = "restart"
    """`restart`: treat a hanging rank like one that was killed. `report`: say it and go on waiting."""
    stop_grace_s: float = 60.0
    """How long ranks without progress may delay a stop."""


@dataclass(frozen=True)
class LaunchConfig:
    """What to run: `argv`, as one process per entry of `devices`."""

    argv: tuple[str, ...]
    devices: tuple[str, ...]
    env: Mapping[str, str]
    """The environment variables that all ranks share; those of one rank and of the rendezvous are added."""
    rendezvous: Callable[[int, Path], AbstractContextManager[Mapping[str, str]]]
    """(attempt, private folder) -> the variables by which the ranks of this attempt meet, valid while entered."""
    own_env: tuple[Mapping[str, str], ...] = ()
    """Variables of one rank each that take precedence; empty without any."""
    logs: LogFolder | None = None
    shown: frozenset[int] = frozenset({0})
    """Ranks whose output goes through `show`."""
    pass_fds: tuple[int, ...] = ()
    stdin: int | None = None
    """The standard input of the ranks, which is /dev/null without it."""
    max_restarts: int = 3
    """Restarts in a row without progress."""
    foreign: bool = False
    """A script of the user, whose progress, kinds of failure and heartbeat are unknown. It is started again after any
    failure, and watched for hangs only where its ranks use `ranks`."""
    resume_line: Callable[[], str] | None = None
    """A line that says from where the same command resumes; shown after a failure that ends the run."""
    hangs: HangRules = field(default_factory=HangRules)
    run_dir: Path | None = None
    """Of the run whose ranks are sampled (`launch/telemetry/`); None for a script of the user."""

    @property
    def gpus(self) -> dict[int, str]:
        """Rank -> its GPU as CUDA_VISIBLE_DEVICES names it; empty on the CPU."""
        found: dict[int, str] = {}
        for rank, device in enumerate(self.devices):
            number = device.removeprefix("cuda:")
            if number.isdigit():
                own = self.own_env[rank] if self.own_env else {}
                visible = own.get(VISIBLE, self.env.get(VISIBLE, "")).split(",")
                found[rank] = visible[int(number)].strip() if visible[0] and int(number) < len(visible) else number
        return found
