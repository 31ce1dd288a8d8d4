"""`ranks export RUN`: write a saved model as files that can be used without ranks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranks.cli.flags.parse import Positional, parse
from ranks.cli.saved.run_folder import SavedRun, open_run
from ranks.cli.units import size
from ranks.engine.runs.find_run import find_folder
from ranks.errors import UserError

if TYPE_CHECKING:
    from torch import nn

FORMATS = ("safetensors", "onnx")


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


def wants_onnx(formats: str | None, asked: str) -> bool | None:
    """Whether an ONNX file is asked for; None: the workload decides. Raises UserError for an unknown format."""
    if formats is None:
        return None
    words = [word.strip() for word in formats.split(",")]
    unknown = [word for word in words if word not in FORMATS]
    if unknown:
        raise UserError(asked, f"there is no format {unknown[0]!r}", f"name {' or '.join(FORMATS)}")
    return "onnx" in words


def export(argv: Sequence[str]) -> int:
    """Load the model from the checkpoint and write it into the run's export/ folder."""
    flags = parse(ExportFlags, argv, prog="ranks export")
    asked = f"ranks export {flags.run}"
    with_onnx = wants_onnx(flags.format, f"--format {flags.format}")
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
        by_default = hasattr(run.module, "export_onnx")
        more = [add_onnx(model, run, folder)] if with_onnx or (with_onnx is None and by_default) else []
    finally:
        world.leave()
    files = [*(folder / name for name in FILES), *more]
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


def add_onnx(model: nn.Module, run: SavedRun, folder: Path) -> Path:
    """Write model.onnx: by the workload's own `export_onnx`, or from its `example_inputs`."""
    from ranks.onnx_export.layout import examples_of, layout_of
    from ranks.onnx_export.write import write_onnx

    if hasattr(run.module, "export_onnx"):
        return run.module.export_onnx(model, run.config, folder)
    if not hasattr(run.module, "example_inputs"):
        found = f"{run.workload} has no example_inputs"
        do = "define example_inputs(model): the tensors that its forward takes, with two rows or more"
        raise UserError("an ONNX export", found, do)
    example = [tensor.cpu() for tensor in run.module.example_inputs(model)]
    model = model.cpu()
    return write_onnx(model, folder, layout_of(model, example, {"ranks.workload": run.workload}), examples_of(example))
