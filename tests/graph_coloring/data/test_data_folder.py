"""The data set folder: built once, by any number of processes, despite interruptions; and the
graphs of a user."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from ranks.data.prepared.file_lock import file_lock
from ranks.engine.liveness.heartbeat import heartbeat
from ranks.errors import UserError
from ranks.jit import JITTED, cache_folder
from ranks.workloads.graph_coloring.config import DataConfig
from ranks.workloads.graph_coloring.data.build import build, worker_pool
from ranks.workloads.graph_coloring.data.build.build import prepare
from ranks.workloads.graph_coloring.data.build.tasks import BuildTask, Entry
from ranks.workloads.graph_coloring.data.dataset import GraphDataset
from ranks.workloads.graph_coloring.data.dataset_folder import load, read_manifest
from ranks.workloads.graph_coloring.data.families.generators import random_graph, relabelled, without_bounds
from ranks.workloads.graph_coloring.data.families.items import generate_item
from ranks.workloads.graph_coloring.data.families.training import FAMILIES
from ranks.workloads.graph_coloring.data.families.unseen import UNSEEN
from ranks.workloads.graph_coloring.data.user_graphs import read_user_graph, split, user_files
from ranks.workloads.graph_coloring.data.weisfeiler_lehman import weisfeiler_lehman_hash
from ranks.workloads.graph_coloring.graphs.checker import problems
from ranks.workloads.graph_coloring.graphs.features import node_features
from ranks.workloads.graph_coloring.graphs.graph import Graph
from ranks.workloads.graph_coloring.graphs.read import read_graph
from tests.graph_coloring.example_graphs import of_networkx, write_col

SMALL = DataConfig(train_graphs=45, validation_graphs=15, unseen_graphs=15, max_nodes=30)


def is_proper(graph: Graph, colours: np.ndarray, k: int) -> bool:
    return not problems(graph.n, graph.edges_E2.tolist(), colours.tolist(), k)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache for this test's data sets; machine code stays where it is, so that worker_pool find
    it compiled."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(cache_folder(JITTED[1]).parent))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(build, "GRAPHS_PER_PART", 10)
    return tmp_path / "cache"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def all_three() -> list[Path]:
    return [prepare(SMALL, purpose, 1) for purpose in ("train", "validation", "unseen")]


def test_data_sets_are_complete_and_share_no_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    folders = all_three()
    sets = [load(folder) for folder in folders]
    assert [len(stored) for stored in sets] == [45, 15, 15]
    keys = np.concatenate([stored.hash_G for stored in sets])
    assert len(set(keys.tolist())) == 75
    for stored, folder in zip(sets, folders, strict=True):
        counts = read_manifest(folder)["families"]
        assert sum(counts.values()) == len(stored)
        assert tuple(counts) == stored.families
        for g in range(len(stored)):
            graph, labels = stored.graph(g), stored.labels(g)
            nodes = slice(stored.first_node_G[g], stored.first_node_G[g] + graph.n)
            assert weisfeiler_lehman_hash(graph) == stored.hash_G[g]
            assert is_proper(graph, labels.colours_N, labels.high)
            assert (stored.features_NF[nodes] == node_features(graph)).all()
    assert set(sets[0].families) == set(FAMILIES)
    assert set(sets[2].families) == set(UNSEEN)
    assert sets[0].node_counts_G.max() <= SMALL.max_nodes

    monkeypatch.setattr(build, "WorkerPool", lambda *a: pytest.fail("built again"))
    assert all_three() == folders


def test_two_processes_make_the_same_bytes(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part is a sign of progress, so a rank that builds for an hour is not taken for hanging."""
    beats = heartbeat.progress[0]
    one = contents(prepare(SMALL, "train", 1))
    beats_of_one = heartbeat.progress[0] - beats
    monkeypatch.setenv("XDG_CACHE_HOME", str(own_cache / "other"))
    assert contents(prepare(SMALL, "train", 2)) == one
    assert heartbeat.progress[0] - beats == 2 * beats_of_one >= 10


