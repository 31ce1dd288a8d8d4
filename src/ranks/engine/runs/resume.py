"""Begins or continues a run: its identity, its folder, the state of what it keeps."""

from __future__ import annotations

import json
import os
import time
import traceback
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

from ranks.engine.config import identity_of
from ranks.engine.distributed.agree import check_shared, on_every_rank, on_first_rank
from ranks.engine.distributed.world import World
from ranks.engine.files.disk import NOTHING_SAVED, remove, sync_folder, write_durably, writing
from ranks.engine.files.jsonl import last_rows
from ranks.engine.files.regular import DamagedFile
from ranks.engine.liveness.heartbeat import heartbeat
from ranks.engine.liveness.phases import Phase
from ranks.engine.runs import code, provenance
from ranks.engine.runs.checkpoints import checkpoint
from ranks.engine.runs.checkpoints.checkpoint import Checkpoint, DamagedCheckpoint, HostState
from ranks.engine.runs.checkpoints.manifest import MANIFEST, Manifest
from ranks.engine.runs.folder import (
    CONFIG_FILE,
    EVENTS_FILE,
    FORMAT,
    METRICS_FILE,
    RUN_FILE,
    SESSIONS_FILE,
    RunFolder,
)
from ranks.engine.runs.kept.kept_folder import NAMED, KeptFolder
from ranks.engine.runs.sessions import newest_state
from ranks.engine.runs.warm_start import initial_sha256, load_initial_weights
from ranks.engine.state import Stateful
from ranks.engine.update.learner import Learner
from ranks.errors import UserError


@dataclass(frozen=True)
class Opened:
    """Where a run begins or continues."""

    manifest: Manifest
    """Of the checkpoint that was loaded, or of checkpoint 0."""
    resumed: bool
    session: dict[str, Any]
    """The record of this session's beginning, for sessions.jsonl."""
    has_initial_weights: bool = False
    """Whether the run began with the weights of `--init-from`."""
    finished: bool = False
    """Whether the session before this one ended well."""
    lengths: dict[str, int] = field(default_factory=dict[str, int])
    """File name -> bytes that belong to the checkpoint."""
    damaged: list[str] = field(default_factory=list[str])
    """What is wrong with newer checkpoints."""
    half_written: list[Path] = field(default_factory=list[Path])
    """Kept files that a killed process left unfinished; they are removed."""
    lost: list[str] = field(default_factory=list[str])
    """Kept files that are gone, or of another size, and that training does not need."""
    changed_code: list[str] = field(default_factory=list[str])
    """What differs from the code that trained before."""
    notes: list[str] = field(default_factory=list[str])
    """Other things that the person who watches should know."""

    @property
    def warnings(self) -> list[str]:
        """For the person who watches."""
        damaged = [f"damaged checkpoint skipped: {problem}" for problem in self.damaged]
        changed = [f"{change} since this run trained last; the run continues with it" for change in self.changed_code]
        removed = []
        if count := len(self.half_written):
            names = ", ".join(map(str, self.half_written[:NAMED]))
            removed = [f"{count} half-written kept file{'s' if count > 1 else ''} of a killed process removed: {names}"]
        lost = []
        if count := len(self.lost):
            names = ", ".join(self.lost[:NAMED])
            lost = [f"{count} kept file{'s' if count > 1 else ''} missing or damaged, not needed to train: {names}"]
        return damaged + removed + lost + changed


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
    descriptor = on_first_rank(world, lambda: None if launched else folder.lock(patience_s=5.0))
    return descriptor if world.rank == 0 else None


