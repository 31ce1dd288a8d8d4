"""The folder of a run: its lock and its identity. Imports no torch, so that the command line can
look first.

A run folder appears whole, with checkpoint 0 in it: it is built in a temporary sibling folder and
renamed. Its lock is a hidden file next to it, `.NAME.lock`. Every process of the run holds it with
flock (the launcher opens it, the ranks inherit it). So the lock ends with the last process, and it
holds between containers that share the file system.
"""

from __future__ import annotations

import glob
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, cast

from ranks.engine.files.disk import remove
from ranks.engine.files.lock import Holder, holder_of, is_held_by, is_locked, lock
from ranks.engine.files.regular import DamagedFile
from ranks.engine.files.strict_json import read_object
from ranks.errors import OtherFormat, UserError

FORMAT = 2
"""Of run.json, which says it under "format". Run folders of ranks 0.1.0 say none."""
RUN_FILE = "run.json"
CONFIG_FILE = "run_config.json"
METRICS_FILE = "metrics.jsonl"
EVENTS_FILE = "events.jsonl"
SESSIONS_FILE = "sessions.jsonl"
TELEMETRY_FILE = "telemetry.jsonl"
"""What the ranks use, as the launcher samples it. No checkpoint names it, and a resume does not cut it."""
PROGRESS_FILE = "progress.json"
"""How far a part of the present iteration is. No checkpoint names it."""
TEMPORARY = ".tmp-"
"""Begins the names of what is being written or deleted in checkpoints/ and kept/."""


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
    def kept(self) -> Path:
        """Of kept files."""
        return self.path / "kept"

    @property
    def exists(self) -> bool:
        return os.path.lexists(self.path / RUN_FILE)

    @property
    def _lock_file(self) -> Path:
        return self.path.parent / f".{self.path.name}.lock"

    def lock(self, patience_s: float = 0.0) -> int:
        """Lock the run for this process and those that inherit the descriptor. Raises UserError
        naming the owner. The logs that killed launchers left outside the folder are removed."""
        descriptor = lock(self._lock_file, f"to train in {self.path}", patience_s)
        self._remove_hidden("logs")
        return descriptor

    def in_use(self) -> bool | None:
        """Whether a process holds the run's lock now; None where it belongs to another user."""
        return is_locked(self._lock_file)

    def holder(self) -> Holder | None:
        """The process that has taken the run's lock, while it or one of its children holds it."""
        return holder_of(self._lock_file)

    def is_held_by(self, holder: Holder) -> bool:
        """Whether that process runs here, with the run's lock, so that a signal reaches the run."""
        return is_held_by(self._lock_file, holder)

    def remove_temporaries(self) -> list[Path]:
        """Remove the half-written files and folders of killed processes; those among the kept files. The
        lock must be held."""
        self._remove_hidden("tmp")
        folders = [] if self.kept.is_symlink() else [p for p in self.kept.glob("*") if not p.is_symlink()]
        kept = [left for folder in folders for left in folder.glob(f"{TEMPORARY}*")]
        saves = [] if self.checkpoints.is_symlink() else self.checkpoints.glob(f"{TEMPORARY}*")
        for left in (*self.path.glob(".*.tmp-*"), *saves, *kept):
            remove(left)
        return sorted(kept)

    def _remove_hidden(self, kind: str) -> None:
        """Remove what processes of this run have left next to its folder. Each such name ends with the id of the
        process, so the files of a run that is called `NAME.tmp-x` stay."""
        made = re.compile(rf"\.{re.escape(self.path.name)}\.{kind}-[0-9]+")
        for left in self.path.parent.glob(f".{glob.escape(self.path.name)}.{kind}-*"):
            if made.fullmatch(left.name):
                remove(left)

    def read_run(self) -> dict[str, Any]:
        """run.json. Raises UserError where it is damaged."""
        return self._read(RUN_FILE, {"identity": dict})

    def read_settings(self) -> dict[str, Any]:
        """run_config.json: workload, engine and config. Raises UserError where it is damaged, or
        where run.json has other values."""
        settings = self._read(CONFIG_FILE, {"workload": str, "engine": dict, "config": dict})
        identity = self.read_run()["identity"]
        for part in ("engine", "config"):
            disagree = differing(*_shared(identity.get(part), settings[part]), part)
            if disagree:
                do = "restore the damaged one of the two from a copy"
                found = f"run.json and {CONFIG_FILE} disagree: {disagree[0]}"
                raise UserError(f"to read {self.path / CONFIG_FILE}", found, do)
        return settings

    def _read(self, name: str, parts: Mapping[str, type]) -> dict[str, Any]:
        path = self.path / name
        try:
            found = read_object(path)
            wrong = [part for part, kind in parts.items() if not isinstance(found.get(part), kind)]
            if wrong:
                raise DamagedFile(f"{path}: it has no valid {', '.join(wrong)}")
        except DamagedFile as damage:
            raise UserError(f"to read {path}", str(damage), "restore the file, or choose another --name") from damage
        return found

    def check_format(self) -> None:
        """Raises OtherFormat where another version of ranks has written the folder."""
        if not self.exists:
            return
        found = self.read_run().get("format")
        if found is not None and type(found) is not int:
            raise UserError(f"to read {self.path / RUN_FILE}", f"its format is {found!r}"[:100], "restore the file")
        if found != FORMAT:
            raise OtherFormat.of(self.path, found, FORMAT)

    def check_identity(self, identity: Mapping[str, Any]) -> None:
        """Raises UserError where the folder holds another run. It lists the differences: workload,
        data, config, optimizer, engine."""
        self.check_format()
        differences = differing(self.read_run()["identity"], identity)
        if differences:
            is_other_workload = any(difference.startswith("workload was") for difference in differences)
            do = "choose another --name"
            if not is_other_workload:
                do += ", or give the settings that the run was started with"
            flags = [] if is_other_workload else [flag for d in differences if (flag := _flag(d))]
            if flags:
                do += f" ({' '.join(flags)})"
            ends = [match[1] for d in differences if (match := re.search(r"schedule_updates was (\d+)", d))]
            if ends:
                do += (
                    f"; to train longer under this name, add --optim.schedule-updates {ends[0]}: the learning rate "
                    "is 0 after it"
                )
            listed = "\n       ".join(["it is another run", *sorted(differences, key=_weight)])
            raise UserError(f"to continue {self.path}", listed, do)

    def temporary(self) -> Path:
        """An empty temporary folder to build the run folder in; the lock must be held. Raises
        OSError."""
        path = self.path.parent / f".{self.path.name}.tmp-{os.getpid()}"
        path.mkdir()
        return path


