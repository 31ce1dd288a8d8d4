"""Settings of a rank's arithmetic: threads, determinism, autocast, default float type."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
import torch.utils.deterministic

from ranks.engine.config import RunConfig
from ranks.engine.distributed.recurrent_precision import keep_recurrent_layers_in_float32


def set_up(config: RunConfig, device: torch.device, threads: int) -> None:
    """Set torch's process-wide switches for a run."""
    torch.set_num_threads(threads)
    torch.set_default_dtype(torch.float64 if config.precision == "fp64" else torch.float32)
    deterministic = config.exact or config.deterministic or device.type == "cpu"
    # The same switch as use_deterministic_algorithms, which imports the compiler: a second at each
    # start of a rank.
    torch.set_deterministic_debug_mode("error" if deterministic else "default")
    torch.utils.deterministic.fill_uninitialized_memory = False  # pyright: ignore[reportAttributeAccessIssue]
    if config.precision == "bf16":
        keep_recurrent_layers_in_float32(device.type)
    if device.type == "cuda":
        if deterministic:
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.cuda.set_device(device)
        torch.backends.cudnn.benchmark = not deterministic
        allow_tf32(not config.exact)


@contextmanager
def one_thread() -> Generator[None]:
    """Torch uses one CPU thread inside.

    So the bits of its sums do not depend on the number of cores. And budgets hold next to other programs: with several
    threads, an operation waits for the slowest one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def allow_tf32(allowed: bool) -> None:
    """Whether float32 matrix products, convolutions and recurrent layers on CUDA may round to TF32.

    Torch has an old switch for all of cuDNN and a new one for each kind of layer. Where they
    disagree, reading the old one is an error, also inside `torch.backends.cudnn.flags`. So both are
    set, the old one first, because it resets the new ones.
    """
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed
    precision = "tf32" if allowed else "ieee"
    torch.backends.cuda.matmul.fp32_precision = precision
    torch.backends.cudnn.conv.fp32_precision = precision  # type: ignore[attr-defined]
    torch.backends.cudnn.rnn.fp32_precision = precision  # type: ignore[attr-defined]


def autocast(config: RunConfig, device: torch.device) -> AbstractContextManager[object]:
    """bf16 autocast with float32 weights under --precision bf16, where recurrent layers stay in
    float32; otherwise a context without effect."""
    if config.precision == "bf16":
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return nullcontext()
