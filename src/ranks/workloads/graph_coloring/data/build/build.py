"""Building a data set once, with all cores, and caching it on disk.

First distinct graphs are chosen, then they are labelled.

    $XDG_CACHE_HOME or ~/.cache, under ranks/graph-coloring/
        <key>/         a complete data set, see dataset_folder.py; the key is a hash of all settings that shape it
        .<key>.work/   an unfinished build; its finished parts are used again
        .<key>.lock    held by the process that builds

The result has the same bytes for any number of processes, and after any interruption.
"""

from __future__ import annotations

import hashlib
import importlib.util
import itertools
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from ranks.cache_home import cache_home
from ranks.data.prepared.file_lock import file_lock
from ranks.data.prepared.say import say
from ranks.engine.distributed.rendezvous.process_env import available_cores
from ranks.engine.files.disk import replace_durably
from ranks.errors import UserError
from ranks.progress import ProgressBar
from ranks.workloads.graph_coloring.config import DataConfig
from ranks.workloads.graph_coloring.data import user_graphs
from ranks.workloads.graph_coloring.data.build.tasks import BuildJob, BuildTask, Entry
from ranks.workloads.graph_coloring.data.build.worker_pool import WorkerPool
from ranks.workloads.graph_coloring.data.dataset import part_name
from ranks.workloads.graph_coloring.data.dataset_folder import (
    MANIFEST,
    Damaged,
    load,
    verify,
    write_manifest,
)
from ranks.workloads.graph_coloring.data.families.items import Purpose

VERSION = 2
"""Raise it with every change of families or classical searches that changes a graph or a label."""
GRAPHS_PER_PART, GRAPHS_PER_HASH_TASK = 200, 100
MAX_WORKERS = 32
MAX_ATTEMPTS = 200
"""If an item is a duplicate after this many attempts, no more distinct graphs exist."""
PLAN = "plan.json"
ITEM_SETTINGS = ("seed", "min_nodes", "max_nodes", "threshold_share")
"""The settings that decide which graph an item is."""
EARLIER: dict[Purpose, tuple[Purpose, ...]] = {"train": (), "validation": ("train",), "unseen": ("train", "validation")}
"""The data sets that are built before each, and whose graphs it must not contain."""


def prepare(data: DataConfig, purpose: Purpose, workers: int | None = None) -> Path:
    """The folder of a data set: from the cache, or built now by `workers` processes.

    Processes that ask for the same data set at the same time build it once. Damaged parts are named
    and built again. Raises UserError if a user's file is no graph, if the cache cannot be written,
    if too few distinct graphs exist, or if Numba is missing.
    """
    files = user_graphs.user_files(data.folder) if data.folder is not None and purpose != "unseen" else []
    identity = _identity(data, purpose)
    folder = cache_folder() / hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
    if _is_intact(folder):
        return folder
    if data.labels == "full" and importlib.util.find_spec("numba") is None:
        do = "pip install 'ranks[graph-coloring]', or give --data.labels bounds"
        raise UserError("graphs with full labels", "Numba is not installed; the searches for labels need it", do)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with file_lock(folder.with_name(f".{folder.name}.lock"), f"the {purpose} graphs"):
            if not _is_intact(folder):
                job = BuildJob(data, purpose, folder.with_name(f".{folder.name}.work"), tuple(map(str, files)))
                _build(job, identity, folder, available_cores() if workers is None else workers)
    except OSError as error:
        asked, found = f"to store graphs in {folder.parent}", error.strerror or str(error)
        raise UserError(asked, found, "free some disk space, fix the permissions, or set XDG_CACHE_HOME") from error
    return folder


def cache_folder() -> Path:
    """The folder of all cached data sets."""
    return cache_home() / "ranks" / "graph-coloring"


def _identity(data: DataConfig, purpose: Purpose) -> dict[str, Any]:
    """All settings that shape a data set.

    They include those of the earlier data sets, whose graphs it must not contain.
    """
    identity: dict[str, Any] = {"version": VERSION, "purpose": purpose, "labels": data.labels}
    for each in (*EARLIER[purpose], purpose):
        if data.folder is not None and each != "unseen":
            identity["user_graphs"] = user_graphs.contents_hash(user_graphs.user_files(data.folder))
        else:
            identity |= {name: getattr(data, name) for name in ITEM_SETTINGS}
            identity |= {each: getattr(data, f"{each}_graphs")}
    return identity


def _is_intact(folder: Path) -> bool:
    """Whether the folder exists and all checksums match."""
    try:
        verify(folder)
        return True
    except Damaged:
        return False


