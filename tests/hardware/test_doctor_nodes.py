"""`ranks doctor` on two machines: emulated hosts in network namespaces, and what is made of differences."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch.distributed as dist

from ranks.cli.main import main
from ranks.engine.distributed.rendezvous.meeting import Meeting
from ranks.hardware.doctor.finding import Asked, Finding, Severity
from ranks.hardware.doctor.limited import within
from ranks.hardware.doctor.look_up import look_up
from ranks.hardware.doctor.nodes.compare import compare_nodes, reachable_gbit
from ranks.hardware.doctor.nodes.link_test import LinkServer, LinkTest, measure_link
from ranks.hardware.doctor.nodes.meet import NotMet, interface_of, meet, open_store
from ranks.hardware.doctor.nodes.place import NodePlace, place_of_flags, place_of_variables
from ranks.hardware.doctor.nodes.report import NodeReport
from ranks.hardware.doctor.save_steps import try_save

ADDRESSES = ("10.76.0.1", "10.76.0.2")
ASKED = Asked(2, "runs", nodes=2, meeting="node0:29500")
WORKLOAD = {"code": {"files": {"task.py": "aa"}}, "config": {"config": {"width": 8}}, "data": "d0"}


def report(node: int, **changes: Any) -> NodeReport:
    versions = {"python": "3.12.1", "torch": "2.13.0", "ranks": "0.2.0"}
    base = NodeReport(
        node, f"host{node}", "n", versions, "f" * 64, (), "eth0", ADDRESSES[node], 1500, 0, 5000, WORKLOAD
    )
    return replace(base, **changes)


def link(**changes: Any) -> LinkTest:
    return replace(LinkTest(0, 1, "", 1e-4, 0.0, 110e6, 111e6, 0.0), **changes)


def bad(other: NodeReport, between: LinkTest, asked: Asked = ASKED) -> list[tuple[Severity, str, str]]:
    """Warnings and failures; each says what is expected and what to do."""
    found: list[Finding] = list(compare_nodes([report(0), other], [between], asked))
    severe = [f for f in found if f.severity >= Severity.WARNING]
    assert all(f.expected and f.do for f in severe)
    return [(f.severity, f.topic, f.found) for f in severe]


@pytest.mark.parametrize(
    ("other", "between", "rate", "topic", "said"),
    [
        ({"versions": {"python": "3.12.1", "torch": "2.12.1", "ranks": "0.2.0"}}, {}, None, "torch version", "2.12.1"),
        ({"versions": {"python": "3.11.9", "torch": "2.13.0", "ranks": "0.2.0"}}, {}, None, "python version", "3.11.9"),
        ({"source": "e" * 64}, {}, None, "ranks code", "node 1: sha256 eeee"),
        ({"gpus": ("NVIDIA H200",)}, {}, None, "gpus of nodes", "node 1: 1 x NVIDIA H200"),
        ({"mtu": 9000}, {}, None, "mtu", "node 1: 9000"),
        ({"workload": None}, {}, None, "workload", "no dry run on node 1"),
        (
            {"workload": {**WORKLOAD, "code": {"files": {"task.py": "bb"}}}},
            {},
            None,
            "code",
            "files.task.py bb and not",
        ),
        (
            {"workload": {**WORKLOAD, "config": {"config": {"width": 9}}}},
            {},
            None,
            "config",
            "config.width 9 and not 8",
        ),
        ({"workload": {**WORKLOAD, "data": "d1"}}, {}, None, "data", "d1 and not d0"),
        ({}, {"clock_s": -37.2}, None, "clocks", "node 1: -37.2 s"),
        ({}, {"there_bytes_per_s": 60e6, "back_bytes_per_s": 60e6}, 1.0, "link", "480 Mbit/s there"),
        ({"rate_mbit": 1000}, {"there_bytes_per_s": 60e6, "back_bytes_per_s": 60e6}, None, "link", "480 Mbit/s there"),
        ({}, {"there_bytes_per_s": 50e6}, None, "link", "400 Mbit/s there"),
        ({}, {"retransmitted": 0.02}, None, "link", "2.0% of the packets"),
        ({}, {"round_trip_s": 0.05}, None, "link latency", "round trip 50.00 ms"),
        ({}, {"there_bytes_per_s": 4e6, "back_bytes_per_s": 4e6}, None, "link", "32 Mbit/s"),
        ({}, {"error": "10.76.0.2 port 5000: timed out"}, None, "link", "timed out"),
        ({}, {"error": "nothing came back", "only_short_packets": True}, None, "link", "long packets vanish"),
    ],
)
def test_what_differs_is_named(
    other: dict[str, Any], between: dict[str, Any], rate: float | None, topic: str, said: str
) -> None:
    (found,) = bad(report(1, **other), link(**between), replace(ASKED, link_gbit=rate))
    assert found[1] == topic
    assert said in found[2]


def test_equal_nodes_with_a_good_link_have_no_alarm() -> None:
    assert bad(report(1), link(), replace(ASKED, link_gbit=1.0)) == []
    assert bad(report(1, rate_mbit=100_000), link(there_bytes_per_s=1e9, back_bytes_per_s=1e9)) == []
    assert reachable_gbit(100) == pytest.approx(6.0)


def test_a_link_of_this_machine_is_measured_and_a_stranger_is_ignored() -> None:
    server = LinkServer("127.0.0.1")
    server.start("token")
    with socket.create_connection(("127.0.0.1", server.port)) as stranger:
        stranger.sendall(b"GET /")
    found = measure_link(0, 1, "127.0.0.1", server.port, "token")
    assert found.error == ""
    assert min(found.there_bytes_per_s, found.back_bytes_per_s) > 1e6
    assert 0 < found.round_trip_s < 1
    assert abs(found.clock_s) < 1
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert "refused" in measure_link(0, 1, "127.0.0.1", port, "token").error


def test_what_takes_too_long_is_left_alone(tmp_path: Path) -> None:
    forever = threading.Event()
    assert within(0.01, forever.wait) is None
    forever.set()
    assert look_up("localhost", 10).address == "127.0.0.1"
    assert look_up("no.such.host.invalid", 10).error
    steps = try_save(tmp_path)
    assert (steps.failed, list(tmp_path.iterdir())) == ("", [])
    assert try_save(tmp_path / "missing").failed.startswith("mkdir: No such file")


def test_the_place_of_a_node() -> None:
    torchrun = {"RANK": "9", "WORLD_SIZE": "16", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "8", "GROUP_RANK": "1"}
    torchrun |= {"GROUP_WORLD_SIZE": "2", "MASTER_ADDR": "node0", "MASTER_PORT": "29500", "TORCHELASTIC_RUN_ID": "x"}
    torchrun |= {"TORCHELASTIC_USE_AGENT_STORE": "True"}
    meeting = Meeting("node0", 29500, "x", served_by_agent=True)
    assert place_of_variables(torchrun, Path("runs")) == NodePlace(1, 2, meeting, is_first_process=False)
    slurm = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NUM_NODES": "2"}
    slurm |= {"SLURM_STEP_NODELIST": "10.77.0.[1-2]", "SLURM_LOCALID": "0", "SLURM_PROCID": "1", "SLURM_NODEID": "1"}
    assert place_of_variables(slurm, Path("runs")) == NodePlace(1, 2, Meeting("10.77.0.1", 15707, "7-0-0"))
    assert place_of_variables({}, Path("runs")) is None
    assert place_of_flags(2, 1, "[fe80::1]:9").meeting.host == "[fe80::1]"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--nodes", "2"], "--rdzv-endpoint HOST:PORT"),
        (["--nodes", "2", "--rdzv-endpoint", "node0"], "no place where the nodes meet"),
        (["--nodes", "2", "--rdzv-endpoint", "node0:99999"], "no place where the nodes meet"),
        (["--nodes", "2", "--rdzv-endpoint", "node0:9", "--node-rank", "2"], "the nodes are 0 to 1"),
        (["--nodes", "0"], "a number from 2"),
        (["--rdzv-endpoint", "node0:9"], "a number from 2"),
        (["--wait", "0"], "seconds from 1"),
        (["--link", "0"], "a rate from 0.001"),
    ],
)
def test_bad_flags(argv: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", *argv]) == 2
    assert said in capsys.readouterr().err


def test_a_port_where_another_run_has_its_store_and_one_without_a_store() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    meeting, asked = Meeting("127.0.0.1", port), replace(ASKED, node=1, meeting=f"127.0.0.1:{port}", wait_s=0.3)
    with pytest.raises(NotMet, match=r"node 0 does not answer at .* within 0.2 s: Connection refused"):
        open_store(meeting, 1, "127.0.0.1", 0.2)
    old = dist.TCPStore("127.0.0.1", port, is_master=True, wait_for_workers=False)
    with pytest.raises(NotMet) as taken:
        open_store(meeting, 0, "127.0.0.1", 1)
    assert f"({os.getpid()}), the store of another run" in taken.value.found
    assert f"kill {os.getpid()}" in taken.value.do
    store = open_store(meeting, 1, "127.0.0.1", 1)
    with pytest.raises(NotMet, match=r"node 0 has written nothing there within 0.3 s"):
        meet(store, asked, lambda _: report(1), "mine")
    alone = replace(asked, node=0, nodes=3)
    with pytest.raises(NotMet, match=r"1 of 3 nodes came .* missing: 1, 2"):
        meet(old, alone, lambda _: report(0), "mine")
    with socket.create_server(("127.0.0.1", 0)) as other:
        meeting = Meeting("127.0.0.1", other.getsockname()[1])
        with pytest.raises(NotMet, match="which is no store"):
            open_store(meeting, 0, "127.0.0.1", 1)


def test_interfaces_that_do_not_lead_to_the_meeting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "lo")
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    assert interface_of(Meeting("127.0.0.1", 9), 0) == "127.0.0.1"
    with pytest.raises(NotMet, match=r"node 0 listens at 127.0.0.1 .lo., and the others look for it at 10.99.0.1"):
        interface_of(Meeting("10.99.0.1", 9), 0)
    assert interface_of(Meeting("10.99.0.1", 9), 1) == "127.0.0.1"
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "eth77")
    with pytest.raises(NotMet, match="no such interface"):
        interface_of(Meeting("10.99.0.1", 9), 1)
    with pytest.raises(NotMet, match=r"no.such.host.invalid cannot be looked up"):
        interface_of(Meeting("no.such.host.invalid", 9), 1)


# Two emulated hosts ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def networks() -> Iterator[list[str]]:
    """The names of two network namespaces that a cable joins."""
    names = [f"ranks-doctor-{os.getpid()}-{node}" for node in (0, 1)]

    def ip(*args: str) -> None:
        subprocess.run(["ip", *args], check=True, capture_output=True)

    with ExitStack() as closing:
        try:
            for name in names:
                ip("netns", "add", name)
                closing.callback(ip, "netns", "delete", name)
            ip("link", "add", "eth0", "netns", names[0], "type", "veth", "peer", "name", "eth0", "netns", names[1])
            for name, address in zip(names, ADDRESSES, strict=True):
                ip("-n", name, "address", "add", f"{address}/24", "dev", "eth0")
                ip("-n", name, "link", "set", "lo", "up")
                ip("-n", name, "link", "set", "eth0", "up")
        except (OSError, subprocess.CalledProcessError) as problem:
            pytest.skip(f"no network namespaces here: {problem}")
        yield names


def both(networks: list[str], folder: Path, flags: list[str], environ: dict[str, str] | None = None) -> list[Any]:
    """(exit code, findings by topic) of the check between nodes on each host; `environ`: of node 1 alone."""
    kept = {k: v for k, v in os.environ.items() if not k.endswith("_SOCKET_IFNAME")}

    def one(node: int) -> tuple[int, dict[str, Any]]:
        argv = ["nsenter", f"--net=/run/netns/{networks[node]}", sys.executable, "-m", "ranks", "doctor", "--json"]
        argv += ["--only", "nodes", "--nodes", "2", "--node-rank", str(node), *flags]
        env = {**kept, **(environ or {} if node else {})}
        done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=90)
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, {f["topic"]: f for f in json.loads(done.stdout)["findings"]}

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(one, (0, 1)))


def test_packets_that_are_too_long_for_the_network_are_named(networks: list[str]) -> None:
    """The second host drops what is longer than a tunnel would carry, without a word."""
    drop = "4,128 0 0 0,37 0 1 1314,6 0 0 2,6 0 0 0"  # classic BPF: frames longer than 1,314 bytes
    inside = [["nsenter", f"--net=/run/netns/{name}"] for name in networks]
    server = (
        "import time; from ranks.hardware.doctor.nodes.link_test import LinkServer; "
        f"s = LinkServer('{ADDRESSES[1]}'); s.start('token'); print(s.port, flush=True); time.sleep(60)"
    )
    client = (
        "import sys; from ranks.hardware.doctor.nodes.link_test import measure_link; "
        f"print(measure_link(0, 1, '{ADDRESSES[1]}', int(sys.argv[1]), 'token').only_short_packets)"
    )
    tc = ["tc", "filter", "add", "dev", "eth0", "ingress", "bpf", "da", "bytecode", drop]
    with ExitStack() as closing:
        for argv in (["tc", "qdisc", "add", "dev", "eth0", "clsact"], tc):
            subprocess.run([*inside[1], *argv], check=True, capture_output=True)
        closing.callback(
            subprocess.run, [*inside[1], "tc", "qdisc", "del", "dev", "eth0", "clsact"], capture_output=True
        )
        serving = closing.enter_context(
            subprocess.Popen([*inside[1], sys.executable, "-c", server], stdout=subprocess.PIPE, text=True)
        )
        closing.callback(serving.kill)
        assert serving.stdout is not None
        port = serving.stdout.readline().strip()
        done = subprocess.run(
            [*inside[0], sys.executable, "-c", client, port], capture_output=True, text=True, timeout=90
        )
        assert done.stdout.strip() == "True", done.stderr


def test_two_hosts_meet_and_agree(networks: list[str], tmp_path: Path) -> None:
    """Both say the same. The speed of the cable depends on how busy the machine is."""
    (code, first), (_, second) = both(networks, tmp_path, ["--rdzv-endpoint", f"{ADDRESSES[0]}:29551"])
    assert code == 0
    assert first == second
    assert {"nodes", "software", "clocks", "link", "all-reduce"} <= first.keys()
    assert ADDRESSES[1] in first["nodes"]["found"]
    assert list(tmp_path.iterdir()) == []