def test_an_interrupted_build_is_resumed(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = prepare(SMALL, "train", 1)
    whole = contents(folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(own_cache / "other"))
    built: list[int] = []

    def interrupted(job: Any, task: BuildTask) -> list[int]:
        if task.number == 2:
            raise KeyboardInterrupt
        built.extend([] if task.number is None else [task.number])
        return run_task(job, task)

    run_task = worker_pool.run_task
    monkeypatch.setattr(worker_pool, "run_task", interrupted)
    with pytest.raises(KeyboardInterrupt):
        prepare(SMALL, "train", 1)
    assert built == [0, 1]
    assert not (own_cache / "other" / "ranks" / "graph-coloring" / folder.name).exists()

    def counted(job: Any, task: BuildTask) -> list[int]:
        built.append(-1 if task.number is None else task.number)
        return run_task(job, task)

    monkeypatch.setattr(worker_pool, "run_task", counted)
    assert contents(prepare(SMALL, "train", 1)) == whole
    assert sorted(built) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("name", ["part-0001.safetensors", "plan.json", "manifest.json"])
def test_damaged_files_are_named_and_built_again(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = prepare(SMALL, "train", 1)
    whole = contents(folder)
    content = bytearray(whole[name])
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(UserError, match=name):
        load(folder)
    assert prepare(SMALL, "train", 1) == folder
    assert name in capsys.readouterr().err
    assert contents(folder) == whole


def test_a_duplicate_is_replaced_for_the_later_item() -> None:
    class Hashes:
        """Items 1 and 3 are equal; item 0 is in an earlier data set; the second graph of item 3 is
        item 4."""

        def __init__(self) -> None:
            self.key = {(0, 0): 99, (0, 1): 10, (1, 0): 1, (2, 0): 2, (3, 0): 1, (3, 1): 4, (3, 2): 3, (4, 0): 4}

        def each(self, tasks: Sequence[BuildTask]) -> Any:
            for place in reversed(range(len(tasks))):
                yield place, [self.key.get(entry, 1) for entry in tasks[place].entries]

    class SameAgain:
        def each(self, tasks: Sequence[BuildTask]) -> Any:
            return enumerate([[7] * len(task.entries) for task in tasks])

    job: Any = build.BuildJob(SMALL, "train", Path())
    found: list[Entry] = build.distinct_entries(job, Hashes(), 5, {99})  # type: ignore[arg-type]
    assert found == [(0, 1), (1, 0), (2, 0), (3, 2), (4, 0)]
    with pytest.raises(UserError, match="only 1 different graphs"):
        build.distinct_entries(job, SameAgain(), 3, set())  # type: ignore[arg-type]


def test_one_process_builds_and_the_other_waits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    order: list[str] = []

    def other() -> None:
        with file_lock(tmp_path / "lock", "graphs"):
            order.append("other")

    with file_lock(tmp_path / "lock", "graphs"):
        thread = threading.Thread(target=other)
        thread.start()
        deadline = time.monotonic() + 60
        err, before = "", heartbeat.progress[0]
        while ("waiting" not in err or heartbeat.progress[0] == before) and time.monotonic() < deadline:
            err += capsys.readouterr().err
        assert heartbeat.progress[0] > before, "a rank that waits would be taken for hanging"
        order.append("first")
    thread.join()
    assert order == ["first", "other"]


def test_of_the_ranks_of_a_host_the_first_builds(tmp_path: Path) -> None:
    """Its output is shown. The other one is there first here."""
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from ranks.data.prepared.file_lock import file_lock\n"
        "folder, rank = Path(sys.argv[1]), int(sys.argv[2])\n"
        "while rank == 0 and not (folder / 'ready').exists():\n"
        "    pass\n"
        "(folder / 'ready').touch()\n"
        "with file_lock(folder / 'lock', 'graphs'), (folder / 'order').open('a') as order:\n"
        "    order.write(str(rank))\n"
    )
    meeting = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", code, tmp_path, str(rank)], env=os.environ | meeting | {"RANK": str(rank)}
        )
        for rank in range(2)
    ]
    assert [rank.wait(timeout=60) for rank in ranks] == [0, 0]
    assert (tmp_path / "order").read_text() == "01"


