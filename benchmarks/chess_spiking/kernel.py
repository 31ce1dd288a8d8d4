"""The Triton kernel of chess-spiking against plain torch, in Triton's interpreter on the CPU or on a GPU.

    TRITON_INTERPRET=1 python -m benchmarks.chess_spiking.kernel            on the CPU; writes the result
    TRITON_INTERPRET=1 python -m benchmarks.chess_spiking.kernel --quick    a part of the cases; writes nothing
    python -m benchmarks.chess_spiking.kernel --device cuda:0               on a GPU; writes the result

It needs an environment with Triton, which no install of ranks has (torch 2.13.0, triton 3.9.0). Each case compares the
spikes, which must be equal, and the gradients. On the CPU a second process, without the interpreter, compiles both
kernels for NVIDIA GPUs of compute capability 8.0 and 9.0; this needs no GPU. Exit code 1 if a case fails.

Writes benchmarks/results/spiking_kernel_DATE.json.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import time
from typing import Any

import torch
import triton

from benchmarks.measure import origin, write_result
from ranks.workloads.chess_spiking.net.fused_lif import fused_lif_scan, lif_backward, lif_forward
from ranks.workloads.chess_spiking.net.lif import lif_scan

STEPS = (1, 4, 16)
BOUNDS = {torch.float64: 1e-14, torch.float32: 1e-6, torch.bfloat16: 1e-2}
"""The largest difference of the gradients, relative to the largest gradient."""
TARGETS = (80, 90)


def layouts(current: torch.Tensor) -> dict[str, torch.Tensor]:
    """The same currents in the layouts that a net has."""
    last = current.flatten(0, 1).to(memory_format=torch.channels_last).unflatten(0, current.shape[:2])
    return {"contiguous": current, "channels_last": last, "constant": current[:1].expand_as(current)}


def compare(steps: int, reset: str, detach: bool, dtype: torch.dtype, layout: str, device: str) -> dict[str, Any]:
    """One case: equal spikes, and the difference of the gradients."""
    generator = torch.Generator().manual_seed(steps)
    current = layouts((2 * torch.randn(steps, 3, 7, 8, 8, generator=generator)).to(device, dtype))[layout]
    weights = torch.randn(current.shape, generator=generator).to(device, dtype)
    current = current.detach().requires_grad_()
    found: list[tuple[torch.Tensor, torch.Tensor]] = []
    for scan in (lif_scan, fused_lif_scan):
        spikes = scan(current, 2.0, 1.0, reset, detach, 2.0)
        (gradient,) = torch.autograd.grad(spikes, current, weights)
        found.append((spikes, gradient.double()))
    (plain, wanted), (fused, got) = found
    error = float((got - wanted).abs().max() / wanted.abs().max())
    return {
        "steps": steps,
        "reset": reset,
        "detach_reset": detach,
        "dtype": str(dtype).removeprefix("torch."),
        "layout": layout,
        "equal_spikes": torch.equal(plain, fused),
        "spike_rate": float(plain.detach().double().mean()),
        "gradient_error": error,
        "bound": BOUNDS[dtype],
    }


def cases(quick: bool, device: str) -> list[dict[str, Any]]:
    """All cases, each printed."""
    steps = STEPS[1:2] if quick else STEPS
    dtypes = list(BOUNDS)[1:2] if quick else list(BOUNDS)
    found: list[dict[str, Any]] = []
    for case in itertools.product(
        steps, ("hard", "soft"), (True, False), dtypes, ("contiguous", "channels_last", "constant")
    ):
        one = compare(*case, device=device)
        ok = one["equal_spikes"] and one["gradient_error"] <= one["bound"]
        spikes = "equal spikes" if one["equal_spikes"] else "OTHER SPIKES"
        print("ok  " if ok else "FAIL", *case, f"{spikes}, gradients differ by {one['gradient_error']:.1e}", flush=True)
        found.append(one)
    return found


def compiled() -> dict[str, dict[str, int]]:
    """Bytes of machine code of both kernels by target."""
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    shared = {"TAU": 2.0, "THRESHOLD": 1.0, "STEPS": 4, "SOFT": False, "STATE": tl.float32, "BLOCK": 1024}
    kernels = {
        lif_forward: (
            {"current": "*bf16", "spikes": "*bf16", "potential": "*fp32", "size": "i32", "current_step": "i32"},
            shared | {"SAVE": True},
        ),
        lif_backward: (
            {"potential": "*fp32", "spike_grad": "*bf16", "current_grad": "*bf16", "size": "i32", "last_step": "i64"},
            shared | {"ALPHA": 2.0, "HALF_PI": 1.5707963267948966, "DETACH": False},
        ),
    }
    found: dict[str, dict[str, int]] = {}
    for kernel, (arguments, constants) in kernels.items():
        signature = arguments | dict.fromkeys(constants, "constexpr")
        source: Any = ASTSource(kernel, signature, constexprs=constants)
        sizes = {
            f"sm_{target}": len(
                triton.compile(source, target=GPUTarget("cuda", target, 32), options={"enable_fp_fusion": False}).asm[
                    "cubin"
                ]
            )
            for target in TARGETS
        }
        found[kernel.__name__] = sizes
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--compile", action="store_true", help="only compile, and print the sizes as JSON")
    args = parser.parse_args()
    if args.compile:
        print(json.dumps(compiled()))
        return 0
    found = cases(args.quick, args.device)
    failed = [case for case in found if not case["equal_spikes"] or case["gradient_error"] > case["bound"]]
    print(f"{len(found)} cases, {len(failed)} failed")
    if failed or args.quick:
        return bool(failed)
    content: dict[str, Any] = {"origin": origin(), "triton": triton.__version__}
    content["interpreted"] = os.environ.get("TRITON_INTERPRET") == "1"
    env = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    command = [sys.executable, "-m", "benchmarks.chess_spiking.kernel", "--compile"]
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True)
    content["compiled_bytes"] = json.loads(done.stdout)
    print(write_result(f"spiking_kernel_{time.strftime('%Y-%m-%d')}", content | {"cases": found}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
