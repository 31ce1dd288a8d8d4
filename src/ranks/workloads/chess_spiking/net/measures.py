"""What a spiking net does in an evaluation: spike rates, silent neurons, synaptic operations.

Legend: T time steps, B positions, N neurons of a layer.

A synaptic operation is one spike that reaches one neuron through one weight (Merolla et al. 2014, "A
million spiking-neuron integrated circuit with a scalable communication network and interface"). A
layer that gets spikes needs

    synaptic operations = sum over all spikes of the number of weights behind the spiking neuron

and no multiplications. The control, which computes each weight once with a real number, needs

    multiply-accumulates = sum over all inputs of the number of weights behind the input

so a layer whose inputs all spike in every step needs T times the control's number. Weights of a
convolution that lie outside of the board do not count, for neither. With direct coding the first
layer gets real numbers; it is computed once and counts as multiply-accumulates.

The counts say nothing about time or energy on a GPU, which computes zeros too. Whether fewer
operations save energy elsewhere depends on how data moves (Yan et al. 2024, arXiv 2409.08290).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ranks.workloads.chess_spiking.building import Net
from ranks.workloads.chess_spiking.net.lif import LIF
from ranks.workloads.chess_spiking.net.spiking_net import SQUARES, SpikingNet


def spike_rate(spikes_TBN: Tensor) -> Tensor:
    """0-d: spikes for each neuron, position and step, from 0 to 1."""
    return spikes_TBN.float().mean()


def dead_share(spikes_TBN: Tensor) -> Tensor:
    """0-d: the share of neurons that fire in no position and no step of this batch."""
    return (spikes_TBN.flatten(2).amax((0, 1)) == 0).float().mean()


def weights_behind(layer: nn.Conv2d | nn.Linear, like: Tensor) -> Tensor:
    """How many weights multiply each input of a layer: [8, 8] for a convolution, [] for a linear layer."""
    if isinstance(layer, nn.Linear):
        return torch.full((), layer.out_features, dtype=like.dtype, device=like.device)
    ones_1188 = torch.ones((1, 1, *like.shape[-2:]), dtype=like.dtype, device=like.device)
    kernel = torch.ones((1, 1, *layer.kernel_size), dtype=like.dtype, device=like.device)
    assert layer.stride == (1, 1)
    assert not isinstance(layer.padding, str)
    taps_88 = functional.conv_transpose2d(ones_1188, kernel, padding=layer.padding)[0, 0]
    return taps_88 * layer.out_channels


def synaptic_operations(layer: nn.Conv2d | nn.Linear, spikes: Tensor) -> Tensor:
    """0-d: the synaptic operations of a layer for its input spikes [..., C, 8, 8] or [..., F]."""
    return (spikes.double() * weights_behind(layer, spikes).double()).sum()


def multiply_accumulates(layer: nn.Conv2d | nn.Linear, inputs: Tensor) -> Tensor:
    """0-d: the multiply-accumulates of a layer for one input of the batch [B, C, 8, 8] or [B, F]."""
    return synaptic_operations(layer, torch.ones_like(inputs[0]))


@dataclass
class _Recording:
    """What the layers of a net saw in one forward pass."""

    spikes: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    inputs: dict[str, Tensor] = field(default_factory=dict[str, Tensor])


def _record(net: nn.Module, planes: Tensor) -> _Recording:
    recording, handles = _Recording(), list[Any]()
    for name, layer in net.named_modules():
        if isinstance(layer, LIF):

            def keep_spikes(_: nn.Module, __: Any, spikes_TB: Tensor, name: str = name) -> None:
                recording.spikes[name] = spikes_TB

            handles.append(layer.register_forward_hook(keep_spikes))
        elif isinstance(layer, nn.Conv2d | nn.Linear):

            def keep_input(_: nn.Module, inputs: tuple[Tensor], name: str = name) -> None:
                recording.inputs[name] = inputs[0]

            handles.append(layer.register_forward_pre_hook(keep_input))
    try:
        with torch.no_grad():
            net(planes)
    finally:
        for handle in handles:
            handle.remove()
    return recording


def measure(net: Net, planes: Tensor) -> dict[str, Tensor]:
    """Measures of a net over a batch, as 0-d tensors; the host does not wait for the device.

    `planes`: the net's input, [B, P, 8, 8] or spike trains [T, B, P, 8, 8]. Operations are those of
    one evaluation, which is one position through all steps:

    - spike_rate/LAYER, dead/LAYER: see `spike_rate` and `dead_share`
    - synaptic_operations; multiply_accumulates: of layers that get real numbers
    - control_multiply_accumulates: of the same net with ReLUs
    """
    positions = planes.shape[-4]
    recording = _record(net, planes)
    found: dict[str, Tensor] = {}
    for name, spikes_TBN in recording.spikes.items():
        found[f"spike_rate/{name}"] = spike_rate(spikes_TBN)
        found[f"dead/{name}"] = dead_share(spikes_TBN)
    layers = dict(net.named_modules())
    zero = torch.zeros((), dtype=torch.float64, device=planes.device)
    synaptic, real, control = zero, zero, zero
    for name, inputs in recording.inputs.items():
        layer = layers[name]
        assert isinstance(layer, nn.Conv2d | nn.Linear)
        macs = multiply_accumulates(layer, inputs)
        control = control + macs
        if net.neuron == "relu" or (planes.ndim == 4 and name in ("stem", "convs.0", "pieces_out")):
            real = real + macs
        else:
            spikes_of_one = spikes_behind(net, name)
            synaptic = synaptic + synaptic_operations(layer, inputs) * (spikes_of_one / positions)
    found["synaptic_operations"] = synaptic
    found["multiply_accumulates"] = real
    found["control_multiply_accumulates"] = control
    return found


def spikes_behind(net: Net, name: str) -> int:
    """How many spikes an input of 1 means: layers behind a mean or a scaled sum get one number for many
    spikes, but each spike passes through the weights."""
    if name.endswith("_out"):
        return net.steps
    if name == "pooled_linear":
        return math.isqrt(SQUARES)
    pooled = not isinstance(net, SpikingNet) and name in ("policy_linear", "value_linear")
    return SQUARES if pooled else 1
