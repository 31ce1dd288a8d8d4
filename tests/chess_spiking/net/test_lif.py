from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from ranks.workloads.chess_spiking.net.lif import LIF, arctan_slope, lif_scan
from tests.chess_spiking.net.reference import neuron_by_neuron, smooth_step

SETTINGS = [
    (2.0, 1.0, "hard", True, 2.0),
    (2.0, 1.0, "hard", False, 2.0),
    (3.0, 0.7, "soft", True, 1.5),
    (1.3, 1.2, "soft", False, 2.0),
    (1.0, 0.5, "hard", False, 4.0),
]
"""tau, threshold, reset, detach_reset, alpha."""


def currents(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return 2.5 * torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("settings", SETTINGS)
def test_spikes_and_gradients_are_those_of_the_loop_over_neurons(settings: Any) -> None:
    current_TB = currents(5, 3, 4).requires_grad_()
    spikes_TB, wanted_TB = lif_scan(current_TB, *settings), neuron_by_neuron(current_TB, *settings)
    assert torch.equal(spikes_TB, wanted_TB)
    assert 0.1 < float(spikes_TB.detach().mean()) < 0.7
    weights_TB = currents(5, 3, 4) + 1
    (grad,) = torch.autograd.grad((spikes_TB * weights_TB).sum(), current_TB)
    (wanted,) = torch.autograd.grad((wanted_TB * weights_TB).sum(), current_TB)
    assert float((grad - wanted).abs().max()) < 1e-14


def test_with_a_smooth_step_the_loop_has_the_gradient_of_finite_differences() -> None:
    """The surrogate is a real gradient: that of neurons that fire smoothly."""
    for reset in ("hard", "soft"):
        current_TB = currents(4, 2).requires_grad_()
        assert torch.autograd.gradcheck(
            lambda x, reset=reset: neuron_by_neuron(x, 2.0, 1.0, reset, False, 2.0, smooth_step), current_TB
        )


def test_the_slope_is_the_derivative_of_the_smooth_step() -> None:
    x, h = torch.linspace(-3, 3, 61, dtype=torch.float64), 1e-6
    difference = (smooth_step(x + h, 2.0) - smooth_step(x - h, 2.0)) / (2 * h)
    assert torch.allclose(arctan_slope(x, 2.0), difference, atol=1e-8)
    assert float(arctan_slope(torch.zeros(1), 2.0)) == 1.0


def test_a_known_neuron() -> None:
    """tau 2, threshold 1, a current of 1.5: potentials 0.75, 1.125; after the spike 0 or 0.125."""
    current_T1 = torch.full((4, 1), 1.5)
    assert lif_scan(current_T1, 2.0, 1.0, "hard", True, 2.0)[:, 0].tolist() == [0, 1, 0, 1]
    assert lif_scan(2 * current_T1, 2.0, 1.0, "hard", True, 2.0)[:, 0].tolist() == [1, 1, 1, 1]
    assert lif_scan(current_T1, 1.0, 1.0, "soft", True, 2.0)[:, 0].tolist() == [1, 1, 1, 1]
    # soft: 0.75; 1.125 -> 0.125; 0.8125; 1.15625
    assert lif_scan(current_T1, 2.0, 1.0, "soft", True, 2.0)[:, 0].tolist() == [0, 1, 0, 1]
    assert lif_scan(torch.tensor([[1.0]]), 1.0, 1.0, "hard", True, 2.0).item() == 1, "it fires at the threshold"


def test_memory_layout_and_type_do_not_change_the_spikes() -> None:
    current = currents(4, 2, 8, 4, 4, dtype=torch.bfloat16)
    settings = (2.0, 1.0, "hard", True, 2.0)
    wanted = lif_scan(current.float(), *settings)
    assert lif_scan(current, *settings).dtype == torch.bfloat16
    assert torch.equal(lif_scan(current, *settings).float(), wanted)
    last = current.float().flatten(0, 1).to(memory_format=torch.channels_last).unflatten(0, (4, 2))
    spikes = lif_scan(last, *settings)
    assert torch.equal(spikes, wanted)
    assert spikes.flatten(0, 1).is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(lif_scan(current.float().mT, *settings), wanted.mT)
    with torch.inference_mode():
        assert torch.equal(lif_scan(current.float(), *settings), wanted)


def test_a_constant_current_gets_the_gradient_of_all_steps() -> None:
    current_B = currents(6).requires_grad_()
    spikes_TB = LIF(2.0, 1.0, "soft", False, 2.0)(current_B[None].expand(4, -1))
    (grad,) = torch.autograd.grad(spikes_TB.sum(), current_B)
    repeated_TB = current_B.detach().repeat(4, 1).requires_grad_()
    (each,) = torch.autograd.grad(lif_scan(repeated_TB, 2.0, 1.0, "soft", False, 2.0).sum(), repeated_TB)
    assert torch.allclose(grad, each.sum(0))
