"""What the launcher says of a rank that is slow, stuck or unlike the others, and of its recovery."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

NoticeEvent = Literal["slow_rank", "rank_goes_on", "straggler", "straggler_over", "uneven_gpus"]
Cause = Literal["compute", "data", "network"]


@dataclass(frozen=True)
class Notice:
    """One line, and its record in sessions.jsonl. A notice changes nothing in the run.

    `rank`: None where the times of the ranks cannot say which one it is.
    """

    event: NoticeEvent
    rank: int | None
    text: str
    facts: Mapping[str, object] = field(default_factory=dict[str, object])

    @property
    def record(self) -> dict[str, object]:
        """What sessions.jsonl keeps."""
        return {"rank": self.rank, **self.facts, "text": self.text}