def _build(job: BuildJob, identity: dict[str, Any], folder: Path, workers: int) -> None:
    start_s = time.monotonic()
    if folder.exists():
        _reopen_damaged(folder, job.folder)
    seen: set[int] = set()
    for purpose in EARLIER[job.purpose]:
        seen.update(load(prepare(job.data, purpose, workers)).hash_G.tolist())
    job.folder.mkdir(exist_ok=True)
    if job.data.labels == "full":
        _compile_kernels()
    num_graphs = len(job.files) or getattr(job.data, f"{job.purpose}_graphs")
    with WorkerPool(job, min(workers, -(-num_graphs // GRAPHS_PER_PART), MAX_WORKERS)) as pool:
        entries = _plan(job, pool, num_graphs, seen)
        parts = [entries[i : i + GRAPHS_PER_PART] for i in range(0, len(entries), GRAPHS_PER_PART)]
        missing = [i for i in range(len(parts)) if not (job.folder / part_name(i)).exists()]
        with ProgressBar(len(entries), title=f"{job.purpose} graphs: labels", stream=sys.stderr) as progress:
            progress.advance(len(entries) - sum(len(parts[i]) for i in missing))
            for index, _ in pool.each([BuildTask(parts[i], number=i) for i in missing]):
                progress.advance(len(parts[missing[index]]))
    for leftover in job.folder.glob(".*"):
        leftover.unlink(missing_ok=True)
    write_manifest(job.folder, identity, job.families)
    job.folder.rename(folder)
    dataset = load(folder)
    proven = (dataset.low_G == dataset.high_G).mean()
    say(
        f"{len(dataset):,} {job.purpose} graphs built in {time.monotonic() - start_s:.0f} s, the chromatic number of "
        f"{proven:.0%} proven, stored in {folder}"
    )


def _reopen_damaged(folder: Path, work: Path) -> None:
    """Turns a damaged data set into an unfinished build without its damaged parts, and names these."""
    shutil.rmtree(work, ignore_errors=True)
    try:
        verify(folder)
    except Damaged as damage:
        say(f"{damage}: building it again")
        if MANIFEST in damage.names or PLAN in damage.names:
            shutil.rmtree(folder)
            return
        for name in (*damage.names, MANIFEST):
            (folder / name).unlink(missing_ok=True)
        folder.rename(work)


def _compile_kernels() -> None:
    """Compiles the kernels, so that the workers find the machine code in the cache."""
    from ranks.workloads.graph_coloring.classical import exact, tabucol

    _ = exact, tabucol


def _plan(job: BuildJob, pool: WorkerPool, num_graphs: int, seen: set[int]) -> list[Entry]:
    """The entries of all parts, in order; stored in a file, for a resumed build."""
    path = job.folder / PLAN
    if path.exists():
        return [(item, attempt) for item, attempt in json.loads(path.read_bytes())]
    if job.files:
        assert job.data.folder is not None
        train_and_validation = user_graphs.split([Path(file) for file in job.files], job.data.folder)
        entries = [(index, 0) for index in train_and_validation[job.purpose == "validation"]]
    else:
        entries = distinct_entries(job, pool, num_graphs, seen)
    replace_durably(path, json.dumps(entries).encode())
    return entries


def distinct_entries(job: BuildJob, pool: WorkerPool, num_graphs: int, seen: set[int]) -> list[Entry]:
    """An attempt for each item, such that all graphs have different hashes, none of them in `seen`.

    All items are generated. Of those with equal hashes the first keeps its graph; the others get
    another attempt, until all hashes differ. Raises UserError after MAX_ATTEMPTS. Adds all hashes
    to `seen`.
    """
    attempt_of = [0] * num_graphs
    left = list(range(num_graphs))
    with ProgressBar(num_graphs, title=f"{job.purpose} graphs: choice", stream=sys.stderr) as progress:
        while left:
            chunks = [left[i : i + GRAPHS_PER_HASH_TASK] for i in range(0, len(left), GRAPHS_PER_HASH_TASK)]
            results: list[list[int]] = [[] for _ in chunks]
            for index, hashes in pool.each([BuildTask([(item, attempt_of[item]) for item in c]) for c in chunks]):
                results[index] = hashes
                progress.advance(len(hashes))
            duplicates: list[int] = []
            for item, key in zip(left, itertools.chain.from_iterable(results), strict=True):
                if key in seen:
                    duplicates.append(item)
                    attempt_of[item] += 1
                seen.add(key)
            progress.advance(-len(duplicates))
            left = duplicates
            if left and attempt_of[left[0]] == MAX_ATTEMPTS:
                found = f"only {num_graphs - len(left):,} different graphs after {MAX_ATTEMPTS} attempts for each"
                asked = f"{num_graphs:,} {job.purpose} graphs of {job.data.min_nodes} to {job.data.max_nodes} nodes"
                raise UserError(asked, found, "ask for fewer, or raise --data.max-nodes")
    return list(enumerate(attempt_of))
