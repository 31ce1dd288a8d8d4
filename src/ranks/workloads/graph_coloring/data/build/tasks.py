"""The tasks of building a data set, for worker processes: hash some graphs, or write one part.

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

from ranks.engine.files.disk import replace_durably
from ranks.workloads.graph_coloring.config import DataConfig
from ranks.workloads.graph_coloring.data.dataset import LabelledGraph, pack, part_name
from ranks.workloads.graph_coloring.data.families.generators import GeneratedGraph, without_bounds
from ranks.workloads.graph_coloring.data.families.items import Purpose, family_names, generate_item
from ranks.workloads.graph_coloring.data.labels import bound_labels, full_labels
from ranks.workloads.graph_coloring.data.user_graphs import FAMILY, read_user_graph
from ranks.workloads.graph_coloring.data.weisfeiler_lehman import weisfeiler_lehman_hash
from ranks.workloads.graph_coloring.graphs.features import node_features

Entry = tuple[int, int]
"""(item, attempt); for a user's graphs (index in the list of files, 0)."""


@dataclass(frozen=True)
class BuildJob:
    """Which graphs to build, and the folder for their parts. `files`: a user's graph files."""

    data: DataConfig
    purpose: Purpose
    folder: Path
    files: tuple[str, ...] = ()

    @property
    def families(self) -> list[str]:
        return [FAMILY] if self.files else family_names(self.purpose)

    def generate(self, entry: Entry) -> tuple[str, GeneratedGraph]:
        """(family name, graph) of an entry."""
        item, attempt = entry
        if self.files:
            with contextlib.redirect_stdout(io.StringIO()):  # `split` has read all files and printed their notes
                return FAMILY, without_bounds(read_user_graph(self.files[item]))
        return generate_item(self.data, self.purpose, item, attempt)

    def to_json(self) -> str:
        data = asdict(replace(self.data, folder=None))
        return json.dumps({"data": data, "purpose": self.purpose, "folder": str(self.folder), "files": self.files})

    @classmethod
    def from_json(cls, text: str) -> BuildJob:
        fields = json.loads(text)
        return cls(DataConfig(**fields["data"]), fields["purpose"], Path(fields["folder"]), tuple(fields["files"]))


@dataclass(frozen=True)
class BuildTask:
    """Entries to hash; or, with a `number`, the entries of that part, to label and write."""

    entries: Sequence[Entry]
    number: int | None = None


def run_task(job: BuildJob, task: BuildTask) -> list[int]:
    """Runs a task; returns the hash of each graph.

    With a `number` it also writes that part, with labels and features.
    """
    if task.number is None:
        return [weisfeiler_lehman_hash(job.generate(entry)[1].graph) for entry in task.entries]
    graphs = [_labelled(job, entry) for entry in task.entries]
    replace_durably(job.folder / part_name(task.number), pack(graphs))
    return [graph.hash for graph in graphs]


def _labelled(job: BuildJob, entry: Entry) -> LabelledGraph:
    name, generated = job.generate(entry)
    features_NF = node_features(generated.graph)
    labels = full_labels(generated) if job.data.labels == "full" else bound_labels(generated, features_NF)
    return LabelledGraph(
        generated.graph, features_NF, labels, job.families.index(name), weisfeiler_lehman_hash(generated.graph)
    )


def task_to_json(task: BuildTask) -> str:
    return json.dumps({"entries": task.entries, "number": task.number})


def task_from_json(text: str) -> BuildTask:
    fields: dict[str, Any] = json.loads(text)
    return BuildTask([(item, attempt) for item, attempt in fields["entries"]], fields["number"])
