"""`ranks prove same-run`: train the same run in several layouts of ranks and compare the results.

L3  with --exact: bit-identical in every layout, through kills and changes of the number of ranks: the fingerprint, kept
    files (the games of a replay window) and rollouts; every workload
L2  fast mode: each update is equal up to rounding; supervised workloads
L1  fast mode: the first rollout (all moves of the games) is equal, its loss up to rounding; on-policy and self-play
    workloads
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any, Literal

from torch import nn

from ranks.engine.config_file import overlay
from ranks.engine.runs.folder import RunFolder
from ranks.errors import UserError
from ranks.prove.exact_mode import CHAIN, L3, QUICK_CHAIN
from ranks.prove.fast_mode import L1, L2
from ranks.prove.options import ProofOptions
from ranks.prove.processes import ProofError
from ranks.prove.report import Report
from ranks.prove.train_command import LAYOUTS, QUICK_LAYOUTS, RankLayout, TrainCommand, workspace
from ranks.workloads import load

SHAPES = ("supervised", "on-policy", "self-play")
ITERATIONS = {"supervised": (100, 40), "on-policy": (12, 9), "self-play": (12, 9)}
"""By shape: iterations of a run, and with --quick."""
Level = Literal["all", "L1", "L2", "L3"]


def prove_same_run(workload: str, options: ProofOptions, level: Level = "all") -> int:
    """Run the proof, or one `level` of it; the exit code. Raises UserError."""
    module = load(workload)
    shape, quick = shape_of(workload, module), options.quick
    total = options.iterations if options.iterations is not None else ITERATIONS[shape][quick]
    if total < 8:
        raise UserError(f"--iterations {total}", "too few to kill a run in between", "give --iterations 8 or more")
    report = Report("same-run", workload, options.settings(shape=shape, iterations=total))
    layouts, chain = (QUICK_LAYOUTS, QUICK_CHAIN) if quick else (LAYOUTS, CHAIN)
    levels: dict[str, Callable[[TrainCommand], None]] = {
        "L3": lambda run: L3(report, run, layouts, chain, total, random.Random(options.seed))
    }
    if shape == "supervised":
        points = compared_updates(total, quick)
        levels["L2"] = lambda run: L2(report, run, layouts, total, points, partial(has_dropout, module))
    else:
        levels["L1"] = lambda run: L1(report, run, layouts)
    if level not in ("all", *levels):
        raise UserError(
            f"--level {level}", f"a {shape} workload promises {' and '.join(sorted(levels))}", "choose one of these"
        )
    with workspace() as where:
        for name in [level] if level != "all" else levels:
            flags = (*schedule_flags(module, total), *options.train_flags)
            try:
                levels[name](TrainCommand(where, workload, name, RankLayout(1), flags, options.gpus))
            except ProofError as problem:
                report.aborted(name, problem)
    return report.finish(options.out)


def shape_of(workload: str, module: ModuleType) -> str:
    """The module's SHAPE, by default supervised. Raises UserError."""
    shape = getattr(module, "SHAPE", SHAPES[0])
    if shape not in SHAPES:
        raise UserError(f"the workload {workload}", f"its SHAPE is {shape!r}", f"write one of {', '.join(SHAPES)}")
    return shape


def schedule_flags(module: ModuleType, total: int) -> tuple[str, ...]:
    """Flags that fix the end of the learning rate schedule, so that a shorter run has the same rates."""
    config: Any = module.Config()
    return ("--optim.schedule-updates", str(total)) if hasattr(config, "optim") else ()


def compared_updates(total: int, quick: bool) -> list[int]:
    """The updates that L2 compares, by iteration: the first, the tenth, the last, and some in between."""
    every = [0, 9, total // 3, 2 * total // 3, total - 1] if not quick else [0, 9]
    return sorted({min(iteration, total - 1) for iteration in every})


def has_dropout(module: ModuleType, run: TrainCommand) -> bool:
    """Whether a layer of the model of a run draws dropout masks from torch's generators."""
    content = RunFolder(run.folder).read_settings()
    layers = module.build(overlay(module.Config(), content["config"], f"the run {run.name}", "config")).modules()
    kinds = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)
    return any(isinstance(layer, kinds) and layer.p > 0 for layer in layers)
