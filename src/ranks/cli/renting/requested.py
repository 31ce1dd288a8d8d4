"""What the ways of `ranks submit` share: the workload and its flags are checked as `ranks train` checks them, the price
is forecast, the file is written and printed, and started with --yes alone."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ranks.cli.flags.settings import Settings, resolve
from ranks.cli.flags.split import split_flags
from ranks.errors import UserError

if TYPE_CHECKING:
    from ranks.renting.request import Request

CHOSEN = ("--name", "--runs-dir", "--seed", "--gpus", "--ranks", "--then", "--price", "--max-cost")
"""Flags of `ranks train` that the file sets, or that belong to `ranks submit`."""


def checked_train(workload: str, train: str, name: str | None) -> tuple[Settings, tuple[str, ...]]:
    """The settings of the run and the flags of `ranks train`, both checked as `ranks train` does. Raises UserError."""
    words = split_flags(train)
    chosen = [word.split("=")[0] for word in words if word.split("=")[0].replace("_", "-") in CHOSEN]
    if chosen:
        raise UserError(
            f'--train "{train}"', f"ranks submit itself sets {chosen[0]}", f"give {chosen[0]} to ranks submit"
        )
    return resolve(workload, [*words, *(["--name", name] if name else [])], outline=True), tuple(words)


def check_image(image: str) -> None:
    """Raises UserError for what cannot be the name of a container image."""
    if not re.fullmatch(r"[a-z0-9][A-Za-z0-9._/:@-]*", image):
        raise UserError(f"--image {image!r}", "that is no container image", "write it as REGISTRY/NAME:TAG")


def started(argv: Sequence[str], asked: str) -> int:
    """Run the command that starts the file. Raises UserError where it is not there or fails."""
    try:
        code = subprocess.run(argv).returncode
    except OSError as error:
        found = f"{argv[0]}: {error.strerror}; nothing was started"
        raise UserError(asked, found, f"run it on a machine that has {argv[0]}: {shlex.join(argv)}") from None
    if code:
        raise UserError(asked, f"{shlex.join(argv)} ended with exit code {code}", "read its message above")
    return 0


def command_line(way: str, argv: Sequence[str], asked: str) -> str:
    """The command that writes the file, for its first line. Raises UserError where a line of text cannot hold it."""
    command = shlex.join(["ranks", "submit", way, *(word for word in argv if word not in ("--yes", "--overwrite"))])
    if not command.isprintable():
        raise UserError(asked, "an argument holds a line break or a control character", "leave it out")
    return command


def files_to_copy(workload: str, files: Sequence[str], asked: str) -> list[str]:
    """The files and folders below this folder that go to the machine: those of --files, and the user's own workload.
    Raises UserError where one is missing, or not below this folder."""
    wanted = [*([workload] if workload.endswith(".py") else []), *files]
    for file in wanted:
        path = Path(file)
        if path.is_absolute() or ".." in path.parts:
            raise UserError(asked, f"{file} is not below this folder", "give paths below the folder that you are in")
        if not path.exists():
            raise UserError(asked, f"there is no {file}", "check --files")
    return list(dict.fromkeys(str(Path(file)) for file in wanted))


def show_forecast(request: Request, profile: Path | None) -> None:
    """Print what `ranks forecast` says of the request. `profile`: measured earlier; None to measure one here, which
    takes half a minute. Of GPUs nothing is forecast on a machine without one."""
    from ranks.cli.forecasting.flags import ForecastFlags
    from ranks.cli.forecasting.run import print_forecast
    from ranks.launch.gpus import find_gpus

    machine, count = request.machine, request.machine.ranks * request.nodes
    if machine.gpu is not None and profile is None and not find_gpus().count:
        measure = shlex.join(["ranks", "forecast", request.workload, "--gpus", str(count), "--save-profile", "p.json"])
        print(f"no forecast: this machine has no GPU. Measure a profile on one: {measure}; then add --profile p.json\n")
        return
    print_forecast(
        ForecastFlags(
            request.workload,
            gpus=(count,) if machine.gpu else None,
            ranks=None if machine.gpu else (count,),
            train=shlex.join(request.train),
            on=machine.gpu.name if machine.gpu else None,
            price=None if request.price is None else request.price / machine.ranks,
            profile=profile,
        )
    )
    print()


def finish(start: Sequence[str], asked: str, *, yes: bool) -> int:
    """Start the file where --yes was given, else say how."""
    if not yes:
        print(f"nothing was started; start it: {shlex.join(start)}")
        return 0
    return started(start, asked)
