"""The place of a rank in a Slurm step, read from Slurm's process variables. Imports no torch."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ranks.engine.distributed.rendezvous.meeting import Meeting, number
from ranks.errors import UserError

PORTS = range(15_000, 30_000)
"""Where the ranks of several hosts meet: below the ports that Linux gives to clients."""


def step_hosts(environ: Mapping[str, str]) -> int:
    """The number of hosts of this step."""
    return number(environ, "SLURM_STEP_NUM_NODES", number(environ, "SLURM_NNODES", 1))


def step_tasks(environ: Mapping[str, str]) -> int:
    """The number of tasks of this step, of which each is a rank."""
    return number(environ, "SLURM_STEP_NUM_TASKS", number(environ, "SLURM_NTASKS", 1))


def step_name(environ: Mapping[str, str]) -> str:
    """JOB-STEP-RESTART: equal for the ranks of one start of a step, and for no others."""
    restart = number(environ, "SLURM_RESTART_COUNT", 0)
    return f"{environ.get('SLURM_JOB_ID', '0')}-{environ['SLURM_STEP_ID']}-{restart}"


def meeting_of(environ: Mapping[str, str]) -> Meeting:
    """Where the ranks of a step on several hosts meet.

    At MASTER_ADDR and MASTER_PORT where they are set. Otherwise on the first host of the step, on
    which Slurm starts task 0, at a port made of the numbers of job and step. Raises UserError where
    there is no list of hosts.
    """
    host = environ.get("MASTER_ADDR") or first_host(environ.get("SLURM_STEP_NODELIST", ""))
    if not host:
        raise UserError(
            f"a Slurm step on {step_hosts(environ)} hosts",
            "neither SLURM_STEP_NODELIST nor MASTER_ADDR is set, so the host of rank 0 is not known",
            "start with srun, or export MASTER_ADDR=HOST of rank 0",
        )
    job, step = number(environ, "SLURM_JOB_ID", 0), number(environ, "SLURM_STEP_ID", 0)
    port = number(environ, "MASTER_PORT", PORTS[(101 * job + step) % len(PORTS)])
    return Meeting(host, port, step_name(environ))


def first_host(names: str) -> str:
    """The first name of a Slurm list of hosts: `gpu[007-009,12]-ib,login` -> `gpu007-ib`."""
    found = re.match(r"(?:\[[^\]]*\]|[^,\[])*", names.strip())
    return re.sub(r"\[([^\],-]*)[^\]]*\]", r"\1", found[0]) if found else ""
