"""`ranks export RUN`: a saved model as files that need no `ranks`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ranks.cli.parse import Positional, parse
from ranks.cli.run_folder import find_folder, open_run


@dataclass(frozen=True)
class Flags:
    """Write a run's model as model.safetensors, config.json and a model.py that imports only torch.

    A workload may add more: graph-coloring adds an ONNX file, compared with the model before it is written."""

    run: Positional[str]
    """A run's name under runs/, or the path of its folder."""
    checkpoint: str = "latest"
    """best (by the run's own score), latest, or the number of an iteration."""
    json: bool = False
    """Print JSON in place of lines."""
    runs_dir: Path = Path("runs")
    """Where run folders stand."""


def export(argv: Sequence[str]) -> int:
    """Rebuild the model from the checkpoint and write it into the run's export/ folder."""
    flags = parse(Flags, argv, prog="ranks export")
    asked = f"ranks export {flags.run}"
    run = open_run(find_folder(flags.run, flags.runs_dir, asked), asked)
    from ranks.cli.saved_model import choose, rebuild
    from ranks.engine.distributed.world import World
    from ranks.engine.export.export import export_model

    found = choose(run.folder, flags.checkpoint)
    world = World.join(replace(run.engine, shares=None), device="cpu", workload=run.workload)
    try:
        model = rebuild(run, found, world.device)
        folder = export_model(model, run.folder / "export")
        extra: Callable[..., list[Path]] | None = getattr(run.module, "export_extra", None)
        more = extra(model, run.config, folder) if extra is not None else []
    finally:
        world.leave()
    names = ["model.safetensors", "config.json", "model.py"]
    files = [folder / name for name in names] + [path for path in more if path.name not in names]
    facts: dict[str, Any] = {
        "run": run.folder.name,
        "iteration": found.iteration,
        "files": [{"path": str(path), "bytes": path.stat().st_size} for path in files],
    }
    if flags.json:
        print(json.dumps(facts, indent=2))
    else:
        print(f"{run.folder.name}, iteration {found.iteration:,}")
        print("\n".join(f"  {entry['path']}  {entry['bytes'] / 1e6:.2f} MB" for entry in facts["files"]))
    return 0
