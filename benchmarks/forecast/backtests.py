"""Forecasts of published figures: pure arithmetic by the code of `ranks forecast`. Nothing was tuned on them.

    python -m benchmarks.forecast.backtests [--result FILE]

Two kinds of cases. A link: the catalogue loses the published row (and for B200 all sizes but the largest one), and is
asked for it. A run: the published time on few GPUs is taken as the work of one rank, and the catalogue's link gives the
time on more of them. Each case says which inputs are published and which are assumed.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.measure import RESULTS, origin, write_result
from ranks.engine.liveness.beats import Collective
from ranks.hardware.catalogue import links
from ranks.hardware.catalogue.gpus import Gpu, by_name
from ranks.hardware.forecast.job import iteration_interval
from ranks.hardware.forecast.replay import replay
from ranks.hardware.forecast.trace import Call, IterationTrace
from ranks.hardware.links.curve import Link

MIB, GIB = 2**20, 2**30


@dataclass(frozen=True)
class BackTest:
    """One published figure and what the forecast makes of it."""

    kind: str
    """link or run."""
    name: str
    source: str
    assumed: str
    """Inputs that are not published."""
    unit: str
    forecast: float
    low: float
    high: float
    fact: float

    def as_json(self) -> dict[str, Any]:
        error = self.forecast / self.fact - 1
        return {**asdict(self), "error": error, "within": self.low <= self.fact <= self.high}


# Links ----------------------------------------------------------------------------------------------------------------


@contextmanager
def without(held_out: frozenset[links.Bandwidth]) -> Iterator[None]:
    """The catalogue without some rows, and without those that were derived from others."""
    whole = links.bandwidths

    def fewer(gpu_name: str) -> tuple[links.Bandwidth, ...]:
        return tuple(row for row in whole(gpu_name) if row not in held_out and not row.source.startswith("derived"))

    links.bandwidths = fewer  # type: ignore[assignment]
    try:
        yield
    finally:
        links.bandwidths = whole


def busbw_gbs(link: Link, num_gpus: int, num_bytes: int) -> float:
    """Bus bandwidth as nccl-tests defines it."""
    return num_bytes * 2 * (num_gpus - 1) / num_gpus / link.all_reduce_s(num_gpus, num_bytes) / 1e9


def of_link(gpu: Gpu, row: links.Bandwidth, link: Link, assumed: str) -> BackTest:
    """Compare a link with a published row. Time is uncertain by a share, and bandwidth is its inverse."""
    forecast, share = busbw_gbs(link, row.num_gpus, row.num_bytes), link.uncertainty
    size = f"{row.num_bytes / GIB:g} GiB" if row.num_bytes >= GIB else f"{row.num_bytes / MIB:g} MiB"
    name = f"all-reduce of {size}, {row.num_gpus} x {gpu.name}"
    low, high = forecast / (1 + share), forecast / (1 - share)
    return BackTest("link", name, row.source, assumed, "GB/s", forecast, low, high, row.busbw_gbs)


def sizes_of_b200() -> Iterator[BackTest]:
    """Of 8 B200 only the largest size is known: what are the smaller ones?"""
    b200 = by_name("B200")
    smaller = [row for row in links.bandwidths("B200") if row.num_gpus == 8][:-1]
    with without(frozenset(smaller)):
        link = links.catalogued_link(b200, 8)
        assert link is not None
        yield from [of_link(b200, row, link, "16 GiB of 8 x B200, and how 8 x H200 lose speed") for row in smaller]


def numbers_of_gpus() -> Iterator[BackTest]:
    """A number of GPUs is unknown; its neighbours are known."""
    for name in ("H200 SXM", "B200", "RTX 5090"):
        gpu = by_name(name)
        rows = [row for row in links.bandwidths(name) if row.num_gpus <= links.MOST_GPUS]
        for number in sorted({row.num_gpus for row in rows}):
            of_number = [row for row in rows if row.num_gpus == number]
            if name == "H200 SXM" and number == 8:
                continue  # other cards' small sizes come from these rows
            with without(frozenset(of_number)):
                link = links.catalogued_link(gpu, number)
            if link is not None:
                yield of_link(gpu, of_number[-1], link, "other numbers of the same card")


def unlike_cards() -> Iterator[BackTest]:
    """Cards of which one row is known: that of PCIe by the rule for PCIe, one size by the others."""
    for name in ("A100 80GB PCIe", "MI300X"):
        gpu = by_name(name)
        for row in links.bandwidths(name):
            if row.source.startswith("derived"):
                continue
            with without(frozenset([row])):
                link = links.catalogued_link(gpu, row.num_gpus)
            if link is not None:
                yield of_link(gpu, row, link, "the rule for cards on PCIe")


def nodes_of_b200() -> Iterator[BackTest]:
    """Four machines: the catalogue's rule for an Ethernet, by the stated rate of a GPU's network card."""
    b200 = by_name("B200")
    for row in links.bandwidths("B200"):
        if row.num_gpus == 32:
            yield of_link(b200, row, links.network_link(400.0), "a ring over 400 Gbit/s of Ethernet")


# Runs -----------------------------------------------------------------------------------------------------------------

LLAMA_PARAMETERS, LLAMA_BLOCKS, TOKENS = 8_030_261_248, 32, 2 * 8192
FORWARD = 0.3
"""Share of an iteration: one of three parts, and less with activation checkpointing."""
TORCHTITAN = "torchtitan 31a17bf, benchmarks/llama3_h100_202412_torchtitan.md"
TOKENS_PER_S = {
    "FSDP": (5762, 5605),
    "FSDP and torch.compile": (6667, 6514),
    "FSDP, torch.compile and float8": (8532, 8380),
}
"""Of one GPU: on 8 and on 128 of them."""


def sharded_iteration(work_s: float, num_ranks: int) -> IterationTrace:
    """FSDP: each block's parameters (bf16) are gathered one block ahead, in both passes; its gradients (float32) are
    summed and scattered after its backward pass, which the next block's hides."""
    shard = 2 * LLAMA_PARAMETERS // LLAMA_BLOCKS // num_ranks
    gradients = 4 * LLAMA_PARAMETERS // LLAMA_BLOCKS
    forward_s, backward_s = FORWARD * work_s / LLAMA_BLOCKS, (1 - FORWARD) * work_s / LLAMA_BLOCKS
    calls = list[Call]()
    for block in range(2 * LLAMA_BLOCKS):
        is_backward = block >= LLAMA_BLOCKS
        begin_s = forward_s * min(block, LLAMA_BLOCKS) + backward_s * max(0, block - LLAMA_BLOCKS)
        ahead_s = backward_s if block > LLAMA_BLOCKS else forward_s if block else 0.0
        calls.append(Call(Collective.ALL_GATHER, shard, begin_s - ahead_s, begin_s))
        if is_backward:
            end_s = min(work_s, begin_s + backward_s)
            calls.append(Call(Collective.ALL_TO_ALL, gradients, end_s, min(work_s, end_s + backward_s)))
    calls.sort(key=lambda call: call.start_s)
    return IterationTrace(work_s, tuple(calls))


