"""The file of finished cells: one line each. A later start continues with the missing ones, and two
processes may fill one file, each with cells of its own.

All cells of a file have the same identity: the hash of the first test graph of every cell, how many
graphs of each cell are used, the hash of the weights, the version of the methods, and the hash of
what the searches answer with fixed moves. A start with another identity is refused. A row has the
hash of all its graphs. `sessions` lists the starts that finished a cell, each with date, command,
commit, versions and machine; a cell has the number of its session.
"""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from measure import ROOT

from randcsp.instances import Cell


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
            self.rows = {Cell(row["nodes"], row["colours"], row["degree"]): row for row in content["cells"]}

    def add(self, cell: Cell, row: dict[str, Any]) -> None:
        """Adds a finished cell to what the file holds now; a kill leaves the old file or the new one."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            self.read()
            self._add(cell, row)
        finally:
            os.close(folder)

    def _add(self, cell: Cell, row: dict[str, Any]) -> None:
        if self.session not in self.sessions:
            self.sessions.append(self.session)
        self.rows[cell] = row | {"session": self.sessions.index(self.session)}
        head = json.dumps({"identity": self.identity, "sessions": self.sessions}, indent=2).removesuffix("\n}")
        lines = ",\n".join(f"    {json.dumps(self.rows[cell])}" for cell in sorted(self.rows))
        text = f'{head},\n  "cells": [\n{lines}\n  ]\n}}\n'.replace(f"{ROOT}/", "")
        temporary = self.path.with_name(self.path.name + ".tmp")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(self.path)
