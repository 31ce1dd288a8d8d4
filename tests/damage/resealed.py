"""Kinds of damage to a manifest and the files that it lists, after which its sha256 is right again."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import Any

import safetensors.torch

from ranks.engine.runs.checkpoints.checkpoint import HostState
from ranks.engine.runs.checkpoints.manifest import sealed
from tests.damage.kinds import (
    a_number,
    an_array,
    deep_arrays,
    empty,
    flipped_bit,
    longer,
    nan_inside,
    noise,
    too_deep,
    truncated,
)


def _reseal(path: Path, manifest: dict[str, Any]) -> None:
    for name, listed in manifest["files"].items():
        content = (path.parent / name).read_bytes()
        listed.update(bytes=len(content), sha256=hashlib.sha256(content).hexdigest())
    path.write_bytes(sealed(manifest))


def missing_fact(path: Path, rng: random.Random) -> None:
    manifest = json.loads(path.read_text())
    del manifest[rng.choice([name for name in manifest if name not in ("sha256", "ranks")])]
    path.write_bytes(sealed(manifest))


def odd_fact(path: Path, rng: random.Random) -> None:
    manifest = json.loads(path.read_text())
    manifest[rng.choice(["iteration", "files", "fingerprint", "metrics_bytes", "measured"])] = rng.choice(
        [None, "x", -1, 1.5, [], [[]], True, 10**400, {"x": 1}, {"/dev/zero": {"bytes": 1, "sha256": "0" * 64}}]
    )
    path.write_bytes(sealed(manifest))


def outside(path: Path, rng: random.Random) -> None:
    manifest = json.loads(path.read_text())
    name = rng.choice(["../../run.json", "/dev/zero", "/dev/urandom", "..", ".", "/etc/passwd"])
    manifest["files"][name] = {"bytes": rng.choice([0, 100, 2**40]), "sha256": "0" * 64}
    path.write_bytes(sealed(manifest))


def other_weights(path: Path, rng: random.Random) -> None:
    """Other weights, with their sha256 in the manifest; half of the time also with their fingerprint."""
    weights = path.parent / "learner.safetensors"
    tensors = safetensors.torch.load(weights.read_bytes())
    name = rng.choice(sorted(tensors))
    tensors[name] = tensors[name] + 1
    weights.write_bytes(safetensors.torch.save(tensors))
    manifest = json.loads(path.read_text())
    if rng.random() < 0.5:
        rest = json.loads((path.parent / "state.json").read_text())
        manifest["fingerprint"] = HostState({"learner": tensors}, rest).fingerprint()
    _reseal(path, manifest)


def state(path: Path, rng: random.Random) -> None:
    """A state.json that is no state, with its sha256 in the manifest."""
    rng.choice([too_deep, deep_arrays, nan_inside, an_array, a_number])(path.parent / "state.json", rng)
    _reseal(path, json.loads(path.read_text()))


def tensors(path: Path, rng: random.Random) -> None:
    """A tensor file that is none, with its sha256 in the manifest."""
    rng.choice([flipped_bit, truncated, empty, longer, noise])(path.parent / "learner.safetensors", rng)
    _reseal(path, json.loads(path.read_text()))