def open_folder(folder: RunFolder, world: World, config: Any, keep: dict[str, Stateful], data: str | None) -> Opened:
    """Create the folder with checkpoint 0, or load the newest checkpoint that verifies. Every rank
    calls it."""
    heartbeat.enter(Phase.LOAD)
    who, export = identity(world, config, keep, data), world.config.init_from
    initial = on_first_rank(world, lambda: initial_sha256(export, folder))
    who |= {"init_from": initial} if initial is not None else {}
    verified: list[Checkpoint] = []  # on the first rank, which then need not read it twice
    found = on_first_rank(world, lambda: _look(folder, who, verified))
    if found is None:
        load_initial_weights(world, [kept for kept in keep.values() if isinstance(kept, Learner)])
        state = HostState.of({name: kept.state_dict() for name, kept in keep.items()})
        created = on_first_rank(world, lambda: _create(folder, world, config, who, state))
        _check_shared(world, folder.checkpoints / f"{0:08d}")
        if initial is not None:
            created.notes.append(f"begins with the weights of {export}, sha256 {initial[:12]}")
        return created
    path, damaged, half_written, lost = found
    _check_shared(world, path)
    loaded = on_every_rank(world, lambda: verified[0] if verified else _read(path))
    if loaded.state.keys() != keep.keys():
        raise UserError(
            f"to continue from {path}",
            f"its checkpoint keeps {sorted(loaded.state)}, this program keeps {sorted(keep)}",
            "choose another --name",
        )
    manifest = loaded.manifest
    for name, kept in keep.items():
        _load(path, name, kept, loaded.state[name])
        measured = manifest.measured.get(name)
        same_shards = manifest.measured.get("assignment") == list(world.assignment.bounds)
        if isinstance(kept, Learner) and same_shards and measured is not None:
            kept.measured = measured
    return Opened(
        manifest,
        resumed=True,
        session=_session(world, "resumed", manifest.iteration, folder.path / METRICS_FILE),
        has_initial_weights=initial is not None,
        finished=newest_state(last_rows(folder.path / SESSIONS_FILE)).get("event") == "finished",
        lengths={METRICS_FILE: manifest.metrics_bytes, EVENTS_FILE: manifest.events_bytes},
        damaged=damaged,
        half_written=half_written,
        lost=lost,
        changed_code=on_first_rank(world, lambda: code.update(folder, world.workload)),
        notes=[*_not_read(export), *on_first_rank(world, lambda: _other_torch(folder, world))],
    )


def _not_read(export: Path | None) -> list[str]:
    return [f"--init-from {export} is not read: the run continues from its checkpoint"] if export is not None else []


def _other_torch(folder: RunFolder, world: World) -> list[str]:
    """What an exact run loses that continues with another torch than it began with."""
    versions = folder.read_run().get("versions")
    began = versions.get("torch") if isinstance(versions, dict) else None
    now = provenance.versions()["torch"]
    if not world.config.exact or began in (None, now):
        return []
    lost = "from here on its bits can differ from those of a run with one torch"
    return [f"the run began with torch {began}, and continues with {now}: {lost}"]


def _load(path: Path, name: str, kept: Stateful, state: Mapping[str, Any]) -> None:
    """Load a kept object's state. Raises UserError where it does not fit."""
    try:
        kept.load_state_dict(state)
    except UserError:
        raise
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        raise UserError(
            f"to continue from {path}",
            f"{name} cannot load its state: {type(error).__name__}: {error} ({where.filename}:{where.lineno})",
            "continue with the code that saved it, or choose another --name",
        ) from error


def _read(path: Path) -> Checkpoint:
    try:
        return checkpoint.read(path)
    except DamagedCheckpoint as damage:
        raise UserError(
            f"to continue from {path}", str(damage), "check that all ranks see the same files; the first rank read it"
        ) from damage


def _check_shared(world: World, path: Path) -> None:
    """Raises UserError, on all ranks, where a host does not see the first rank's checkpoint `path`."""
    manifest = path / MANIFEST
    wanted = on_first_rank(world, manifest.read_bytes)
    check_shared(world, path.parents[1], lambda: manifest.is_file() and manifest.read_bytes() == wanted)


