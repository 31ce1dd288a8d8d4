"""Every kind of workload trains on a simulated device as on the CPU, and the host rarely waits for the device.

Nothing here needs CUDA. `benchmarks/gpu.py` and tests/engine/update/test_no_sync.py are for a GPU.
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

from ranks.chess.match import OPENING_PLIES
from ranks.jit import JITTED, cache_folder
from tests.simulated_device.trainings import TEMPLATE

REPOSITORY = Path(__file__).parents[2]
SIZES = {
    "chess-spiking": {"iterations": 1},
    "chess-value": {"iterations": 1},
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
FAST_ONLY |= {("video-behavior", "exact"), ("chess-value", "exact")}
"""Not repeated in exact mode: stock-trading and the template are, with the same rollouts, games and updates."""
LARGER = {
    "chess-value": ({"iterations": 1, "games": 12}, {"step.py read": 4}),
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
    assert all("train/loss" in row for row in [*learned(cpu), *learned(device)]), "each iteration has updates"
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
ONCE |= {"planes.py castling_rooks", "encoding.py of", "best_weights.py __init__", "snapshots.py <dictcomp>"}
ONCE |= {"snapshots.py weights_as_arrays"}  # from Python 3.12 on, where a comprehension has no frame
"""Places where the host waits when a training begins, saves or keeps weights."""


@pytest.mark.parametrize(("workload", "mode"), [("chess-spiking", "fast"), (TEMPLATE, "fast"), (TEMPLATE, "exact")])
def test_self_play_waits_for_votes_and_never_in_a_tick(trained: Any, workload: str, mode: str) -> None:
    """A game has a tick for each simulation, so a wait in a tick would be counted about a hundred times."""
    found = Counter(trained[workload][mode]["waits"])
    measured = {"training.py spikes": 1} if workload == "chess-spiking" else {}
    assert {place: count for place, count in found.items() if place not in ONCE | {"step.py read"}} == measured
    assert 1 <= found["step.py read"] <= 10
    if workload == "chess-spiking":
        (row, *_) = trained[workload][mode]["rows"]
        assert row["match/mean_length"] > OPENING_PLIES, "moves of the net follow the opening"
