"""Converts gymnasium spaces to `Space`, observations to tensors, and tensors to actions.

Legend: B environments.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor

from ranks.errors import UserError
from ranks.rl.environments import Transition
from ranks.rl.pytree import Tree
from ranks.rl.spaces import Space

WHOLE = "observation"
"""The name of an observation that is a single tensor."""
MOST_CHANNELS = 16
"""An image has at most so many channels, and one without a channel dimension at least so many
pixels a side."""


def spaces_of(env: gymnasium.Env[Any, Any]) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """The observation spaces by name and the action space, as `ActorCritic` takes them.

    Raises UserError where a space is not supported.
    """
    asked = f"the environment {type(env.unwrapped).__name__}"
    spaces_by_name = observation_spaces(env.observation_space, asked)
    return {n: s.to_json() for n, s in spaces_by_name.items()}, action_space(env.action_space, asked).to_json()


def observation_spaces(space: gymnasium.Space[Any], asked: str) -> dict[str, Space]:
    """Convert an observation space: `Space` by name.

    Names of nested Dicts and Tuples are joined with dots.

    `asked`: what the space belongs to, for the message. Raises UserError where a space is not
    supported, or two parts get the same name.
    """
    if isinstance(space, spaces.Dict):
        parts = dict(space.spaces)
    elif isinstance(space, spaces.Tuple):
        parts = {str(i): part for i, part in enumerate(space.spaces)}
    else:
        return {WHOLE: _convert(space, asked)}
    out: dict[str, Space] = {}
    for name, part in parts.items():
        nested = isinstance(part, spaces.Dict | spaces.Tuple)
        for inner, found in observation_spaces(part, asked).items():
            full = f"{name}.{inner}" if nested else name
            if full in out:
                raise UserError(asked, f"two parts of its observation are called {full}", "rename one of them")
            out[full] = found
    return out


def action_space(space: gymnasium.Space[Any], asked: str) -> Space:
    """Convert an action space.

    Raises UserError if it is not supported; warns if a Box is far from -1 to 1.
    """
    if isinstance(space, spaces.Box) and not np.issubdtype(space.dtype, np.floating):
        raise UserError(asked, f"integer actions in a Box, {space}", "use MultiDiscrete")
    found = _convert(space, asked)
    if isinstance(space, spaces.Box):
        most = float(np.finfo(np.float32).max)
        low, high = (tuple(np.clip(edge, -most, most).ravel().tolist()) for edge in (space.low, space.high))
        found = replace(found, low=low, high=high)
    if found.kind == "box" and (len(found.shape) != 1 or not found.shape[0]):
        raise UserError(asked, f"actions of shape {found.shape}", "flatten them in a wrapper of your environment")
    if isinstance(space, spaces.Box):
        half = (space.high.astype(np.float64) - space.low) / 2
        far = np.isfinite(half) & ((half > 10) | (half < 0.1))
        if far.any():
            text = f"{asked}: action {int(np.argmax(far))} has bounds {half[far][0]:.3g} away from their middle"
            do = "actions are sampled with standard deviation 1 at first: rescale with gymnasium.wrappers.RescaleAction"
            warnings.warn(f"{text}; {do}", stacklevel=2)
    return found


def _convert(space: gymnasium.Space[Any], asked: str) -> Space:
    if isinstance(space, spaces.Box):
        return _box(tuple(map(int, space.shape)), space.dtype == np.uint8, asked)
    if isinstance(space, spaces.Discrete) and int(space.start) == 0:
        return Space("discrete", sizes=(int(space.n),))
    if isinstance(space, spaces.MultiDiscrete) and space.nvec.ndim == 1 and not np.any(space.start):
        return Space("multi-discrete", sizes=tuple(map(int, space.nvec)))
    if isinstance(space, spaces.MultiBinary) and len(space.shape) == 1:
        return Space("multi-binary", sizes=(int(space.shape[0]),))
    raise UserError(
        asked, f"the space {space}", "convert it to Box, Discrete, MultiDiscrete, MultiBinary or a Dict in a wrapper"
    )


def _box(shape: tuple[int, ...], is_bytes: bool, asked: str) -> Space:
    if is_bytes and len(shape) == 3:
        is_first = shape[0] <= MOST_CHANNELS and shape[0] < min(shape[1:])
        return Space("image", shape, dims="CHW" if is_first else "HWC")
    if is_bytes and len(shape) == 2 and min(shape) >= MOST_CHANNELS:
        return Space("image", shape, dims="HW")
    if is_bytes and len(shape) > 3:
        do = "stack the frames as channels in a wrapper: 4 images of (84, 84, 3) are one of (84, 84, 12)"
        raise UserError(asked, f"uint8 with {len(shape)} dimensions {shape}, as of several images", do)
    return Space("box", shape)


def to_tensors(observation: Any, device: torch.device) -> Tree:
    """Convert a batch of observations to one tensor, or tensors by name.

    Floats get the default dtype, uint8 stays uint8, other integers become int64.
    """
    if isinstance(observation, dict | tuple):
        items = (
            observation.items() if isinstance(observation, dict) else enumerate(cast("tuple[Any, ...]", observation))
        )
        out: dict[str, Tensor] = {}
        for name, part in cast("Any", items):
            found = to_tensors(part, device)
            out |= {str(name): found} if isinstance(found, Tensor) else {f"{name}.{n}": t for n, t in found.items()}
        return out
    array = np.asarray(observation)
    if array.dtype == np.uint8:
        return torch.from_numpy(array.copy()).to(device)
    if np.issubdtype(array.dtype, np.floating):
        return torch.from_numpy(array.copy()).to(device, torch.get_default_dtype())
    return torch.from_numpy(array.astype(np.int64)).to(device)


def check_in_space(observation: Any, space: gymnasium.Space[Any], ids: Sequence[int], part: str = "") -> None:
    """Raise UserError if a discrete value of a batch of observations is not in its space.

    `ids`: the environments of the batch. `part`: the name of the observation's part, empty for the
    whole.
    """
    if isinstance(space, spaces.Dict | spaces.Tuple):
        parts = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
        for name, inner in cast("Any", parts):
            check_in_space(observation[name], inner, ids, f"{part}.{name}" if part else str(name))
    elif isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
        sizes = space.n if isinstance(space, spaces.Discrete) else space.nvec
        values = np.asarray(observation)
        outside = np.argwhere((values < 0) | (values >= sizes))
        if len(outside):
            env, value = ids[int(outside[0, 0])], int(values[tuple(outside[0])])
            asked = f"the observation {part} of environment {env}" if part else f"the observation of environment {env}"
            do = "return values from 0 to n - 1"
            raise UserError(asked, f"{value}, which is not in {space}", do)


def to_env_actions(action_B: Tensor, space: gymnasium.Space[Any]) -> NDArray[Any]:
    """Convert a batch of actions to the dtype of the space, clipped to the bounds of a Box."""
    array = action_B.detach().cpu().numpy()
    if isinstance(space, spaces.Box):
        return np.clip(array, space.low, space.high).astype(space.dtype)
    return array.astype(space.dtype)


def to_transition(
    reward_B: NDArray[Any],
    terminated_B: NDArray[np.bool_],
    ended_B: NDArray[np.bool_],
    final: Tree | None,
    device: torch.device,
    valid_B: NDArray[np.bool_] | None = None,
) -> Transition:
    """Convert the arrays of a gymnasium step, [B] each, to a Transition on the device."""
    dtype = torch.get_default_dtype()
    return Transition(
        reward_B=torch.from_numpy(np.array(reward_B)).to(device, dtype),
        discount_B=torch.from_numpy(~terminated_B).to(device, dtype),
        ended_B=torch.from_numpy(ended_B.copy()).to(device),
        final_obs=final,
        valid_B=None if valid_B is None else torch.from_numpy(valid_B.copy()).to(device),
    )
