"""Data sets as streams of global batches, read ahead by workers where `gather` is slow.

    data = from_map_style(MyTorchDataset())                    # any map-style data set of torch or Hugging Face
    batches = stream(data, cfg.global_batch, world, workers=4)
    for iteration in run.iterations(cfg.iterations):
        run.log(learner.step(loss, batches.at(iteration)))

The names below are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ranks.data.dataset import Dataset as Dataset
    from ranks.data.default_collate import collate as collate
    from ranks.data.loading.device_copy import to_device as to_device
    from ranks.data.loading.place import note_item as note_item
    from ranks.data.loading.tasks import DataWorkerError as DataWorkerError
    from ranks.data.map_style import MapStyle as MapStyle
    from ranks.data.map_style import from_map_style as from_map_style

PUBLIC = {
    "collate": "ranks.data.default_collate",
    "Dataset": "ranks.data.dataset",
    "to_device": "ranks.data.loading.device_copy",
    "note_item": "ranks.data.loading.place",
    "DataWorkerError": "ranks.data.loading.tasks",
    "MapStyle": "ranks.data.map_style",
    "from_map_style": "ranks.data.map_style",
}


def __getattr__(name: str) -> Any:
    if name not in PUBLIC:
        raise AttributeError(f"module 'ranks.data' has no attribute {name!r}")
    return getattr(import_module(PUBLIC[name]), name)


def __dir__() -> list[str]:
    return list(PUBLIC)
