"""`ranks submit modal WORKLOAD`: write the app file of Modal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ranks.cli.flags.parse import Positional, parse
from ranks.cli.flags.split import split_flags
from ranks.cli.renting.requested import check_image, checked_train, command_line, files_to_copy, finish, show_forecast
from ranks.errors import UserError
from ranks.secrets import refuse_in_words


@dataclass(frozen=True)
class SubmitModalFlags:
    """Write a Modal app that trains on GPUs, and keeps the run in a volume.

    Modal ends the machine with each call. A call that reaches its time limit is saved, and the next try continues.
    Nothing is started without --yes."""

    workload: Positional[str]
    """Its name, or the path of your own file."""
    gpus: str
    """Kind and number: B200:4, as Modal writes them; none for CPUs, with --ranks."""
    image: str
    """A container image with ranks in it: docs/rented-machine.md says how to make one."""
    price: float
    """What the container costs an hour, with all its GPUs: modal.com/pricing."""
    train: str = ""
    """Flags of ranks train, in one string: --train="--preset full --exact"."""
    ranks: int | None = None
    """Processes, with --gpus none."""
    hours: float = 8.0
    """The time limit of one call; Modal's own limit is 24."""
    starts: int = 3
    """How often Modal tries: the time limit ends each, and the next continues."""
    max_cost: float | None = None
    """One start stops before it has cost so much."""
    files: tuple[str, ...] = ()
    """Files and folders below this folder that go into the image: --files data/prices,lib."""
    secrets: tuple[str, ...] = ()
    """Names of Modal's secrets: --secrets huggingface."""
    then: str | None = None
    """A shell command after evaluation and export: --then "rclone copy /runs remote:runs"."""
    profile: Path | None = None
    """The forecast uses a profile that ranks forecast --save-profile has written; by default one is measured here."""
    no_forecast: bool = False
    """Leave the forecast out."""
    name: str | None = None
    """Name of the run; by default the workload's name."""
    out: Path | None = None
    """The file; by default NAME_modal.py."""
    overwrite: bool = False
    """Replace a file of that name."""
    yes: bool = False
    """Start it: modal run --detach FILE."""


def submit_modal(argv: Sequence[str]) -> int:
    """Check, write, print, and start where --yes is given."""
    flags = parse(SubmitModalFlags, argv, prog="ranks submit modal")
    from ranks.renting.modal.app import ORIGIN_FLAGS, ModalApp, app_text
    from ranks.renting.modal.gpus import MOST_HOURS, modal_gpu
    from ranks.renting.request import Machine, Request
    from ranks.renting.written_file import write_file

    asked = f"ranks submit modal {flags.workload}"
    refuse_in_words([*argv, *split_flags(flags.train)])
    command = command_line("modal", argv, asked)
    settings, train = checked_train(flags.workload, flags.train, flags.name)
    name = str(settings.engine.name)
    gpu = "" if flags.gpus == "none" else modal_gpu(flags.gpus)
    machine = Machine.of(gpu or "none", flags.ranks)
    check_image(flags.image)
    for secret in flags.secrets:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", secret):
            raise UserError(f"--secrets {secret!r}", "that is no name of a secret", "see modal secret list")
    if flags.hours > MOST_HOURS:
        do = f"give --hours {MOST_HOURS:g}, and more --starts"
        raise UserError(f"--hours {flags.hours:g}", f"Modal ends a call after {MOST_HOURS:g} h", do)
    if flags.max_cost is not None:
        if not flags.max_cost > 0:
            raise UserError(f"--max-cost {flags.max_cost}", "it must be a number above 0", "give --max-cost 100")
        train = (*train, "--price", f"{flags.price:g}", "--max-cost", f"{flags.max_cost:g}")
    request = Request(
        flags.workload, train, name, "/runs", machine, 1, flags.hours, flags.starts, (), flags.price, flags.then
    )
    own = {"max_positions", "stockfish_games"} & set(vars(type(settings.config)).get("__dataclass_fields__", {}))
    app = ModalApp(
        gpu,
        flags.image,
        files_to_copy(flags.workload, flags.files, asked),
        flags.secrets,
        [flag for flag in ORIGIN_FLAGS if flag in own or (own and flag == "batch_size")],
    )
    if not flags.no_forecast:
        show_forecast(request, flags.profile)
    path = flags.out or Path(f"{name.replace('.', '_')}_modal.py")
    if path.suffix != ".py" or "." in path.stem:
        found = "modal run takes no file of such a name"
        raise UserError(f"--out {path}", found, "end it with .py, without another period")
    text = app_text(request, app, command, str(path))
    compile(text, str(path), "exec")  # what is written is Python
    write_file(path, text, asked, overwrite=flags.overwrite)
    print(text)
    print(f"{path}: {machine.words} at Modal")
    print("\n".join(request.price_lines()))
    return finish(["modal", "run", "--detach", str(path)], asked, yes=flags.yes)
