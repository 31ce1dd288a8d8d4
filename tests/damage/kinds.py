"""Every kind of damage, as a function that changes one file of a run folder."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch

from ranks.engine.runs.checkpoint import HostState
from ranks.engine.runs.manifest import sealed

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


# Manifests, sealed again ----------------------------------------------------------------------------------------------


def _reseal(path: Path, manifest: dict[str, Any]) -> None:
    for name, listed in manifest["files"].items():
        content = (path.parent / name).read_bytes()
        listed.update(bytes=len(content), sha256=hashlib.sha256(content).hexdigest())
    path.write_bytes(sealed(manifest))


def resealed_missing_fact(path: Path, rng: random.Random) -> None:
    manifest = json.loads(path.read_text())
    del manifest[rng.choice([name for name in manifest if name not in ("sha256", "ranks")])]
    path.write_bytes(sealed(manifest))


def resealed_odd_fact(path: Path, rng: random.Random) -> None:
    manifest = json.loads(path.read_text())
    manifest[rng.choice(["iteration", "files", "fingerprint", "metrics_bytes", "measured"])] = rng.choice(
        [None, "x", -1, 1.5, [], [[]], True, 10**400, {"x": 1}, {"/dev/zero": {"bytes": 1, "sha256": "0" * 64}}]
    )
    path.write_bytes(sealed(manifest))


def resealed_outside(path: Path, rng: random.Random) -> None:
    manifest = json.loads(path.read_text())
    name = rng.choice(["../../run.json", "/dev/zero", "/dev/urandom", "..", ".", "/etc/passwd"])
    manifest["files"][name] = {"bytes": rng.choice([0, 100, 2**40]), "sha256": "0" * 64}
    path.write_bytes(sealed(manifest))


def resealed_other_weights(path: Path, rng: random.Random) -> None:
    """Other weights, with their sha256 in the manifest; half of the time also with their fingerprint."""
    weights = path.parent / "learner.safetensors"
    tensors = safetensors.torch.load(weights.read_bytes())
    name = rng.choice(sorted(tensors))
    tensors[name] = tensors[name] + 1
    weights.write_bytes(safetensors.torch.save(tensors))
    manifest = json.loads(path.read_text())
    if rng.random() < 0.5:
        rest = json.loads((path.parent / "state.json").read_text())
        manifest["fingerprint"] = HostState({"learner": tensors}, rest).fingerprint()
    _reseal(path, manifest)


def resealed_state(path: Path, rng: random.Random) -> None:
    """A state.json that is no state, with its sha256 in the manifest."""
    rng.choice([too_deep, deep_arrays, nan_inside, an_array, a_number])(path.parent / "state.json", rng)
    _reseal(path, json.loads(path.read_text()))


def resealed_tensors(path: Path, rng: random.Random) -> None:
    """A tensor file that is none, with its sha256 in the manifest."""
    rng.choice([flipped_bit, truncated, empty, longer, noise])(path.parent / "learner.safetensors", rng)
    _reseal(path, json.loads(path.read_text()))


# Folders --------------------------------------------------------------------------------------------------------------


def folder_missing(path: Path, rng: random.Random) -> None:
    shutil.rmtree(path)


def folder_is_a_file(path: Path, rng: random.Random) -> None:
    shutil.rmtree(path)
    path.write_bytes(b"x")


def folder_is_a_fifo(path: Path, rng: random.Random) -> None:
    shutil.rmtree(path)
    os.mkfifo(path)


def folder_is_a_link(path: Path, rng: random.Random) -> None:
    link_out(path, rng)


def leftovers(path: Path, rng: random.Random) -> None:
    """What killed processes leave: half-written folders, a FIFO among them."""
    run = path.parent if path.name == "checkpoints" else path.parent.parent
    for place in (run / "checkpoints" / ".tmp-00000099-1", run.parent / f".{run.name}.tmp-7", run / ".export.tmp-3"):
        place.mkdir(exist_ok=True)
        (place / "state.json").write_text("{")
    os.mkfifo(run / ".run.json.tmp-5")


ANY_FILE: tuple[Kind, ...] = (
    *(flipped_bit, truncated, empty, missing, longer, noise, swapped, sparse, fifo, socket_file, folder),
    *(link_out, link_to_itself, link_to_urandom, link_to_zero),
)
JSON_FILE: tuple[Kind, ...] = (too_deep, deep_arrays, nan_inside, an_array, a_number, odd_value, missing_key)
ROWS_FILE: tuple[Kind, ...] = (torn_line, odd_lines)
MANIFEST_FILE: tuple[Kind, ...] = (
    *(resealed_missing_fact, resealed_odd_fact, resealed_outside),
    *(resealed_other_weights, resealed_state, resealed_tensors),
)
FOLDER: tuple[Kind, ...] = (folder_missing, folder_is_a_file, folder_is_a_fifo, folder_is_a_link)


@dataclass(frozen=True)
class Target:
    """A path inside a run folder, with the kinds of damage that fit it."""

    path: str
    kinds: tuple[Kind, ...]


def targets(run: Path) -> list[Target]:
    """Every file and folder of a run, and its lock."""
    found = [Target("checkpoints", (leftovers,)), Target(f"../.{run.name}.lock", ANY_FILE)]
    for path in sorted(run.rglob("*")):
        name = str(path.relative_to(run))
        if path.is_dir():
            found.append(Target(name, FOLDER))
        elif path.name == "manifest.json":
            found.append(Target(name, (*ANY_FILE, *JSON_FILE, *MANIFEST_FILE)))
        elif path.suffix == ".json":
            found.append(Target(name, (*ANY_FILE, *JSON_FILE)))
        elif path.suffix == ".jsonl":
            found.append(Target(name, (*ANY_FILE, *ROWS_FILE)))
        else:
            found.append(Target(name, ANY_FILE))
    return found
