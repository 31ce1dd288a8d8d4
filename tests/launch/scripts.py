"""Scripts of ranks, and what the launcher records of them."""

from __future__ import annotations

import json
from typing import Any

ERROR = """
from ranks.errors import GaveUp, UserError
from ranks.launch.failures.report import report_exception
def end(error):
    try:
        raise error
    except Exception as raised:
        sys.exit(report_exception(raised, rank, Path(os.environ["RANKS_ERROR_FILE"])))
"""


def sessions(launcher: Any) -> list[dict[str, Any]]:
    path = launcher.folder / "sessions.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
