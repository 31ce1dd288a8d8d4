"""Building a data set once: different graphs are chosen, then made with their labels, by all cores; kept in the cache.

    $XDG_CACHE_HOME or ~/.cache, under ranks/graph-coloring/
        <key>/         a whole data set, see parts.py; the key is a hash of all that shapes it
        .<key>.work/   one that is being built; what is finished in it is used again
        .<key>.lock    held by the one process that builds

The same bytes come out for any number of processes, and after any interruption.

Legend: G graphs.
"""

from __future__ import annotations

import hashlib
import importlib.util
import itertools
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from ranks.engine.distributed.process_env import available_cores
from ranks.errors import UserError
from ranks.progress import ProgressBar
from ranks.workloads.graph_coloring.config import DataConfig
from ranks.workloads.graph_coloring.data import user_graphs
from ranks.workloads.graph_coloring.data.items import Purpose
from ranks.workloads.graph_coloring.data.parts import (
    MANIFEST,
    Damaged,
    load,
    part_name,
    verified,
    write_durably,
    write_manifest,
)
from ranks.workloads.graph_coloring.data.progress import alone, say
from ranks.workloads.graph_coloring.data.work import Entry, Job, Task
from ranks.workloads.graph_coloring.data.workers import Workers

VERSION = 2
"""Raised whenever a change here, in the families or in a classical search changes a graph or a label."""
GRAPHS_PER_PART, GRAPHS_PER_HASH_TASK = 200, 100
MOST_WORKERS = 32
MOST_ATTEMPTS = 200
"""Draws of one item: after so many in vain there are no more different graphs of these sizes."""
PLAN = "plan.json"
SHAPING = ("seed", "min_nodes", "max_nodes", "threshold_share")
"""Settings that decide which graphs are drawn."""
EARLIER: dict[Purpose, tuple[Purpose, ...]] = {"train": (), "validation": ("train",), "unseen": ("train", "validation")}
"""What is built before, and holds none of the same graphs."""


def prepare(data: DataConfig, purpose: Purpose, workers: int | None = None) -> Path:
    """The folder with the graphs of a purpose, for `parts.load`: from the cache, or built now by `workers` processes.

    Processes that ask for the same at the same time build it once. A damaged part is named and made again. Raises
    UserError: a user's file that is no graph, a cache that cannot be written, too few different graphs, no Numba.
    """
    files = user_graphs.user_files(data.folder) if data.folder is not None and purpose != "unseen" else []
    facts = _facts(data, purpose)
    folder = cache_folder() / hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]
    if _is_whole(folder):
        return folder
    if data.labels == "full" and importlib.util.find_spec("numba") is None:
        do = "pip install 'ranks[graph-coloring]', or give --data.labels bounds"
        raise UserError("graphs with full labels", "no Numba, which compiles the searches that they need", do)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with alone(folder.with_name(f".{folder.name}.lock"), f"the {purpose} graphs"):
            if not _is_whole(folder):
                job = Job(data, purpose, folder.with_name(f".{folder.name}.work"), tuple(map(str, files)))
                _build(job, facts, folder, available_cores() if workers is None else workers)
    except OSError as error:
        asked, found = f"to keep graphs in {folder.parent}", error.strerror or str(error)
        raise UserError(asked, found, "free some space, mend the rights, or set XDG_CACHE_HOME") from error
    return folder


