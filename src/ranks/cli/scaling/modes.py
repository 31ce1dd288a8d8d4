"""What `ranks scale` measures: numbers of ranks, shares, or batches on one rank."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ranks.cli.flags.settings import Settings
from ranks.cli.scaling.balance import ItemLimits, balance_table, measure_balance, measured_limits
from ranks.cli.scaling.measure import Case, Measurement, measurement_of
from ranks.cli.scaling.one_rank import Kind, batch_table, check_sizes, measure_batches, rule_of
from ranks.cli.scaling.scale_flags import ScaleFlags
from ranks.cli.scaling.table import as_json, laws_in_words, limits, table
from ranks.errors import UserError
from ranks.hardware.scale.law import fit
from ranks.hardware.scale.loss import Point, Scaling, point

FILE, PICTURE = "scale.json", "scale.png"


def numbers(flags: ScaleFlags, settings: Settings, counts: Sequence[int], unit: str) -> int:
    """Several numbers of ranks."""
    measurement = measurement_of(flags, settings, counts)
    batch: int | None = getattr(settings.config, "global_batch", None)
    if flags.only == "weak" and batch is None:
        found = f"Config of {settings.workload} has no field global_batch, which weak scaling multiplies"
        raise UserError("--only weak", found, "leave --only out, or name the size of a global batch so")
    if len(counts) < 2:
        name = "--gpus" if measurement.on_gpus else "--ranks"
        raise UserError(f"{name} {counts[0]}", "two numbers at least are compared", f"give {name} 1,2, for example")
    draw = picture(flags.out)
    kinds: list[Scaling] = [kind for kind in ("strong", "weak") if flags.only in (None, kind)]
    kinds = [kind for kind in kinds if kind == "strong" or batch is not None]
    cases: dict[tuple[Scaling, int], Case] = {}
    for count in counts:
        for kind in kinds:
            if count == counts[0]:
                cases[kind, count] = Case(f"{count} {unit}", count)
            elif kind == "strong":
                cases[kind, count] = Case(f"{count} {unit}, strong", count)
            elif batch is not None:
                more = ("--global-batch", str(batch * count // counts[0]))
                cases[kind, count] = Case(f"{count} {unit}, weak", count, more)
    runs = measurement.run(list({case.label: case for case in cases.values()}.values()))
    points = [
        point(kind, runs[cases[kind, count].label], runs[cases[kind, counts[0]].label])
        for kind in kinds
        for count in counts
    ]
    fitted = {kind: fit({p.num_ranks: p.speedup for p in points if p.scaling == kind}) for kind in kinds}
    laws = {kind: law for kind, law in fitted.items() if law is not None}
    device = runs[cases[kinds[0], counts[0]].label][0].devices[0]
    facts = about(settings, measurement, device) | {"unit": unit, "global_batch": batch}
    content = facts | as_json(points, laws)
    if draw is not None and flags.out is not None:
        draw(points, unit, f"{Path(settings.workload).stem} on {device}", flags.out / PICTURE)
    text = [table(points, unit), "", *limits(points, unit), *laws_in_words(laws, unit)]
    text += batches_in_words(kinds, batch, counts[0], unit)
    if measurement.on_gpus:
        text.append("the clocks of the GPUs agree within some 10 us; waits of the host count as compute")
    return finish(flags, content, measurement.warning, "\n".join(text))


def batches_in_words(kinds: Sequence[Scaling], batch: int | None, fewest: int, unit: str) -> list[str]:
    """The global batch of each kind of scaling."""
    if batch is None:
        return ["weak scaling is not measured: Config has no field global_batch"]
    sizes = {"strong": f"strong {batch}", "weak": f"weak {batch} x {unit}" + (f" / {fewest}" if fewest > 1 else "")}
    return [f"global batch: {', '.join(sizes[kind] for kind in kinds)}"]


def shares(flags: ScaleFlags, settings: Settings, counts: Sequence[int]) -> int:
    """Shares for ranks of unequal speed."""
    if len(counts) != 1 or counts[0] < 2:
        raise UserError("--shares auto", "one number of ranks is needed, 2 or more", "give --gpus 4, for example")
    if flags.max_items is not None and (len(flags.max_items) != counts[0] or min(flags.max_items) < 1):
        asked = f"--max-items {','.join(map(str, flags.max_items))}"
        raise UserError(asked, f"{counts[0]} ranks", "give one number above 0 for each rank")
    measurement = measurement_of(flags, settings, counts)
    given = ItemLimits(flags.max_items)
    allowed = given if flags.max_items is not None else measured_limits(measurement, settings, counts[0])
    found = measure_balance(measurement, counts[0], settings.engine.num_shards, allowed)
    content = about(settings, measurement, found.devices[0]) | asdict(found) | {"flag": found.flag}
    return finish(flags, content, measurement.warning, balance_table(found))


def batches(flags: ScaleFlags, settings: Settings) -> int:
    """Several sizes of a batch on one rank."""
    kind: Kind = "micro-batch" if flags.micro_batch is not None else "global-batch"
    sizes = check_sizes(kind, flags.micro_batch or flags.global_batch or ())
    if kind == "global-batch" and not hasattr(settings.config, "global_batch"):
        found = f"Config of {settings.workload} has no field global_batch"
        raise UserError(f"--{kind} {','.join(map(str, sizes))}", found, "give --micro-batch, or name the field so")
    if (flags.gpus or flags.ranks or (1,)) != (1,):
        raise UserError(f"--{kind} with several ranks", "batches are measured on one rank", "give --gpus 1")
    measurement = measurement_of(flags, settings, [1])
    points, device = measure_batches(measurement, settings, kind, sizes)
    content = about(settings, measurement, device) | {"kind": kind, "points": [asdict(p) for p in points]}
    return finish(flags, content, measurement.warning, batch_table(kind, points, rule_of(settings.config)))


def picture(out: Path | None) -> Callable[[Sequence[Point], str, str, Path], None] | None:
    """The function that draws, imported before anything is measured. Raises UserError."""
    if out is None:
        return None
    try:
        from ranks.cli.scaling.plot import draw
    except ModuleNotFoundError as missing:
        if missing.name != "matplotlib":
            raise
        asked = f"--out {out}"
        raise UserError(asked, "the package matplotlib is not installed", "pip install 'ranks[report]'") from missing
    make(out)
    return draw


def make(out: Path) -> None:
    """Make the folder of --out. Raises UserError."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        found = f"{out}: {error.strerror or error}"
        raise UserError(f"--out {out}", found, "give a writable folder") from error


def about(settings: Settings, measurement: Measurement, device: str) -> dict[str, Any]:
    """What was measured, for JSON."""
    return {
        "workload": settings.workload,
        "flags": list(measurement.flags),
        "device": device,
        "threads": measurement.threads,
        "seconds": measurement.seconds,
        "rounds": measurement.rounds,
        "load": measurement.load,
    }


def finish(flags: ScaleFlags, content: dict[str, Any], warning: str | None, text: str) -> int:
    """Print the result and write the file of --out."""
    written = json.dumps(content, indent=2)
    print(written if flags.json else "\n".join(filter(None, [text, warning])))
    if flags.out is not None:
        make(flags.out)
        (flags.out / FILE).write_text(written + "\n", encoding="utf-8")
    return 0
