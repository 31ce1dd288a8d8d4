"""What a machine costs: paid hours times the price. The time before and after a run is paid too."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Rental:
    """How a machine is paid for."""

    gpu_hour: float | None
    """Price of one GPU for an hour; None: unknown."""
    setup_s: float
    """From the first paid second to the start of the command: boot, installation."""
    transfer_s: float
    """Data up before the run, results down after it."""
    unit_s: float
    """The billing unit: started units are paid."""
    source: str = ""
    """Where the price comes from."""

    @property
    def around_s(self) -> float:
        """Before and after the run."""
        return self.setup_s + self.transfer_s

    def paid_s(self, run_s: float) -> float:
        """Seconds that are paid for a run."""
        whole_s = self.around_s + run_s
        return math.ceil(whole_s / self.unit_s - 1e-9) * self.unit_s

    def run_s(self, budget: float, num_gpus: int) -> float:
        """Seconds of a run that a budget pays for. The price must be known."""
        assert self.gpu_hour is not None
        paid_s = math.floor(3600 * budget / (self.gpu_hour * num_gpus) / self.unit_s) * self.unit_s
        return max(0.0, paid_s - self.around_s)

    def cost(self, run_s: float, num_gpus: int) -> float | None:
        """Of a run on so many GPUs; None where the price is unknown."""
        return None if self.gpu_hour is None else self.gpu_hour * num_gpus * self.paid_s(run_s) / 3600


def save_interval_s(save_s: float, failure_every_s: float) -> float:
    """The time between two saves that loses least (Young 1974; Daly 2006, equation 1): sqrt(2 C M)."""
    return math.sqrt(2 * max(save_s, 1e-3) * failure_every_s)
