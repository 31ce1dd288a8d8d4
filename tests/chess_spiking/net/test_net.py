from __future__ import annotations

import importlib.util
import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from ranks.chess.core.rules import CHESS
from ranks.engine.export.export import export_model
from ranks.errors import UserError
from ranks.selfplay import Positions
from ranks.selfplay.checks.rules import check_rules
from ranks.workloads import chess_spiking
from ranks.workloads.chess_spiking.building import Net, build, build_net, example_inputs
from ranks.workloads.chess_spiking.config import PRESETS, Config, NetConfig
from ranks.workloads.chess_spiking.encoding import encoding_of
from ranks.workloads.chess_spiking.net.coding import HIGH, LOW, rate_code

TINY = NetConfig(blocks=1, width=16, value_channels=8, value_hidden=8)
ORIGIN = replace(PRESETS["origin"]().net, steps=4)


def made(net: NetConfig) -> Net:
    torch.manual_seed(0)
    return build_net(net).double().eval()


def inputs(model: Net, batch: int = 3) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    planes = (torch.rand(batch, model.planes, 8, 8, generator=generator) < 0.2).double()
    keys_B = torch.arange(batch)
    return planes if model.planes == 20 else rate_code(planes, keys_B, 0, model.steps)


@pytest.mark.parametrize(
    "net",
    [TINY, replace(TINY, neuron="relu"), replace(TINY, coding="rate"), replace(TINY, value_channels=0), ORIGIN],
)
def test_logits_and_gradients(net: NetConfig) -> None:
    """In an untrained net of the origin no neuron of the heads fires, so the weights behind them wait."""
    model = made(net).train()
    logits_BA, wdl_B3 = model(inputs(model))
    assert (logits_BA.shape, wdl_B3.shape) == ((3, 4672), (3, 3))
    (logits_BA.square().sum() + wdl_B3.square().sum() + wdl_B3[:, 0].sum() + logits_BA[:, 5].sum()).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert bool(parameter.grad.isfinite().all()), name
        silent = net.kind == "origin" and name in ("policy_out.weight", "value_out.weight")
        assert bool((parameter.grad != 0).any()) != silent, name


@pytest.mark.parametrize("net", [TINY, ORIGIN])
def test_a_position_does_not_depend_on_its_batch(net: NetConfig) -> None:
    model = made(net)
    x = inputs(model)
    with torch.no_grad():
        whole = model(x)
        for row in range(3):
            alone = model(x[..., row : row + 1, :, :, :] if x.ndim == 5 else x[row : row + 1])
            assert all(torch.allclose(w[row], a[0], atol=1e-12) for w, a in zip(whole, alone, strict=True))


def test_the_control_has_the_same_weights_and_no_spikes() -> None:
    spiking, control = made(TINY), made(replace(TINY, neuron="relu"))
    assert [(n, p.shape) for n, p in spiking.named_parameters()] == [
        (n, p.shape) for n, p in control.named_parameters()
    ]
    assert (spiking.steps, control.steps) == (4, 1)
    control.load_state_dict(spiking.state_dict())
    x = inputs(control)
    with torch.no_grad():
        assert not torch.allclose(spiking(x)[1], control(x)[1])
        y = control.stem_norm(control.stem(x))  # type: ignore[operator, union-attr]
        block = control.tower[0]  # type: ignore[index]
        y = y + block.norm_2(block.conv_2(block.norm_1(block.conv_1(y.relu())).relu()))  # type: ignore[operator, union-attr]
        policy = control.policy_out(control.policy_norm(control.policy_conv(y.relu())).relu())  # type: ignore[operator]
        assert torch.allclose(control(x)[0], policy.flatten(1))


def test_direct_coding_is_a_constant_input() -> None:
    """The stem is computed once; with the same planes in each step as a spike train nothing changes."""
    model = made(TINY)
    x = inputs(model)
    with torch.no_grad():
        once, always = model(x), model(x[None].expand(4, -1, -1, -1, -1))
    assert all(torch.allclose(a, b, atol=1e-12) for a, b in zip(once, always, strict=True))


def test_more_steps_change_the_result_and_the_first_potential_has_the_scale_of_the_threshold() -> None:
    model = made(replace(TINY, width=64))
    x = inputs(model, 8)
    with torch.no_grad():
        current = model.stem_norm(model.stem(x))  # type: ignore[operator, union-attr]
        assert float((current / 2.0).std()) == pytest.approx(1.0, abs=0.02)
        four = model(x)[0]
        model.steps = 6
        assert not torch.allclose(four, model(x)[0])


