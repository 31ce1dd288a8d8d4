"""A profile: the traces of one rank of 1, 2, 4, ... ranks, and on what they were recorded. It is kept as a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ranks.engine.config import RunConfig
from ranks.engine.config_file import read_object
from ranks.errors import UserError
from ranks.hardware.forecast.shared_cores import EQUAL_CORES, SharedCores
from ranks.hardware.forecast.trace import Trace

FORMAT = 3


@dataclass(frozen=True)
class Profile:
    """What is known of a workload before a run."""

    workload: str
    settings: Mapping[str, Any]
    """Those that belong to the run's identity, as `--print-config` prints them."""
    iterations: int
    """Of the whole run."""
    eval_every: int | None
    """Iterations from one evaluation to the next; None: one at the end."""
    save_every: str
    device: str
    """The name of the GPU, or that of the processor."""
    is_gpu: bool
    threads: Mapping[int, int]
    """CPU threads of a rank, by the number of ranks."""
    recorded: str
    """Date and time."""
    cores: int
    """CPU cores of the machine that it was recorded on."""
    gpus: int
    """GPUs of that machine."""
    traces: Mapping[int, Trace]
    """By the number of ranks."""
    shared_cores: SharedCores = EQUAL_CORES
    """What a CPU machine does to ranks that compute on its cores."""

    @property
    def num_shards(self) -> int:
        """Of a global batch."""
        return RunConfig(exact=bool(self.settings.get("exact")), shards=self.settings.get("shards")).num_shards

    def write(self, path: Path) -> None:
        """Write the file. Raises UserError where the place cannot be written."""
        content = {name: getattr(self, name) for name in self.__dataclass_fields__}
        content |= {"traces": {n: trace.as_json() for n, trace in self.traces.items()}, "format": FORMAT}
        content |= {"shared_cores": asdict(self.shared_cores)}
        try:
            path.write_text(json.dumps(content) + "\n", encoding="utf-8")
        except OSError as error:
            found = f"{path}: {error.strerror or error}"
            raise UserError(f"--save-profile {path}", found, "name a file in a writable folder") from error

    @classmethod
    def read(cls, path: Path) -> Profile:
        """Raises UserError where the file is no profile."""
        asked = f"--profile {path}"
        content = read_object(path, asked)
        try:
            if content["format"] != FORMAT:
                raise ValueError(f"its format is {content['format']}, and this version reads {FORMAT}")
            whole = [content["iterations"], content["eval_every"] or 1, content["cores"], content["gpus"] + 1]
            if not all(isinstance(n, int) and n > 0 for n in whole) or not isinstance(content["save_every"], str):
                raise ValueError("iterations, eval_every, save_every, cores or gpus are wrong")
            texts = [content["workload"], content["device"], content["recorded"]]
            if not all(isinstance(text, str) for text in texts) or not isinstance(content["settings"], dict):
                raise ValueError("workload, device, recorded or settings are wrong")
            names = [name for name in cls.__dataclass_fields__ if name not in ("traces", "threads", "shared_cores")]
            return cls(
                **{name: content[name] for name in names},
                threads={int(n): int(threads) for n, threads in content["threads"].items()},
                traces={int(n): Trace.of_json(trace) for n, trace in content["traces"].items()},
                shared_cores=SharedCores(**content["shared_cores"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            what = f"{path} is no profile of `ranks forecast --save-profile`: {error}"
            raise UserError(asked, what[:300], "write one with ranks forecast WORKLOAD --save-profile FILE") from error
