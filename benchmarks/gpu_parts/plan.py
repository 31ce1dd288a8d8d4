"""What gpu.py measures: each part with its function and its sizes, on a GPU and on the CPU."""

from __future__ import annotations

from typing import Any

from benchmarks.measure import ROOT

TOYS = {name: str(ROOT / "tests" / "toys" / f"{name}.py") for name in ("images", "cartpole", "tictactoe")}
WORKLOADS = {"graph-coloring": "graph-coloring", "stock-trading": "stock-trading", **TOYS}
VIDEO_NETS = {
    "r2plus1d-s": {"name": "r2plus1d-s"},
    "r2plus1d-s, stem 2 x 4 x 4": {"name": "r2plus1d-s", "stem_stride": [2, 4, 4]},
    "x3d-s": {"name": "x3d-s"},
    "mouse3d": {"name": "mouse3d"},
}
"""Settings of the networks of video-behavior, at full width."""
VALUE_BATCHES = {
    "nnue": ([8192, 16_384, 65_536, 262_144], [2048, 8192]),
    "cnn": ([4096, 16_384, 65_536], [128]),
    "resnet": ([4096, 16_384, 65_536], [128]),
}
"""Global batches of the nets of chess-value, on a GPU and on the CPU."""

SELFPLAY_SLOTS = [2048, 4096]
"""Games of self-play at the same time on a GPU, half of them in a batch."""


def plan(device: str, command_line: bool, full: bool) -> list[tuple[str, str, dict[str, Any]]]:
    """(name, "module:function", arguments)."""
    gpu = device.startswith("cuda")
    parts: list[tuple[str, str, dict[str, Any]]] = []

    def add(name: str, function: str, **arguments: Any) -> None:
        parts.append((name, f"benchmarks.gpu_parts.{function}", {"device": device, **arguments}))

    updates = "updates:coloring_updates"
    fastest = "bf16" if gpu else "fp32"
    add("trading market", "trading:market_steps", accounts=65_536 if gpu else 4_096, steps=252)
    for precision in ("fp32", "bf16") if gpu else ("fp32",):
        add(f"trading episodes {precision}", "trading:episodes", precision=precision)
    for name, net in VIDEO_NETS.items():
        sizes = {"clip": [17, 256], "batches": [128, 256, 512, 1024], "frames": 4096}
        small = {"clip": [9, 32], "batches": [4, 8], "frames": 256}
        add(f"video {name}", "video:clip_updates", precision=fastest, net=net, **(sizes if gpu else small))
    for name, (large, small_batches) in VALUE_BATCHES.items():
        for precision in ("bf16", "fp32") if gpu and name == "nnue" else (fastest,):
            sizes = {"batches": large if gpu else small_batches, "positions": 4_000_000 if gpu else 400_000}
            add(f"value {name} {precision}", "value:value_updates", precision=precision, net=name, **sizes)
    if command_line:
        add("value cycle", "value:cycle", games=2000 if gpu else 40, nodes=200 if gpu else 100)
    add("making the graphs", "updates:make_graphs")
    for batch in (32, 256, 1024) if gpu else (16, 32):
        for precision in ("fp32", "bf16"):
            add(f"updates {precision} {batch}", updates, precision=precision, batch=batch, exact=False)
    add("updates exact", updates, precision="fp32", batch=256 if gpu else 32, exact=True)
    for precision in ("bf16", "fp32") if gpu else ("fp32",):
        epochs = 100 if full else 5 if gpu else 1
        add(f"epochs {precision}", "updates:coloring_epochs", precision=precision, epochs=epochs)
    add("work of a graph-coloring update", "device:coloring_work", precision=fastest, batch=256 if gpu else 16)
    add("work of a stock-trading iteration", "device:trading_work", precision=fastest)
    add("number types", "device:dtypes")
    add("synchronising calls", "updates:synchronising_calls")
    for name, iterations in {"graph-coloring": 60 if gpu else 10, "images": 300, "cartpole": 6, "tictactoe": 6}.items():
        add(f"loop {name}", "runs:training_loop", workload=WORKLOADS[name], iterations=iterations, precision="fp32")
    if command_line:
        for name, workload in WORKLOADS.items():
            add(f"L3 {name}", "runs:same_bits", workload=workload, iterations=4)
        add("several GPUs", "runs:several_gpus", workload=TOYS["images"], iterations=40)
        add("survive", "runs:survives", workload=TOYS["images"], iterations=400)
    for net in ("10x128", "6x64", "default", "origin"):
        batches = [64, 256, 1024, 4096] if gpu else [8]
        add(f"selfplay evaluations {net}", "selfplay:evaluations", precision=fastest, net=net, batches=batches)
    for net, simulations in (
        {"10x128": 32, "default": 32, "6x64": 32, "origin": 0}.items() if gpu else {"6x64": 2}.items()
    ):
        slots, games = (SELFPLAY_SLOTS, 512) if gpu else ([8], 4)
        for count in slots:
            sizes = {"slots": count, "games": games, "simulations": simulations}
            add(f"selfplay {net} {count}", "selfplay:selfplay", precision=fastest, net=net, **sizes)
        if gpu and net in ("6x64", "default"):
            name = f"selfplay without CUDA graphs, {net} {slots[0]}"
            sizes = {"slots": slots[0], "games": games, "simulations": simulations}
            add(name, "selfplay:selfplay", precision=fastest, net=net, cuda_graph=False, **sizes)
    return parts
