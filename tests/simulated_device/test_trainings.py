"""Every kind of workload trains on a simulated device as on the CPU, and the host rarely waits for the device.

Nothing here needs CUDA. `benchmarks/gpu.py` and tests/engine/test_no_sync.py are for a GPU.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ranks.jit import JITTED, cache_folder

REPOSITORY = Path(__file__).parents[2]
SIZES = {
    "graph-coloring": {"iterations": 2},
    "stock-trading": {"iterations": 1, "horizon": 4},
    "tests/toys/images.py": {"iterations": 2},
    "tests/toys/cartpole.py": {"iterations": 1, "horizon": 4, "global_batch": 16},
    "tests/toys/tictactoe.py": {"iterations": 1, "games_per_iteration": 8, "slots": 8},
}
LARGER = {
    "graph-coloring": ({"iterations": 6}, {"step.py read": 4}),
    "stock-trading": ({"iterations": 1, "horizon": 6, "global_batch": 16}, {}),
    "tests/toys/images.py": ({"iterations": 6}, {"step.py read": 4}),
}
"""A larger training, and how many more times the host waits in it. (The other toys act on the CPU.)"""


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
        wanted[workload, "exact"] = place | {"exact": True}
        if workload in LARGER:
            wanted[workload, "larger"] = place | LARGER[workload][0]
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


@pytest.mark.parametrize("mode", ["fast", "exact"])
@pytest.mark.parametrize("workload", SIZES)
def test_it_learns_as_on_the_cpu_and_from_a_checkpoint(trained: Any, workload: str, mode: str) -> None:
    cpu, device = trained[workload]["cpu"], trained[workload][mode]
    assert len(cpu["rows"]) == len(device["rows"]) >= 2
    for row, other in zip(learned(cpu), learned(device), strict=True):
        assert row == pytest.approx(other, rel=1e-3, abs=1e-6)
    assert device["evaluation"].keys() == cpu["evaluation"].keys()
    assert (sum(cpu["waits"].values()), device["waits"]["state.py walk"] > 0) == (0, True)


@pytest.mark.parametrize("workload", LARGER)
def test_the_host_waits_once_per_update_for_the_vote_and_never_in_a_rollout(trained: Any, workload: str) -> None:
    less, more = (Counter(trained[workload][size]["waits"]) for size in ("fast", "larger"))
    assert less["step.py read"] > 0
    assert more - less == LARGER[workload][1]


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


def test_the_simulated_device_refuses_what_cuda_refuses(tmp_path: Path) -> None:
    done = run("-c", MISTAKES, cache=tmp_path)
    assert done.returncode == 0, done.stderr
    mixed, numpy = done.stdout.splitlines()[:3], done.stdout.splitlines()[3:]
    assert all(line.endswith("expected all tensors to be on the same device") for line in mixed)
    assert numpy == ["can't convert a tensor of another device to numpy"]
