"""ONNX files: export, comparison with torch, writing."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import io
import logging
import os
import re
import warnings
from collections.abc import Callable, Generator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from ranks import __version__
from ranks.engine.files.disk import remove, write_durably
from ranks.engine.runs.provenance import source_commit
from ranks.errors import GaveUp, UserError
from ranks.onnx_export.layout import OnnxLayout, Shape, named_outputs

FILE = "model.onnx"
OPSET = 18
TOLERANCE = 1e-4
"""The largest accepted difference between onnxruntime and torch, relative to the largest output."""
HELP = "https://docs.pytorch.org/docs/stable/export.html"
PACKAGES = ("onnx", "onnxscript", "onnxruntime")
Examples = Sequence[Sequence[Tensor]]


def write_onnx(
    model: nn.Module,
    folder: Path,
    layout: OnnxLayout,
    examples: Examples,
    to_onnx: Callable[[nn.Module, str], bytes] | None = None,
) -> Path:
    """Write `model.onnx` into the folder of `model.safetensors`, with the sha256 of that file in its metadata.

    `examples`: inputs; the first is exported, all are compared. `to_onnx`: by default `onnx_bytes`. Raises GaveUp and
    writes nothing where onnxruntime and torch disagree, UserError where a package is missing or the exporter rejects
    the model. An older model.onnx is then gone, as its weights may be others; it stays where a package is missing.
    """
    for package in PACKAGES:
        _import_optional(package)
    path = folder / FILE
    remove(path)
    weights_sha256 = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    model = copy.deepcopy(model).to("cpu", torch.float32).eval()
    if to_onnx is None:
        content = onnx_bytes(model, layout, examples[0], weights_sha256)
    else:
        content = to_onnx(model, weights_sha256)
    compare(model, content, layout, examples)
    temporary = folder / f".{FILE}.tmp-{os.getpid()}"
    write_durably(temporary, content)
    os.replace(temporary, path)
    return path


def onnx_bytes(model: nn.Module, layout: OnnxLayout, example: Sequence[Tensor], weights_sha256: str) -> bytes:
    """The model with its weights as an ONNX file. Its metadata name versions, commit and weights."""
    with _quiet():
        try:
            program: Any = torch.onnx.export(
                model,
                tuple(example),
                dynamo=True,
                input_names=list(layout.inputs),
                output_names=list(layout.outputs),
                dynamic_shapes=layout.free_sizes,
                opset_version=OPSET,
                external_data=False,
                verbose=False,
            )
        except Exception as error:  # not only OnnxExporterError: also what the forward raises while it is traced
            found = f"the exporter of torch {torch.__version__} rejects the model: {_reason(error)}"
            do = f"change its forward ({HELP}), or use model.safetensors, which is written"
            raise UserError("an ONNX export", found, do) from error
    proto: Any = program.model_proto
    _name_sizes(proto, layout)
    commit = source_commit()
    versions = {"ranks.version": __version__, **({"ranks.git": commit} if commit else {})}
    for key, value in {**layout.metadata, **versions, "ranks.weights_sha256": weights_sha256}.items():
        entry = proto.metadata_props.add()
        entry.key, entry.value = key, value
    return cast(bytes, proto.SerializeToString())


def _reason(error: BaseException) -> str:
    """The first paragraph of the error that an exporter's error was raised from, and the line of code it names."""
    while error.__cause__ is not None:
        error = error.__cause__
    reason = " ".join(str(error).partition("\n\n")[0].split()) or type(error).__name__
    place = re.search(r'File "(.+)", line (\d+)', str(error))
    return f"{reason} ({place[1]}, line {place[2]})" if place else reason


def _name_sizes(proto: Any, layout: OnnxLayout) -> None:
    """Replace the generated names of free sizes by those of the layout."""
    del proto.graph.value_info[:]  # intermediate values have the generated names
    shapes: dict[str, Shape] = {**layout.inputs, **layout.outputs}
    for value in (*proto.graph.input, *proto.graph.output):
        for size, name in zip(value.type.tensor_type.shape.dim, shapes[value.name], strict=True):
            if isinstance(name, str):
                size.dim_param = name
            else:
                size.dim_value = name


@contextlib.contextmanager
def _quiet() -> Generator[None, None, None]:
    """Silence the prints, warnings and log lines of torch's exporter."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        nowhere = io.StringIO()
        with warnings.catch_warnings(), contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def compare(model: nn.Module, content: bytes, layout: OnnxLayout, examples: Examples) -> float:
    """The largest relative difference over the examples. Raises GaveUp if it exceeds TOLERANCE or onnxruntime
    does not load the file or fails."""
    runtime = _import_optional("onnxruntime")
    try:
        session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise GaveUp(f"onnxruntime {runtime.__version__} does not load the file: {error}") from error
    worst = 0.0
    for inputs in examples:
        shapes = " and ".join(str(tuple(tensor.shape)) for tensor in inputs)
        with torch.no_grad():
            expected = [tensor for _, tensor in named_outputs(model(*inputs))]
        feed = {name: value.numpy() for name, value in zip(layout.inputs, inputs, strict=True)}
        try:
            answers = session.run(list(layout.outputs), feed)
        except Exception as error:
            raise GaveUp(f"onnxruntime fails on inputs of the shapes {shapes}: {error}") from error
        for name, want, got in zip(layout.outputs, expected, answers, strict=True):
            if want.shape != got.shape or not np.isfinite(got).all():
                found = f"shape {got.shape} or not finite"
                raise GaveUp(f"{name} is wrong in onnxruntime for inputs of the shapes {shapes}: {found}")
            scale = max(1.0, float(want.abs().max()))
            worst = max(worst, float((want - torch.from_numpy(got)).abs().max()) / scale)
            if worst > TOLERANCE:
                found = f"differs by {worst:.1e} between onnxruntime and torch for inputs of the shapes {shapes}"
                raise GaveUp(f"{name} {found}; not written")
    return worst


def _import_optional(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        found = f"the package {name} is not installed"
        raise UserError("an ONNX export", found, "pip install 'ranks[onnx]'") from None
