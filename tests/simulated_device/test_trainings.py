"""Every kind of workload trains on a simulated device as on the CPU, and the host rarely waits for the device.

Nothing here needs CUDA. `benchmarks/gpu.py` and tests/engine/test_no_sync.py are for a GPU.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ranks.jit import JITTED, cache_folder
from tests.simulated_device.trainings import TEMPLATE

REPOSITORY = Path(__file__).parents[2]
SIZES = {
    "chess-spiking": {"iterations": 1},
    "graph-coloring": {"iterations": 2},
    "stock-trading": {"iterations": 1, "n_steps": 4},
    "stock-trading, LSTMs": {"workload": "stock-trading", "kind": "clstm", "iterations": 1, "n_steps": 4},
    "video-behavior": {"iterations": 2},
    "tests/toys/images.py": {"iterations": 2},
    "tests/toys/cartpole.py": {"iterations": 1, "n_steps": 4, "global_batch": 16},
    "tests/toys/tictactoe.py": {"iterations": 1, "games_per_iteration": 8, "slots": 8, "global_batch": 16},
    TEMPLATE: {"iterations": 1},
}
MOVED = ("graph-coloring", "stock-trading", "tests/toys/images.py", TEMPLATE)
"""Also begun on the CPU and continued on the device, as a run that is taken to another kind of machine."""
FAST_ONLY = {("stock-trading, LSTMs", "exact"), ("tests/toys/cartpole.py", "exact"), ("chess-spiking", "exact")}
FAST_ONLY |= {("video-behavior", "exact")}
"""Not repeated in exact mode: stock-trading and the template are, with the same rollouts, games and updates."""
LARGER = {
    "graph-coloring": ({"iterations": 6}, {"step.py read": 4}),
    "stock-trading": ({"iterations": 1, "n_steps": 6, "global_batch": 16}, {}),
    "stock-trading, LSTMs": ({"iterations": 1, "n_steps": 6, "global_batch": 16}, {}),
    "video-behavior": ({"iterations": 6, "eval_every": 6}, {"step.py read": 4}),
    "tests/toys/images.py": ({"iterations": 6}, {"step.py read": 4}),
    "tests/toys/tictactoe.py": ({"iterations": 1, "games_per_iteration": 40}, {"step.py read": 18}),
    TEMPLATE: ({"iterations": 1, "games_per_iteration": 12}, {"step.py read": 18}),
}
"""A larger training, and how many more times the host waits in it: once for each of its further updates. (The other
toy acts on the CPU. On CUDA, self-play also waits for the evaluations of each batch, by an event, and for nothing
else: tests/selfplay/test_ticks.py.)"""


def run(script: str, *arguments: str, cache: Path) -> subprocess.CompletedProcess[str]:
    """Run Python with data sets in `cache`. Compiled kernels are in the usual cache, whose key is their source."""
    env = {**os.environ, "XDG_CACHE_HOME": str(cache), "PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY}"}
    env["NUMBA_CACHE_DIR"] = str(cache_folder(JITTED[0]).parent)
    command = [sys.executable, *script.split(" ", 1), *arguments]
    return subprocess.run(command, env=env, cwd=REPOSITORY, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, dict[str, Any]]]:
    """Results of trainings by workload and name, all made in one process."""
    wanted: dict[tuple[str, str], dict[str, Any]] = {}
    for workload, sizes in SIZES.items():
        place = {"workload": workload, "device": "simulated:0", "exact": False, **sizes}
        wanted |= {(workload, "cpu"): place | {"device": "cpu"}, (workload, "fast"): place}
        if (workload, "exact") not in FAST_ONLY:
            wanted[workload, "exact"] = place | {"exact": True}
        if workload in MOVED:
            wanted[workload, "moved"] = place | {"begins_on": "cpu"}
        if workload in LARGER:
            wanted[workload, "larger"] = place | LARGER[workload][0] | {"resumes": False}
    command = "-m tests.simulated_device.trainings"
    done = run(command, json.dumps(list(wanted.values())), cache=tmp_path_factory.mktemp("cache"))
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, dict[str, Any]]] = {workload: {} for workload in SIZES}
    for (workload, name), line in zip(wanted, done.stdout.splitlines(), strict=True):
        found[workload][name] = json.loads(line)
    return found


def learned(training: dict[str, Any]) -> list[dict[str, float]]:
    """The metrics of each iteration, without times."""
    return [{k: v for k, v in row.items() if k.startswith(("train/", "rollout/"))} for row in training["rows"]]


MODES = [(workload, mode) for workload in SIZES for mode in ("fast", "exact") if (workload, mode) not in FAST_ONLY]


@pytest.mark.parametrize(("workload", "mode"), MODES)
def test_it_learns_as_on_the_cpu_and_from_a_checkpoint(trained: Any, workload: str, mode: str) -> None:
    cpu, device = trained[workload]["cpu"], trained[workload][mode]
    assert len(cpu["rows"]) == len(device["rows"]) >= 2
    # a rounding difference can add or remove a spike, which is a whole 1 for the next layer
    rel = 2e-2 if workload == "chess-spiking" else 1e-3
    for row, other in zip(learned(cpu), learned(device), strict=True):
        assert row == pytest.approx(other, rel=rel, abs=1e-6)
    assert device["evaluation"].keys() == cpu["evaluation"].keys()
    assert (sum(cpu["waits"].values()), device["waits"]["state.py walk"] > 0) == (0, True)


@pytest.mark.parametrize("workload", MOVED)
def test_a_run_that_began_on_the_cpu_continues_on_the_device(trained: Any, workload: str) -> None:
    cpu, moved = trained[workload]["cpu"], trained[workload]["moved"]
    assert len(moved["rows"]) == len(cpu["rows"])
    assert learned(moved)[:-1] == learned(cpu)[:-1]
    assert learned(moved)[-1] == pytest.approx(learned(cpu)[-1], rel=1e-3, abs=1e-6)
    assert moved["evaluation"].keys() == cpu["evaluation"].keys()
    assert (sum(moved["operations"].values()), moved["operations_after_resume"] > 0) == (0, True)


@pytest.mark.parametrize("workload", LARGER)
def test_the_host_waits_once_per_update_for_the_vote_and_never_while_it_acts(trained: Any, workload: str) -> None:
    less, more = (Counter(trained[workload][size]["waits"]) for size in ("fast", "larger"))
    assert less["step.py read"] > 0
    assert more - less == LARGER[workload][1]


ONCE = {"learner.py __init__", "encoding.py largest_move_index", "state.py walk", "moves.py index_table"}
ONCE |= {"planes.py castling_rooks", "encoding.py of", "matches.py __init__", "snapshots.py <dictcomp>"}
ONCE |= {"snapshots.py weights_as_arrays"}  # from Python 3.12 on, where a comprehension has no frame
"""Places where the host waits when a training begins, saves or keeps weights."""


@pytest.mark.parametrize(("workload", "mode"), [("chess-spiking", "fast"), (TEMPLATE, "fast"), (TEMPLATE, "exact")])
def test_self_play_waits_for_votes_and_never_in_a_tick(trained: Any, workload: str, mode: str) -> None:
    """A game has a tick for each simulation, so a wait in a tick would be counted about a hundred times."""
    found = Counter(trained[workload][mode]["waits"])
    measured = {"training.py spikes": 1} if workload == "chess-spiking" else {}
    assert {place: count for place, count in found.items() if place not in ONCE | {"step.py read"}} == measured
    assert found["step.py read"] <= 10


BATCH_OF_GRAPHS = """
import numpy as np, torch
from ranks.workloads.graph_coloring.data.dataset import GraphDataset, LabelledGraph, pack, unpack
from ranks.workloads.graph_coloring.data.families.training import FAMILIES
from ranks.workloads.graph_coloring.data.families.generators import random_graph
from ranks.workloads.graph_coloring.data.labels import Labels
from ranks.workloads.graph_coloring.net.device_graphs import DeviceGraphs
from tests.simulated_device.device import DEVICE, simulated