def cache_folder() -> Path:
    """Where data sets are kept."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "ranks" / "graph-coloring"


def _facts(data: DataConfig, purpose: Purpose) -> dict[str, Any]:
    """All that shapes the graphs of a purpose: also what came before, whose graphs it leaves out."""
    facts: dict[str, Any] = {"version": VERSION, "purpose": purpose, "labels": data.labels}
    for each in (*EARLIER[purpose], purpose):
        if data.folder is not None and each != "unseen":
            facts["user_graphs"] = user_graphs.contents_hash(user_graphs.user_files(data.folder))
        else:
            facts |= {name: getattr(data, name) for name in SHAPING} | {each: getattr(data, f"{each}_graphs")}
    return facts


def _is_whole(folder: Path) -> bool:
    """Whether the folder is there, every byte checked."""
    try:
        verified(folder)
        return True
    except Damaged:
        return False


def _build(job: Job, facts: dict[str, Any], folder: Path, count: int) -> None:
    began = time.monotonic()
    if folder.exists():
        _take_back(folder, job.folder)
    seen: set[int] = set()
    for purpose in EARLIER[job.purpose]:
        seen.update(load(prepare(job.data, purpose, count)).hash_G.tolist())
    job.folder.mkdir(exist_ok=True)
    if job.data.labels == "full":
        _compile()
    num_graphs = len(job.files) or getattr(job.data, f"{job.purpose}_graphs")
    with Workers(job, min(count, -(-num_graphs // GRAPHS_PER_PART), MOST_WORKERS)) as workers:
        entries = _plan(job, workers, num_graphs, seen)
        parts = [entries[i : i + GRAPHS_PER_PART] for i in range(0, len(entries), GRAPHS_PER_PART)]
        missing = [i for i in range(len(parts)) if not (job.folder / part_name(i)).exists()]
        with ProgressBar(len(entries), title=f"{job.purpose} graphs: labels", stream=sys.stderr) as progress:
            progress.advance(len(entries) - sum(len(parts[i]) for i in missing))
            for place, _ in workers.each([Task(parts[i], number=i) for i in missing]):
                progress.advance(len(parts[missing[place]]))
    for leftover in job.folder.glob(".*"):
        leftover.unlink(missing_ok=True)
    write_manifest(job.folder, facts, job.families)
    job.folder.rename(folder)
    stored = load(folder)
    proven = (stored.low_G == stored.high_G).mean()
    say(
        f"{len(stored):,} {job.purpose} graphs in {time.monotonic() - began:.0f} s, the chromatic number of "
        f"{proven:.0%} proven, kept in {folder}"
    )


def _take_back(folder: Path, work: Path) -> None:
    """A damaged data set becomes one that is being built, without its damaged parts, which are named."""
    shutil.rmtree(work, ignore_errors=True)
    try:
        verified(folder)
    except Damaged as damage:
        say(f"{damage}: made again")
        if MANIFEST in damage.names or PLAN in damage.names:
            shutil.rmtree(folder)
            return
        for name in (*damage.names, MANIFEST):
            (folder / name).unlink(missing_ok=True)
        folder.rename(work)


def _compile() -> None:
    """Before any worker needs it: the machine code is then found in the cache."""
    from ranks.workloads.graph_coloring.classical import exact, tabucol

    _ = exact, tabucol


def _plan(job: Job, workers: Workers, num_graphs: int, seen: set[int]) -> list[Entry]:
    """The graphs of the parts, in their order; written down, so that a build that goes on has the same."""
    path = job.folder / PLAN
    if path.exists():
        return [(item, attempt) for item, attempt in json.loads(path.read_bytes())]
    if job.files:
        assert job.data.folder is not None
        sides = user_graphs.split([Path(file) for file in job.files], job.data.folder)
        entries = [(place, 0) for place in sides[job.purpose == "validation"]]
    else:
        entries = _different(job, workers, num_graphs, seen)
    write_durably(path, json.dumps(entries).encode())
    return entries


def _different(job: Job, workers: Workers, num_graphs: int, seen: set[int]) -> list[Entry]:
    """An attempt for each item, such that no graph is met twice, nor one of `seen` again.

    All items are drawn; of those that share a graph the first keeps it, the others are drawn again, and so on.
    """
    attempt_of = [0] * num_graphs
    left = list(range(num_graphs))
    with ProgressBar(num_graphs, title=f"{job.purpose} graphs: choice", stream=sys.stderr) as progress:
        while left:
            chunks = [left[i : i + GRAPHS_PER_HASH_TASK] for i in range(0, len(left), GRAPHS_PER_HASH_TASK)]
            answers: list[list[int]] = [[] for _ in chunks]
            for place, hashes in workers.each([Task([(item, attempt_of[item]) for item in c]) for c in chunks]):
                answers[place] = hashes
                progress.advance(len(hashes))
            again: list[int] = []
            for item, key in zip(left, itertools.chain.from_iterable(answers), strict=True):
                if key in seen:
                    again.append(item)
                    attempt_of[item] += 1
                seen.add(key)
            progress.advance(-len(again))
            left = again
            if left and attempt_of[left[0]] == MOST_ATTEMPTS:
                found = f"only {num_graphs - len(left):,} different graphs after {MOST_ATTEMPTS} draws of each"
                asked = f"{num_graphs:,} {job.purpose} graphs of {job.data.min_nodes} to {job.data.max_nodes} nodes"
                raise UserError(asked, found, "ask for fewer, or raise --data.max-nodes")
    return list(enumerate(attempt_of))
