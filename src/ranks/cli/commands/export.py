"""`ranks export RUN`: write a saved model as files that can be used without ranks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranks.cli.flags.parse import Positional, parse
from ranks.cli.saved.exported import export_checkpoint, wants_onnx
from ranks.cli.saved.run_folder import open_run
from ranks.cli.units import size
from ranks.engine.runs.find_run import find_folder


@dataclass(frozen=True)
class ExportFlags:
    """Write a run's model as model.safetensors, config.json and a model.py that imports only torch.

    `--format onnx` adds model.onnx, after onnxruntime has given the model's answers."""

    run: Positional[str]
    """A run's name under runs/, or the path of its folder."""
    checkpoint: str = "latest"
    """best (lowest score), latest, or the number of an iteration."""
    format: str | None = None
    """safetensors (always written), onnx, or both with a comma. Without it, graph-coloring writes both."""
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
    with_onnx = wants_onnx(flags.format, f"--format {flags.format}")
    run = open_run(find_folder(flags.run, flags.runs_dir, asked), asked, trust_code=flags.trust_code)
    iteration, files = export_checkpoint(run, flags.checkpoint, run.folder / "export", with_onnx)
    result: dict[str, Any] = {
        "run": run.folder.name,
        "iteration": iteration,
        "files": [{"path": str(path), "bytes": path.stat().st_size} for path in files],
    }
    if flags.json:
        print(json.dumps(result, indent=2))
    else:
        print(f"{run.folder.name}, iteration {iteration:,}")
        print("\n".join(f"  {entry['path']}  {size(entry['bytes'])}" for entry in result["files"]))
        print(f'load it there, without ranks: from model import load; net = load("{files[0].parent}")')
    return 0