def sharded_runs() -> Iterator[BackTest]:
    """Llama 3.1 8B on 128 H100, from its time on 8 of them."""
    h100 = by_name("NVIDIA H100 80GB HBM3")
    inside, measured = links.catalogued_link(h100, 8), links.catalogued_link(by_name("B200"), 32)
    assert inside is not None
    assert measured is not None
    ways = {
        "a ring over 400 Gbit/s of Ethernet": links.network_link(400.0),
        "the measured network of 32 x B200, also 400 Gbit/s a GPU": measured,
    }
    for name, (on_8, on_128) in TOKENS_PER_S.items():
        work_s = TOKENS / on_8
        for _ in range(20):  # the work of which the published time on 8 GPUs is made
            work_s *= TOKENS / on_8 / replay([sharded_iteration(work_s, 8)], inside, 8).seconds
        iterations = [sharded_iteration(work_s, 128)]
        for way, between in ways.items():
            seconds = replay(iterations, between, 128).seconds
            interval = iteration_interval(iterations, between, 128, seconds)
            low, middle, high = TOKENS / interval.high, TOKENS / interval.middle, TOKENS / interval.low
            assumed = f"{way}; one block gathered ahead; no difference between ranks"
            title = f"{name}, Llama 3.1 8B, 8 -> 128 H100"
            yield BackTest("run", title, TORCHTITAN, assumed, "tokens/s/GPU", middle, low, high, on_128)


NOT_COMPUTED = {
    "MLPerf 4.0, GPT-3 on 3,584 -> 11,616 H100: nearly 100 %": "pipelines and tensor parallelism, which ranks lacks",
    "DDP paper: nearly linear to 256 GPUs": "a picture; its values are not published as numbers",
    "130k x 1024 linear layer: 2 GPUs 10 times slower": "neither the card nor the time of a step is published",
    "nanotron, 8 to 64 GPUs": "the logs are no longer in its repository",
    "2201.12423, 3,400 trainings to 424 GPUs": "power laws; neither gradients' sizes nor links are published with them",
}
"""Published figures of the same kind, and what is missing for a forecast of them."""


def summary(cases: list[dict[str, Any]]) -> dict[str, Any]:
    """Errors and intervals, by kind."""
    found: dict[str, Any] = {}
    for kind in ("link", "run"):
        of_kind = [case for case in cases if case["kind"] == kind]
        errors = sorted(abs(case["error"]) for case in of_kind)
        found[kind] = {
            "cases": len(of_kind),
            "median_error": statistics.median(errors),
            "largest_error": max(errors),
            "within": sum(case["within"] for case in of_kind),
        }
    return found


def back_tests() -> list[dict[str, Any]]:
    """All cases."""
    tests = [*sizes_of_b200(), *numbers_of_gpus(), *unlike_cards(), *nodes_of_b200(), *sharded_runs()]
    return [test.as_json() for test in tests]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    name = f"forecast_backtests_{time.strftime('%Y-%m-%d')}.json"
    parser.add_argument("--result", type=Path, default=RESULTS / name)
    asked, cases = parser.parse_args(), back_tests()
    for case in cases:
        shown = f"{case['forecast']:,.1f} ({case['low']:,.1f} to {case['high']:,.1f}), in fact {case['fact']:,.1f}"
        print(f"{case['name']} ({case['assumed']}): {shown} {case['unit']} ({case['error']:+.0%})")
    content = {"origin": origin(), "summary": summary(cases), "cases": cases, "not_computed": NOT_COMPUTED}
    print(write_result(asked.result.stem, content, asked.result.parent))


if __name__ == "__main__":
    main()
