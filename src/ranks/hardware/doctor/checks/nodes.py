"""The nodes of a run: they meet, compare what they have, and measure the links between them."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from ranks.engine.distributed.rendezvous.meeting import Meeting
from ranks.hardware.doctor.finding import Asked, Finding, failure, ok
from ranks.hardware.doctor.nodes.compare import compare_nodes
from ranks.hardware.doctor.nodes.link_test import LinkServer, LinkTest, measure_link
from ranks.hardware.doctor.nodes.report import NodeReport, report_of

PHASE_S, SEE_S, BYE_S, GLOO_S = 9.0, 3.0, 3.0, 10.0
"""Limits: of the links that are measured at the same time, of a file to be seen, of the end, of a collective."""
NUMBERS = 1 << 20
"""Float32 of the larger all-reduce: 4 MiB."""


@dataclass(frozen=True)
class NodesFacts:
    """Equal on all nodes, but for `not_met`."""

    not_met: list[str] = field(default_factory=list[str])
    """found, expected, do; empty where the nodes met."""
    reports: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """NodeReport of each node."""
    links: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """LinkTest from each node to the next one."""
    blind: list[int] = field(default_factory=list[int])
    """Nodes that do not see what node 0 writes in the runs folder."""
    all_reduce_s: float = 0.0
    """Of 4 MiB over gloo."""
    all_reduce_error: str = ""


def measure(asked: Asked) -> NodesFacts:
    """Meet, exchange reports, measure."""
    from ranks.hardware.doctor.nodes.meet import NotMet, interface_of, meet, open_store

    host, _, port = asked.meeting.rpartition(":")
    meeting, nonce = Meeting(host, int(port), asked.meeting_name, asked.served_by_agent), uuid.uuid4().hex
    try:
        address = interface_of(meeting, asked.node)
        server = LinkServer(address)
        interface = os.environ["GLOO_SOCKET_IFNAME"].split(",")[0]
        report = partial(report_of, asked, interface=interface, address=address, link_port=server.port)
        store = open_store(meeting, asked.node, address, asked.wait_s)
        met = meet(store, asked, lambda nonce: report(nonce=nonce), nonce)
    except NotMet as error:
        return NodesFacts([error.found, error.expected, error.do])
    server.start(met.token)
    links = _links(met.store, asked, met.reports, met.token)
    blind = _blind(met.store, asked, met.token)
    reachable = not any(link.error for link in links)
    seconds, error = _all_reduce(met.store, asked) if reachable else (0.0, "")
    _wait_for(met.store, asked, "bye", BYE_S)  # node 0 serves the store until all have read it
    return NodesFacts([], [asdict(one) for one in met.reports], [asdict(one) for one in links], blind, seconds, error)


def _links(store: Any, asked: Asked, reports: list[NodeReport], token: str) -> list[LinkTest]:
    """The link of each node to the next one; neighbours take turns, so that no node is in two measurements."""
    num_links = asked.nodes if asked.nodes > 2 else 1
    phases = [range(0, num_links - num_links % 2, 2) if num_links > 1 else range(1), range(1, num_links, 2)]
    phases += [range(num_links - 1, num_links)] if num_links % 2 and num_links > 1 else []
    found: list[LinkTest] = []
    for phase in phases:
        if asked.node in phase:
            other = reports[(asked.node + 1) % asked.nodes]
            link = measure_link(asked.node, other.node, other.address, other.link_port, token)
            store.set(f"link/{asked.node}", json.dumps(asdict(link)))
        deadline = time.monotonic() + PHASE_S
        for node in phase:
            while not (there := store.check([f"link/{node}"])) and time.monotonic() < deadline:
                time.sleep(0.02)
            gone = LinkTest(node, (node + 1) % asked.nodes, f"node {node} has not measured it within {PHASE_S:g} s")
            found.append(LinkTest(**json.loads(store.get(f"link/{node}"))) if there else gone)
    return found


def _blind(store: Any, asked: Asked, token: str) -> list[int]:
    """Nodes that do not see a new file of node 0 in the runs folder."""
    folder = Path(asked.runs_dir).absolute()
    existing = next(place for place in (folder, *folder.parents) if place.is_dir())
    name = existing / f".ranks-doctor-{token}"
    try:
        if asked.node == 0:
            with suppress(OSError):
                name.touch()
            store.set("written", str(int(name.exists())))
        store.wait(["written"], timedelta(seconds=PHASE_S))
        deadline = time.monotonic() + SEE_S
        while not (seen := name.exists() or store.get("written") == b"0") and time.monotonic() < deadline:
            time.sleep(0.1)
        store.set(f"seen/{asked.node}", str(int(seen)))
        keys = [f"seen/{node}" for node in range(asked.nodes)]
        store.wait(keys, timedelta(seconds=SEE_S + PHASE_S))
        return [node for node, key in enumerate(keys) if store.get(key) != b"1"]
    finally:
        if asked.node == 0:
            name.unlink(missing_ok=True)


def _all_reduce(store: Any, asked: Asked) -> tuple[float, str]:
    """Seconds of the fastest of some all-reduces of 4 MiB, or what is wrong with them."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    try:
        limit, times, numbers = timedelta(seconds=GLOO_S), list[float](), torch.empty(0)
        where = dist.PrefixStore("gloo", store)
        dist.init_process_group("gloo", store=where, rank=asked.node, world_size=asked.nodes, timeout=limit)
        for _ in range(3):
            numbers = torch.full((NUMBERS,), float(asked.node + 1))
            began = time.monotonic()
            dist.all_reduce(numbers)
            times.append(time.monotonic() - began)
        slowest = torch.tensor([min(times)])
        dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
        is_right = bool(torch.eq(numbers, asked.nodes * (asked.nodes + 1) / 2).all())
        dist.destroy_process_group()
    except (RuntimeError, OSError) as error:
        return 0.0, str(error).partition("\n")[0][:200]
    return float(slowest), "" if is_right else "its sum is wrong"


def _wait_for(store: Any, asked: Asked, word: str, limit_s: float) -> None:
    store.set(f"{word}/{asked.node}", "1")
    with suppress(RuntimeError):
        store.wait([f"{word}/{node}" for node in range(asked.nodes)], timedelta(seconds=limit_s))


def judge(facts: NodesFacts, asked: Asked) -> Iterator[Finding]:
    """The nodes met, and are alike."""
    if facts.not_met:
        yield failure("nodes", *facts.not_met)
        return
    reports = [NodeReport.of_json(one) for one in facts.reports]
    links = [LinkTest(**one) for one in facts.links]
    yield from compare_nodes(reports, links, asked)
    if facts.blind:
        names = ", ".join(f"node {node} ({reports[node].host})" for node in facts.blind)
        found = f"{asked.runs_dir} of node 0 is another folder on {names}"
        yield failure("runs folder", found, "one folder that all nodes share", "--runs-dir FOLDER on a shared disk")
    if facts.all_reduce_error:
        do = "export GLOO_SOCKET_IFNAME=NAME of the interface between the nodes, on all of them"
        yield failure("all-reduce", f"between the nodes: {facts.all_reduce_error}", "the right sum", do)
    elif facts.all_reduce_s:
        yield ok("all-reduce", f"of all nodes over gloo: {4 * NUMBERS / 2**20:.0f} MiB in {facts.all_reduce_s:.3f} s")