def stored(number, n, num_edges):
    rng = np.random.default_rng(number)
    labels = Labels(1, number + 2, rng.integers(0, number + 2, n), float(number))
    graph = random_graph(rng, n, num_edges)
    return LabelledGraph(graph, rng.integers(0, 9, (n, 4)), labels, number, number)

sizes = [(20, 60), (150, 5000), (1, 0), (30, 0), (200, 9000)]
arrays = unpack(pack([stored(number, *size) for number, size in enumerate(sizes)]))
data = GraphDataset(**vars(arrays), families=tuple(FAMILIES), sha256="")
ids = torch.tensor([4, 2, 1, 3])
expected = DeviceGraphs(data, 5, torch.device("cpu")).gather(ids)
with simulated() as device:
    graphs = DeviceGraphs(data, 5, DEVICE)
    device.waits.clear()
    device.copied_bytes.clear()
    batch = graphs.gather(ids)
    assert device.waits == [], device.waits
    assert dict(device.copied_bytes) == {"to device": 8 * len(ids)}, device.copied_bytes
    for there, here in ((batch, expected), (batch.labels, expected.labels)):
        for name, value in vars(here).items():
            if isinstance(value, torch.Tensor):
                assert torch.equal(getattr(there, name).cpu_tensor, value), name
assert expected.num_colours_B.tolist() == [0, 4, 3, 5]
assert expected.ptr.tolist() == [0, 200, 201, 351, 381]
assert (expected.num_rows, expected.num_entries) == (1 * 4 + 150 * 3 + 30 * 5, 2 * 5000 * 3)
"""


def test_a_batch_of_graphs_is_built_on_the_device_from_their_ids(printed: Printed) -> None:
    printed("batch of graphs")


RECURRENT = """
import copy
import torch
from torch import nn
from ranks.rl.policies.recurrent import unroll_lstm
from tests.simulated_device.device import DEVICE, simulated

