"""Write the model of a saved run as an export."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from ranks.cli.flags.outline import names_of_file
from ranks.cli.saved.run_folder import SavedRun
from ranks.errors import UserError
from ranks.workloads import is_path

if TYPE_CHECKING:
    from torch import nn

FORMATS = ("safetensors", "onnx")


def wants_onnx(formats: str | None, asked: str) -> bool | None:
    """Whether an ONNX file is asked for; None: the workload decides. Raises UserError for an unknown format."""
    if formats is None:
        return None
    words = [word.strip() for word in formats.split(",")]
    unknown = [word for word in words if word not in FORMATS]
    if unknown:
        raise UserError(asked, f"there is no format {unknown[0]!r}", f"name {' or '.join(FORMATS)}")
    return "onnx" in words


def check_onnx(workload: str, module: ModuleType) -> None:
    """Before a run: raises UserError where its model could not become an ONNX file at the end. `module` may have only
    an outline of a user's file."""
    names = names_of_file(Path(workload)) if is_path(workload) else {*vars(module), *vars(module).get("__all__", ())}
    if not names & {"export_onnx", "example_inputs", "*"}:
        raise no_example(workload)
    for package in ("onnx", "onnxscript", "onnxruntime"):
        if find_spec(package) is None:
            raise UserError("an ONNX export", f"the package {package} is not installed", "pip install 'ranks[onnx]'")


def no_example(workload: str) -> UserError:
    """The error for a workload without an input of its model."""
    do = "define example_inputs(model): the tensors that its forward takes, with two rows or more"
    return UserError("an ONNX export", f"{workload} has no example_inputs", do)


def export_checkpoint(run: SavedRun, which: str, folder: Path, with_onnx: bool | None) -> tuple[int, list[Path]]:
    """Write a checkpoint's model into a folder; its iteration, and the files. Raises UserError."""
    from ranks.cli.saved.saved_model import load_model
    from ranks.engine.distributed.world import World
    from ranks.engine.export.export import FILES, export_model
    from ranks.engine.runs.checkpoints.pick import pick_checkpoint

    found = pick_checkpoint(run.folder, which, f"--checkpoint {which}")
    world = World.join(replace(run.engine, shares=None), device="cpu", workload=run.workload)
    try:
        model = load_model(run, found, world.device)
        export_model(model, folder)
        by_default = hasattr(run.module, "export_onnx")
        more = [add_onnx(model, run, folder)] if with_onnx or (with_onnx is None and by_default) else []
    finally:
        world.leave()
    return found.iteration, [*(folder / name for name in FILES), *more]


def add_onnx(model: nn.Module, run: SavedRun, folder: Path) -> Path:
    """Write model.onnx: by the workload's own `export_onnx`, or from its `example_inputs`."""
    from ranks.onnx_export.layout import examples_of, layout_of
    from ranks.onnx_export.write import write_onnx

    if hasattr(run.module, "export_onnx"):
        return run.module.export_onnx(model, run.config, folder)
    if not hasattr(run.module, "example_inputs"):
        raise no_example(run.workload)
    example = [tensor.cpu() for tensor in run.module.example_inputs(model)]
    model = model.cpu()
    return write_onnx(model, folder, layout_of(model, example, {"ranks.workload": run.workload}), examples_of(example))
