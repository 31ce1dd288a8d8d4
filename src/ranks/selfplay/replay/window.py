"""The replay window: the positions of the newest iterations, from which updates draw their batches.

Each iteration's positions, and the moves of its games, are a kept file,
runs/NAME/kept/replay/ITERATION-SHA256.safetensors: written once, memory-mapped, named by the
checkpoints that need it, and deleted when none does. So the cost of a save and of the start of an
iteration grows with the number of parts, not with that of positions.

Legend: P positions of a part, B positions of a batch, M the most legal moves of a position.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ranks.engine.distributed.poll_interval import PollInterval
from ranks.engine.distributed.world import World
from ranks.engine.runs.kept.kept_files import KeptFiles
from ranks.engine.sharding import rng
from ranks.engine.sharding.batch import Shards, StepBatch
from ranks.errors import UserError
from ranks.search.game import Game
from ranks.selfplay.checks.symmetry import check_symmetry
from ranks.selfplay.checks.trees import check_game
from ranks.selfplay.config import ReplayConfig
from ranks.selfplay.games import Games
from ranks.selfplay.losses import Targets
from ranks.selfplay.net.encoding import Symmetry
from ranks.selfplay.replay.game_moves import FOLDER, GameMoves
from ranks.selfplay.replay.part import Part, read


class ReplayWindow:
    """One immutable part for each iteration; the oldest are dropped. Every rank holds the same positions.

    window.add(games)
    for batch in window.batches(global_batch):
        stats = learner.step(loss, batch)
    """

    def __init__(self, game: Game, cfg: ReplayConfig, world: World, symmetry: Symmetry | None = None) -> None:
        """`symmetry`: the mirror image of positions, for `ReplayConfig.mirror`. Raises UserError where it is none."""
        self.game, self.cfg, self.world = game, cfg, world
        self.symmetry = symmetry if cfg.mirror else None
        if self.symmetry is not None:
            check_symmetry(game, self.symmetry)
        self.parts: list[Part] = []
        """In the order of the files."""
        self._kept = KeptFiles(world, FOLDER)
        self.added = 0
        """Positions of all iterations so far, those that were dropped included."""
        self.updates = 0
        """Batches that were drawn so far."""

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts)

    @property
    def plan(self) -> dict[str, Any]:
        """What the plan of a run says about the window."""
        window = "newest iteration" if self.cfg.on_policy else self.cfg.positions
        return {"window_positions": window, "reuse": self.cfg.reuse}

    def add(self, games: Games) -> None:
        """Add the positions with a full search as a part, and drop the oldest parts that the window does
        not need. Every rank calls it inside the loop of an open run. Raises UserError where the disk is
        full."""
        part = Part.of(games)
        if len(part):
            file = self._kept.write(games.iteration, {**vars(part), **vars(GameMoves.of(games))})
            self.parts.append(Part.opened(self._kept.open(file)))
        self.added += len(part)
        while self.parts and self._is_first_dropped(is_newest_empty=not len(part)):
            self._kept.drop(self._kept.files[0])
            self.parts.pop(0)

    def _is_first_dropped(self, is_newest_empty: bool) -> bool:
        if self.cfg.on_policy:
            return is_newest_empty or len(self.parts) > 1
        return len(self) - len(self.parts[0]) >= self.cfg.positions

    def batches(self, global_batch: int) -> Iterator[StepBatch[Targets]]:
        """As many batches as are due: reuse * (positions added so far - first_positions) / `global_batch`, less those
        drawn.

        Each position is drawn uniformly from the window, with replacement, and with a symmetry mirrored or
        not; the random numbers depend on the number of the batch and the index in it. With
        `ReplayConfig.on_policy` see `_passes`; call it once an iteration. Every rank takes all of them.
        Raises Stopped between two batches, if a stop was requested; UserError where the window is smaller than a
        batch, or where on_policy has never had enough positions for one.
        """
        self.cfg.check_batch(global_batch)
        poll = PollInterval(self.world.comm)
        first, due = self.updates, self._due(global_batch)
        if not due and not self.updates and not self.cfg.on_policy:
            asked = f"--replay.first-positions {self.cfg.first_positions:,} and --replay.reuse {self.cfg.reuse:g}"
            self.world.session.warn(f"no update is due yet: {self.added:,} positions so far, with {asked}")
        if not due and self.updates and self.cfg.on_policy:
            few = f"this iteration has {self._offered}, fewer than a batch of {global_batch:,}"
            self.world.session.warn(f"{few}: it has no update; give more games an iteration, or a smaller batch")
        draw = self._passes if self.cfg.on_policy else self._with_replacement
        for batch in draw(global_batch, due):
            self.world.session.progress("updates", self.updates - first, due)
            self.updates += 1
            yield batch
            if poll.due():
                self.world.check_stop()

    @property
    def _offered(self) -> str:
        """What an iteration with on_policy has for its updates."""
        return f"{len(self):,} positions, with --replay.reuse {self.cfg.reuse:g}"

    def _due(self, global_batch: int) -> int:
        """How many batches are to be drawn now."""
        if self.cfg.on_policy:
            return int(self.cfg.reuse * len(self) / global_batch)
        counted = max(0, self.added - self.cfg.first_positions)
        return max(0, int(self.cfg.reuse * counted / global_batch) - self.updates) if len(self) else 0

    def _with_replacement(self, global_batch: int, due: int) -> Iterator[StepBatch[Targets]]:
        for number in range(self.updates, self.updates + due):
            yield self.batch(global_batch, number)

    def _passes(self, global_batch: int, due: int) -> Iterator[StepBatch[Targets]]:
        """Passes over the positions of the newest iteration, each in a random order; what is left behind
        the last full batch is not used."""
        if not due and len(self) and not self.updates:
            found = f"with --replay.on-policy an iteration has {self._offered}"
            do = "give more games an iteration, or a smaller batch"
            raise UserError(f"a batch of {global_batch:,} positions", found, do)
        rest, passes = torch.empty(0, dtype=torch.int64), itertools.count()
        for _ in range(due):
            while len(rest) < global_batch:  # one pass at a time: many do not fit in memory
                key = rng.key(self.world.seed, f"replay/pass/{next(passes)}", self.added)
                rest = torch.cat([rest, rng.permutation(key, len(self))])
            yield self._of(rest[:global_batch], self.updates)
            rest = rest[global_batch:]

    def batch(self, global_batch: int, number: int) -> StepBatch[Targets]:
        """Batch `number` of the run, from 0: this rank's part."""
        key = rng.key(self.world.seed, "replay", number)
        return self._of(rng.integers(key, torch.arange(global_batch), 1, len(self))[:, 0], number)

    def _of(self, chosen_B: Tensor, number: int) -> StepBatch[Targets]:
        """This rank's part of batch `number`, of these positions of the window or their mirror images."""
        if self.symmetry is not None:
            key = rng.key(self.world.seed, "replay/mirror", number)
            chosen_B = chosen_B + len(self) * rng.integers(key, torch.arange(len(chosen_B)), 1, 2)[:, 0]
        shards = Shards.assigned(chosen_B, self.world.assignment, self.world.rank)
        read_now = partial(self._read, tuple(self.parts))  # the update may be repeated when the window has moved on
        return StepBatch(shards, read_now, item="positions")

    def spread(self, count: int) -> Tensor:
        """The indices of at most `count` positions, spread evenly over the newest iteration that has any: the same on
        any number of ranks."""
        newest = len(self.parts[-1]) if self.parts else 0
        count = min(count, newest)
        return len(self) - newest + torch.arange(count) * newest // max(count, 1)

    def gather(self, ids_B: Tensor) -> Targets:
        """The positions with these indices in the window, on the device; from len(window) on their mirror images,
        where the window has a symmetry."""
        return self._read(self.parts, ids_B)

    def _read(self, parts: Sequence[Part], ids_B: Tensor) -> Targets:
        image_B, index_B = np.divmod(ids_B.numpy(), sum(len(part) for part in parts))
        batch = read(parts, index_B, self.game)
        batch.is_mirrored_B[:] = image_B
        return batch.targets(self.cfg.root_value, self.world.device, self.symmetry)

    def state_dict(self) -> dict[str, Any]:
        """The names of the parts and the counters."""
        return {"game": self.game.name, "added": self.added, "updates": self.updates, "parts": self._kept.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Open the parts that a checkpoint names. Raises UserError where one does not belong to this game."""
        check_game(self.game, state["game"], "positions")
        self.added, self.updates = state["added"], state["updates"]
        self._kept.load_state_dict(state["parts"])
        self.parts = [Part.opened(self._kept.open(file)) for file in self._kept.files]
        words = {part.state_PW.shape[1] for part in self.parts} - {len(self.game.initial)}
        if words:
            found = f"the replay window holds positions of {words.pop()} words"
            raise UserError(f"{self.game.name}, {len(self.game.initial)} words", found, "give the run another --name")
