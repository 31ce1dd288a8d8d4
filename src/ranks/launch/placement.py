"""Assign ranks to devices: from `--gpus`, `--ranks`, `--shares` to one device and a number of threads per rank."""

from __future__ import annotations

from dataclasses import dataclass

from ranks.engine.distributed.rendezvous.process_env import available_cores
from ranks.errors import UserError
from ranks.launch.gpus import Gpus, find_gpus

MAX_CPU_RANKS = 8
"""Most ranks on a CPU without `--ranks`."""


@dataclass(frozen=True)
class Placement:
    """One device per rank (`cpu` or `cuda:i`, i counted inside CUDA_VISIBLE_DEVICES) and the CPU threads of each."""

    devices: tuple[str, ...]
    threads: int
    note: str | None = None
    """One line for the user: why the CPU is used although a GPU was asked for."""
    only: tuple[str, ...] = ()
    """For MIG slices: the one entry of CUDA_VISIBLE_DEVICES of each rank, which sees it as cuda:0."""

    @property
    def ranks(self) -> int:
        return len(self.devices)


def place(
    gpus: str | None = None,
    ranks: int | None = None,
    *,
    shards: int | None = None,
    shares: tuple[int, ...] | None = None,
    threads: int | None = None,
    exact: bool = False,
    found: Gpus | None = None,
    cores: int | None = None,
) -> Placement:
    """Assign ranks to devices. Raises UserError.

    `gpus`: None or `all`; `none`; a count `N`; or a list with a comma: `0,2`, or `3,` for GPU 3 alone. A lone `0` is
    GPU 0. On GPUs: one rank each, or `ranks` spread over them in order, several on one GPU where there are more ranks
    than GPUs. On the CPU: one rank per core, at most 8 and at most `shards`. `found` and `cores` are looked up where
    they are not given.
    """
    cores = cores if cores is not None else available_cores()
    note = None
    chosen: tuple[int, ...] = ()
    if gpus != "none":
        found = found if found is not None else find_gpus()
        chosen = _gpu_numbers(gpus, found)
        note = None if chosen else f"{found.why_none}; training on the CPU"
    if ranks is None:
        limit = MAX_CPU_RANKS if shards is None else min(MAX_CPU_RANKS, shards)
        ranks = len(shares) if shares is not None else len(chosen) if chosen else min(cores, limit)
    _check(ranks, shards, shares)
    threads = threads or (1 if exact else max(1, cores // ranks))
    if not chosen:
        return Placement(("cpu",) * ranks, threads, note)
    gpu_of = [chosen[rank if ranks <= len(chosen) else rank * len(chosen) // ranks] for rank in range(ranks)]
    if found is not None and found.apart:
        return Placement(("cuda:0",) * ranks, threads, only=tuple(map(found.physical, gpu_of)))
    return Placement(tuple(f"cuda:{gpu}" for gpu in gpu_of), threads)


def _gpu_numbers(gpus: str | None, found: Gpus) -> tuple[int, ...]:
    """The numbers of the GPUs in `--gpus`; empty for all GPUs of a machine that has none."""
    asked = f"--gpus {gpus}"
    if gpus is None or gpus == "all":
        return tuple(range(found.count))
    try:
        numbers = [int(part) for part in gpus.split(",") if part.strip()]
    except ValueError:
        raise UserError(
            asked, "it does not name GPUs", "give all, none, a count (2) or a list with a comma (0,2 or 3,)"
        ) from None
    if "," not in gpus and numbers != [0]:
        numbers = list(range(min(numbers[0], found.count + 1))) if numbers and numbers[0] > 0 else numbers
    if not numbers:
        raise UserError(asked, "the list is empty", "name a GPU (--gpus 0), or use --gpus none")
    if found.count == 0:
        raise UserError(asked, found.why_none, "leave --gpus out, or use --gpus none to train on the CPU")
    unknown = [n for n in numbers if not 0 <= n < found.count]
    if unknown:
        known = "GPU 0" if found.count == 1 else f"GPUs 0 to {found.count - 1}"
        inside = " (inside CUDA_VISIBLE_DEVICES)" if found.restricted else ""
        raise UserError(asked, f"this machine has {known}{inside}", "name GPUs from that range, or use --gpus all")
    if len(set(numbers)) < len(numbers):
        raise UserError(asked, "a GPU is named twice", "name each GPU once; --ranks N puts several ranks on one GPU")
    return tuple(numbers)


def _check(ranks: int, shards: int | None, shares: tuple[int, ...] | None) -> None:
    if ranks < 1:
        raise UserError(f"--ranks {ranks}", "a run needs at least one rank", "give --ranks 1 or more")
    if shards is not None and ranks > shards:
        raise UserError(
            f"{ranks} ranks",
            f"the run has {shards} shards, and a rank needs at least one",
            f"use at most {shards} ranks, or --shards {ranks} or more",
        )
    if shares is not None and len(shares) != ranks:
        text = ",".join(map(str, shares))
        raise UserError(f"--shares {text}", f"{len(shares)} shares for {ranks} ranks", "give one share for each rank")
