"""Which files of a run are copied, and what each must be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ranks.engine.runs.checkpoints.manifest import MANIFEST, Manifest
from ranks.engine.runs.folder import CONFIG_FILE, EVENTS_FILE, METRICS_FILE, RUN_FILE, SESSIONS_FILE, name_of
from ranks.engine.runs.kept.kept_file import KeptFile
from ranks.transfer.remote_run import RemoteRun


@dataclass(frozen=True)
class RunFiles:
    """`sums`: files whose sha256 sum the run itself says. `lengths`: files of which only the start is wanted. `others`:
    files that are compared with the sums there."""

    iteration: int
    sums: dict[str, str] = field(default_factory=dict[str, str])
    lengths: dict[str, int] = field(default_factory=dict[str, int])
    others: list[str] = field(default_factory=list[str])
    num_bytes: int = 0

    @property
    def names(self) -> list[str]:
        return [*self.others, *self.lengths, *self.sums]


def of_checkpoint(run: RemoteRun, manifest: Manifest) -> RunFiles:
    """What a run needs to continue from one checkpoint: its settings and code, the rows until then, and the best
    checkpoint, which `--checkpoint best` takes."""
    scored = [m for m in run.manifests.values() if m.score is not None and m.iteration <= manifest.iteration]
    best = min(scored, key=lambda m: (m.score or 0.0, m.iteration), default=manifest)
    chosen = {m.iteration: m for m in (best, manifest)}
    lengths = {METRICS_FILE: manifest.metrics_bytes, EVENTS_FILE: manifest.events_bytes}
    others = [RUN_FILE, CONFIG_FILE, *run.code_files]
    others += [f"{_folder(one)}/{MANIFEST}" for one in chosen.values()]
    files = [file for one in chosen.values() for file in _listed(one)]
    num_bytes = sum(size for _, size, _ in files) + sum(lengths.values())
    return RunFiles(manifest.iteration, {name: sha256 for name, _, sha256 in files}, lengths, others, num_bytes)


def of_whole(run: RemoteRun, names: Sequence[str]) -> RunFiles:
    """All files of a run that has finished. `names`: of all files there."""
    files = [file for manifest in run.manifests.values() for file in _listed(manifest)]
    sums = {name: sha256 for name, _, sha256 in files}
    others = [name for name in names if name not in sums and name != SESSIONS_FILE]
    num_bytes = sum(size for _, size, _ in files)
    return RunFiles(max(run.manifests, default=-1), sums, {}, others, num_bytes)


def _listed(manifest: Manifest) -> list[tuple[str, int, str]]:
    """(name, bytes, sha256) of each file that a checkpoint consists of or names, without its manifest."""
    kept = [KeptFile(path, size) for path, size in manifest.kept.items()]
    own = [(f"{_folder(manifest)}/{name}", about["bytes"], about["sha256"]) for name, about in manifest.files.items()]
    return [*own, *((f"kept/{file.path}", file.size, file.sha256) for file in kept)]


def _folder(manifest: Manifest) -> str:
    return f"checkpoints/{name_of(manifest.iteration)}"
