"""Begins or continues a run: its identity, its folder, the state of what it keeps."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

from ranks.engine.config import identity_of
from ranks.engine.distributed.world import World
from ranks.engine.liveness.heartbeat import heartbeat
from ranks.engine.liveness.phases import Phase
from ranks.engine.runs import checkpoint, code, provenance
from ranks.engine.runs.checkpoint import HostState
from ranks.engine.runs.folder import (
    CONFIG_FILE,
    EVENTS_FILE,
    FORMAT,
    METRICS_FILE,
    RUN_FILE,
    SESSIONS_FILE,
    RunFolder,
)
from ranks.engine.runs.jsonl import read_rows
from ranks.engine.state import Stateful
from ranks.engine.update.learner import Learner
from ranks.errors import UserError

T = TypeVar("T")


@dataclass(frozen=True)
class Opened:
    """Where a run begins or continues."""

    iteration: int
    """So many iterations are finished."""
    resumed: bool
    time_s: float
    """Seconds of the sessions before this one whose work was kept."""
    fingerprint: str
    session: dict[str, Any]
    """The record of this session's beginning, for sessions.jsonl."""
    finished: bool = False
    """Whether the session before this one ended well."""
    lengths: dict[str, int] = field(default_factory=dict[str, int])
    """File name -> bytes that belong to the checkpoint."""
    damaged: list[str] = field(default_factory=list[str])
    """What is wrong with newer checkpoints."""
    changed_code: list[str] = field(default_factory=list[str])
    """What differs from the code that trained before."""


def identity(world: World, config: Any, keep: Mapping[str, Stateful], data: str | None) -> dict[str, Any]:
    """What identifies a run. A change of any part makes another run."""
    found = {
        "workload": Path(world.workload).stem,
        "engine": identity_of(world.config),
        "config": {k: v for k, v in identity_of(config).items() if k != "optim"},
        "data": data,
    }
    found.update({name: kept.identity for name, kept in keep.items() if isinstance(kept, Learner)})
    return cast(dict[str, Any], json.loads(json.dumps(found)))


def lock(folder: RunFolder, world: World) -> int | None:
    """The descriptor that holds the folder's lock, on the first rank; None where the launcher holds
    it. Every rank calls it."""
    launched = world.process_env.lock_fd is not None
    descriptor = _first_rank(world, lambda: None if launched else folder.lock(patience_s=5.0))
    return descriptor if world.rank == 0 else None


def open_folder(folder: RunFolder, world: World, config: Any, keep: dict[str, Stateful], data: str | None) -> Opened:
    """Create the folder with checkpoint 0, or load the newest checkpoint that verifies. Every rank
    calls it."""
    heartbeat.enter(Phase.LOAD)
    who = identity(world, config, keep, data)
    found = _first_rank(world, lambda: _look(folder, world, who))
    if found is None:
        state = HostState.of({name: kept.state_dict() for name, kept in keep.items()})
        return _first_rank(world, lambda: _create(folder, world, config, who, state))
    path, damaged = found
    loaded = checkpoint.read(path)
    if loaded.state.keys() != keep.keys():
        raise UserError(
            f"to continue from {path}",
            f"its checkpoint keeps {sorted(loaded.state)}, this program keeps {sorted(keep)}",
            "choose another --name",
        )
    for name, kept in keep.items():
        kept.load_state_dict(loaded.state[name])
        measured = loaded.manifest["measured"]
        if isinstance(kept, Learner) and measured["assignment"] == list(world.assignment.bounds):
            kept.measured = measured[name]
    return Opened(
        loaded.iteration,
        resumed=True,
        time_s=float(loaded.manifest["time_s"]),
        fingerprint=loaded.fingerprint,
        session=_session(world, "resumed", loaded.iteration, folder.path / METRICS_FILE),
        finished=[r["event"] for r in read_rows(folder.path / SESSIONS_FILE)[-1:]] == ["finished"],
        lengths={
            METRICS_FILE: int(loaded.manifest["metrics_bytes"]),
            EVENTS_FILE: int(loaded.manifest["events_bytes"]),
        },
        damaged=damaged,
        changed_code=_first_rank(world, lambda: code.update(folder.path, world.workload)),
    )


def _first_rank(world: World, act: Callable[[], T]) -> T:
    """What `act` returns on the first rank, on every rank; a UserError is raised on all ranks."""
    outcome: tuple[T | None, UserError | None] = (None, None)
    if world.rank == 0:
        try:
            outcome = (act(), None)
        except UserError as error:
            outcome = (None, error)
    result, problem = world.comm.gather_objects(outcome)[0]
    if problem is not None:
        raise problem
    return cast(T, result)


def _look(folder: RunFolder, world: World, who: dict[str, Any]) -> tuple[Path, list[str]] | None:
    if not folder.exists:
        return None
    folder.check_identity(who)
    checkpoint.remove_temporaries(folder.checkpoints)
    damaged: list[str] = []
    newest = checkpoint.newest(folder.checkpoints, damaged)
    if newest is None:
        raise UserError(
            f"to continue {folder.path}",
            "no intact checkpoint: " + ("; ".join(damaged) or "the folder holds none"),
            "restore one from a copy, or start again under another --name",
        )
    checkpoint.quarantine(folder.checkpoints, newest.iteration)
    return newest.path, damaged


def _create(folder: RunFolder, world: World, config: Any, who: dict[str, Any], state: HostState) -> Opened:
    try:
        place = folder.temporary()
        _write_json(
            place / CONFIG_FILE, {"workload": world.workload, "engine": asdict(world.config), "config": asdict(config)}
        )
        run_facts = {
            "format": FORMAT,
            "identity": who,
            "versions": provenance.versions(),
            "hardware": provenance.hardware(world.device),
            "git": provenance.git_commit(),
            "code": code.keep(place, world.workload),
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        _write_json(place / RUN_FILE, run_facts)
        for name in (METRICS_FILE, EVENTS_FILE):
            (place / name).touch()
        about = {"time_s": 0.0, "score": None, "ranks": world.size, "metrics_bytes": 0, "events_bytes": 0}
        measured: dict[str, Any] = {"assignment": list(world.assignment.bounds)}
        measured.update({n: {"max_cost": None} for n in state.rest})
        path = checkpoint.write(place / "checkpoints", 0, state, {**about, "measured": measured})
        found = checkpoint.read_manifest(path)["fingerprint"]
        os.rename(place, folder.path)
    except OSError as error:
        raise UserError(
            f"to start a run in {folder.path}",
            f"{error.strerror or error}",
            "give a folder that can be written with --runs-dir",
        ) from error
    return Opened(0, resumed=False, time_s=0.0, fingerprint=found, session=_session(world, "opened", 0, None))


def _session(world: World, event: str, iteration: int, metrics: Path | None) -> dict[str, Any]:
    return {
        "event": event,
        "time": time.time(),
        "joined": world.joined_at,
        "last_sign": metrics.stat().st_mtime if metrics is not None and metrics.exists() else time.time(),
        "attempt": world.process_env.attempt,
        "iteration": iteration,
        "ranks": world.size,
    }


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, default=str) + "\n")
