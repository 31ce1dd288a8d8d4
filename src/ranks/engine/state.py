"""State dictionaries as tensors and strict JSON, and the fingerprint of both.

A state is a nested dictionary with string keys; its leaves are tensors or JSON values. Tensors are
named by their path, `learner/model/net.0.weight`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Protocol, cast

import torch
from torch import Tensor

SEPARATOR = "/"


class Stateful(Protocol):
    """What a run can keep. All ranks call both methods together, so they may gather over ranks."""

    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...


def split_state(state: Mapping[str, Any]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Nested state -> (tensors by path, copied to contiguous host memory; the rest as a JSON
    tree)."""
    tensors: dict[str, Tensor] = {}

    def walk(node: Mapping[str, Any], prefix: str) -> dict[str, Any]:
        rest: dict[str, Any] = {}
        for name, value in node.items():
            if SEPARATOR in name:
                raise ValueError(f"the name {name!r} in a state must not hold {SEPARATOR!r}")
            if isinstance(value, Tensor):
                tensors[prefix + name] = value.detach().to("cpu", copy=True).contiguous()
            elif isinstance(value, Mapping):
                rest[name] = walk(cast(Mapping[str, Any], value), prefix + name + SEPARATOR)
            else:
                rest[name] = value
        return rest

    return tensors, walk(state, "")


def join_state(tensors: Mapping[str, Tensor], rest: Mapping[str, Any]) -> dict[str, Any]:
    """The inverse of `split_state`."""
    state = cast(dict[str, Any], json.loads(json.dumps(rest)))
    for path, tensor in tensors.items():
        *parents, name = path.split(SEPARATOR)
        node = state
        for parent in parents:
            node = node.setdefault(parent, {})
        node[name] = tensor
    return state


def canonical_json(value: Any) -> bytes:
    """Strict JSON (no NaN) with sorted keys, as bytes."""
    return json.dumps(value, sort_keys=True, allow_nan=False, separators=(",", ":")).encode()


def fingerprint(tensors: Mapping[str, Tensor], rest: Mapping[str, Any]) -> str:
    """sha256 over sorted (name, dtype, shape, little-endian bytes), then over the JSON rest,
    counters included."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name}|{str(tensor.dtype).removeprefix('torch.')}|{tuple(tensor.shape)}|".encode())
        if tensor.numel():  # torch does not view an empty tensor as bytes
            digest.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data)
    digest.update(canonical_json(rest))
    return digest.hexdigest()


def all_finite(tensors: Mapping[str, Tensor]) -> bool:
    return all(bool(torch.isfinite(t).all()) for t in tensors.values() if t.is_floating_point())