torch.manual_seed(0)
T, B = 9, 4
lstm, input_TBF = nn.LSTM(3, 5, 2), torch.randn(T, B, 3)
state = {name: torch.randn(B, 2, 5) for name in "hc"}

def unroll(lstm, input_TBF, state, first_TB):
    input_TBF.requires_grad_()
    hidden_TBH, after = unroll_lstm(lstm, input_TBF, state, first_TB)
    hidden_TBH.square().sum().backward()
    return [hidden_TBH.detach(), after["h"].detach(), after["c"].detach(), input_TBF.grad]

with simulated() as device:
    on_device = copy.deepcopy(lstm).to(DEVICE)
    for fraction in (0.0, 0.2, 1.0):
        first_TB = torch.rand(T, B) < fraction
        expected = unroll(lstm, input_TBF.clone(), state, first_TB)
        inputs = input_TBF.to(DEVICE), {name: rows.to(DEVICE) for name, rows in state.items()}
        device.waits.clear()
        device.operations.clear()
        found = unroll(on_device, *inputs, first_TB)
        assert device.waits == [], device.waits
        assert (device.operations["lstm"], device.operations["lstm backward"]) == (1, 1), device.operations
        torch.testing.assert_close([t.cpu_tensor for t in found], expected)
"""


def test_an_lstm_runs_all_steps_in_one_call_wherever_episodes_end(printed: Printed) -> None:
    printed("recurrent")


COPIES = """
import torch
from tests.simulated_device.device import DEVICE, simulated

with simulated() as device:
    small, large = torch.zeros(8192), torch.zeros(2**14 + 1)
    there = torch.zeros(2**14 + 1, device=DEVICE)
    pinned = torch.empty(2**14 + 1, pin_memory=True)
    counts = torch.tensor([2, 3], device=DEVICE)
    for do in (
        lambda: small.to(DEVICE),
        lambda: small.to(DEVICE, non_blocking=True),
        lambda: large.to(DEVICE, non_blocking=True),
        lambda: large.pin_memory().to(DEVICE, non_blocking=True),
        lambda: there.copy_(pinned, non_blocking=True),
        lambda: pinned.copy_(there, non_blocking=True),
        lambda: large.copy_(there, non_blocking=True),
        lambda: torch.repeat_interleave(counts),
        lambda: torch.repeat_interleave(counts, output_size=5),
        lambda: there[1:].sum(),
    ):
        device.waits.clear()
        device.copied_bytes.clear()
        device.operations.clear()
        do()
        print(len(device.waits), sum(device.copied_bytes.values()), sum(device.operations.values()))
