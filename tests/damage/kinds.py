"""Kinds of damage, as functions that change one file of a run folder."""

from __future__ import annotations

import json
import os
import random
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

Kind = Callable[[Path, random.Random], None]
SPARSE_BYTES = 3 << 30
ODD_LINES = [
    b"[1, 2]\n",
    b"not json\n",
    b'{"iteration": NaN}\n',
    b'{"event": "finished"}\n',
    b'{"event": "resumed", "time": "yesterday", "attempt": {}}\n',
    b'{"iteration": 1e999, "train/loss": "low", "time/compute_s": [], "fingerprint": 3, "manifest": 4}\n',
    b'{"iteration": ' + b"9" * 400 + b', "time/data_s": ' + b"9" * 400 + b"}\n",
    b'{"event": "plan", "iterations": {}}\n',
    b"[" * 100_000 + b"\n",
    b'{"a": ' * 900 + b"1" + b"}" * 900 + b"\n",
    b"\xff\xfe\x00\n",
    b"\x1b]0;title\x07\n",
    b"x" * 3_000_000 + b"\n",
    b"\0" * 4096,
]
VALUES: list[Any] = [None, -1, 0, 1.5, 10**400, "x", "", [], {}, [[]], True, 2**63, "\x1b[31m", "/dev/zero", "../../x"]


# Any file -------------------------------------------------------------------------------------------------------------


def flipped_bit(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes() or b"\0")
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def truncated(path: Path, rng: random.Random) -> None:
    os.truncate(path, rng.randrange(path.stat().st_size) if path.stat().st_size else 0)


def empty(path: Path, rng: random.Random) -> None:
    path.write_bytes(b"")


def missing(path: Path, rng: random.Random) -> None:
    path.unlink()


def longer(path: Path, rng: random.Random) -> None:
    path.write_bytes(path.read_bytes() + rng.randbytes(rng.randrange(1, 100)))


def noise(path: Path, rng: random.Random) -> None:
    path.write_bytes(rng.randbytes(path.stat().st_size))


def swapped(path: Path, rng: random.Random) -> None:
    """Another file of the run in its place."""
    run = next(p for p in path.parents if (p / "run.json").exists() or (p / "run_config.json").exists())
    others = sorted(p for p in run.rglob("*") if p.is_file() and p.name != path.name)
    path.write_bytes(rng.choice(others).read_bytes())


def sparse(path: Path, rng: random.Random) -> None:
    """3 GB that take no space."""
    os.truncate(path, SPARSE_BYTES)


def fifo(path: Path, rng: random.Random) -> None:
    path.unlink()
    os.mkfifo(path)


def socket_file(path: Path, rng: random.Random) -> None:
    path.unlink()
    place = os.open(path.parent, os.O_RDONLY)  # the name of a socket has at most 107 bytes
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"/proc/self/fd/{place}/{path.name}")
    os.close(place)


def folder(path: Path, rng: random.Random) -> None:
    path.unlink()
    path.mkdir()
    (path / "inside").write_text("x")


def link_out(path: Path, rng: random.Random) -> None:
    """A link to the same content outside of the run."""
    runs = next(p for p in path.parents if p.name == "runs")
    target = runs.parent / "outside" / f"{rng.randrange(10**9)}"
    target.parent.mkdir(exist_ok=True)
    shutil.move(path, target)
    path.symlink_to(target)


def link_to_itself(path: Path, rng: random.Random) -> None:
    path.unlink()
    path.symlink_to(path.name)


def link_to_urandom(path: Path, rng: random.Random) -> None:
    path.unlink()
    path.symlink_to("/dev/urandom")


def link_to_zero(path: Path, rng: random.Random) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


# JSON -----------------------------------------------------------------------------------------------------------------


def too_deep(path: Path, rng: random.Random) -> None:
    depth = rng.choice([100, 900, 200_000])
    path.write_text('{"a":' * depth + "1" + "}" * depth)


def deep_arrays(path: Path, rng: random.Random) -> None:
    path.write_text("[" * rng.choice([100, 900, 1_000_000]))


def nan_inside(path: Path, rng: random.Random) -> None:
    found = json.loads(path.read_text())
    found[rng.choice(sorted(found))] = float("nan")
    path.write_text(json.dumps(found))


def an_array(path: Path, rng: random.Random) -> None:
    path.write_text(json.dumps([json.loads(path.read_text())]))


def a_number(path: Path, rng: random.Random) -> None:
    path.write_text(rng.choice(["3", "null", '"x"', "9" * 5000, "1e999"]))


def odd_value(path: Path, rng: random.Random) -> None:
    """A value of another kind, somewhere inside."""
    found = json.loads(path.read_text())
    _change(found, rng, lambda node, key: node.__setitem__(key, rng.choice(VALUES)))
    path.write_text(json.dumps(found))


def missing_key(path: Path, rng: random.Random) -> None:
    found = json.loads(path.read_text())
    _change(found, rng, lambda node, key: node.__delitem__(key))
    path.write_text(json.dumps(found))


def _change(found: Any, rng: random.Random, change: Callable[[Any, Any], None]) -> None:
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            places.append((node, key))
            if isinstance(value, dict | list):
                walk(value)

    walk(found)
    change(*rng.choice(places))


# Rows -----------------------------------------------------------------------------------------------------------------


def torn_line(path: Path, rng: random.Random) -> None:
    """The last line ends in the middle, as on a full disk."""
    content = path.read_bytes()
    last = content.rstrip(b"\n").rfind(b"\n") + 1
    path.write_bytes(content[: rng.randrange(last + 1, len(content))] if len(content) > last + 1 else content)


def odd_lines(path: Path, rng: random.Random) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    for _ in range(rng.randrange(1, 6)):
        lines.insert(rng.randrange(len(lines) + 1), rng.choice(ODD_LINES))
    path.write_bytes(b"".join(lines))
