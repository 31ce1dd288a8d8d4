"""Every file and folder of a run, with the kinds of damage that fit it."""

from __future__ import annotations

import os
import random
import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.damage import kinds, resealed
from tests.damage.kinds import Kind, link_out


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
    inside = [f / ".tmp-00000099-1" for f in (run / "checkpoints", run / "kept" / "window") if f.is_dir()]
    for place in (*inside, run.parent / f".{run.name}.tmp-7", run / ".export.tmp-3"):
        place.mkdir(exist_ok=True)
        (place / "state.json").write_text("{")
    os.mkfifo(run / ".run.json.tmp-5")


ANY_FILE: tuple[Kind, ...] = (
    *(kinds.flipped_bit, kinds.truncated, kinds.empty, kinds.missing, kinds.longer, kinds.noise, kinds.swapped),
    *(kinds.sparse, kinds.fifo, kinds.socket_file, kinds.folder),
    *(kinds.link_out, kinds.link_to_itself, kinds.link_to_urandom, kinds.link_to_zero),
)
JSON_FILE: tuple[Kind, ...] = (
    *(kinds.too_deep, kinds.deep_arrays, kinds.nan_inside, kinds.an_array, kinds.a_number),
    *(kinds.odd_value, kinds.missing_key),
)
ROWS_FILE: tuple[Kind, ...] = (kinds.torn_line, kinds.odd_lines)
MANIFEST_FILE: tuple[Kind, ...] = (
    *(resealed.missing_fact, resealed.odd_fact, resealed.outside),
    *(resealed.other_weights, resealed.state, resealed.tensors),
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
