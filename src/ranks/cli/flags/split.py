"""The flags of `ranks train` in one string, as other commands take them: --train="--preset small"."""

from __future__ import annotations

import shlex

from ranks.errors import UserError


def split_flags(text: str) -> list[str]:
    """The flags of --train. Raises UserError for quotes that do not end."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UserError(f"--train {text}", f"{error}".lower(), "close the quotes") from None