def test_labels_by_bounds_need_no_numba(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['numba'] = None\n"
        "from ranks.workloads.graph_coloring.config import DataConfig\n"
        "from ranks.workloads.graph_coloring.data.build.build import prepare\n"
        "print(prepare(DataConfig(train_graphs=12, max_nodes=60, labels='bounds'), 'train', 1))\n"
        "prepare(DataConfig(train_graphs=12, max_nodes=60), 'train', 1)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "UserError: asked: graphs with full labels" in ran.stderr
    stored = load(Path(ran.stdout.strip()))
    assert np.isnan(stored.difficulty_G).all()
    assert (stored.low_G <= stored.high_G).all()


def test_a_worker_reports_errors_and_exits_with_its_input(tmp_path: Path) -> None:
    job = build.BuildJob(SMALL, "train", tmp_path / "no folder")
    command = [sys.executable, "-m", worker_pool.__name__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write(f'{job.to_json()}\n{{"entries": [[0, 0]], "number": 0}}\n')
        worker.stdin.write('{"entries": [[0, 0]], "number": null}\n')
        worker.stdin.flush()
        assert "FileNotFoundError" in json.loads(worker.stdout.readline())["error"]
        key = weisfeiler_lehman_hash(generate_item(SMALL, "train", 0, 0)[1].graph)
        assert json.loads(worker.stdout.readline()) == {"hashes": [key]}
        worker.stdin.close()
        assert worker.wait(timeout=60) == 0


@pytest.fixture
def user_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    folder.mkdir()
    for i in range(10):
        write_col(folder / f"g{i}.col", random_graph(np.random.default_rng(i), 12 + i, 20 + i))
    return folder


def test_a_user_folder_is_split_and_each_graph_used_once(user_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(5)
    write_col(user_folder / "g3_again.col", random_graph(np.random.default_rng(3), 15, 23))
    data = DataConfig(folder=user_folder)
    sets: list[GraphDataset] = [load(prepare(data, purpose, 1)) for purpose in ("train", "validation")]
    assert "skipped: g3_again.col is the same graph as g3.col" in capsys.readouterr().err
    assert [len(stored) for stored in sets] == [8, 2]
    assert sets[0].families == ("user",)
    assert sorted(np.concatenate([stored.node_counts_G for stored in sets]).tolist()) == list(range(12, 22))
    assert all((stored.low_G == stored.high_G).all() for stored in sets)
    first = prepare(data, "train", 1)
    write_col(user_folder / "g0.col", random_graph(rng, 30, 60))
    assert prepare(data, "train", 1) != first


def test_a_renumbered_copy_is_on_the_same_side(user_folder: Path) -> None:
    for i in range(10):
        graph = random_graph(np.random.default_rng(i), 12 + i, 20 + i)
        write_col(user_folder / f"h{i}.col", relabelled(np.random.default_rng(50 + i), without_bounds(graph)).graph)
    files = user_files(user_folder)
    train, validation = ([files[place].stem[1] for place in side] for side in split(files, user_folder))
    assert (len(train), len(validation)) == (16, 4)
    assert not set(train) & set(validation)


def test_graphs_with_equal_hashes_are_still_different(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """20 random graphs in which each node has 4 neighbours: one hash, twenty graphs."""
    for i in range(20):
        write_col(tmp_path / f"{i}.col", of_networkx(nx.random_regular_graph(4, 16, seed=i)))
    files = user_files(tmp_path)
    assert len({weisfeiler_lehman_hash(read_graph(path)) for path in files}) == 1
    train, validation = split(files, tmp_path)
    assert (len(train), len(validation)) == (16, 4)
    assert "20 graphs with the same hash are split between" in capsys.readouterr().err
    assert split(files, tmp_path) == (train, validation)


def test_self_loops_of_user_graphs_are_dropped_and_counted(
    user_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = user_folder / "g2.col"
    path.write_text(path.read_text().replace("p edge 14 22", "p edge 14 24") + "e 3 3\ne 5 5\n")
    split(user_files(user_folder), user_folder)
    assert f"{path}: 2 self-loops dropped" in capsys.readouterr().out
    assert read_user_graph(path).num_edges == 22


def test_all_bad_user_files_are_named(user_folder: Path) -> None:
    (user_folder / "g2.col").write_text("p edge 2 1\ne 1 3\n")
    (user_folder / "g7.col").write_text("no graph\n")
    with pytest.raises(UserError) as caught:
        prepare(DataConfig(folder=user_folder), "train", 1)
    assert all(word in str(caught.value) for word in ("2 of 10 files", "g2.col", "vertex 3", "g7.col"))


@pytest.mark.parametrize(
    ("prepared", "message"),
    [("empty", "0 graph files"), ("missing", "No such file"), ("duplicates", "4 different graphs")],
)
def test_too_few_user_graphs_are_rejected(prepared: str, message: str, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    if prepared != "missing":
        folder.mkdir()
    if prepared == "duplicates":
        for i in range(6):
            write_col(folder / f"{i}.col", Graph.of(5, [(i % 4, 4)]))
    with pytest.raises(UserError, match=message):
        prepare(DataConfig(folder=folder), "train", 1)


@pytest.mark.parametrize(
    "bad", [{"train_graphs": 0}, {"unseen_graphs": -1}, {"max_nodes": 9}, {"max_nodes": 1001}, {"threshold_share": 1.1}]
)
def test_bad_settings_are_rejected(bad: dict[str, int]) -> None:
    with pytest.raises(UserError, match=next(iter(bad)).replace("_", "-")):
        DataConfig(**bad)  # type: ignore[arg-type]
