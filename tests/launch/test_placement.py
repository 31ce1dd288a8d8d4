"""The device of each rank, as a table, and the GPUs that CUDA would show."""

from __future__ import annotations

from typing import Any

import pytest

from ranks.errors import UserError
from ranks.launch.gpus import Gpus, visible_devices
from ranks.launch.placement import place

NONE, ONE, TWO, EIGHT = Gpus(0, "no NVIDIA GPU found"), Gpus(1), Gpus(2), Gpus(8)


def cuda(*cards: int) -> tuple[str, ...]:
    return tuple(f"cuda:{card}" for card in cards)


@pytest.mark.parametrize(
    ("found", "cores", "asked", "devices", "threads"),
    [
        (NONE, 1, {}, ("cpu",), 1),
        (NONE, 2, {}, ("cpu",) * 2, 1),
        (NONE, 64, {}, ("cpu",) * 8, 8),
        (NONE, 64, {"shards": 3}, ("cpu",) * 3, 21),
        (NONE, 64, {"exact": True}, ("cpu",) * 8, 1),
        (NONE, 4, {"ranks": 2}, ("cpu",) * 2, 2),
        (NONE, 2, {"ranks": 4}, ("cpu",) * 4, 1),
        (NONE, 4, {"ranks": 2, "threads": 3}, ("cpu",) * 2, 3),
        (NONE, 2, {"shares": (5, 3, 1)}, ("cpu",) * 3, 1),
        (EIGHT, 4, {"gpus": "none"}, ("cpu",) * 4, 1),
        (ONE, 16, {}, cuda(0), 16),
        (EIGHT, 16, {}, cuda(*range(8)), 2),
        (EIGHT, 16, {"gpus": "all"}, cuda(*range(8)), 2),
        (EIGHT, 16, {"gpus": "2"}, cuda(0, 1), 8),
        (EIGHT, 16, {"gpus": "0,2,3"}, cuda(0, 2, 3), 5),
        (EIGHT, 16, {"gpus": "3,"}, cuda(3), 16),
        (EIGHT, 16, {"gpus": "0"}, cuda(0), 16),
        (EIGHT, 16, {"ranks": 4}, cuda(0, 1, 2, 3), 4),
        (ONE, 16, {"gpus": "0,", "ranks": 4}, cuda(0, 0, 0, 0), 4),
        (TWO, 16, {"ranks": 3}, cuda(0, 0, 1), 5),
        (TWO, 16, {"gpus": "1,0", "ranks": 4}, cuda(1, 1, 0, 0), 4),
    ],
)
def test_ranks_are_assigned_to_devices(
    found: Gpus, cores: int, asked: dict[str, Any], devices: tuple[str, ...], threads: int
) -> None:
    placement = place(found=found, cores=cores, **asked)
    assert (placement.devices, placement.threads) == (devices, threads)


def test_the_fallback_to_the_cpu_is_one_line() -> None:
    assert place(found=NONE, cores=2).note == "no NVIDIA GPU found; training on the CPU"
    assert place("all", found=NONE, cores=2).note == "no NVIDIA GPU found; training on the CPU"
    assert place("none", found=NONE, cores=2).note is None
    assert place(found=ONE, cores=2).note is None


@pytest.mark.parametrize(
    ("found", "asked", "named"),
    [
        (TWO, {"gpus": "3"}, "GPUs 0 to 1"),
        (ONE, {"gpus": "1,"}, "GPU 0"),
        (TWO, {"gpus": "0,-1"}, "GPUs 0 to 1"),
        (TWO, {"gpus": "-1"}, "GPUs 0 to 1"),
        (Gpus(1, visible=("5",)), {"gpus": "5,"}, "inside CUDA_VISIBLE_DEVICES"),
        (TWO, {"gpus": "0,0"}, "named twice"),
        (TWO, {"gpus": ","}, "empty"),
        (TWO, {"gpus": "first"}, "does not name GPUs"),
        (NONE, {"gpus": "2"}, "no NVIDIA GPU found"),
        (NONE, {"ranks": 0}, "at least one rank"),
        (NONE, {"ranks": 9, "shards": 8}, "8 shards"),
        (EIGHT, {"shards": 4}, "4 shards"),
        (NONE, {"ranks": 3, "shares": (5, 3)}, "2 shares for 3 ranks"),
    ],
)
def test_errors_name_the_problem(found: Gpus, asked: dict[str, Any], named: str) -> None:
    with pytest.raises(UserError, match=r"asked: .*\nfound: .*\n   do: .*") as error:
        place(found=found, cores=2, **asked)
    assert named in error.value.found


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ()),
        ("-1", ()),
        ("0,1", ("0", "1")),
        (" 1 , 0 ", ("1", "0")),
        ("0,9,1", ("0",)),
        ("GPU-ab", ("GPU-ab",)),
        ("GPU-zz,0", ()),
        ("MIG-1,MIG-2", ("MIG-1",)),
    ],
)
def test_cuda_visible_devices_is_read_as_cuda_reads_it(text: str, shown: tuple[str, ...]) -> None:
    assert visible_devices(text, ("GPU-ab12", "GPU-cd34")) == shown


def test_a_child_gets_the_entry_of_its_gpu() -> None:
    assert Gpus(2, visible=("5", "GPU-ab")).physical(1) == "GPU-ab"
    assert Gpus(2).physical(1) == "1"
