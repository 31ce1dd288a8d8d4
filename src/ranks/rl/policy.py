"""What a collector and PPO ask of a policy.

Legend: T steps, B environments.
"""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from ranks.engine.update.evaluate import HasEvalMode
from ranks.rl.policies.distributions import Distribution
from ranks.rl.pytree import State, Tree


class Policy(HasEvalMode, Protocol):
    """Actor and critic, a module. A policy without memory has an empty state."""

    def start_state(self, num_rows: int) -> State:
        """The state before an episode's first step, [B, ...] each."""
        ...

    def act(self, obs: Tree, state: State) -> tuple[Distribution, Tensor, State]:
        """One step of B environments: actions' distribution, value [B], the state after it."""
        ...

    def unroll(self, obs: Tree, state: State, first_TB: Tensor | None) -> tuple[Distribution, Tensor]:
        """T steps of B environments from the state before the first: distribution and value of [T, B].

        `first_TB`: bool, an episode begins with the step, so nothing of the one before is left; None where that can
        only be so at step 0, which `state` knows already. It is on the CPU: a policy that runs from one beginning to
        the next learns from it where they are, and waits for no device.
        """
        ...
