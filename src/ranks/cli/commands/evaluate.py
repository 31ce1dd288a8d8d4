"""`ranks evaluate RUN`: evaluate a saved model as its workload does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ranks.cli.flags.parse import Positional, parse
from ranks.cli.saved.run_folder import open_run
from ranks.engine.runs.find_run import find_folder
from ranks.errors import UserError


@dataclass(frozen=True)
class EvaluateFlags:
    """Evaluate a run's model on its workload's held-out data, in this process."""

    run: Positional[str]
    """A run's name under runs/, or the path of its folder."""
    checkpoint: str = "latest"
    """best (lowest score), latest, or the number of an iteration."""
    games: int | None = None
    """Games of the evaluation, for a workload that plays games (its setting eval_games)."""
    gpus: str = "all"
    """The GPU: the first one of all or of a list with a comma (1,); none for the CPU."""
    json: bool = False
    """Print JSON."""
    trust_code: bool = False
    """Execute the copy of the workload's file that is in the run folder."""
    runs_dir: Path = Path("runs")
    """The folder of the run folders."""


def evaluate(argv: Sequence[str]) -> int:
    """Print each metric that the workload's `evaluate(model, cfg, world)` returns."""
    flags = parse(EvaluateFlags, argv, prog="ranks evaluate")
    asked = f"ranks evaluate {flags.run}"
    run = open_run(find_folder(flags.run, flags.runs_dir, asked), asked, trust_code=flags.trust_code)
    cfg = run.config if flags.games is None else with_games(run.config, flags.games, run.workload)
    from ranks.cli.saved.saved_model import load_model
    from ranks.engine.distributed.world import World
    from ranks.engine.runs.checkpoints.pick import pick_checkpoint
    from ranks.launch.placement import place

    found = pick_checkpoint(run.folder, flags.checkpoint, f"--checkpoint {flags.checkpoint}")
    device = place(flags.gpus).devices[0]
    world = World.join(replace(run.engine, shares=None), device=device, workload=run.workload)
    try:
        model = load_model(run, found, world.device)
        metrics: dict[str, float] = run.module.evaluate(model, cfg, world)
    finally:
        world.leave()
    values = {name: float(value) for name, value in metrics.items()}
    if flags.json:
        result = {"run": run.folder.name, "workload": run.workload, "iteration": found.iteration, "metrics": values}
        print(json.dumps(result, indent=2))
    else:
        print(f"{run.folder.name}, iteration {found.iteration:,}")
        width = max(map(len, values), default=0)
        print("\n".join(f"  {name:<{width}}  {value:.6g}" for name, value in values.items()))
    return 0


def with_games(cfg: Any, games: int, workload: str) -> Any:
    """A workload's config with another number of games of an evaluation. Raises UserError where it has no such
    setting."""
    if not hasattr(cfg, "eval_games"):
        found = f"an evaluation of {workload} plays no games: its Config has no eval_games"
        raise UserError(f"--games {games}", found, "leave --games out")
    if games < 1:
        raise UserError(f"--games {games}", "an evaluation plays at least one", "give 1 or more")
    return replace(cfg, eval_games=games)