def name_of(iteration: int) -> str:
    """The name of a checkpoint's folder."""
    return f"{iteration:08d}"


def iteration_of(path: PurePath) -> int | None:
    """The iteration in the name of a checkpoint folder; None for other names."""
    return int(path.name) if re.fullmatch(r"[0-9]{8,18}", path.name) else None


def listing(checkpoints: Path) -> list[Path]:
    """Checkpoint folders from oldest to newest, without verifying them; what has the name of one
    and is none is listed too. Empty where `checkpoints` is no folder, or a link."""
    if checkpoints.is_symlink() or not checkpoints.is_dir():
        return []
    named = {path: iteration_of(path) for path in checkpoints.iterdir()}
    return sorted((path for path, n in named.items() if n is not None), key=lambda path: (int(path.name), path.name))


def _shared(one: Any, other: Any) -> tuple[Any, Any]:
    """Two JSON trees without the keys that only one of them has."""
    if isinstance(one, dict) and isinstance(other, dict):
        a, b = cast("dict[str, Any]", one), cast("dict[str, Any]", other)
        pairs = {key: _shared(a[key], b[key]) for key in a.keys() & b.keys()}
        return {k: v[0] for k, v in pairs.items()}, {k: v[1] for k, v in pairs.items()}
    return one, other


def _flag(difference: str) -> str | None:
    """'engine.seed was 0, now 1' -> '--seed 0': the flag that sets a number, a word or a switch back. None for other
    values; null is also a setting that the run had not, or that this version has not."""
    found = re.fullmatch(r'(?:config|engine)\.(\S+) was ("?)([\w.+-]+)\2, now (.*)', difference)
    if found is None or "null" in (found[3], found[4]):
        return None
    name, value = found[1].replace("_", "-"), found[3]
    if value in ("true", "false") and not found[2]:
        group, dot, switch = name.rpartition(".")
        return f"--{group}{dot}{'no-' * (value == 'false')}{switch}"
    return f"--{name} {value}"


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
