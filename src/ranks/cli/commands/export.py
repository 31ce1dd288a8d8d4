"""`ranks export RUN`: write a saved model as files that can be used without ranks."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ranks.cli.flags.parse import Positional, parse
from ranks.cli.saved.run_folder import open_run
from ranks.cli.units import size
from ranks.engine.runs.find_run import find_folder


@dataclass(frozen=True)
class ExportFlags:
    """Write a run's model as model.safetensors, config.json and a model.py that imports only torch.

    A workload may add files: graph-coloring adds an ONNX file, after it compared its output with
    the model's."""

    run: Positional[str]
    """A run's name under runs/, or the path of its folder."""
    checkpoint: str = "latest"
    """best (lowest score), latest, or the number of an iteration."""
    json: bool = False
    """Print JSON."""
    trust_code: bool = False
    """Execute the copy of the workload's file that is in the run folder."""
    runs_dir: Path = Path("runs")
    """The folder of the run folders."""


def export(argv: Sequence[str]) -> int:
    """Load the model from the checkpoint and write it into the run's export/ folder."""
    flags = parse(ExportFlags, argv, prog="ranks export")
    asked = f"ranks export {flags.run}"
    run = open_run(find_folder(flags.run, flags.runs_dir, asked), asked, trust_code=flags.trust_code)
    from ranks.cli.saved.saved_model import load_model
    from ranks.engine.distributed.world import World
    from ranks.engine.export.export import FILES, export_model
    from ranks.engine.runs.checkpoints.pick import pick_checkpoint

    found = pick_checkpoint(run.folder, flags.checkpoint, f"--checkpoint {flags.checkpoint}")
    world = World.join(replace(run.engine, shares=None), device="cpu", workload=run.workload)
    try:
        model = load_model(run, found, world.device)
        folder = export_model(model, run.folder / "export")
        extra: Callable[..., list[Path]] | None = getattr(run.module, "export_extra", None)
        more = extra(model, run.config, folder) if extra is not None else []
    finally:
        world.leave()
    files = [folder / name for name in FILES] + [path for path in more if path.name not in FILES]
    result: dict[str, Any] = {
        "run": run.folder.name,
        "iteration": found.iteration,
        "files": [{"path": str(path), "bytes": path.stat().st_size} for path in files],
    }
    if flags.json:
        print(json.dumps(result, indent=2))
    else:
        print(f"{run.folder.name}, iteration {found.iteration:,}")
        print("\n".join(f"  {entry['path']}  {size(entry['bytes'])}" for entry in result["files"]))
        print(f'load it there, without ranks: from model import load; net = load("{folder}")')
    return 0
