"""`ranks chess-value import`: the origin's CNN as an export folder, with which a run can begin."""

from __future__ import annotations

from pathlib import Path


def import_origin(file: Path, /, *, out: Path) -> int:
    """Write the weights of the origin's CNN as an export folder for --init-from.

    Nothing but tensors is read from the file.

    Args:
        file: What torch.save(model.state_dict(), FILE) wrote, or a .safetensors file.
        out: The folder of model.safetensors, config.json and model.py.
    """
    from ranks.engine.export.export import export_model
    from ranks.workloads.chess_value.config import ValueNetConfig
    from ranks.workloads.chess_value.net.origin_weights import read_origin

    model = read_origin(file, ValueNetConfig().dropout, f"ranks chess-value import {file}")
    export_model(model, out)
    sizes = f"--net.channels {','.join(map(str, model.channels))} --net.hidden {','.join(map(str, model.hidden))}"
    print(f"{out}: {sum(p.numel() for p in model.parameters()):,} weights")
    print(f"train on: ranks train chess-value --net.kind cnn {sizes} --init-from {out}")
    return 0