"""


def test_copies_wait_as_they_do_on_cuda_and_are_counted(printed: Printed) -> None:
    """A copy waits unless it is non-blocking and from or to pinned memory, or small and to the device."""
    large = 4 * (2**14 + 1)
    found = [tuple(map(int, line.split())) for line in printed("copies")]
    assert found[:3] == [(1, 2**15, 0), (0, 2**15, 0), (1, large, 0)]
    assert found[3:7] == [(0, large, 0), (0, large, 0), (0, large, 0), (1, large, 0)]
    assert found[7:] == [(1, 0, 1), (0, 0, 1), (0, 0, 1)]


MISTAKES = """
import torch
from torch import nn
from tests.simulated_device.device import DEVICE, simulated

with simulated() as device:
    ones, zeros = torch.ones(3).to(DEVICE), torch.zeros(3)
    assert (ones + 1).sum().item() == 6.0
    assert ones[ones > 0].tolist() == [1.0, 1.0, 1.0]
    assert len(device.waits) == 4, device.waits  # the copy to the device, item, the mask, tolist
    for mistake in (lambda: ones + zeros, lambda: nn.Linear(3, 1)(ones), lambda: torch.cat([ones, zeros])):
        try:
            mistake()
        except RuntimeError as error:
            print(error)
    try:
        ones.numpy()
    except TypeError as error:
        print(error)
"""


def test_the_simulated_device_refuses_what_cuda_refuses(printed: Printed) -> None:
    lines = printed("mistakes")
    mixed, numpy = lines[:3], lines[3:]
    assert all(line.endswith("expected all tensors to be on the same device") for line in mixed)
    assert numpy == ["can't convert a tensor of another device to numpy"]


LOADING = """
import threading
import torch
from dataclasses import replace
from ranks import Learner, Loss, OptimConfig, RunConfig, World, stream
from torch import nn
from tests.data.host_data import NUM_ITEMS, Points
from tests.simulated_device.device import DEVICE, simulated

def loss(model, batch):
    loss_N = model(batch.x_NF.float()).square().sum(1)
    return Loss(loss_N.sum(), len(loss_N))

def trained(device, workers):
    torch.manual_seed(0)
    world = World.join(RunConfig(threads=1, shards=8), device=str(device), workload="test")
    learner = Learner(nn.Linear(6, 2), OptimConfig(schedule="constant"), world)
    batches = stream(Points(), 17, world, workers=workers, kind="threads")
    batches.at(0)
    waits = [] if device.type == "cpu" else mode.waits
    waits.clear()
    batch = batches.at(1)
    gathered = batch.gather(batch.split(None)[0].ids)
    assert waits == [], waits
    found = {t.device.type for t in (gathered.x_NF, gathered.extra.twice_N, gathered.ragged[3])}
    assert found == {device.type}, found
    for iteration in range(5):
        learner.step(loss, batches.at(iteration))
    learner.drain()
    world.leave()
    return [p.detach().cpu() for p in learner.model.parameters()]

with simulated() as mode:
    expected = trained(torch.device("cpu"), 0)
    for workers in (0, 2):
        torch.testing.assert_close(trained(DEVICE, workers), expected)
"""


def test_host_batches_are_pinned_and_copied_without_a_wait(printed: Printed) -> None:
    printed("loading")


SCRIPTS = {
    "loading": LOADING,
    "batch of graphs": BATCH_OF_GRAPHS,
    "recurrent": RECURRENT,
    "copies": COPIES,
    "mistakes": MISTAKES,
}
RUN_SCRIPTS = """
import contextlib, io, json, sys, traceback

results = {}
for name, script in json.loads(sys.argv[1]).items():
    error = ""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            exec(compile(script, name, "exec"), {"__name__": "__main__"})
        except Exception:
            error = traceback.format_exc()
    results[name] = {"error": error, "lines": printed.getvalue().splitlines()}
print(json.dumps(results))
"""
Printed = Callable[[str], list[str]]


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Printed:
    """printed(name): the lines that one of SCRIPTS prints. All run in one process, because each process imports
    torch; the error of one does not keep the others from running."""
    done = run("-c", RUN_SCRIPTS, json.dumps(SCRIPTS), cache=tmp_path_factory.mktemp("scripts"))
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)

    def lines_of(name: str) -> list[str]:
        assert not results[name]["error"], results[name]["error"]
        return results[name]["lines"]

    return lines_of
