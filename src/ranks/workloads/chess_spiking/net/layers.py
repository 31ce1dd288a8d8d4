"""What both nets are made of.

Legend: T time steps, B positions, C channels, H ranks, W files.
"""

from __future__ import annotations

from torch import Tensor, nn

from ranks.nets.group_norm import GroupNorm
from ranks.workloads.chess_spiking.net.lif import LIF


class NeuronNet(nn.Module):
    """A net whose layers fire with the same kind of neurons."""

    def __init__(
        self, neuron: str, steps: int, tau: float, threshold: float, reset: str, detach_reset: bool, alpha: float
    ) -> None:
        super().__init__()
        self.neuron, self.steps, self.tau, self.threshold = neuron, steps, tau, threshold
        self.reset, self.detach_reset, self.alpha = reset, detach_reset, alpha

    def new_neurons(self) -> nn.Module:
        """A layer of spiking neurons (`lif`), or of ReLUs (`relu`, the control)."""
        if self.neuron == "relu":
            return nn.ReLU()
        return LIF(self.tau, self.threshold, self.reset, self.detach_reset, self.alpha)


def group_norm(groups: int, channels: int, gain: float) -> GroupNorm:
    """Group norm whose output has the standard deviation `gain` before training. It looks at one position at one
    time step."""
    norm = GroupNorm(min(groups, channels), channels)
    nn.init.constant_(norm.weight, gain)
    return norm


def each_step(layer: nn.Module, x_TB: Tensor, **more_TB: Tensor) -> Tensor:
    """Apply a layer without memory to each time step: [T, B, ...] to [T, B, ...]. `more_TB`: its further inputs."""
    more = {name: each_TB.flatten(0, 1) for name, each_TB in more_TB.items()}
    return layer(x_TB.flatten(0, 1), **more).unflatten(0, x_TB.shape[:2])
