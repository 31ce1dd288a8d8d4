"""Names of repositories on the hub, checked without a connection."""

from __future__ import annotations

import re

from ranks.errors import UserError

OWNER = NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?"
WRITE = "write OWNER/NAME, as in the address of the repository: letters, digits, - _ and . inside, 96 at most"


def check_repo_id(repo_id: str, asked: str) -> str:
    """OWNER/NAME. Raises UserError where a text is no such name."""
    if (
        not re.fullmatch(f"{OWNER}/{NAME}", repo_id)
        or "--" in repo_id
        or ".." in repo_id
        or repo_id.endswith((".git", ".ipynb"))
    ):
        raise UserError(asked, f"'{repo_id}' is not the name of a repository", WRITE)
    return repo_id
