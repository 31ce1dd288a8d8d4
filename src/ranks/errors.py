"""The exceptions that end a command, each with its exit code."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path


class UserError(Exception):
    """Bad input: what was asked, what was found, what to do. Exit code 2."""

    exit_code = 2

    def __init__(self, asked: str, found: str, do: str) -> None:
        super().__init__(f"asked: {asked}\nfound: {found}\n   do: {do}")
        self.asked, self.found, self.do = asked, found, do

    def __reduce__(self) -> tuple[type[UserError], tuple[str, str, str]]:
        """For pickle: exceptions travel between processes."""
        return type(self), (self.asked, self.found, self.do)


class OtherFormat(UserError):
    """A run folder or checkpoint that another version of ranks has written. Shown as one line."""

    @classmethod
    def of(cls, path: Path, found: int | None, wanted: int) -> OtherFormat:
        """`found`: the format number in its files; None for run folders of ranks 0.1.0, which have
        none."""
        if found is None or found < wanted:
            made = "it was made by ranks 0.1.0, and this version does not read its format"
            return cls(f"to open {path}", made, "use ranks 0.1.0 for it, or start under another --name")
        made = f"its format is {found}, this version reads {wanted}"
        return cls(f"to open {path}", made, "update ranks")

    def __str__(self) -> str:
        return f"{self.asked}: {self.found}; {self.do}"


class GaveUp(Exception):
    """The run cannot continue without a person (non-finite losses, restarts without progress). Exit
    code 3."""

    exit_code = 3


class Stopped(Exception):
    """A signal stopped the run after a save. Exit code 128 + signal number."""

    def __init__(self, signum: int) -> None:
        super().__init__(f"stopped by signal {signum}")
        self.signum = signum

    def __reduce__(self) -> tuple[type[Stopped], tuple[int]]:
        """For pickle: exceptions travel between processes."""
        return type(self), (self.signum,)

    @property
    def exit_code(self) -> int:
        return 128 + self.signum


def nearest(given: str, known: Sequence[str], otherwise: str) -> str:
    """'did you mean ...?' with the known word closest to the given one; else the text `otherwise`.

    The dashes of flags do not count: all flags have them."""
    words = {word.lstrip("-"): word for word in known}
    close = difflib.get_close_matches(given.lstrip("-"), words, n=1, cutoff=0.6)
    return f"did you mean {words[close[0]]}? ({otherwise})" if close else otherwise
