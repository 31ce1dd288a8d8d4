"""The exceptions that end a command, each with its exit code."""

from __future__ import annotations

import difflib
import errno
import re
from collections.abc import Sequence
from pathlib import Path

LONGEST_WORD = 200
"""Longer words of a message are shortened: an error about 5,000 digits must stay readable."""


class UserError(Exception):
    """Bad input: what was asked, what was found, what to do. Exit code 2."""

    exit_code = 2

    def __init__(self, asked: str, found: str, do: str) -> None:
        asked, found, do = ("\n".join(map(clean, shorten(text).split("\n"))) for text in (asked, found, do))
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


class ProcessLost(Exception):
    """A process that works for a rank was killed or hangs. The launcher starts all ranks again, as after the loss of
    a rank."""

    hangs = False
    """Whether it is alive, without progress."""


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


SYSTEM_LIMITS = {
    errno.EMFILE: "raise the limit of open files: ulimit -n 1024",
    errno.ENFILE: "close other programs: the whole machine has too many open files",
    errno.EAGAIN: "raise the limit of processes (ulimit -u, pids.max)",
    errno.ENAMETOOLONG: "give a shorter name",
    errno.ENOSPC: "free disk space, then run the same command again",
    errno.EDQUOT: "free disk space or raise the quota, then run the same command again",
}
"""What to do where the system refuses a file or a process for a reason that lies outside of it."""


def of_system_limit(error: OSError, asked: str) -> UserError | None:
    """The UserError for a limit of the system that a command ran into; None for any other error."""
    is_full_stream = hasattr(error, "characters_written")  # of a stream that does not block, it is EAGAIN too
    if error.errno not in SYSTEM_LIMITS or is_full_stream:
        return None
    where = f": {error.filename}" if error.filename else ""
    return UserError(asked, f"{error.strerror}{where}", SYSTEM_LIMITS[error.errno])


def shorten(text: str) -> str:
    """Words of more than LONGEST_WORD characters without their middle."""
    half = LONGEST_WORD // 2
    return re.sub(rf"\S{{{LONGEST_WORD + 1},}}", lambda word: f"{word[0][:half]}...{word[0][-half:]}", text)


def clean(text: str) -> str:
    """The text without control characters, which a terminal would obey."""
    return "".join(c if c.isprintable() else "?" for c in text.expandtabs(4))


def nearest(given: str, known: Sequence[str], otherwise: str) -> str:
    """'did you mean ...?' with the known word closest to the given one; else the text `otherwise`.

    The dashes of flags do not count: all flags have them."""
    words = {word.lstrip("-"): word for word in known}
    close = difflib.get_close_matches(given.lstrip("-")[:LONGEST_WORD], words, n=1, cutoff=0.6)
    return f"did you mean {words[close[0]]}? ({otherwise})" if close else otherwise
