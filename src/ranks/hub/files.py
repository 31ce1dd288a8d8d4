"""The files of a published model: which there are, which are pickles, and whether they fit together.

model.safetensors  config.json  model.py      what `ranks export` writes
model.onnx  model.onnx.data                   where the export has them
ranks.json                                    from which run, and the sha256 of the files above
README.md                                     the model card
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from safetensors import SafetensorError, safe_open

from ranks.engine.export.about import ABOUT_FILE, ExportAbout, read_about
from ranks.engine.files.regular import MAX_BYTES, DamagedFile, open_regular, read_regular
from ranks.engine.files.strict_json import read_object
from ranks.errors import UserError

CARD = "README.md"
WEIGHTS, CONFIG, SOURCE = "model.safetensors", "config.json", "model.py"
NEEDED = (WEIGHTS, CONFIG, SOURCE, ABOUT_FILE, CARD)
OPTIONAL = ("model.onnx", "model.onnx.data")
LARGE = (WEIGHTS, *OPTIONAL)
"""Files without a limit of their size."""
MOST_SOURCE_BYTES = 1 << 20
"""Of model.py: more would take the parser of Python long."""
PICKLES = (".bin", ".ckpt", ".dill", ".joblib", ".mar", ".npy", ".npz", ".p", ".pickle", ".pkl", ".pt", ".pt2", ".pth")
"""Ends of the names of files that hold pickles, or may."""
CARD_SUM = re.compile(r"^\| `([\w.-]+)` \| [^|]* \| `([0-9a-f]{64})` \|$", re.MULTILINE)
"""A line of the table of files in a model card."""


class RejectedRepository(UserError):
    """A repository whose files are not taken. Shown as one line."""

    def __str__(self) -> str:
        return f"{self.asked}: {self.found}; {self.do}"


def refuse_pickles(repo_id: str, names: Iterable[str], asked: str) -> None:
    """Raises RejectedRepository where a file's name is one of a pickle."""
    found = sorted(name for name in names if name.lower().endswith(PICKLES))
    if found:
        listed = ", ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
        do = "a pickle can run any code when it is read: take a repository with safetensors only"
        raise RejectedRepository(asked, f"{repo_id} holds pickles ({listed})", do)


def refuse_no_model(repo_id: str, names: Iterable[str], asked: str) -> None:
    """Raises RejectedRepository where a file is missing that `ranks publish` writes."""
    missing = sorted({*NEEDED} - {*names})
    if missing:
        found = f"{repo_id} holds no model of ranks: it has no {', no '.join(missing)}"
        raise RejectedRepository(asked, found, "name a repository that `ranks publish` has written")


def sha256_of(path: Path) -> str:
    """The sha256 of a file. Raises DamagedFile."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def git_id_of(path: Path) -> str:
    """git's id of a file: the sha1 of 'blob', its length and its content. Raises DamagedFile."""
    content = read_regular(path)
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def check_folder(folder: Path) -> ExportAbout:
    """Whether the files of a folder fit together: the sums in ranks.json, config.json and the card, and their forms.
    No code in them is executed. Raises DamagedFile that names the file."""
    about = read_about(folder)
    absent = [name for name in (WEIGHTS, CONFIG, SOURCE) if name not in about.sha256]
    if absent:
        raise DamagedFile(f"{folder / ABOUT_FILE}: it has no sha256 of {absent[0]}")
    unlisted = [name for name in OPTIONAL if (folder / name).exists() and name not in about.sha256]
    if unlisted:
        raise DamagedFile(f"{folder / ABOUT_FILE}: it has no sha256 of {unlisted[0]}")
    for name, wanted in about.sha256.items():
        if name not in (WEIGHTS, CONFIG, SOURCE, *OPTIONAL):
            raise DamagedFile(f"{folder / ABOUT_FILE}: it names a file {name}")
        found = sha256_of(folder / name)
        if found != wanted:
            raise DamagedFile(f"{folder / name}: its sha256 is {found[:12]}, {ABOUT_FILE} says {wanted[:12]}")
    _check_config(folder / CONFIG, about)
    _check_card(folder / CARD, about)
    try:
        with safe_open(folder / WEIGHTS, framework="numpy") as weights:
            weights.keys()
        names = [
            node.name for node in ast.parse(read_regular(folder / SOURCE)).body if isinstance(node, ast.FunctionDef)
        ]
    except SafetensorError as error:
        raise DamagedFile(f"{folder / WEIGHTS}: not a safetensors file ({error})") from None
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise DamagedFile(f"{folder / SOURCE}: not Python ({str(error) or type(error).__name__})") from None
    if "load" not in names:
        raise DamagedFile(f"{folder / SOURCE}: it has no function load")
    return about


def _check_config(path: Path, about: ExportAbout) -> None:
    config = read_object(path)
    if not isinstance(config.get("class"), str) or not isinstance(config.get("arguments"), dict):
        raise DamagedFile(f"{path}: it does not describe a model")
    if config.get("weights_sha256") != about.sha256[WEIGHTS]:
        raise DamagedFile(f"{path}: it describes other weights than {WEIGHTS}")


def _check_card(path: Path, about: ExportAbout) -> None:
    """Other text of a card may have been edited on the hub."""
    sums = dict(CARD_SUM.findall(read_regular(path).decode("utf-8", "replace")))
    differ = [name for name, wanted in about.sha256.items() if sums.get(name) != wanted]
    if differ:
        raise DamagedFile(f"{path}: the card describes another {differ[0]}")


def check_size(name: str, num_bytes: int) -> None:
    """Raises DamagedFile for a small file that is large."""
    most_bytes = MOST_SOURCE_BYTES if name == SOURCE else MAX_BYTES
    if name not in LARGE and num_bytes > most_bytes:
        raise DamagedFile(f"{name}: {num_bytes:,} bytes, more than {most_bytes:,}")
