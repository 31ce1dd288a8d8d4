"""Train workloads, resume them from a checkpoint and evaluate them, on the CPU or the simulated device.

    WANTED='[{"workload": "stock-trading", "device": "simulated:0", "exact": false, "iterations": 1}]'
    python -m tests.simulated_device.trainings "$WANTED"

Each training prints one line of JSON. This needs its own process, because torch cannot remove a device.
"""

from __future__ import annotations

import json
import sys
import tempfile
import warnings
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from ranks import RunConfig, World
from ranks.cli.saved.run_folder import open_run
from ranks.cli.saved.saved_model import load_model
from ranks.engine.files.jsonl import read_rows
from ranks.engine.runs.checkpoints.pick import newest
from ranks.workloads import load
from tests.simulated_device.device import simulated

TEMPLATE = "src/ranks/cli/templates/self_play.py"


def tiny(workload: str, settings: dict[str, Any]) -> Any:
    """A config that trains in a second on the simulated device; `settings`: what differs, `kind` of the model too."""
    module = load(workload)
    cfg = module.PRESETS["demo"]() if hasattr(module, "PRESETS") else module.Config()
    if workload == "graph-coloring":
        cfg = replace(cfg, data=replace(cfg.data, labels="bounds", train_graphs=24, validation_graphs=4))
        cfg = replace(cfg, model=replace(cfg.model, rounds=2, encoder_rounds=2), rounds=4, eval_rounds=4)
    if workload == "chess-spiking":
        net = replace(cfg.net, blocks=1, width=8, value_channels=8, value_hidden=8)
        play = replace(cfg.selfplay, simulations=4, max_plies=8, opening_plies=0)
        cfg = replace(cfg, net=net, selfplay=play, games_per_iteration=4, slots=4, global_batch=16, eval_games=2)
        cfg = replace(cfg, eval_simulations=2, eval_max_plies=12, measure_positions=8, eval_every=1)
        cfg = replace(cfg, replay=replace(cfg.replay, first_positions=0, root_value=0.5))
    if workload == "chess-value":
        play, rating = replace(cfg.play, nodes=60, max_plies=30), replace(cfg.rating, games=2, rung_games=2, nodes=60)
        cfg = replace(cfg, net=replace(cfg.net, width=16), play=play, rating=replace(rating, max_plies=20, share=1.0))
        cfg = replace(cfg, games=6, label=replace(cfg.label, limit="nodes:60"), global_batch=30, reuse=1.0)
        cfg = replace(cfg, validation_share=0.3, eval_games=2)
    if workload == TEMPLATE:
        play = replace(cfg.selfplay, simulations=4, max_plies=10, opening_plies=2)
        cfg = replace(cfg, selfplay=play, width=8, layers=2, games_per_iteration=4, slots=4, global_batch=16)
        cfg = replace(cfg, eval_games=2)
    if workload == "stock-trading":
        settings = dict(settings)
        sizes = replace(
            cfg.model, kind=settings.pop("kind", cfg.model.kind), window=4, stride=2, hidden=8, feature_hidden=8
        )
        cfg = replace(cfg, model=sizes, data=replace(cfg.data, tickers=("AAPL", "XOM"), test_to="2016-01-29"))
        cfg = replace(cfg, global_batch=8, n_steps=4, ppo=replace(cfg.ppo, epochs=1, minibatches=2, target_kl=None))
    if workload == "video-behavior":
        rendered, net = (
            replace(cfg.rendered, animals=5, seconds=10.0, size=16),
            replace(cfg.net, width=4, blocks=(1, 1)),
        )
        cfg = replace(cfg, rendered=rendered, net=net, clips=replace(cfg.clips, frames=5, size=16))
        cfg = replace(cfg, global_batch=8, epoch_clips=32, eval_every=2, eval_stride=16)
    return replace(cfg, **settings, optim=replace(cfg.optim, schedule="constant"))


def trained(
    workload: str,
    device: str,
    exact: bool,
    iterations: int,
    resumes: bool = True,
    begins_on: str | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """Of a training: how often the host waited for the device by place, the number of each operation, and the copied
    bytes. If it `resumes`, also the rows of metrics.jsonl after one more iteration, and the results of the
    evaluation. `begins_on`: another device for all iterations but the last."""
    with tempfile.TemporaryDirectory() as folder, simulated() if device != "cpu" else nullcontext() as mode:
        place = RunConfig(threads=1, runs_dir=Path(folder), name="run", exact=exact, shards=2 if exact else None)

        def train(iterations: int, device: str) -> None:
            world = World.join(place, device=device, workload=workload)
            load(workload).train(tiny(workload, {**settings, "iterations": iterations}), world)
            world.leave()

        train(iterations, begins_on or device)
        work = {
            "waits": Counter(mode.waits if mode else []),
            "operations": Counter(mode.operations if mode else {}),
            "copied_bytes": Counter(mode.copied_bytes if mode else {}),
        }
        if not resumes:
            return work
        train(iterations + 1, device)
        run = open_run(Path(folder) / "run", "the run")
        world = World.join(place, device=device, workload=workload)
        model = load_model(run, newest(run.folder / "checkpoints", "the run"), world.device)
        evaluation = run.module.evaluate(model, run.config, world)
        world.leave()
        after = sum(mode.operations.values()) - sum(work["operations"].values()) if mode else 0
        rows = read_rows(run.folder / "metrics.jsonl")
        return {"rows": rows, "evaluation": evaluation, "operations_after_resume": after, **work}


if __name__ == "__main__":
    warnings.simplefilter("error")
    for training in json.loads(sys.argv[1]):
        print(json.dumps(trained(**training)), flush=True)
