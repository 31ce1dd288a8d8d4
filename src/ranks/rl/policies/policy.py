"""The protocols of a policy: the methods that a collector and PPO call.

Legend: T steps, B environments, F features.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from ranks.engine.update.evaluate import HasEvalMode
from ranks.rl.policies.distributions import Distribution
from ranks.rl.pytree import State
from ranks.rl.running_mean_std import Normaliser


class Policy(HasEvalMode, Protocol):
    """An actor-critic `torch.nn.Module`.

    A policy without memory has an empty recurrent state, `{}`. `obs` is what its environment's
    `observe` returns, one tensor or a dict of tensors. Its type is Any, so that a policy can
    annotate the one that it expects.
    """

    def start_state(self, num_rows: int, /) -> State:
        """Return the recurrent state at the start of an episode, [num_rows, ...] each."""
        ...

    def act(self, obs: Any, state: State, /) -> tuple[Distribution, Tensor, State]:
        """Do one step: return the actions' distribution, the value [B] and the next state."""
        ...

    def unroll(self, obs: Any, state: State, first_TB: Tensor | None, /) -> tuple[Distribution, Tensor]:
        """Do T steps with gradients: return the actions' distribution and the value of [T, B].

        `state`: before the first step. `first_TB`: bool, on the CPU, an episode starts with the
        step (episode_starts of Stable-Baselines3), so the state before it is `start_state`; None
        where episodes start at step 0 at most, which `state` already accounts for. It is on the CPU
        so that a policy can find the starts without waiting for the GPU.
        """
        ...


@runtime_checkable
class NormalisesObservations(Protocol):
    """A policy that normalises observations.

    The collector keeps the statistics and copies them into it.
    """

    @property
    def normaliser(self) -> Normaliser:
        """The layer that normalises F features."""
        ...

    def features_to_normalise(self, obs: Any, /) -> Tensor:
        """The numbers of an observation that the layer normalises, as the environment gave them:
        [..., F]."""
        ...
