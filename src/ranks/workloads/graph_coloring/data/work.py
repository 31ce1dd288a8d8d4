"""What the processes that build a data set do: a job says which graphs, tasks are cut from it, answers are plain.

Legend: G graphs.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ranks.workloads.graph_coloring.config import DataConfig
from ranks.workloads.graph_coloring.data.duplicates import weisfeiler_lehman_hash
from ranks.workloads.graph_coloring.data.items import Purpose, draw, family_names
from ranks.workloads.graph_coloring.data.labels import bound_labels, full_labels
from ranks.workloads.graph_coloring.data.made import Made, unproven
from ranks.workloads.graph_coloring.data.parts import Row, pack, part_name, write_durably
from ranks.workloads.graph_coloring.data.user_graphs import FAMILY, read_user_graph
from ranks.workloads.graph_coloring.graphs.features import node_features

Entry = tuple[int, int]
"""(item, attempt); of a user's graphs (place in the list of files, 0)."""


@dataclass(frozen=True)
class Job:
    """Which graphs are made, and where their parts go. `files`: a user's own graphs."""

    data: DataConfig
    purpose: Purpose
    folder: Path
    files: tuple[str, ...] = ()

    @property
    def families(self) -> list[str]:
        return [FAMILY] if self.files else family_names(self.purpose)

    def made(self, entry: Entry) -> tuple[str, Made]:
        """(family, graph)"""
        item, attempt = entry
        if self.files:
            with contextlib.redirect_stdout(io.StringIO()):  # what a file's numbers mean was said when all were read
                return FAMILY, unproven(read_user_graph(self.files[item]))
        return draw(self.data, self.purpose, item, attempt)

    def to_json(self) -> str:
        data = asdict(replace(self.data, folder=None))
        return json.dumps({"data": data, "purpose": self.purpose, "folder": str(self.folder), "files": self.files})

    @classmethod
    def from_json(cls, text: str) -> Job:
        facts = json.loads(text)
        return cls(DataConfig(**facts["data"]), facts["purpose"], Path(facts["folder"]), tuple(facts["files"]))


@dataclass(frozen=True)
class Task:
    """Entries to hash, or to make part `number` of."""

    entries: Sequence[Entry]
    number: int | None = None


def carry_out(job: Job, task: Task) -> list[int]:
    """The hash of each entry's graph; with a number the part is written, with labels and features."""
    if task.number is None:
        return [weisfeiler_lehman_hash(job.made(entry)[1].graph) for entry in task.entries]
    rows = [_row(job, entry) for entry in task.entries]
    write_durably(job.folder / part_name(task.number), pack(rows))
    return [row.hash for row in rows]


def _row(job: Job, entry: Entry) -> Row:
    name, made = job.made(entry)
    features_NF = node_features(made.graph)
    labels = full_labels(made) if job.data.labels == "full" else bound_labels(made, features_NF)
    return Row(made.graph, features_NF, labels, job.families.index(name), weisfeiler_lehman_hash(made.graph))


def task_to_json(task: Task) -> str:
    return json.dumps({"entries": task.entries, "number": task.number})


def task_from_json(text: str) -> Task:
    facts: dict[str, Any] = json.loads(text)
    return Task([(item, attempt) for item, attempt in facts["entries"]], facts["number"])
