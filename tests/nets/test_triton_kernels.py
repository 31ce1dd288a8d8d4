"""Triton kernels are used where they run; elsewhere one line says why not."""

from __future__ import annotations

from types import ModuleType

import pytest
import torch

from ranks.nets import triton_kernels
from ranks.nets.triton_kernels import load_kernels


def test_without_cuda_or_triton_nothing_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_kernels("no.such.module", torch.device("cpu"), print) is None
    monkeypatch.setattr(triton_kernels, "find_spec", lambda name: None)
    assert load_kernels("no.such.module", torch.device("cuda"), print) is None


def test_a_kernel_that_does_not_compile_is_not_used(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def attempt(module: ModuleType) -> None:
        raise RuntimeError(f"at 11:12:\n    count = {module.__name__}.to(1)\n            ^\nAttributeError('no to')")

    monkeypatch.setattr(triton_kernels, "find_spec", lambda name: name)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    assert load_kernels("json", torch.device("cuda"), attempt) is None
    assert capfd.readouterr().err.splitlines() == [
        "warning: Triton cannot run here, plain torch is slower: AttributeError('no to')"
    ]
    kernels = load_kernels("json", torch.device("cuda"), lambda module: module.dumps({}))
    assert kernels is not None
    assert kernels.__name__ == "json"
    assert load_kernels("no.such.module", torch.device("cuda"), print) is None