def test_the_origin_s_sizes() -> None:
    """Its parameters without batch norm are ours without group norm, but for the value's two more outputs."""
    ours = sum(p.numel() for p in build_net(replace(PRESETS["origin"]().net, groups=0)).parameters())
    convs = 9 * (13 * 64 + 64 * 128 + 128 * 256)
    heads = 256 * 1024 + (1024 + 1) * 4672 + 256 * 128 + (128 + 1) * 1
    assert ours == convs + heads + 2 * (128 + 1)


def test_rate_coding_has_the_right_rates_and_depends_on_the_key_only() -> None:
    planes = torch.zeros(2, 5, 8, 8)
    planes[:, 1] = 1
    keys_B = torch.tensor([7, 2**62])
    spikes = rate_code(planes, keys_B, 3, 64)
    assert set(spikes.unique().tolist()) == {0.0, 1.0}
    assert float(spikes[:, :, 1].mean()) == pytest.approx(HIGH, abs=0.01)
    assert float(spikes[:, :, 2:].mean()) == pytest.approx(LOW, abs=0.01)
    assert torch.equal(rate_code(planes.flip(0), keys_B.flip(0), 3, 64), spikes.flip(1))
    assert torch.equal(rate_code(planes[:1], keys_B[:1], 3, 8), spikes[:8, :1]), "more steps add spikes"
    for other in (rate_code(planes, keys_B, 4, 64), rate_code(planes, keys_B + 1, 3, 64), spikes.roll(1, 0)):
        assert float((other != spikes).float().mean()) == pytest.approx(2 * HIGH * LOW, abs=0.01)


@pytest.mark.parametrize("net", [TINY, replace(ORIGIN, groups=0, value_hidden=4)])
def test_the_export_needs_only_torch(net: NetConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = made(net).float()
    export_model(model, tmp_path / "export")
    source = (tmp_path / "export" / "model.py").read_text()
    assert "ranks" not in source
    spec = importlib.util.spec_from_file_location("exported", tmp_path / "export" / "model.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "exported", module)
    spec.loader.exec_module(module)
    loaded: nn.Module = module.load(str(tmp_path / "export"))
    (x,) = example_inputs(model)
    assert all(torch.equal(a, b) for a, b in zip(model(x), loaded(x), strict=True))


@pytest.mark.parametrize("preset", PRESETS)
def test_presets(preset: str) -> None:
    cfg = PRESETS[preset]()
    assert chess_spiking.Config is Config
    model = build(cfg)
    assert len(list(model.buffers())) == 0, "exact mode rejects a net whose buffers move"
    if preset != "origin":
        bound = {"demo": 1, "small": 3, "full": 20}[preset] * 2**20
        assert 4 * sum(p.numel() for p in model.parameters()) < bound


@pytest.mark.parametrize("preset", PRESETS)
def test_one_flag_gives_the_control_of_any_preset(preset: str) -> None:
    """The same weights, one step, and the planes themselves as input."""
    cfg = PRESETS[preset]()
    control = replace(cfg.net, neuron="relu")
    spiking, model = build_net(cfg.net), build_net(control)
    assert {n: p.shape for n, p in spiking.named_parameters()} == {n: p.shape for n, p in model.named_parameters()}
    assert model.steps == 1
    positions = Positions.of(check_rules(CHESS, 4))
    planes = encoding_of(control, 0).planes(positions)
    assert planes.shape == (len(positions.num_moves_B), model.planes, 8, 8)
    assert encoding_of(cfg.net, 0).planes(positions).ndim == (5 if cfg.net.coding == "rate" else 4)
    with torch.no_grad():
        assert model(planes)[0].shape == (len(planes), 4672)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"width": 0}, "--net.width 0"),
        ({"steps": 0}, "--net.steps 0"),
        ({"tau": 0.5}, "--net.tau 0.5"),
        ({"alpha": math.nan}, "--net.alpha nan"),
        ({"groups": 5}, "--net.groups 5"),
        ({"groups": 0}, "--net.groups 0"),
        ({"kind": "origin", "groups": 5}, "--net.groups 5"),
        ({"blocks": -1}, "--net.blocks -1"),
    ],
)
def test_impossible_settings_are_named(wrong: dict[str, object], named: str) -> None:
    with pytest.raises(UserError) as error:
        NetConfig(**wrong)  # type: ignore[arg-type]
    assert named in str(error.value)
