"""ONNX export; onnxruntime's output is compared with torch before the file is written.

Input: `clips` float32[B, T, H, W], grey values from 0 to 1, B of any size. Output: `logits` float32[B, classes]. The
metadata has the names of the classes, whether behaviours may overlap, and the frames between two frames of a clip.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import io
import json
import logging
import os
import warnings
from collections.abc import Generator
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from ranks import __version__
from ranks.engine.runs.provenance import source_commit
from ranks.engine.sharding import rng
from ranks.errors import GaveUp, UserError
from ranks.workloads.video_behavior.config import ClipConfig, Config

FORMAT = "1"
"""The version of inputs, outputs and metadata. Increase it when they change."""
OPSET = 18
TOLERANCE = 1e-4
"""The largest accepted difference between onnxruntime and torch, relative to the largest logit."""
BATCHES = (1, 3)
"""The sizes of the batches that are compared."""


def example_inputs(model: nn.Module, clips: ClipConfig | None = None, batch: int = 2) -> tuple[Tensor, ...]:
    """Clips of random grey values. `clips`: their size, by default 17 x 64 x 64."""
    del model
    clips = clips or ClipConfig(size=64)
    ids, values = torch.arange(batch), clips.frames * clips.size**2
    grey = rng.uniform(rng.key(0, "onnx/clips", batch), ids, values)
    return (grey.to(torch.float32).view(batch, clips.frames, clips.size, clips.size),)


def export_extra(model: nn.Module, cfg: Config, folder: Path) -> list[Path]:
    """The additional file of `ranks export`, `model.onnx`, in the folder of `model.safetensors`.

    Raises GaveUp and writes nothing if onnxruntime and torch disagree, UserError where a package is missing.
    """
    weights_sha256 = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    model = copy.deepcopy(model).to("cpu", torch.float32).eval()
    content = onnx_bytes(model, cfg, weights_sha256)
    compare(model, cfg.clips, content)
    path, temporary = folder / "model.onnx", folder / f".model.onnx.tmp-{os.getpid()}"
    temporary.write_bytes(content)
    os.replace(temporary, path)
    return [path]


def onnx_bytes(model: nn.Module, cfg: Config, weights_sha256: str) -> bytes:
    """The model with its weights and metadata as an ONNX file."""
    for package in ("onnx", "onnxscript"):
        _optional(package)
    with _quiet():
        program: Any = torch.onnx.export(
            model,
            example_inputs(model, cfg.clips),
            dynamo=True,
            input_names=["clips"],
            output_names=["logits"],
            dynamic_shapes=({0: torch.export.Dim.DYNAMIC},),
            opset_version=OPSET,
            external_data=False,
            verbose=False,
        )
    proto: Any = program.model_proto
    commit = source_commit()
    metadata = {
        "ranks.workload": "video-behavior",
        "ranks.version": __version__,
        **({"ranks.git": commit} if commit else {}),
        "ranks.format": FORMAT,
        "ranks.classes": json.dumps(list(cast("Any", model).classes)),
        "ranks.labels": cfg.labels,
        "ranks.stride": str(cfg.clips.stride),
        "ranks.weights_sha256": weights_sha256,
    }
    for key, value in metadata.items():
        entry = proto.metadata_props.add()
        entry.key, entry.value = key, value
    return cast(bytes, proto.SerializeToString())


def compare(model: nn.Module, clips: ClipConfig, content: bytes) -> float:
    """The largest relative difference over a few batches. Raises GaveUp if it exceeds TOLERANCE."""
    session = _optional("onnxruntime").InferenceSession(content, providers=["CPUExecutionProvider"])
    worst = 0.0
    for batch in BATCHES:
        (clips_BTHW,) = example_inputs(model, clips, batch)
        with torch.no_grad():
            expected = model(clips_BTHW).numpy()
        (found,) = session.run(["logits"], {"clips": clips_BTHW.numpy()})
        if found.shape != expected.shape or not np.isfinite(found).all():
            raise GaveUp(f"the logits of {batch} clips are wrong in onnxruntime: shape {found.shape} or not finite")
        worst = max(worst, float(np.abs(found - expected).max()) / max(1.0, float(np.abs(expected).max())))
        if worst > TOLERANCE:
            raise GaveUp(
                f"the logits of {batch} clips differ by {worst:.1e} between onnxruntime and torch; not written"
            )
    return worst


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


def _optional(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        do = "pip install 'ranks[video-behavior]'"
        raise UserError("an ONNX export", f"the package {name} is not installed", do) from None
