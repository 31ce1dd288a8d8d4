"""The best weights of a run so far, which matches choose."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from torch import nn

from ranks.engine.distributed.world import World
from ranks.engine.runs.kept.kept_files import KeptFiles
from ranks.engine.update.load_weights import load_weights
from ranks.selfplay.snapshots import arrays_as_weights, weights_as_arrays

FOLDER = "best"
"""Of the weights in runs/NAME/kept/."""
Result = TypeVar("Result", bound=tuple[Any, ...])


class BestWeights(Generic[Result]):
    """The best weights, in a net of their own and in a kept file.

        best = BestWeights(net, other_net, Pair, world)
        ...
        if is_better(best.net, net):
            best.replace(iteration, results)
        else:
            best.keep()
        run.save(score=best.checkpoint_score)

    A run keeps it (`Run.open(keep=...)`), itself or in the object that plays its matches.
    """

    def __init__(self, newest: nn.Module, net: nn.Module, result: Callable[..., Result], world: World) -> None:
        """`net`: another net of the same kind; it moves to the device of `newest`. `result`: makes a
        result of games from its fields, which are plain values; results are what `replace` is given."""
        self.net = net.to(next(newest.parameters()))
        self.results: list[Result] = []
        """Of the best weights against other players, from when they were the newest."""
        self.checkpoint_score: float | None = None
        """The score of a checkpoint of the newest weights, lower is better; None unless they are the best."""
        self._newest, self._world, self._result = newest, world, result
        self._times_replaced = 0
        self._kept = KeptFiles(world, FOLDER)

    @property
    def iteration(self) -> int | None:
        """The finished iterations of the best weights; None before the first ones."""
        return self._kept.files[0].iteration + 1 if self._kept.files else None

    def keep(self) -> None:
        """The best weights stay the best."""
        self.checkpoint_score = None

    def replace(self, iteration: int, results: Sequence[Result]) -> None:
        """The newest weights are the best from now on.

        Every rank calls it inside the loop, after the iteration's last update. Raises UserError where the disk is full.
        """
        self._kept.write(iteration, weights_as_arrays(self._newest) if self._world.rank == 0 else {})
        for older in self._kept.files[:-1]:
            self._kept.drop(older)
        load_weights(self.net, self._newest.state_dict())
        self.results = list(results)
        self._times_replaced += 1
        self.checkpoint_score = -float(self._times_replaced)

    def state_dict(self) -> dict[str, Any]:
        results = [[*result] for result in self.results]
        return {"weights": self._kept.state_dict(), "results": results, "times_replaced": self._times_replaced}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._kept.load_state_dict(state["weights"])
        self.results = [self._result(*fields) for fields in state["results"]]
        self._times_replaced = state["times_replaced"]
        for file in self._kept.files:  # one, or none before the first match
            load_weights(self.net, arrays_as_weights(self._kept.open(file)))
