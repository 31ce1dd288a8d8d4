"""What an engine evaluates with, and the files that it is loaded from.

tables                 the values of tables.py, before any tuning
FOLDER                 nnue.safetensors (a net) or tables.safetensors (tuned values) in a folder, or such a file
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from ranks.chess.engine.nnue.inference import NetArrays, net_arrays, no_net
from ranks.chess.engine.nnue.weights import load_weights
from ranks.chess.engine.tables import TableValues, default_values, load_tables
from ranks.errors import UserError

TABLES = "tables"
NET_FILE, TABLES_FILE = "nnue.safetensors", "tables.safetensors"
USAGE = "engine:tables, or engine:FOLDER with a file nnue.safetensors or tables.safetensors"


@dataclass(frozen=True, eq=False)
class Evaluator:
    """Tables, or a net where there is one."""

    table_values: TableValues
    net: NetArrays | None
    sha256: str
    """Of the weights."""

    @classmethod
    def of_tables(cls, values: TableValues) -> Evaluator:
        """An evaluator with these tables."""
        return cls(values, None, hashlib.sha256(values.tobytes()).hexdigest())

    @classmethod
    def of_net(cls, net: NetArrays) -> Evaluator:
        """An evaluator with this net."""
        return cls(default_values(), net, hashlib.sha256(b"".join(array.tobytes() for array in net)).hexdigest())

    @property
    def arrays(self) -> NetArrays:
        """The net for the kernels; an empty one for tables."""
        return self.net if self.net is not None else no_net()


def load_evaluator(word: str, asked: str) -> Evaluator:
    """The evaluator that a word names. Raises UserError: no such folder or file, damaged weights."""
    if word == TABLES:
        return Evaluator.of_tables(default_values())
    if word.startswith("run:"):
        do = f"write {word} as the player, or write the net's files with `ranks chess-value weights` and {USAGE}"
        raise UserError(asked, "the engine reads quantised weights, and a run keeps float weights", do)
    path = Path(word)
    if path.is_dir():
        path = next((path / name for name in (NET_FILE, TABLES_FILE) if (path / name).exists()), path)
    if path.is_dir() or not path.exists():
        found = f"{path} has neither {NET_FILE} nor {TABLES_FILE}" if path.is_dir() else f"there is no {path}"
        raise UserError(asked, found, f"write {USAGE}")
    if path.name == TABLES_FILE:
        return Evaluator.of_tables(load_tables(path, asked))
    return Evaluator.of_net(net_arrays(load_weights(path, asked)))
