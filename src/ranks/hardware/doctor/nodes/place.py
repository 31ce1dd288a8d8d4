"""Which machine of several this one is, and where they meet: from flags, or from the process variables of a start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ranks.engine.distributed.rendezvous import slurm
from ranks.engine.distributed.rendezvous.meeting import Meeting, number
from ranks.engine.distributed.rendezvous.process_env import ProcessEnv
from ranks.errors import UserError

MOST_NODES = 4096


@dataclass(frozen=True)
class NodePlace:
    """One process of one node. The first process of each node examines it."""

    node: int
    nodes: int
    meeting: Meeting
    is_first_process: bool = True


def place_of_flags(nodes: int, node: int, endpoint: str | None) -> NodePlace:
    """From `--nodes`, `--node-rank` and `--rdzv-endpoint`. Raises UserError."""
    if not 2 <= nodes <= MOST_NODES:
        raise UserError(f"--nodes {nodes}", f"a number from 2 to {MOST_NODES:,} is needed", "leave it out for one node")
    if not 0 <= node < nodes:
        found = f"the nodes are 0 to {nodes - 1}"
        raise UserError(f"--node-rank {node}", found, "give each machine a number of its own, from 0 on")
    host, _, port = (endpoint or "").rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port[:6]) < 65_536:
        asked = f"--rdzv-endpoint {endpoint}" if endpoint else f"--nodes {nodes}"
        do = "give --rdzv-endpoint HOST:PORT on all of them: the first machine and a free port, as to torchrun"
        raise UserError(asked, "no place where the nodes meet", do)
    return NodePlace(node, nodes, Meeting(host, int(port), "doctor"))


def place_of_variables(environ: Mapping[str, str], runs_dir: Path) -> NodePlace | None:
    """From the variables of torchrun or of a Slurm step; None on one machine. Raises UserError."""
    process = ProcessEnv.detect(runs_dir, environ)
    if process.meeting is None or process.one_host:
        return None
    if process.kind == "slurm":
        node, nodes = number(environ, "SLURM_NODEID", process.rank), slurm.step_hosts(environ)
    else:
        local = number(environ, "LOCAL_WORLD_SIZE", 1)
        node = number(environ, "GROUP_RANK", process.rank // local)
        nodes = number(environ, "GROUP_WORLD_SIZE", process.world_size // local)
    return NodePlace(node, nodes, process.meeting, process.local_rank == 0) if nodes > 1 else None
