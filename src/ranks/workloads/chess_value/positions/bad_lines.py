"""Lines of CSV and EPD files that cannot be read: skipped and counted, up to a share."""

from __future__ import annotations

from collections.abc import Callable

from ranks.data.prepared.say import say
from ranks.errors import UserError

NAMED = 5
"""Bad lines that are named; more are only counted."""
MOST_SHARE = 0.01
"""The most bad lines for each good one that was read before. So the first hundred lines must be right."""


class BadLines:
    """Counts the bad lines of all files, and names the first."""

    def __init__(self, report: Callable[[str], None] = say) -> None:
        self.good = self.bad = 0
        self._report = report

    def skip(self, error: UserError) -> None:
        """Skip a line. Raises the error where too many lines were bad, see MOST_SHARE."""
        self.bad += 1
        if self.bad > MOST_SHARE * self.good:
            many = f"; {self.bad:,} lines cannot be read so far" if self.bad > 1 else ""
            raise UserError(error.asked, f"{error.found}{many}", error.do) from None
        if self.bad <= NAMED:
            self._report(f"skipped {error.asked}: {error.found}")

    def end(self) -> None:
        """Say how many there were, if not all were named."""
        if self.bad > NAMED:
            self._report(f"skipped {self.bad:,} lines that cannot be read in all")
