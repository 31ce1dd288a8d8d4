"""`ranks train` with the words of torchrun, or of the launcher before it: the same command on each machine becomes
torchrun's, which starts the ranks there."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence

from ranks.errors import UserError

NNODES = "--nnodes"
NODE = ("--node-rank", "--master-addr", "--master-port", "--local-addr")
RENDEZVOUS = ("--rdzv-backend", "--rdzv-endpoint", "--rdzv-id", "--rdzv-conf")
OURS = ("--nproc-per-node", "--max-restarts")
"""Words that `ranks train` on one machine knows too, or answers."""
EXAMPLE = "--nnodes 2 --node-rank 0 --master-addr HOST --master-port 29500 --nproc-per-node 8"


def asks_for_several_machines(argv: Sequence[str]) -> bool:
    """Whether the flags name machines."""
    names = {word.split("=")[0].replace("_", "-") for word in argv if word.startswith("--")}
    return bool(names & {NNODES, *NODE, *RENDEZVOUS})


def torchrun_command(argv: Sequence[str]) -> list[str]:
    """The arguments of `ranks train` -> those of `python` that start torchrun with the same ones. Raises UserError."""
    taken: dict[str, str] = {}
    rest: list[str] = []
    words = iter(argv)
    for word in words:
        name, equals, value = word.partition("=")
        name = name.replace("_", "-")
        if word.startswith("--") and name in (NNODES, *NODE, *RENDEZVOUS, *OURS):
            taken[name] = value if equals else next(words, "")
        else:
            rest.append(word)
    asked = " ".join(f"{name} {value}" for name, value in taken.items())
    empty = next((name for name, value in taken.items() if not value or value.startswith("--")), None)
    if empty is not None:
        raise UserError(asked, f"no value for {empty}", f"for example {EXAMPLE}")
    for needed in (NNODES, "--nproc-per-node"):
        if needed not in taken:
            found = f"several machines are meant, and {needed} is missing"
            raise UserError(asked, found, f"add it, for example {EXAMPLE}")
    if not {"--master-addr", "--rdzv-endpoint"} & taken.keys():
        raise UserError(asked, "the place where the machines meet is missing", f"add --master-addr: {EXAMPLE}")
    flags = [part for name, value in taken.items() for part in (name, value)]
    return ["-m", "torch.distributed.run", *flags, "-m", "ranks", "train", *rest]


def become_torchrun(argv: Sequence[str]) -> int:
    """Replace this process by torchrun. Raises UserError."""
    command = torchrun_command(argv)
    print(shlex.join(["torchrun", *command[2:]]), flush=True)
    os.execv(sys.executable, [sys.executable, *command])


def answer_to_torch_launch(argv: Sequence[str]) -> UserError:
    """The error for `python -m torch.distributed.launch -m ranks ...`, which puts --local-rank before the command."""
    line = shlex.join(["torchrun", "--nnodes", "N", "--nproc-per-node", "M", "-m", "ranks", *argv[1:]])
    found = "torch.distributed.launch adds --local-rank, and torch will remove it"
    return UserError(f"ranks {argv[0]}", found, f"start it with the same flags by torchrun: {line}")