def _look(
    folder: RunFolder, who: dict[str, Any], verified: list[Checkpoint]
) -> tuple[Path, list[str], list[Path], list[str]] | None:
    """The newest good checkpoint, what is wrong with newer ones, the half-written kept files that were removed, and
    the missing ones that training does not need; None where the run is new."""
    half_written = folder.remove_temporaries()
    if not folder.exists:
        if os.path.lexists(folder.path) and (not folder.path.is_dir() or any(folder.path.iterdir())):
            raise UserError(
                f"to start a run in {folder.path}",
                f"it exists and has no {RUN_FILE}, so it is no run folder, or a damaged one",
                f"restore {RUN_FILE} from a copy, remove the folder, or choose another --name",
            )
        if folder.path.is_symlink():
            raise UserError(
                f"to start a run in {folder.path}",
                f"it is a link to the empty folder {folder.path.resolve()}, and a run makes its own folder",
                "remove the link and give that disk with --runs-dir; the folder of a run may be moved and linked later",
            )
        return None
    folder.check_identity(who)
    damaged: list[str] = []
    newest = checkpoint.newest(folder.checkpoints, damaged, resume=True)
    if newest is None:
        none = f"{folder.checkpoints} is a link" if folder.checkpoints.is_symlink() else "the folder holds none"
        found, do = "; ".join(damaged) or none, "restore one from a copy, or start again under another --name"
        if checkpoint.newest(folder.checkpoints, []) is not None:  # with its kept files ignored
            do = (
                "put the damaged kept files back from a copy (a good copy has the sha256 in its name) and run the "
                "same command again; without a copy the run cannot continue: ranks evaluate and ranks export still "
                "take its newest weights, or start again under another --name"
            )
        raise UserError(f"to continue {folder.path}", f"no intact checkpoint: {found}", do)
    with writing(f"to continue {folder.path}", folder.checkpoints):
        checkpoint.quarantine(folder.checkpoints, newest.iteration)
        checkpoint.delete_unnamed_files(folder.checkpoints, before=newest.iteration)
    verified.append(newest)
    archived = {path: newest.manifest.kept[path] for path in sorted(newest.archived)}
    return newest.path, damaged, half_written, KeptFolder(folder.kept).missing(archived)


def _create(folder: RunFolder, world: World, config: Any, who: dict[str, Any], state: HostState) -> Opened:
    """Build the folder of a new run, with checkpoint 0, and rename it. Raises UserError."""
    settings = {"workload": world.workload, "engine": asdict(world.config), "config": asdict(config)}
    about = {"time_s": 0.0, "score": None, "ranks": world.size, "metrics_bytes": 0, "events_bytes": 0}
    measured: dict[str, Any] = {"assignment": list(world.assignment.bounds)}
    measured.update({n: {"max_cost": None} for n in state.rest})
    with writing(f"to start a run in {folder.path}", folder.path.parent, NOTHING_SAVED):
        place = folder.temporary()
        try:
            run_facts = {
                "format": FORMAT,
                "identity": who,
                "versions": provenance.versions(),
                "hardware": provenance.hardware(world.device),
                "git": provenance.git_commit(),
                "code": code.keep(place, world.workload),
                "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            }
            for name, content in ((CONFIG_FILE, settings), (RUN_FILE, run_facts)):
                write_durably(place / name, (json.dumps(content, indent=2, default=str) + "\n").encode())
            for name in (METRICS_FILE, EVENTS_FILE):
                (place / name).touch()
            (place / folder.checkpoints.name).mkdir()
            manifest = checkpoint.write(place / folder.checkpoints.name, 0, state, {**about, "measured": measured})
            sync_folder(place)
            os.rename(place, folder.path)
            sync_folder(folder.path.parent)
        except (OSError, DamagedFile):
            remove(place)
            raise
    session, warm = _session(world, "opened", 0, None), "init_from" in who
    return Opened(manifest, resumed=False, session=session, has_initial_weights=warm)


def _session(world: World, event: str, iteration: int, metrics: Path | None) -> dict[str, Any]:
    return {
        "event": event,
        "time": time.time(),
        "joined": world.joined_at,
        "last_sign": metrics.stat().st_mtime if metrics is not None and metrics.exists() else time.time(),
        "attempt": world.process_env.attempt,
        "iteration": iteration,
        "ranks": world.size,
        **({"price": world.price} if world.price is not None else {}),
    }
