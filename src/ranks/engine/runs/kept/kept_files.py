"""Large arrays that a run writes once and its checkpoints name: a replay window's parts, cached labels.

    parts = KeptFiles(world, "replay")
    with Run.open(cfg, world, keep=dict(learner=learner, replay=parts)) as run:
        for iteration in run.iterations(cfg.iterations, long=True):
            part = parts.write(iteration, {"board_P9": board_P9, "outcome_P": outcome_P})
            if len(parts.files) > cfg.window:
                parts.drop(parts.files[0])
            board_P9 = parts.open(part)["board_P9"]

A save writes the names of the files, not their content: about 1 KB for each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from ranks.engine.distributed.agree import check_shared, on_first_rank
from ranks.engine.distributed.world import World
from ranks.engine.files.disk import writing
from ranks.engine.files.regular import DamagedFile
from ranks.engine.liveness.heartbeat import heartbeat
from ranks.engine.liveness.phases import Phase
from ranks.engine.runs.folder import RunFolder
from ranks.engine.runs.kept.kept_file import KeptFile
from ranks.engine.runs.kept.kept_folder import KeptFolder
from ranks.errors import UserError


class KeptFiles:
    """Files in runs/NAME/kept/. Name it in `Run.open(keep=...)`, or put its state into that of an
    object that is.

    `files`: the files that the run needs now, in the order in which they were written. A checkpoint
    names them. A file that was dropped is deleted when no checkpoint names it any more.
    """

    def __init__(self, world: World, name: str, *, archive: bool = False) -> None:
        """`name`: of the folder inside kept/, letters, digits, '_' and '-'. `archive`: training never reads the files
        again, so a run continues where one is damaged or gone."""
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,39}", name):
            raise ValueError(f"{name!r} is no name for a folder of kept files: letters, digits, _ and -, at most 40")
        self.name, self.archive, self.files = name, archive, list[KeptFile]()
        self._world = world
        self._run = RunFolder.of(world.config.runs_dir, world.run_name)
        self._folder = KeptFolder(self._run.kept)

    def write(self, iteration: int, arrays: Mapping[str, NDArray[Any]]) -> KeptFile:
        """Write named arrays as one file and add it to `files`. Every rank calls it inside the loop,
        with the run's current iteration; the first rank's arrays are written, those of others are
        ignored.

        Raises UserError on all ranks where the disk is full. Warns where the run's checkpoints will not name the file.
        """
        session = self._world.session
        assert session.attached, "write belongs inside the loop of an open run"
        session.warn_unless_kept(self, f"the object that writes the kept files {self.name!r}")

        def act() -> KeptFile:
            asked = f"to write a file in {self._run.kept / self.name}"
            with heartbeat.during(Phase.SAVE), writing(asked, self._run.path):
                return self._folder.write(self.name, iteration, arrays)

        file = on_first_rank(self._world, act)
        check_shared(self._world, self._run.path, lambda: self._sees(file))
        self.files.append(file)
        return file

    def open(self, file: KeptFile) -> dict[str, NDArray[Any]]:
        """The arrays of a file by name, read-only. They are memory-mapped: only what is used is read.
        They stay valid after the file was dropped and deleted. Raises UserError where it is damaged.

        `Run.open` has verified the content of each file that the checkpoint names.
        """
        try:
            return self._folder.open(file)
        except DamagedFile as damage:
            do = "run the same command again; it takes the newest checkpoint whose files are intact"
            raise UserError(f"to read {self._run.kept / file.path}", str(damage), do) from damage

    def drop(self, file: KeptFile) -> None:
        """The run no longer needs a file. Every rank calls it."""
        self.files.remove(file)

    def state_dict(self) -> dict[str, Any]:
        self._world.session.kept.add(id(self))
        return {"files": [file.as_json(archived=self.archive) for file in self.files]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._world.session.kept.add(id(self))
        self.files = [KeptFile.of(found) for found in state["files"]]

    def _sees(self, file: KeptFile) -> bool:
        path = self._run.kept / file.path
        return path.is_file() and path.stat().st_size == file.size
