"""`ranks push DATA HOST[:DIR]`: copy data to another machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ranks.cli.flags.parse import Positional, parse
from ranks.cli.renting.ssh_options import split_options
from ranks.cli.units import size


@dataclass(frozen=True)
class PushFlags:
    """Copy a file or a folder to a machine that ssh reaches, by rsync, and compare the sha256 sums of both sides.

    An interrupted copy continues with the same command. Until it is whole it is in a hidden folder. Files that only
    the other machine has stay."""

    data: Positional[Path]
    """A file or a folder."""
    place: Positional[str]
    """HOST or HOST:DIR, the folder that gets it; without DIR the home folder there."""
    ssh: str = ""
    """More arguments of ssh, in one string: --ssh="-p 2222 -i key"."""


def push(argv: Sequence[str]) -> int:
    """Copy, compare, and move into place."""
    flags = parse(PushFlags, argv, prog="ranks push")
    asked = f"ranks push {flags.data} {flags.place}"
    options = split_options(flags.ssh)
    from ranks.transfer.push import push as push_data
    from ranks.transfer.remote import Remote, parse_place

    host, folder = parse_place(flags.place, asked, "HOST[:DIR]")
    done = push_data(flags.data, Remote(host, options), folder, asked)
    count = f"{done.num_files:,} file{'s' * (done.num_files != 1)}, {size(done.num_bytes)}"
    print(f"{done.place}: {count}, sha256 sums equal")
    return 0
