"""The identity of a run: settings as JSON can hold them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from ranks.engine.config import identity_of


@dataclass(frozen=True)
class Sources:
    files: tuple[Path, ...] = (Path("a/b.csv"), Path("c.pgn"))
    first: Path = Path("d")


@dataclass(frozen=True)
class Settings:
    sizes: tuple[int, ...] = (1, 2)
    sources: Sources = field(default_factory=Sources)


def test_paths_also_those_in_tuples_are_text() -> None:
    assert json.loads(json.dumps(identity_of(Settings()))) == {
        "sizes": [1, 2],
        "sources": {"files": ["a/b.csv", "c.pgn"], "first": "d"},
    }
