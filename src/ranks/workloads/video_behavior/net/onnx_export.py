"""The network as an ONNX file.

Input: `clips` float32[B, T, H, W], grey values from 0 to 1, B of any size. Output: `logits` float32[B, classes]. The
metadata has the names of the classes, whether behaviours may overlap, and the frames between two frames of a clip.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from ranks.engine.sharding import rng
from ranks.onnx_export.layout import BATCH, OnnxLayout
from ranks.onnx_export.write import write_onnx
from ranks.workloads.video_behavior.config import ClipConfig, Config

FORMAT = "1"
"""The version of inputs, outputs and metadata. Increase it when they change."""
BATCHES = (2, 1, 3)
"""The sizes of the batches that are compared; the first is exported."""


def example_inputs(model: nn.Module, clips: ClipConfig | None = None, batch: int = 2) -> tuple[Tensor, ...]:
    """Clips of random grey values. `clips`: their size, by default 17 x 64 x 64."""
    del model
    clips = clips or ClipConfig(size=64)
    ids, values = torch.arange(batch), clips.frames * clips.size**2
    grey = rng.uniform(rng.key(0, "onnx/clips", batch), ids, values)
    return (grey.to(torch.float32).view(batch, clips.frames, clips.size, clips.size),)


def export_onnx(model: nn.Module, cfg: Config, folder: Path) -> Path:
    """Write `model.onnx` into the folder of `model.safetensors`; see `write_onnx`."""
    return write_onnx(model, folder, layout_for(model, cfg), [example_inputs(model, cfg.clips, b) for b in BATCHES])


def layout_for(model: nn.Module, cfg: Config) -> OnnxLayout:
    """The inputs and outputs of a network of these settings."""
    classes = list(cast("Any", model).classes)
    metadata = {
        "ranks.workload": "video-behavior",
        "ranks.format": FORMAT,
        "ranks.classes": json.dumps(classes),
        "ranks.labels": cfg.labels,
        "ranks.stride": str(cfg.clips.stride),
    }
    shape = (BATCH, cfg.clips.frames, cfg.clips.size, cfg.clips.size)
    return OnnxLayout({"clips": shape}, {"logits": (BATCH, len(classes))}, metadata)
