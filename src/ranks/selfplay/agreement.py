"""How all ranks agree, while they play, on the number of finished games and on a stop."""

from __future__ import annotations

import torch

from ranks.engine.distributed.comm import Pending
from ranks.engine.distributed.requests import Requests
from ranks.engine.distributed.world import World
from ranks.engine.liveness.heartbeat import heartbeat
from ranks.errors import Stopped


class Agreement:
    """A sum over ranks that is started after some ticks and read as many ticks later.

    Meanwhile the ranks go on playing, so they wait for each other only where one is more than that
    much behind. Every rank makes the same calls.
    """

    def __init__(self, world: World, every: int) -> None:
        """`every`: ticks from one reading to the next."""
        self.world, self.every = world, every
        self._started: tuple[torch.Tensor, Pending] | None = None

    def games(self, tick: int, finished: int) -> float | None:
        """Finished games of all ranks `every` ticks ago; None in ticks without a reading.

        `tick`: ticks that are complete; `finished`: this rank's games in them. Raises Stopped where
        a stop was requested.
        """
        heartbeat.beat()
        if tick % self.every:
            return None
        total = None
        if self._started is not None:
            tensor, pending = self._started
            pending.wait()
            total, *requests = tensor.tolist()
            self.world.decide(Requests.of(requests))
            if self.world.session.long_iterations and self.world.stop_signal:
                raise Stopped(self.world.stop_signal)
        mine = torch.tensor([float(finished), *self.world.requests().numbers()], dtype=torch.float64)
        self._started = mine, self.world.comm.sum_async(mine)
        return total

    def finish(self) -> None:
        """Wait for what was started last; nothing is read from it."""
        if self._started is not None:
            self._started[1].wait()
            self._started = None
