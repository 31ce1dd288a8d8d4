"""Small scripts on the simulated device: batches, LSTMs, copies, mistakes, loading."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.simulated_device.test_trainings import run

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
