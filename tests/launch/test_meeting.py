"""How ranks of several hosts find each other, and the network interface that they use."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import torch.distributed as dist

from ranks import RunConfig, World
from ranks.engine.distributed import agree
from ranks.engine.distributed.rendezvous.meeting import LOOPBACK, Meeting, use_interface
from ranks.engine.distributed.rendezvous.process_env import ProcessEnv
from ranks.engine.distributed.rendezvous.rendezvous import store_of
from ranks.errors import UserError
from tests.engine.group import run_ranks
from tests.toys import images


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    """`store_of` names the interface in the environment variables of its process."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


def test_one_machine_uses_loopback_and_a_name_of_the_user_stays() -> None:
    environ: dict[str, str] = {}
    assert use_interface(environ, None) == "127.0.0.1"
    assert environ == {"GLOO_SOCKET_IFNAME": LOOPBACK, "NCCL_SOCKET_IFNAME": LOOPBACK}
    environ = {"GLOO_SOCKET_IFNAME": "none9,none8"}
    assert use_interface(environ, Meeting("h", 1)) == ""
    assert environ == {"GLOO_SOCKET_IFNAME": "none9,none8", "NCCL_SOCKET_IFNAME": "none9,none8"}


@pytest.mark.parametrize(
    ("host", "found"), [("localhost", "reaches localhost from 127.0.0.1"), ("no.such.host.invalid", "finds no way")]
)
def test_a_meeting_that_other_hosts_cannot_reach_is_bad_input(host: str, found: str) -> None:
    with pytest.raises(UserError, match=found):
        use_interface({}, Meeting(host, 1))


def env(rank: int, port: int, *, agent: bool) -> ProcessEnv:
    return ProcessEnv("torchrun", rank, world_size=2, meeting=Meeting("127.0.0.1", port, "job", served_by_agent=agent))


def test_a_store_that_is_kept_over_restarts_looks_empty_to_each_start() -> None:
    agent = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    with ThreadPoolExecutor(3) as pool:
        for start in ("1", "2"):
            second = pool.submit(store_of, env(1, agent.port, agent=True))  # it finds what the start before left
            stores = [store_of(env(0, agent.port, agent=True)), second.result()]
            assert not any(store.check(["address"]) for store in stores)
            stores[0].set("address", start)
            assert stores[1].get("address") == start.encode()


def test_a_start_that_a_rank_never_joined_does_not_confuse_the_next() -> None:
    agent = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    with pytest.raises(UserError, match="rank 0 of 2"):
        store_of(env(0, agent.port, agent=True), wait_s=0.1)
    with pytest.raises(UserError, match="rank 1 of 2"):
        store_of(env(1, agent.port, agent=True), wait_s=0.1)
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(store_of, env(1, agent.port, agent=True))
        store_of(env(0, agent.port, agent=True)).set("address", "here")
        assert second.result().get("address") == b"here"


def test_rank_0_serves_the_store_where_no_agent_does() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(store_of, env(1, port, agent=False))
        first = store_of(env(0, port, agent=False))
        first.set("address", "here")
        assert second.result().get("address") == b"here"
        with pytest.raises(UserError, match="Address already in use"):
            store_of(env(0, port, agent=False), wait_s=0.1)


def test_nobody_at_the_meeting_is_an_error_that_says_what_to_do() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(UserError, match=f"to meet the others at 127.0.0.1:{port}"):
        store_of(env(1, port, agent=False), wait_s=0.1)


def test_rank_0_does_not_listen_on_all_interfaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "none9")
    with pytest.raises(UserError, match="no such network interface"):
        store_of(env(0, 0, agent=False))


def open_apart(world: World, folder: str) -> str:
    """Train as if the ranks were on two hosts that see different folders."""
    world.process_env = replace(world.process_env, one_host=False)
    world.config = replace(world.config, runs_dir=Path(folder) / str(world.rank))
    agree.SEEN_S = 0.1
    with pytest.raises(UserError) as error:
        images.train(images.Config(iterations=1), world)
    return error.value.found


def test_a_run_folder_that_the_hosts_do_not_share_is_bad_input_on_all_ranks(tmp_path: Path) -> None:
    found = run_ranks(2, open_apart, str(tmp_path), config=RunConfig(exact=True), tmp_path=tmp_path)
    assert found[0] == found[1]
    assert "rank 1 on" in found[0]
