"""The device of each rank, as a table, and the GPUs that CUDA would show."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ranks.errors import UserError
from ranks.launch.env_vars import set_allocator_defaults, set_cuda_defaults
from ranks.launch.gpus import Card, Gpus, find_gpus, visible_devices
from ranks.launch.placement import place
from ranks.launch.script import gpus_of_script

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
        (EIGHT, 16, {"gpus": "1,2,3,4,5,6,7"}, cuda(1, 2, 3, 4, 5, 6, 7), 2),
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


CARDS = (Card("GPU-ab12"), Card("GPU-cd34"), Card("GPU-ef56", ("MIG-1", "MIG-2")))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (None, ("0", "1", "MIG-1", "MIG-2")),
        ("", ()),
        ("-1", ()),
        ("0,1", ("0", "1")),
        (" 1 , 0 ", ("1", "0")),
        ("0,9,1", ("0",)),
        ("0,1,0", ()),
        ("0,2", ("0", "MIG-1", "MIG-2")),
        ("GPU-ab", ("GPU-ab",)),
        ("GPU-ab,GPU-ef", ("GPU-ab", "MIG-1", "MIG-2")),
        ("GPU-ab,1", ("GPU-ab",)),
        ("GPU-zz,0", ()),
        ("MIG-1,MIG-2", ("MIG-1", "MIG-2")),
        ("MIG-2,0", ("MIG-2",)),
    ],
)
def test_cuda_visible_devices_is_read_as_cuda_reads_it(text: str | None, shown: tuple[str, ...]) -> None:
    assert visible_devices(text, CARDS) == shown


def test_a_child_gets_the_entry_of_its_gpu() -> None:
    assert Gpus(2, visible=("5", "GPU-ab")).physical(1) == "GPU-ab"
    assert Gpus(2).physical(1) == "1"


SLICES = Gpus(2, visible=("MIG-1", "MIG-2"), apart=True)


@pytest.mark.parametrize(
    ("asked", "only"),
    [
        ({}, ("MIG-1", "MIG-2")),
        ({"gpus": "1,"}, ("MIG-2",)),
        ({"ranks": 3}, ("MIG-1", "MIG-1", "MIG-2")),
        ({"gpus": "none", "ranks": 2}, ()),
    ],
)
def test_each_rank_sees_its_own_slice_alone(asked: dict[str, Any], only: tuple[str, ...]) -> None:
    placement = place(found=SLICES, cores=4, **asked)
    assert placement.only == only
    assert placement.devices == (("cuda:0",) * len(only) or ("cpu", "cpu"))


@pytest.mark.parametrize(
    ("found", "asked", "seen"),
    [
        (TWO, {}, ("0,1 0", "0,1 1")),
        (EIGHT, {"gpus": "5,3"}, ("5,3 0", "5,3 1")),
        (EIGHT, {"gpus": "1,2,3,4,5,6,7"}, tuple(f"1,2,3,4,5,6,7 {rank}" for rank in range(7))),
        (Gpus(2, visible=("5", "GPU-ab")), {"ranks": 1}, ("5 0",)),
        (TWO, {"ranks": 3}, ("0 0", "0 0", "1 0")),
        (SLICES, {}, ("MIG-1 0", "MIG-2 0")),
        (NONE, {"ranks": 2}, (" 0", " 1")),
    ],
)
def test_cuda_local_rank_is_the_own_gpu_of_a_script(found: Gpus, asked: dict[str, Any], seen: tuple[str, ...]) -> None:
    own = gpus_of_script(place(found=found, cores=4, **asked), found)
    shown = [f"{env['CUDA_VISIBLE_DEVICES']} {env.get('LOCAL_RANK', rank)}" for rank, env in enumerate(own)]
    assert tuple(shown) == seen


class NoMig(Exception):
    pass


def nvml(slices: dict[str, list[str]]) -> Any:
    """A driver with these GPUs and MIG slices; a GPU without slices knows no MIG."""
    names = list(slices)

    def mode(card: str) -> list[int]:
        if not slices[card]:
            raise NoMig
        return [1, 1]

    def slice_of(card: str, index: int) -> str:
        if index >= len(slices[card]):
            raise NoMig
        return slices[card][index]

    return SimpleNamespace(
        NVMLError=NoMig,
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlDeviceGetCount=lambda: len(names),
        nvmlDeviceGetHandleByIndex=names.__getitem__,
        nvmlDeviceGetUUID=str,
        nvmlDeviceGetMigMode=mode,
        nvmlDeviceGetMaxMigDeviceCount=lambda card: 7,
        nvmlDeviceGetMigDeviceHandleByIndex=slice_of,
    )


@pytest.mark.parametrize(
    ("slices", "visible", "found"),
    [
        ({"GPU-a": [], "GPU-b": []}, None, Gpus(2)),
        ({"GPU-a": [], "GPU-b": []}, "1", Gpus(1, "CUDA_VISIBLE_DEVICES hides every GPU", ("1",))),
        (
            {"GPU-a": ["MIG-x", "MIG-y"]},
            None,
            Gpus(2, "CUDA_VISIBLE_DEVICES hides every GPU", ("MIG-x", "MIG-y"), True),
        ),
    ],
)
def test_nvml_lists_gpus_and_slices(
    slices: dict[str, list[str]], visible: str | None, found: Gpus, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").touch()
    (tmp_path / "torch" / "version.py").write_text("cuda: str = '13.0'\n")  # a torch for CUDA is installed
    monkeypatch.setitem(sys.modules, "pynvml", nvml(slices))
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    assert find_gpus({} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}) == found


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "PYTORCH_ALLOC_CONF": "expandable_segments:True"}),
        ({"CUDA_DEVICE_ORDER": "FASTEST_FIRST", "PYTORCH_ALLOC_CONF": "backend:cudaMallocAsync"}, {}),
        ({"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:100"}, {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}),
    ],
)
def test_settings_of_the_user_stay(given: dict[str, str], found: dict[str, str]) -> None:
    variables = dict(given)
    set_cuda_defaults(variables, deterministic=False)
    set_allocator_defaults(variables)
    assert variables == given | found
