"""Under bf16 autocast recurrent layers compute in float32, and everything else in bf16."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_sequence
from torch.utils._python_dispatch import TorchDispatchMode

from ranks import RunConfig, World
from ranks.engine.distributed.precision import autocast

LAYERS = [nn.LSTM, nn.GRU, nn.RNN]
CELLS = [nn.LSTMCell, nn.GRUCell, nn.RNNCell]
T, B, F, H = 5, 3, 4, 6


class Dtypes(TorchDispatchMode):
    """`of`: operation -> the floating types of its arguments and results, forwards and backwards."""

    def __init__(self) -> None:
        super().__init__()
        self.of: defaultdict[str, set[torch.dtype]] = defaultdict(set)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        self.of[func._schema.name] |= {t.dtype for t in tensors((args, found)) if t.is_floating_point()}
        return found

    @property
    def all(self) -> set[torch.dtype]:
        return set().union(*self.of.values())


def tensors(tree: Any) -> Iterator[Tensor]:
    if isinstance(tree, Tensor):
        yield tree
    elif isinstance(tree, list | tuple):
        for part in tree:
            yield from tensors(part)


class User(nn.Module):
    """A user's own model: a linear layer, whose output is bf16, then a recurrent layer or cell, then another one."""

    def __init__(self, kind: type[nn.Module], packed: bool = False) -> None:
        super().__init__()
        self.before: nn.Module = nn.Linear(F, F)
        self.inner, self.after, self.packed = kind(F, H), nn.Linear(H, 2), packed

    def forward(self, x_TBF: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        before_TBF = self.before(x_TBF)
        if isinstance(self.inner, nn.RNNCellBase):
            found = self.inner(before_TBF[0])
            hidden = found[0] if isinstance(found, tuple) else found
        elif self.packed:
            hidden = self.inner(pack_sequence(list(before_TBF.unbind(1))))[0].data
        else:
            hidden = self.inner(before_TBF)[0]
        return before_TBF, hidden, self.after(hidden)


@pytest.fixture
def world() -> Iterator[World]:
    made = World.join(RunConfig(precision="bf16", threads=1), device="cpu", workload="test")
    yield made
    made.leave()


@pytest.mark.parametrize("packed", [False, True], ids=["padded", "packed"])
@pytest.mark.parametrize("kind", LAYERS)
def test_a_recurrent_layer_of_any_model_stays_in_float32(kind: type[nn.Module], packed: bool, world: World) -> None:
    check(User(kind, packed), world)


@pytest.mark.parametrize("kind", CELLS)
def test_a_recurrent_cell_of_any_model_stays_in_float32(kind: type[nn.Module], world: World) -> None:
    check(User(kind), world)


def check(model: User, world: World) -> None:
    model = model.to(world.device)
    x_TBF = torch.randn(T, B, F, device=world.device)
    with Dtypes() as dtypes:
        with autocast(world.config, world.device):
            before, hidden, after = model(x_TBF)
        after.float().sum().backward()
    assert (before.dtype, hidden.dtype, after.dtype) == (torch.bfloat16, torch.float32, torch.bfloat16)
    assert torch.float16 not in dtypes.all
    recurrent = {name: found for name, found in dtypes.of.items() if "rnn" in name or "lstm" in name or "gru" in name}
    assert all(found == {torch.float32} for found in recurrent.values()), recurrent
    gradients = [parameter.grad for parameter in model.inner.parameters()]
    assert sum(float(g.abs().sum()) for g in gradients if g is not None) > 0
    with torch.no_grad():  # the recurrent layer without autocast, from the same inputs
        model.before = nn.Identity()
        _, expected, _ = model(before.float())
    torch.testing.assert_close(hidden, expected, rtol=0, atol=1e-6 if world.device.type == "cpu" else 1e-3)


WITHOUT_PRIMITIVE = """
import torch
from torch import nn
from ranks import Learner, Loss, OptimConfig, RunConfig, World
from ranks.engine.sharding.batch import ShardItems, StepBatch

x_TBF = torch.randn(5, 3, 4)
try:
    with torch.autocast("cpu", torch.bfloat16):
        nn.LSTM(4, 8)(x_TBF)
except RuntimeError as error:
    print(error)
world = World.join(RunConfig(precision="bf16", threads=1), device="cpu", workload="test")
learner = Learner(nn.LSTM(4, 8), OptimConfig(schedule="constant"), world)
shards = [ShardItems(0, torch.arange(3))]
loss = lambda model, x_TBF: Loss(model(x_TBF)[0].square().sum(), x_TBF.shape[1])
print(float(learner.step(loss, StepBatch(shards, lambda ids: x_TBF[:, ids]))["loss"]) > 0)
"""


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="oneDNN limits its instructions on x86 only")
def test_an_lstm_trains_in_bf16_on_a_cpu_without_a_primitive_for_it() -> None:
    """A CPU with AVX2 only, which oneDNN imitates. There torch's own autocast fails."""
    env = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2"}
    command = [sys.executable, "-c", WITHOUT_PRIMITIVE]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    failed, trained = done.stdout.splitlines()
    assert "could not create a primitive" in failed
    assert trained == "True"
