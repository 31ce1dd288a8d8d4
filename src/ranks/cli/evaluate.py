"""`ranks evaluate RUN`: the workload's own evaluation of a saved model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ranks.cli.parse import Positional, parse
from ranks.cli.run_folder import find_folder, open_run


@dataclass(frozen=True)
class Flags:
    """Evaluate a run's model on its workload's held-out data, in this process."""

    run: Positional[str]
    """A run's name under runs/, or the path of its folder."""
    checkpoint: str = "latest"
    """best (by the run's own score), latest, or the number of an iteration."""
    gpus: str = "all"
    """Which GPU: the first of those named (all, a list with a comma), or none."""
    json: bool = False
    """Print JSON in place of lines."""
    runs_dir: Path = Path("runs")
    """Where run folders stand."""


def evaluate(argv: Sequence[str]) -> int:
    """Print each metric of `evaluate(model, cfg, world)`."""
    flags = parse(Flags, argv, prog="ranks evaluate")
    run = open_run(find_folder(flags.run, flags.runs_dir, f"ranks evaluate {flags.run}"), f"ranks evaluate {flags.run}")
    from ranks.cli.saved_model import choose, rebuild
    from ranks.engine.distributed.world import World
    from ranks.launch.placement import place

    found = choose(run.folder, flags.checkpoint)
    device = place(flags.gpus).devices[0]
    world = World.join(replace(run.engine, shares=None), device=device, workload=run.workload)
    try:
        model = rebuild(run, found, world.device)
        metrics: dict[str, float] = run.module.evaluate(model, run.config, world)
    finally:
        world.leave()
    values = {name: float(value) for name, value in metrics.items()}
    if flags.json:
        facts = {"run": run.folder.name, "workload": run.workload, "iteration": found.iteration, "metrics": values}
        print(json.dumps(facts, indent=2))
    else:
        print(f"{run.folder.name}, iteration {found.iteration:,}")
        width = max(map(len, values), default=0)
        print("\n".join(f"  {name:<{width}}  {value:.6g}" for name, value in values.items()))
    return 0
