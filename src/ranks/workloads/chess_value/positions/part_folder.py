"""A folder of labelled positions, from its beginning until it is complete.

FOLDER/complete.json           {"train": 3, "validation": 1}: how many files, written last
FOLDER/lock                    held by the command that writes
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ranks.engine.files.disk import remove, sync_folder, write_durably, writing
from ranks.engine.files.lock import tried
from ranks.engine.files.regular import DamagedFile
from ranks.engine.files.strict_json import read_object
from ranks.engine.runs.kept.kept_folder import KeptFolder
from ranks.errors import UserError
from ranks.workloads.chess_value.positions.part_files import TRAIN, VALIDATION, PartWriter, part_files

COMPLETE = "complete.json"
COPY = "copy the folder again, or make another with ranks chess-value label"
AGAIN = "give the same ranks chess-value label command again: it has its labels in the cache"


@contextmanager
def writing_parts(folder: Path) -> Generator[Mapping[str, PartWriter]]:
    """Writers of the positions that train and that validate. What a command left that did not reach the end of this
    block is removed first. Raises UserError where the folder is complete, another command writes to it, or it cannot be
    written."""
    asked = f"to write positions to {folder}"
    folder = folder.resolve()  # a link to another disk stays
    with ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            locked = stack.enter_context(tried(folder / "lock"))
        except OSError as error:
            found = f"the folder cannot be made, or not be written: {error.strerror or error}"
            raise UserError(asked, found, "give a writable folder with --to") from None
        if not locked:
            raise UserError(asked, "another command writes to it now", "wait for it, or give another folder")
        if (folder / COMPLETE).exists():
            raise UserError(asked, "it holds files of positions already", "give another folder, or remove it")
        kept = KeptFolder(folder)
        for name in (TRAIN, VALIDATION):
            kept.remove_temporaries(name)
            for file in kept.listing(name):
                remove(folder / file.path)
        writers = {name: PartWriter(folder, name) for name in (TRAIN, VALIDATION)}
        yield writers
        counts = {name: len(writer.end()) for name, writer in writers.items()}
        if any(counts.values()):
            with writing(asked, folder, "the files of positions are intact"):
                temporary = folder / f".{COMPLETE}-{os.getpid()}"
                write_durably(temporary, json.dumps(counts).encode())
                os.replace(temporary, folder / COMPLETE)
                sync_folder(folder)


def files_of(folder: Path, *, verify: bool, beat: Callable[[], None] = lambda: None) -> dict[str, list[Path]]:
    """The files with positions that train and that validate. Raises UserError where there are none, and where the
    command that wrote them did not end.

    `verify`, `beat`: see `part_files`."""
    asked = f"the positions of {folder}"
    folder = folder.resolve()
    kept = KeptFolder(folder)
    names = [name for name in (TRAIN, VALIDATION) if kept.listing(name)]
    if not names:
        raise UserError(asked, "no files of positions", "make them with ranks chess-value label")
    if not (folder / COMPLETE).exists():
        raise UserError(asked, "the command that labelled them did not end, so some are missing", AGAIN)
    try:
        counts = read_object(folder / COMPLETE, follow=True)
    except DamagedFile as damage:
        raise UserError(asked, str(damage), COPY) from None
    for name in (TRAIN, VALIDATION):
        if (found := len(kept.listing(name))) != counts.get(name):
            raise UserError(asked, f"{folder / name} has {found} files, {COMPLETE} says {counts.get(name)}", COPY)
    return {name: part_files(folder, name, verify=verify, beat=beat) for name in names}
