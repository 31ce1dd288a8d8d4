"""Scores of a UCI engine, from a pool on each host, with a cache.

Where the ranks train on the CPU they have all cores, so the engines work while the ranks wait, and the other way round.
Where they train on GPUs, the engines have all cores but two for each rank, one of them for the thread that reads ahead,
and label a part while the one before it trains.

Legend: N positions.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import nullcontext

import numpy as np

from ranks.engine.distributed.agree import on_every_rank
from ranks.engine.distributed.precision import one_thread
from ranks.engine.distributed.world import World
from ranks.errors import UserError
from ranks.workloads.chess_value.config import LabelConfig
from ranks.workloads.chess_value.labelling.labeller import LabelledPart, cut, labelled, unscored
from ranks.workloads.chess_value.labels.teacher import TaughtLabels, Teacher, TeacherSettings, engines_here
from ranks.workloads.chess_value.players.net_player import OpenPlayer
from ranks.workloads.chess_value.positions.sourced import SourcedPositions

CORES_OF_A_RANK = 2
"""Where it trains on a GPU: one for its own thread, one for the thread that reads the next batches."""
WAIT_S = 0.1
"""Between two looks at whether all hosts are done and whether a stop was requested."""


def teacher_of(cfg: LabelConfig, busy: int, silence_s: float) -> Teacher:
    """The engines of this host, on which ranks train on `busy` cores at the same time. Raises UserError."""
    engines = engines_here(cfg.engines, busy)
    return Teacher(TeacherSettings(cfg.engine, cfg.limit, engines, cfg.cache, silence_s=silence_s))


class EngineLabels:
    """The first rank of each host has a pool of engines, which labels the host's share of the positions."""

    def __init__(self, cfg: LabelConfig, world: World) -> None:
        """Start the pools. Every rank calls it. Raises UserError, on all ranks, where a host has no engine or
        another one."""
        self._world = world
        self.overlaps = world.device.type != "cpu"
        """Whether a part is labelled while the one before it trains."""
        places = world.comm.gather_objects((world.rank, world.process_env.local_rank))
        self._hosts = sorted({rank for rank, local in places if local == 0})
        """The first rank of each host."""
        busy = CORES_OF_A_RANK * -(-world.size // len(self._hosts)) if self.overlaps else 0
        silence_s, mine = world.config.hang_timeout_s, world.rank in self._hosts
        self._teacher = on_every_rank(world, lambda: teacher_of(cfg, busy, silence_s) if mine else None)
        about = str(self._teacher.about) if self._teacher is not None else None
        found = [each for each in world.comm.gather_objects(about) if each is not None]
        if len(set(found)) > 1:
            self.close()
            do = "install the same version on all hosts, or name one with --label.engine"
            raise UserError("labels of one engine on all hosts", f"they differ: {'; '.join(sorted(set(found)))}", do)
        self.identity: str = found[0]

    def label(self, found: SourcedPositions, parts: int, open_player: OpenPlayer) -> Iterator[LabelledPart]:
        """See `Labeller`. The present net is not used."""
        pieces = [*cut(found, parts)]
        submitted: list[Future[TaughtLabels] | None] = []

        def submit_until(count: int) -> None:
            submitted.extend(self._submit(piece) for piece in pieces[len(submitted) : count])

        with one_thread() if self.overlaps else nullcontext():
            for number, piece in enumerate(pieces, start=1):
                submit_until(number + 1 if self.overlaps else number)
                mine = self._wait_for(submitted[number - 1], number, len(pieces))
                by_rank = dict(self._world.comm.gather_objects((self._world.rank, mine)))
                taught = [labels for _, labels in sorted(by_rank.items()) if labels is not None]
                yield labelled(piece, np.concatenate([labels.cp_N for labels in taught]))._replace(
                    cached=sum(labels.cached for labels in taught),
                    computed=sum(labels.computed for labels in taught),
                    seconds=max(labels.seconds for labels in taught),
                )

    def close(self) -> None:
        """End the engines."""
        if self._teacher is not None:
            self._teacher.close()

    def _submit(self, piece: SourcedPositions) -> Future[TaughtLabels] | None:
        """Give the pool of this host its share; None on ranks without a pool."""
        if self._teacher is None:
            return None
        share = self._hosts.index(self._world.rank)
        wanted = unscored(piece)
        first, end = (at * len(wanted) // len(self._hosts) for at in (share, share + 1))
        return self._teacher.submit(piece.boards_N13[wanted[first:end]])

    def _wait_for(self, labels: Future[TaughtLabels] | None, number: int, parts: int) -> TaughtLabels | None:
        """This host's labels of part `number`, from 1, once all hosts have theirs. Raises Stopped; a UserError on all
        ranks."""

        def unfinished() -> bool:
            return labels is not None and not wait([labels], WAIT_S).done

        while self._world.any(unfinished()):
            if self._teacher is not None:
                self._world.session.progress(f"labels of part {number} of {parts}", self._teacher.share_done, 1.0)
            self._world.check_stop()
        return on_every_rank(self._world, lambda: labels.result() if labels is not None else None)
