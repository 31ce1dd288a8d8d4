"""The file of finished cells: one line each, and one for each finished part of the others. A later start continues
with the missing parts, and several processes may fill one file: a part that one of them works on is claimed by a lock.

All cells of a file have the same identity: the hash of the first test graph of every cell, how many
graphs of each cell are used, the hash of the weights, the version of the methods, and the hash of
what the searches answer with fixed moves. A start with another identity is refused. A row has the
hash of all its graphs. `sessions` lists the starts that finished a part, each with date, command,
commit, versions and machine; a cell has the number of its session, or of those of its parts.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.graph_coloring.randcsp.instances import Cell, Part
from benchmarks.graph_coloring.randcsp.methods import merged
from benchmarks.measure import ROOT


class Refused(Exception):
    """This start may not continue the file."""


@dataclass
class CellFile:
    """The finished cells of a file, and this session."""

    path: Path
    identity: dict[str, Any]
    session: dict[str, Any]
    sessions: list[dict[str, Any]] = field(default_factory=list)
    rows: dict[Cell, dict[str, Any]] = field(default_factory=dict)
    parts: dict[Part, dict[str, Any]] = field(default_factory=dict)
    """Of cells that are not finished."""

    @classmethod
    def open(cls, path: Path, identity: dict[str, Any], session: dict[str, Any]) -> CellFile:
        """The cells of a file, none if it does not exist. Raises Refused."""
        file = cls(path, identity, session)
        file.read()
        return file

    def read(self) -> None:
        """What the file holds now. Raises Refused if it is of another identity."""
        if self.path.exists():
            content = json.loads(self.path.read_text(encoding="utf-8"))
            if other := [name for name, value in self.identity.items() if content["identity"].get(name) != value]:
                found = ", ".join(f"{name} {content['identity'].get(name)}" for name in other)
                ours = ", ".join(f"{name} {self.identity[name]}" for name in other)
                why = f"asked: continue {self.path}; found: it has {found}, here {ours}; do: give another --result"
                raise Refused(why)
            self.sessions = content["sessions"]
            self.rows = {cell_of(row): row for row in content["cells"]}
            self.parts = {Part(cell_of(row), row["first"], row["graphs"]): row for row in content.get("parts", [])}

    def missing(self, parts: Sequence[Part]) -> list[Part]:
        """Those that are not in the file now."""
        self.read()
        return [part for part in parts if part.cell not in self.rows and part not in self.parts]

    @contextmanager
    def claim(self, part: Part) -> Generator[bool]:
        """Whether this process may work on the part: no other one does so now. The claim ends with the process."""
        name = hashlib.sha256(f"{self.path.resolve()} {part}".encode()).hexdigest()[:16]
        with open(Path(tempfile.gettempdir()) / f"randcsp-{name}.lock", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True

    def add(self, part: Part, row: dict[str, Any]) -> None:
        """Adds a finished part to what the file holds now; a kill leaves the old file or the new one."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            self.read()
            if self.session not in self.sessions:
                self.sessions.append(self.session)
            self.parts[part] = row | {"first": part.first, "session": self.sessions.index(self.session)}
            self._merge(part.cell)
            self._write()
        finally:
            os.close(folder)

    def _merge(self, cell: Cell) -> None:
        """Make a row of the cell when all its graphs are there."""
        own = sorted(part for part in self.parts if part.cell == cell)
        if sum(part.count for part in own) == self.identity["graphs"]:
            rows = [self.parts.pop(part) for part in own]
            numbers = [row["session"] for row in rows]
            self.rows[cell] = merged(rows, cell) | {"session": numbers[0] if len(set(numbers)) == 1 else numbers}

    def _write(self) -> None:
        content = {"cells": [self.rows[cell] for cell in sorted(self.rows)]}
        content["parts"] = [self.parts[part] for part in sorted(self.parts)]
        head = json.dumps({"identity": self.identity, "sessions": self.sessions}, indent=2).removesuffix("\n}")
        for name, rows in content.items():
            lines = ",\n".join(f"    {json.dumps(row)}" for row in rows)
            head += f',\n  "{name}": [\n{lines}\n  ]'
        temporary = self.path.with_name(self.path.name + ".tmp")
        temporary.write_text(f"{head}\n}}\n".replace(f"{ROOT}/", ""), encoding="utf-8")
        temporary.replace(self.path)


def cell_of(row: dict[str, Any]) -> Cell:
    """The cell of a row."""
    return Cell(row["nodes"], row["colours"], row["degree"])
