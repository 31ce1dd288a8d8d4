"""What is asked of a machine that others own, checked against facts before anything is written."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from ranks.errors import UserError
from ranks.hardware.catalogue.gpus import Gpu, by_name

MAX_GPUS = 16
"""More GPUs than any machine in the catalogue's sources has."""
MAX_NODES = 1024
MAX_HOURS = 24 * 366.0


FORM = re.compile(r"[ _-]?(sxm\d?|pcie|nvl|\d+ ?gb)(?=[ _-]|$)")
"""A part of a GPU's name that catalogues and clusters leave out."""


def word_of(name: str) -> str:
    """A GPU as catalogues and clusters spell it: 'a100-80gb' -> 'a100', 'nvidia_b200' -> 'b200', 'rtx 4090' ->
    'rtx4090'."""
    return re.sub(r"[ _-]", "", FORM.sub("", name.removeprefix("nvidia_").removeprefix("nvidia-")))


@dataclass(frozen=True)
class Machine:
    """One node. `gpu` is None on CPUs. `ranks`: processes on it, one for each GPU."""

    gpu: Gpu | None
    gpu_word: str
    """As the user wrote the GPU, in small letters and without a size; empty on CPUs."""
    ranks: int

    @classmethod
    def of(cls, gpus: str, ranks: int | None) -> Machine:
        """From --gpus, such as B200:8 or none, and --ranks. Raises UserError with the nearest name."""
        asked = f"--gpus {gpus}"
        if gpus == "none":
            if ranks is None or not 1 <= ranks <= 4096:
                raise UserError(asked, "the number of processes on a node is missing", "give --ranks, 1 to 4096")
            return cls(None, "", ranks)
        found = re.fullmatch(r"([A-Za-z][A-Za-z0-9 _-]*):([0-9]{1,6})", gpus)
        if found is None:
            raise UserError(asked, "a kind and a number of GPUs are needed", "write --gpus B200:8, or --gpus none")
        gpu, count = by_name(found[1]), int(found[2])
        if not 1 <= count <= MAX_GPUS:
            do = f"give 1 to {MAX_GPUS} GPUs for one node, and --nodes for more"
            raise UserError(asked, f"no node has {count} GPUs", do)
        if ranks not in (None, count):
            raise UserError(f"--ranks {ranks}", f"a node with {count} GPUs has {count} ranks", "leave --ranks out")
        return cls(gpu, word_of(found[1].lower()), count)

    @property
    def words(self) -> str:
        """'8 x B200', '4 CPU ranks'."""
        return f"{self.ranks} x {self.gpu.name}" if self.gpu else f"{self.ranks} CPU ranks"


@dataclass(frozen=True)
class Request:
    """One run, or one for each seed. `train`: flags of `ranks train`, without --name, --runs-dir, --seed, --gpus and
    --ranks. `price`: of one node, an hour."""

    workload: str
    train: tuple[str, ...]
    name: str
    runs_dir: str
    machine: Machine
    nodes: int
    hours: float
    """Limit of one start."""
    starts: int
    """How often the run is started at most: it continues where the limit has ended it."""
    seeds: tuple[int, ...]
    price: float | None
    then: str | None = None
    """A shell command after evaluation and export."""

    def __post_init__(self) -> None:
        for flag, value, most in (("--nodes", self.nodes, MAX_NODES), ("--starts", self.starts, 1000)):
            if not 1 <= value <= most:
                raise UserError(f"{flag} {value}", f"it is 1 to {most:,}", "change it")
        if not 1 / 60 <= self.hours <= MAX_HOURS:
            raise UserError(f"--hours {self.hours:g}", f"it is a minute (0.017) to {MAX_HOURS:g}", "change it")
        if self.price is not None and not 0 < self.price < math.inf:
            raise UserError(f"--price {self.price}", "it must be a number above 0", "give --price 2.49, for example")
        if self.then is not None and not self.then.strip():
            raise UserError("--then ''", "the command is empty", "give a shell command, or leave --then out")
        if len(set(self.seeds)) != len(self.seeds) or min(self.seeds, default=0) < 0:
            raise UserError(
                f"--seeds {','.join(map(str, self.seeds))}", "seeds differ and are not negative", "change it"
            )

    @property
    def node_hours(self) -> float:
        """The most that the request can take: all starts of all seeds to their limit."""
        return self.hours * self.starts * self.nodes * max(1, len(self.seeds))

    def price_lines(self) -> list[str]:
        """What it can cost at most; empty without a price."""
        if self.price is None:
            return []
        parts = [f"{self.hours:g} h"]
        parts += [f"{n} {unit}" for n, unit in ((self.starts, "starts"), (self.nodes, "nodes")) if n > 1]
        parts += [f"{len(self.seeds)} seeds"] if len(self.seeds) > 1 else []
        return [f"price: at most {self.node_hours * self.price:,.2f} ({' x '.join(parts)} x {self.price:,.2f} an hour)"]
