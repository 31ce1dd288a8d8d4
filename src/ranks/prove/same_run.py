"""`ranks prove same-run`: the same run on any number of ranks, at the level of sameness that each shape promises.

L3  the same bits under --exact, on any deal, through kills and changes of the number of ranks; every shape
L2  the same update up to rounding in fast mode; supervised
L1  the same experience to begin with in fast mode; on-policy and self-play
"""

from __future__ import annotations

import random
import shlex
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from torch import nn

from ranks.errors import UserError
from ranks.prove.exact_deals import L3
from ranks.prove.fast_deals import L1, L2
from ranks.prove.processes import ProofError
from ranks.prove.report import Report
from ranks.prove.trainings import DEALS, QUICK_DEALS, Deal, Training, place
from ranks.workloads import load

SHAPES = ("supervised", "on-policy", "self-play")
ITERATIONS = {"supervised": (100, 40), "on-policy": (12, 9), "self-play": (12, 9)}
"""By shape: iterations of a run, and with --quick."""


def main(
    workload: str,
    /,
    *,
    level: Literal["all", "L1", "L2", "L3"] = "all",
    iterations: int | None = None,
    quick: bool = False,
    gpus: str = "none",
    seed: int = 0,
    train: str = "",
    out: Path = Path("results"),
) -> int:
    """Prove that a run does not depend on how many ranks carry it.

    Args:
        workload: Its name, or the path of your own file.
        level: One level of sameness only.
        iterations: Iterations of each whole run.
        quick: Fewer iterations, deals and points; the same bounds.
        gpus: On which GPUs, as in ranks train; none is the CPU.
        seed: When the kills strike.
        train: Further flags of ranks train for all its runs, in one string: --train="--preset small".
        out: Folder of the result file.
    """
    module = load(workload)
    shape = shape_of(workload, module)
    total = iterations if iterations is not None else ITERATIONS[shape][quick]
    if total < 8:
        raise UserError(f"--iterations {total}", "too few to kill a run in between", "give --iterations 8 or more")
    settings = {"shape": shape, "iterations": total, "quick": quick, "seed": seed, "gpus": gpus, "train": train}
    report = Report("same-run", workload, settings)
    deals = QUICK_DEALS if quick else DEALS
    levels: dict[str, Callable[[Training], None]] = {
        "L3": lambda run: L3(report, run, deals, total, random.Random(seed))
    }
    if shape == "supervised":
        levels["L2"] = lambda run: L2(report, run, deals, total, points(total, quick), dropout=has_dropout(module))
    else:
        levels["L1"] = lambda run: L1(report, run, deals)
    if level not in ("all", *levels):
        raise UserError(
            f"--level {level}", f"a {shape} workload promises {' and '.join(sorted(levels))}", "choose another"
        )
    with place() as where:
        for name in [level] if level != "all" else levels:
            flags = (*schedule(module, total), *shlex.split(train))
            try:
                levels[name](Training(where, workload, name, Deal(1), flags, gpus))
            except ProofError as problem:
                report.broke_off(name, problem)
    return report.finish(out)


def shape_of(workload: str, module: ModuleType) -> str:
    """What the module says of itself; supervised without it. Raises UserError."""
    shape = getattr(module, "SHAPE", SHAPES[0])
    if shape not in SHAPES:
        raise UserError(f"the workload {workload}", f"its SHAPE is {shape!r}", f"write one of {', '.join(SHAPES)}")
    return shape


def schedule(module: ModuleType, total: int) -> tuple[str, ...]:
    """The schedule's end does not move when a run is cut short, so that the run stays the same run."""
    config: Any = module.Config()
    return ("--optim.schedule-updates", str(total)) if hasattr(config, "optim") else ()


def points(total: int, quick: bool) -> list[int]:
    """Iterations before which weights are taken: the first, the last, the tenth, and between."""
    every = [0, 9, total // 3, 2 * total // 3, total - 1] if not quick else [0, 9]
    return sorted({min(point, total - 1) for point in every})


def has_dropout(module: ModuleType) -> bool:
    """Whether a model draws masks from torch's own generators, as far as its layers tell."""
    layers = module.build(module.Config()).modules()
    kinds = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)
    return any(isinstance(layer, kinds) and layer.p > 0 for layer in layers)
