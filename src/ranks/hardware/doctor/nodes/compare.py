"""What differs between nodes, and whether their links are as good as they should be. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, cast

import numpy as np

from ranks.hardware.catalogue.links import ETHERNET_SHARES
from ranks.hardware.doctor.finding import Asked, Finding, failure, note, ok, warning
from ranks.hardware.doctor.nodes.link_test import LinkTest
from ranks.hardware.doctor.nodes.report import NodeReport

CLOCK_S = 1.0
"""Clocks may differ by so much: times of files and logs are compared."""
LEAST_OF_RATE, LEAST_OF_OTHER_WAY = 0.7, 0.6
"""Of what TCP should reach, and of the other direction."""
MOST_AGAIN = 0.005
"""Share of packets that may be sent again."""
SLOW_BYTES_PER_S, SLOW_TRIP_S = 12.5e6, 0.02
"""100 Mbit/s: the gradients of 10 million parameters take 3 s. Round trips of 20 ms are not those of one place."""
MOST_GBIT = 10.0
"""What one connection of this check surely reaches on a faster network."""
DO_VERSION = {"python": "install the same Python", "driver": "install the same driver"}
ALIKE = "the same on all nodes"


def compare_nodes(reports: Sequence[NodeReport], links: Sequence[LinkTest], asked: Asked) -> Iterator[Finding]:
    """All findings about nodes that have met."""
    yield ok("nodes", "; ".join(f"{r.node}: {r.host}, {r.address} ({r.interface})" for r in reports))
    yield from _software(reports)
    yield from _workload(reports)
    yield from _clocks(reports, links)
    for link in links:
        yield from _link(link, reports, asked)
    if len(mtus := {r.mtu for r in reports if r.mtu}) > 1:
        found = _by_node({r.node: r.mtu for r in reports})
        do = f"ip link set {reports[0].interface} mtu {min(mtus)} on all nodes"
        yield warning("mtu", found, f"{ALIKE}: large packets are dropped", do)


def _software(reports: Sequence[NodeReport]) -> Iterator[Finding]:
    same = True
    for name in dict.fromkeys(name for r in reports for name in r.versions):
        found = {r.node: r.versions.get(name, "none") for r in reports}
        if len({*found.values()}) > 1:
            same = False
            do = DO_VERSION.get(name, f"pip install {name.lower()}=={found[0].partition('+')[0]} on all nodes")
            kind = warning if name in DO_VERSION else failure
            yield kind(f"{name} version", _by_node(found), ALIKE, do)
    if len({r.source for r in reports}) > 1:
        same = False
        found = _by_node({r.node: f"sha256 {r.source[:12]}" for r in reports})
        yield failure("ranks code", found, ALIKE, "install the same commit of ranks on all nodes")
    if len({r.gpus for r in reports}) > 1:
        same = False
        found = _by_node({r.node: f"{len(r.gpus)} x {', '.join(sorted({*r.gpus})) or 'none'}" for r in reports})
        yield warning("gpus of nodes", found, ALIKE, "--shares for unequal cards, or rent equal ones")
    if same:
        yield ok("software", ", ".join(f"{name} {version}" for name, version in reports[0].versions.items()))


def _workload(reports: Sequence[NodeReport]) -> Iterator[Finding]:
    known = [r for r in reports if r.workload is not None]
    if not known:
        yield note("code and data", "not compared: name the workload", "ranks doctor WORKLOAD --nodes ...")
        return
    if len(known) < len(reports):
        found = f"no dry run on {', '.join(f'node {r.node}' for r in reports if r.workload is None)}"
        yield failure("workload", found, "the same workload on all nodes", "ranks doctor WORKLOAD on all of them")
    base, where = cast("Mapping[str, Any]", known[0].workload), f"node {known[0].node}"
    same = True
    for other in known[1:]:
        for part, do in _DO.items():
            differ = _differing(base.get(part), cast("Mapping[str, Any]", other.workload).get(part))
            if differ:
                same = False
                host = known[0].host
                found = f"node {other.node} ({other.host}) differs from {where}: {differ}"
                yield failure(part, found, ALIKE, do.format(host=host))
    if same and len(known) == len(reports):
        yield ok("code and data", f"{ALIKE}: code, config" + (", data" if base.get("data") else ""))


_DO = {
    "code": "copy the code of one node to the others: rsync -a {host}:FOLDER/ FOLDER/",
    "config": "start all nodes with the same flags and the same --config file",
    "data": "copy the data of one node to the others: rsync -a {host}:DATA/ DATA/; compare sha256sum",
}


def _differing(one: Any, other: Any, name: str = "") -> str:
    """The first differences between two JSON values, in words; empty where they are equal."""
    if one == other:
        return ""
    if isinstance(one, dict) and isinstance(other, dict):
        left, right = cast("dict[str, Any]", one), cast("dict[str, Any]", other)
        parts = [_differing(left.get(key), right.get(key), f"{name}.{key}".lstrip(".")) for key in {**left, **right}]
        return ", ".join([part for part in parts if part][:4])
    return f"{name} {_short(other)} and not {_short(one)}".strip()


def _short(value: Any) -> str:
    text = "missing" if value is None else str(value)
    return text if len(text) < 40 else f"{text[:12]}..."


def _clocks(reports: Sequence[NodeReport], links: Sequence[LinkTest]) -> Iterator[Finding]:
    """Each link says how far the next clock is ahead, so sums of them compare all clocks with that of node 0."""
    chain = links[: len(reports) - 1]
    if any(link.error for link in chain):
        return
    ahead = dict(enumerate(accumulate((link.clock_s for link in chain), initial=0.0)))
    apart = max(ahead.values()) - min(ahead.values())
    if apart > CLOCK_S:
        found = _by_node({node: f"{seconds:+.1f} s" for node, seconds in ahead.items()})
        do = "on all nodes: chronyc makestep, or timedatectl set-ntp true"
        yield warning("clocks", found, f"within {CLOCK_S:g} s", do)
    else:
        yield ok("clocks", f"{apart * 1e3:.1f} ms apart")


def _link(link: LinkTest, reports: Sequence[NodeReport], asked: Asked) -> Iterator[Finding]:
    """Latency, rate and lost packets of one link."""
    pair = f"nodes {link.first} and {link.second}"
    ends = (reports[link.first], reports[link.second])
    if link.only_short_packets:
        mtu = min((r.mtu for r in ends if r.mtu), default=1500)
        found = f"{pair}: long packets vanish between them, short ones arrive; the interfaces have an MTU of {mtu}"
        do = (
            f"ip link set {ends[0].interface} mtu 1280 on all nodes; the largest that arrives: "
            f"ping -M do -s 1252 {ends[1].address} (28 bytes less than the MTU), and more"
        )
        yield failure("link", found, "packets as long as the MTU says", do)
        return
    if link.error:
        do = (
            "open all ports between the nodes, which gloo and NCCL use: in the provider's firewall or security group, "
            f"and on {ends[1].host}: ufw allow from {ends[0].address}. "
            "Or export GLOO_SOCKET_IFNAME=NAME of the interface between the nodes"
        )
        yield failure("link", f"{pair}: {link.error}", f"an open network ({ends[1].interface})", do)
        return
    there, back = 8 * link.there_bytes_per_s / 1e9, 8 * link.back_bytes_per_s / 1e9
    found = f"{pair}: {_gbit(there)} there, {_gbit(back)} back, round trip {link.round_trip_s * 1e3:.2f} ms"
    stated = [r.rate_mbit / 1e3 for r in ends if r.rate_mbit]
    rate = asked.link_gbit if asked.link_gbit is not None else min(stated, default=None)
    who = "--link" if asked.link_gbit is not None else "the interface"
    look = f"ethtool {ends[0].interface}; ip -s link show {ends[0].interface}; tc qdisc; ask the provider"
    least = None if rate is None else LEAST_OF_RATE * reachable_gbit(rate)
    fine = True
    if link.retransmitted > MOST_AGAIN:
        fine = False
        lost = f"{pair}: {link.retransmitted:.1%} of the packets are lost and sent again; {_gbit(there)} there"
        yield warning("link", lost, f"{MOST_AGAIN:.1%} or less", f"check cables and switches: {look}")
    elif least is not None and rate is not None and min(there, back) < least:
        fine = False
        yield warning("link", found, f"{_gbit(least)} at least of {_gbit(rate)} ({who})", look)
    elif min(there, back) < LEAST_OF_OTHER_WAY * max(there, back) and min(there, back) < MOST_GBIT / 2:
        fine = False
        yield warning("link", found, "the same in both directions", look)
    elif min(there, back) < SLOW_BYTES_PER_S * 8 / 1e9:
        fine = False
        yield warning("link", found, "100 Mbit/s", "rent nodes with a faster network, or train on one")
    if link.round_trip_s > SLOW_TRIP_S:
        fine = False
        yield warning("link latency", found, f"{SLOW_TRIP_S * 1e3:g} ms", "rent nodes in one place, or train on one")
    if fine:
        yield ok("link", found)


def reachable_gbit(rate_gbit: float) -> float:
    """What one TCP connection reaches of a network of this rate, both in Gbit/s."""
    share = float(np.interp(math.log(rate_gbit), np.log(list(ETHERNET_SHARES)), list(ETHERNET_SHARES.values())))
    return min(MOST_GBIT, rate_gbit) * share


def _gbit(rate: float) -> str:
    return f"{rate:.2f} Gbit/s" if rate >= 1 else f"{1e3 * rate:.0f} Mbit/s"


def _by_node(values: Mapping[int, Any]) -> str:
    """'node 0: a; nodes 1, 2: b'."""
    groups: dict[str, list[int]] = {}
    for node, value in values.items():
        groups.setdefault(str(value), []).append(node)
    return "; ".join(
        f"node{'s' * (len(nodes) > 1)} {', '.join(map(str, nodes[:8]))}: {value}" for value, nodes in groups.items()
    )
