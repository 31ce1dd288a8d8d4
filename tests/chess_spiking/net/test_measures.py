from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional

from ranks.workloads.chess_spiking.building import build_net
from ranks.workloads.chess_spiking.config import PRESETS, NetConfig
from ranks.workloads.chess_spiking.net.coding import rate_code
from ranks.workloads.chess_spiking.net.lif import LIF
from ranks.workloads.chess_spiking.net.measures import (
    dead_share,
    measure,
    multiply_accumulates,
    spike_rate,
    synaptic_operations,
)

TINY = NetConfig(blocks=1, width=8, value_channels=8, value_hidden=8)


def test_spike_rate_and_dead_neurons_by_hand() -> None:
    spikes_TBN = torch.zeros(2, 3, 4)
    spikes_TBN[0, 1, 2] = spikes_TBN[1, 0, 2] = spikes_TBN[1, 2, 3] = 1
    assert float(spike_rate(spikes_TBN)) == pytest.approx(3 / 24)
    assert float(dead_share(spikes_TBN)) == pytest.approx(2 / 4)


def test_a_spike_in_a_corner_reaches_fewer_neurons() -> None:
    conv = nn.Conv2d(2, 5, 3, padding=1)
    spikes = torch.zeros(1, 2, 8, 8)
    spikes[0, 0, 0, 0] = 1  # a corner: 4 squares
    assert float(synaptic_operations(conv, spikes)) == 4 * 5
    spikes[0, 1, 3, 3] = 1  # inside: 9 squares
    spikes[0, 1, 0, 5] = 1  # an edge: 6 squares
    assert float(synaptic_operations(conv, spikes)) == (4 + 9 + 6) * 5
    assert float(synaptic_operations(nn.Linear(10, 7), torch.tensor([[1.0, 0, 1, 0, 0, 0, 0, 0, 0, 1]]))) == 21


def test_operations_are_the_sum_of_a_convolution_with_ones() -> None:
    conv = nn.Conv2d(3, 4, 3, padding=1, bias=False)
    spikes = (torch.rand(6, 3, 8, 8, generator=torch.Generator().manual_seed(0)) < 0.3).float()
    assert float(synaptic_operations(conv, spikes)) == float(
        functional.conv2d(spikes, torch.ones(4, 3, 3, 3), padding=1).sum()
    )
    assert float(multiply_accumulates(conv, spikes)) == 22 * 22 * 3 * 4, "the taps of 8 squares in a row are 22"


def test_neurons_that_always_fire_need_t_times_the_operations_of_the_control() -> None:
    model = build_net(TINY)
    for layer in model.modules():
        if isinstance(layer, LIF):
            layer.threshold = -1e9
    found = {name: float(value) for name, value in measure(model, torch.rand(2, 20, 8, 8)).items()}
    sums = 63 * 16 * 8  # the control's sum over 64 squares passes once through the weights of 16 channels
    operations = found["synaptic_operations"] + 4 * found["multiply_accumulates"]
    assert operations == pytest.approx(4 * (found["control_multiply_accumulates"] + sums))
    assert found["multiply_accumulates"] == 22 * 22 * 20 * 8 + 12 * 3, (
        "the stem and the count of pieces get real numbers"
    )
    assert {value for name, value in found.items() if name.startswith("spike_rate/")} == {1.0}
    assert {value for name, value in found.items() if name.startswith("dead/")} == {0.0}
    assert sum(name.startswith("spike_rate/") for name in found) == 6


def test_silent_neurons_need_none_and_the_control_counts_itself() -> None:
    model, x = build_net(TINY), torch.rand(2, 20, 8, 8)
    for layer in model.modules():
        if isinstance(layer, LIF):
            layer.threshold = 1e9
    silent = measure(model, x)
    assert float(silent["synaptic_operations"]) == 0
    assert float(silent["dead/tower.0.fire"]) == 1
    control = measure(build_net(replace(TINY, neuron="relu")), x)
    assert float(control["synaptic_operations"]) == 0
    assert (
        control["multiply_accumulates"]
        == control["control_multiply_accumulates"]
        == silent["control_multiply_accumulates"]
    )


def test_the_origin_counts_spikes_before_its_means() -> None:
    model = build_net(replace(PRESETS["origin"]().net, steps=3))
    for layer in model.modules():
        if isinstance(layer, LIF):
            layer.threshold = -1e9
    planes = torch.ones(2, 13, 8, 8)
    trains = torch.ones_like(rate_code(planes, torch.arange(2), 0, 3))
    found = {name: float(value) for name, value in measure(model, trains).items()}
    pooled = 256 * (1024 + 128)  # linear layers behind the mean over 64 squares
    assert found["multiply_accumulates"] == 0
    assert found["synaptic_operations"] == pytest.approx(3 * (found["control_multiply_accumulates"] + 63 * pooled))
