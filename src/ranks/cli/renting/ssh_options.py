"""The flag --ssh of commands that use ssh."""

from __future__ import annotations

import shlex

from ranks.errors import UserError


def split_options(text: str) -> tuple[str, ...]:
    """The arguments in one string. Raises UserError for quotes that do not end."""
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise UserError(f"--ssh {text}", str(error).lower(), "close the quotes") from None
