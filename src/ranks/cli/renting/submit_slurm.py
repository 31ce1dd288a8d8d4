"""`ranks submit slurm WORKLOAD`: write the file that takes a run to a cluster, and start it where --yes is given."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ranks.cli.flags.parse import Positional, parse
from ranks.cli.flags.split import split_flags
from ranks.cli.renting.requested import checked_train, command_line, finish, show_forecast
from ranks.errors import UserError
from ranks.secrets import refuse_in_words

SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class SubmitSlurmFlags:
    """Write an sbatch file for a workload: the doctor, the run, its evaluation and its export.

    A run that reaches the time limit is saved, queued again, and continues. The request is checked before anything is
    written, against the catalogue of GPUs and against sinfo where this machine has it. Nothing is started without
    --yes."""

    workload: Positional[str]
    """Its name, or the path of your own file."""
    gpus: str
    """Kind and number on one node: B200:8; none for CPUs, with --ranks."""
    train: str = ""
    """Flags of ranks train, in one string: --train="--preset small --exact"."""
    nodes: int = 1
    """Machines of one run."""
    ranks: int | None = None
    """Processes on one node, with --gpus none."""
    hours: float = 1.0
    """The time limit of one start."""
    starts: int = 10
    """How often the run may start: the time limit ends each, and the next continues."""
    seeds: tuple[int, ...] = ()
    """One run for each seed, as an array of jobs: --seeds 1,2,3."""
    price: float | None = None
    """What one node costs an hour: the most that the request can cost is printed, and written into the file."""
    partition: str | None = None
    """Of the cluster."""
    sbatch: str = ""
    """More options of sbatch, in one string: --sbatch="--account=lab --mem=64G"."""
    setup: str = ""
    """A shell line before the first command: --setup ". venv/bin/activate"."""
    then: str | None = None
    """A shell command after evaluation and export: --then "cp -r runs /home/me"."""
    profile: Path | None = None
    """The forecast uses a profile that ranks forecast --save-profile has written; by default one is measured here."""
    no_forecast: bool = False
    """Leave the forecast out, which is made where --price is given."""
    name: str | None = None
    """Name of the run folder; by default the workload's name. With --seeds, -seedN follows."""
    runs_dir: Path = Path("runs")
    """The folder of the run folders; all nodes must see it."""
    out: Path | None = None
    """The file; by default NAME.sbatch."""
    overwrite: bool = False
    """Replace a file of that name."""
    yes: bool = False
    """Start it: sbatch FILE."""


def submit_slurm(argv: Sequence[str]) -> int:
    """Check, write, print, and start where --yes is given."""
    flags = parse(SubmitSlurmFlags, argv, prog="ranks submit slurm")
    from ranks.renting.request import Machine, Request
    from ranks.renting.slurm.cluster import SlurmFit, check, read_cluster
    from ranks.renting.slurm.sbatch import sbatch_text
    from ranks.renting.written_file import write_file

    refuse_in_words([*argv, *split_flags(flags.train)])
    asked = f"ranks submit slurm {flags.workload}"
    settings, train = checked_train(flags.workload, flags.train, flags.name)
    name = str(settings.engine.name)
    if flags.partition is not None and not SAFE.fullmatch(flags.partition):
        raise UserError(f"--partition {flags.partition!r}", "no partition has such a name", "see sinfo")
    machine = Machine.of(flags.gpus, flags.ranks)
    runs_dir, seeds = str(flags.runs_dir), flags.seeds
    request = Request(
        flags.workload,
        train,
        name,
        runs_dir,
        machine,
        flags.nodes,
        flags.hours,
        flags.starts,
        seeds,
        flags.price,
        flags.then,
    )
    cluster = read_cluster()
    fit = SlurmFit(machine.gpu_word) if cluster is None else check(request, flags.partition, cluster)
    command = command_line("slurm", argv, asked)
    options = tuple(split_flags(flags.sbatch))
    text = sbatch_text(request, command, partition=flags.partition, fit=fit, options=options, setup=flags.setup)
    if flags.price is not None and not flags.no_forecast:
        show_forecast(request, flags.profile)
    path = flags.out or Path(f"{name}.sbatch")
    write_file(path, text, asked, overwrite=flags.overwrite)
    print(text)
    print(f"{path}: {flags.nodes} x {machine.words}" + (f", {len(seeds)} seeds" if seeds else ""))
    print(
        "\n".join(
            [*request.price_lines(), *([] if cluster else ["not compared with a cluster: no sinfo answers here"])]
        )
    )
    return finish(["sbatch", str(path)], asked, yes=flags.yes)
