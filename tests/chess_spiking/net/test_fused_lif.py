"""The Triton kernel. Triton is in no install: without it, the test is skipped by name. The committed
result of its run: benchmarks/results/spiking_kernel_*.json."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ranks.workloads.chess_spiking.building import build
from ranks.workloads.chess_spiking.config import Config, NetConfig
from ranks.workloads.chess_spiking.net.fused import use_fused_kernels
from ranks.workloads.chess_spiking.net.lif import LIF, lif_scan
from tests.video_behavior.example_frames import world_of

ROOT = Path(__file__).parents[3]


def test_triton_interpreter() -> None:
    pytest.importorskip("triton", reason="triton is not installed")
    env = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "benchmarks.chess_spiking.kernel", "--quick"]
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("equal spikes") == 12


def test_without_cuda_a_net_keeps_the_plain_scan() -> None:
    net = build(Config(net=NetConfig(blocks=1, width=8)))
    assert not use_fused_kernels(net, world_of())
    assert {layer.scan for layer in net.modules() if isinstance(layer, LIF)} == {lif_scan}


def test_the_committed_run_found_equal_spikes() -> None:
    (path, *_) = sorted(ROOT.glob("benchmarks/results/spiking_kernel_*.json"), reverse=True)
    result = json.loads(path.read_text())
    assert len(result["cases"]) >= 12
    assert all(case["equal_spikes"] and case["gradient_error"] <= case["bound"] for case in result["cases"])
