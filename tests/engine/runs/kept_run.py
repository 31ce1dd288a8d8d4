"""A small run with a window of kept files, which a test can kill or damage."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ranks import KeptFile, RunConfig, Summary, World
from ranks.engine.runs.checkpoints.manifest import read_manifest
from ranks.engine.runs.folder import listing
from ranks.engine.runs.kept import kept_folder
from tests.toys import window

CONFIG = window.Config(iterations=8)
WORKLOAD = str(Path(window.__file__))


def config_of(folder: Path) -> RunConfig:
    return RunConfig(name="r", runs_dir=folder / "runs", threads=1, shards=8, exact=True, save_every="2")


def train(config: RunConfig, iterations: int = 8) -> Summary:
    world = World.join(config, workload=WORKLOAD)
    try:
        return window.train(replace(CONFIG, iterations=iterations), world)
    finally:
        world.leave()


def kept(config: RunConfig) -> dict[int, Path]:
    """The files on disk by the iteration in their name."""
    return {int(p.name[:8]): p for p in sorted((config.runs_dir / "r" / "kept" / "window").iterdir())}


def named(config: RunConfig) -> set[str]:
    """The files that the manifests name."""
    found = [read_manifest(path).kept for path in listing(config.runs_dir / "r" / "checkpoints")]
    return {path for names in found for path in names}


def check_resumed(config: RunConfig, straight: Summary) -> None:
    """Train to 10 iterations: as the undisturbed run, and nothing is left that no checkpoint names."""
    assert train(config, 10).fingerprint == straight.fingerprint
    assert {f"window/{path.name}" for path in kept(config).values()} == named(config)
    folder = config.runs_dir / "r"
    assert [str(p) for p in folder.rglob(".*")] == []
    for path in named(config):
        kept_folder.KeptFolder(folder / "kept").verify(KeptFile(path, (folder / "kept" / path).stat().st_size))
