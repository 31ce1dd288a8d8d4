"""`ranks pull HOST:RUN`: bring a run home."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ranks.cli.flags.parse import Positional, parse
from ranks.cli.renting.ssh_options import split_options
from ranks.errors import UserError


@dataclass(frozen=True)
class PullFlags:
    """Copy a run from a machine that ssh reaches, by rsync, and verify it by its sha256 sums.

    Of a run that is still being written it takes the newest checkpoint that verifies: ranks train continues it here.
    The same command again continues an interrupted copy, and brings an older one up to date."""

    run: Positional[str]
    """HOST:RUN, the name of a run in runs/ below the home folder there; or HOST:PATH of a run folder."""
    runs_dir: Path = Path("runs")
    """The folder of the run folders here."""
    ssh: str = ""
    """More arguments of ssh, in one string: --ssh="-p 2222 -i key"."""


def pull(argv: Sequence[str]) -> int:
    """Copy, verify, and move into place."""
    flags = parse(PullFlags, argv, prog="ranks pull")
    asked = f"ranks pull {flags.run}"
    options = split_options(flags.ssh)
    from ranks.transfer.pull import pull as pull_run
    from ranks.transfer.remote import Remote, parse_place

    host, run = parse_place(flags.run, asked, "HOST:RUN")
    if not run.strip("/"):
        raise UserError(asked, "no run was named", "write HOST:RUN, such as gpu-box:my_task")
    folder = run if "/" in run else f"runs/{run}"
    done = pull_run(Remote(host, options), folder, flags.runs_dir, asked)
    state = "the whole run" if done.finished else "not finished there; the same ranks train continues it here"
    print(f"{done.path}: iteration {done.iteration:,}, sha256 sums equal; {state}")
    return 0
