"""What events.jsonl recorded about the checkpoints of a run, to notice one that was replaced.

Each start and each save of a run writes an event with the checkpoint's fingerprint and the sha256
of its manifest. One of the two must agree: a flipped bit in the event then does not disqualify a
good checkpoint. A checkpoint without an event is not refused.

This finds accidents and partial tampering: a checkpoint copied from another run, or one whose
weights, fingerprint and manifest were rewritten together. It is no protection against a person who
also rewrites or deletes events.jsonl.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranks.engine.files.jsonl import iter_rows
from ranks.engine.runs.checkpoints.manifest import Manifest


def record(manifest: Manifest) -> dict[str, Any]:
    """The part of an event that identifies a checkpoint."""
    return {"fingerprint": manifest.fingerprint, "manifest": manifest.sha256}


@dataclass(frozen=True)
class History:
    """Iteration -> the fingerprints and manifests recorded for it."""

    recorded: Mapping[int, set[str]]

    @classmethod
    def of(cls, events: Path) -> History:
        """From events.jsonl; empty where it cannot be read."""
        recorded: dict[int, set[str]] = {}
        for event in iter_rows(events):
            iteration, found = event.get("iteration"), (event.get("fingerprint"), event.get("manifest"))
            if isinstance(iteration, int) and None not in found:
                recorded.setdefault(iteration, set()).update(map(str, found))
        return cls(recorded)

    def agrees(self, manifest: Manifest) -> bool:
        """Whether nothing else was recorded for this checkpoint."""
        recorded = self.recorded.get(manifest.iteration)
        return recorded is None or manifest.fingerprint in recorded or manifest.sha256 in recorded
