"""What a Slurm cluster says of itself (`sinfo`), and whether it can take a request."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ranks.errors import UserError, nearest
from ranks.renting.request import Request, word_of

SINFO = ("sinfo", "--noheader", "--format=%R|%D|%G|%l|%c")
LIMIT_S = 20


@dataclass(frozen=True)
class NodeGroup:
    """Equal nodes of a partition. `gpus`: kind -> number on each node, kind in small letters or empty."""

    partition: str
    nodes: int
    gpus: Mapping[str, int]
    hours: float
    """The time limit; infinite without one."""
    cpus: int

    def kind(self, word: str) -> str | None:
        """The kind of the GPUs that `word` means, as the cluster writes it, such as nvidia_b200; empty where it names
        no kind, None where there are none."""
        return next((kind for kind in self.gpus if word_of(kind) == word), "" if "" in self.gpus else None)


@dataclass(frozen=True)
class SlurmFit:
    """How the cluster takes a request. `kind`: of the GPUs, as it writes it. `cpus_per_gpu`: the share of a GPU in the
    cores of its node; None where that is not known."""

    kind: str
    cpus_per_gpu: int | None = None


def read_cluster() -> list[NodeGroup] | None:
    """The groups that `sinfo` lists; None where there is no cluster to ask."""
    if shutil.which(SINFO[0]) is None:
        return None
    try:
        done = subprocess.run(SINFO, capture_output=True, text=True, timeout=LIMIT_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_sinfo(done.stdout) if done.returncode == 0 else None


def parse_sinfo(text: str) -> list[NodeGroup]:
    """The rows of `SINFO`; odd ones are left out."""
    groups: list[NodeGroup] = []
    for line in text.splitlines():
        parts = line.strip().split("|")
        if len(parts) == 5 and parts[1].isdecimal():
            gpus = {kind.lower(): int(count) for kind, count in re.findall(r"gpu:(?:([\w.-]+?):)?(\d+)", parts[2])}
            cpus = int(re.sub(r"\D", "", parts[4]) or 0)
            groups.append(NodeGroup(parts[0], int(parts[1]), gpus, hours_of(parts[3]), cpus))
    return groups


def hours_of(text: str) -> float:
    """'2-00:00:00' -> 48; infinite for 'infinite'."""
    found = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", text.strip())
    if found is None:
        return float("inf")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return 24 * days + hours + minutes / 60 + seconds / 3600


def check(request: Request, partition: str | None, groups: Sequence[NodeGroup]) -> SlurmFit:
    """How the cluster takes the request. Raises UserError where no group of nodes can, with what comes nearest."""
    names = sorted({group.partition for group in groups})
    if partition is not None and partition not in names:
        do = nearest(partition, names, f"sinfo lists {', '.join(names)}")
        raise UserError(f"--partition {partition}", "the cluster has no such partition", do)
    machine = request.machine
    within = [group for group in groups if partition in (None, group.partition)]
    kind, cpus_per_gpu = "", None
    if machine.gpu is None:
        most = max((group.cpus for group in within), default=0)
        if 0 < most < machine.ranks:
            raise UserError(f"--ranks {machine.ranks}", f"a node has {most} cores", f"give at most --ranks {most}")
    else:
        kinds = sorted({kind for group in within for kind in group.gpus if kind})
        word = machine.gpu_word
        with_kind = [(group, found) for group in within if (found := group.kind(word)) is not None]
        if not with_kind:
            do = nearest(word, kinds, f"sinfo lists {', '.join(kinds) or 'no GPU'}")
            raise UserError(f"--gpus {word}:{machine.ranks}", f"no node has a GPU of the kind {word}", do)
        most = max(group.gpus[found] for group, found in with_kind)
        if most < machine.ranks:
            found = f"a node has {most} of them"
            raise UserError(f"--gpus {word}:{machine.ranks}", found, f"give --gpus {word}:{most}, and --nodes for more")
        fitting = [(group, found) for group, found in with_kind if group.gpus[found] >= machine.ranks]
        within, kind = [group for group, _ in fitting], fitting[0][1]
        cpus_per_gpu = min(group.cpus // group.gpus[found] for group, found in fitting) or None
    nodes = {name: sum(g.nodes for g in within if g.partition == name) for name in names}
    if max(nodes.values(), default=0) < request.nodes:
        most = max(nodes.values(), default=0)
        raise UserError(
            f"--nodes {request.nodes}", f"the cluster has {most} such nodes", f"give at most --nodes {most}"
        )
    longest = max(group.hours for group in within)
    if longest < request.hours:
        found = f"the partition ends a job after {longest:g} h"
        raise UserError(f"--hours {request.hours:g}", found, f"give --hours {longest:g}, and more --starts")
    return SlurmFit(kind, cpus_per_gpu)
