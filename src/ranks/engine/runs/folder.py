"""The folder of a run: its lock and its identity. Imports no torch, so that the command line can
look first.

A run folder appears whole, with checkpoint 0 in it: it is built in a temporary sibling folder and
renamed. Its lock is a hidden file next to it, `.NAME.lock`. Every process of the run holds it with
flock (the launcher opens it, the ranks inherit it). So the lock ends with the last process, and it
holds between containers that share the file system.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ranks.errors import OtherFormat, UserError

FORMAT = 2
"""Of run.json, which says it under "format". Run folders of ranks 0.1.0 say none."""
RUN_FILE = "run.json"
CONFIG_FILE = "run_config.json"
METRICS_FILE = "metrics.jsonl"
EVENTS_FILE = "events.jsonl"
SESSIONS_FILE = "sessions.jsonl"


@dataclass(frozen=True)
class RunFolder:
    """`path`: runs/NAME."""

    path: Path

    @classmethod
    def of(cls, runs_dir: Path, name: str) -> RunFolder:
        """The folder of a run. Raises UserError where the name is not one plain path component."""
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}", name):
            raise UserError(
                f"--name {name!r}", "not a valid folder name", "use letters, digits, '.', '_' and '-', at most 100"
            )
        return cls(runs_dir / name)

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def exists(self) -> bool:
        return (self.path / RUN_FILE).is_file()

    def lock(self, patience_s: float = 0.0) -> int:
        """Lock the run for this process and those that inherit the descriptor. Raises UserError
        naming the owner."""
        path = self.path.parent / f".{self.path.name}.lock"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise UserError(
                f"to train in {self.path}",
                f"{path.parent}: {error.strerror}",
                "choose a writable folder with --runs-dir",
            ) from error
        deadline = time.monotonic() + patience_s
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() < deadline:
                    time.sleep(0.05)
                    continue
                owner = os.pread(descriptor, 1000, 0).decode(errors="replace").strip() or "an unnamed process"
                os.close(descriptor)
                raise UserError(
                    f"to train in {self.path}",
                    f"the run is in use by {owner}",
                    "wait for it, stop it, or choose another --name",
                ) from None
        os.ftruncate(descriptor, 0)
        started = time.strftime("%Y-%m-%d %H:%M:%S")
        os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()} since {started}".encode(), 0)
        os.set_inheritable(descriptor, True)
        return descriptor

    def read_run(self) -> dict[str, Any]:
        """run.json. Raises UserError where it is damaged."""
        try:
            return cast(dict[str, Any], json.loads((self.path / RUN_FILE).read_text()))
        except (OSError, ValueError) as error:
            raise UserError(
                f"to read {self.path / RUN_FILE}", f"{error}", "restore the file, or choose another --name"
            ) from error

    def check_format(self) -> None:
        """Raises OtherFormat where another version of ranks has written the folder."""
        if self.exists and (found := self.read_run().get("format")) != FORMAT:
            raise OtherFormat.of(self.path, found, FORMAT)

    def check_identity(self, identity: Mapping[str, Any]) -> None:
        """Raises UserError where the folder holds another run. It lists the differences: workload,
        data, config, optimizer, engine."""
        self.check_format()
        differences = differing(self.read_run()["identity"], identity)
        if differences:
            do = "choose another --name, or give the settings that the run was started with"
            if any("schedule_updates" in difference for difference in differences):
                do += (
                    "; to train longer under this name, keep the schedule's end with --optim.schedule-updates: "
                    "the learning rate is 0 after it"
                )
            listed = "\n       ".join(["it is another run", *sorted(differences, key=_weight)])
            raise UserError(f"to continue {self.path}", listed, do)

    def temporary(self) -> Path:
        """An empty temporary folder to build the run folder in. Those of earlier attempts are
        removed; the lock must be held."""
        for old in self.path.parent.glob(f".{self.path.name}.tmp-*"):
            shutil.rmtree(old, ignore_errors=True)
        path = self.path.parent / f".{self.path.name}.tmp-{os.getpid()}"
        path.mkdir()
        return path


def _weight(difference: str) -> int:
    """The order of differences: workload, data, config, what the run keeps (the optimizer),
    engine."""
    part = re.split(r"[. ]", difference, maxsplit=1)[0]
    order = ("workload", "data", "config")
    return order.index(part) if part in order else len(order) + (part == "engine")


def differing(before: Any, now: Any, name: str = "") -> list[str]:
    """`name: before -> now` for each leaf that differs between two JSON trees."""
    before, now = _plain(before), _plain(now)
    if isinstance(before, dict) and isinstance(now, dict):
        old, new = cast(dict[str, Any], before), cast(dict[str, Any], now)
        keys = sorted(old.keys() | new.keys())
        return [d for k in keys for d in differing(old.get(k), new.get(k), f"{name}.{k}" if name else k)]
    return [] if before == now else [f"{name} was {_shown(before)}, now {_shown(now)}"]


def _shown(value: Any) -> str:
    """As JSON; of a sha256 the first 12 characters."""
    is_hash = isinstance(value, str) and re.fullmatch(r"[0-9a-f]{64}", value) is not None
    return json.dumps(value[:12] if is_hash else value)


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value))
