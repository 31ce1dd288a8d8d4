"""Self-play: the source of experience of a net that learns a game from its own games.

Legend: G slots of all ranks.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from ranks.engine.distributed.world import World
from ranks.engine.sharding.assignment import shard_items
from ranks.engine.update.evaluate import eval_mode
from ranks.errors import UserError
from ranks.search.evaluation import Leaves
from ranks.search.game import Game
from ranks.search.scheduler import GameGroup
from ranks.selfplay.agreement import Agreement
from ranks.selfplay.checks.memory import check_memory
from ranks.selfplay.checks.rules import check_rules
from ranks.selfplay.checks.trees import check_game, check_trees
from ranks.selfplay.config import SelfPlayConfig
from ranks.selfplay.games import Games, ended_arrays
from ranks.selfplay.gather import gather_arrays
from ranks.selfplay.net.batch_evaluator import BatchEvaluator, BatchMemory
from ranks.selfplay.net.encoding import Encoding, check_move_indices, largest_move_index
from ranks.selfplay.net.evaluation_graphs import EvaluationGraphs
from ranks.selfplay.records import DTYPES, Records
from ranks.selfplay.search_settings import search_config
from ranks.selfplay.slots import Slots
from ranks.selfplay.times import PlayTimes, speed

Batch = tuple[GameGroup, BatchMemory]
SAVED = {name: dtype for name, dtype in DTYPES.items() if name != "state_PW"}
"""What a checkpoint holds of each move of an unfinished game; positions follow from the moves."""


class SelfPlay:
    """Plays games of a net against itself, in slots that are spread over the ranks.

        selfplay = SelfPlay(CONNECT_FOUR, encoding, slots, games_per_iteration, cfg, world)
        for iteration in run.iterations(iterations, long=True):
            games = selfplay.play(net, iteration)

    A slot starts a new game as soon as one ends, so a game's id is (slot, number in the slot). Every
    random number is a function of (seed, game id, ply). An unfinished game continues in the next
    iteration with the new weights and new trees.

    In each tick every slot gets one evaluation. Under --exact the slots of a shard are one batch of a
    fixed number of rows. In fast mode the slots of a rank are one batch on the CPU, and two on a device.
    """

    def __init__(
        self,
        game: Game,
        encoding: Encoding,
        slots: int,
        games_per_iteration: int,
        cfg: SelfPlayConfig,
        world: World,
    ) -> None:
        """`slots`: games played at the same time, all ranks together. `games_per_iteration`: an
        iteration ends soon after this many games have ended.

        Raises UserError for a game that is no game of two players without chance and hidden
        information, for rules that break their contract, where a rank has no slot, and where the trees
        and batches do not fit in memory. Every rank calls it.
        """
        seen = check_rules(game, cfg.max_plies)
        fewest = min(len(world.assignment.items_of(rank, slots)) for rank in range(world.size))
        if slots < 1 or fewest < 1:
            ranks = f"{world.size} ranks and {world.shards} shards"
            raise UserError(f"{slots} slots", f"with {ranks} a rank has none", _what_gives_slots(world))
        if games_per_iteration < 1:
            raise UserError(
                f"{games_per_iteration} games in an iteration", "an iteration plays at least one", "give 1 or more"
            )
        self.game, self.encoding, self.num_slots, self.cfg, self.world = game, encoding, slots, cfg, world
        self.games_per_iteration = games_per_iteration
        on_device = world.device.type != "cpu"
        self._num_logits = 1 + largest_move_index(encoding, seen, world.device)
        ids = world.items(slots)
        parts = self._parts(ids, 2 if on_device else 1)
        check_memory(game, len(ids), sum(rows for _, rows in parts), search_config(cfg, world.seed), world)
        threads = torch.get_num_threads() if on_device else 1
        self._slots = Slots(game, ids, cfg, world.seed, threads, staggered=on_device)
        if threads > 1:
            torch.set_num_threads(threads)  # the threads of trees may have changed it
        self._batches = [self._batch(part, rows) for part, rows in parts]
        has_graphs = world.device.type == "cuda" and cfg.cuda_graph
        self._graphs = EvaluationGraphs(self._warn_once) if has_graphs else None
        self._warnings: set[str] = set()
        """That were given."""
        self._speed: dict[str, float] = {}
        self._searches: dict[str, float] = {}

    def _warn_once(self, text: str) -> None:
        """Warn in the run that is open now; none is open yet while this object is made."""
        if text not in self._warnings:
            self._warnings.add(text)
            self.world.session.warn(text)

    def _parts(self, ids: range, parts: int) -> list[tuple[range, int]]:
        """The slots of each batch, and the rows of the batch."""
        if self.world.exact:
            rows = max(len(shard_items(s, self.num_slots, self.world.shards)) for s in range(self.world.shards))
            return [(part, rows) for _, part in self.world.shard_items(self.num_slots) if len(part)]
        bounds = [ids.start + len(ids) * i // parts for i in range(parts + 1)]
        rows = -(-len(ids) // parts)
        return [(range(a, b), rows) for a, b in itertools.pairwise(bounds) if b > a]

    def _batch(self, part: range, rows: int) -> Batch:
        memory = BatchMemory(self.game, rows, self.world.device)
        states_BW, moves_BM, num_moves_B = memory.leaves
        leaves = Leaves(states_BW[: len(part)], moves_BM[: len(part)], num_moves_B[: len(part)])
        return self._slots.search.group(part.start - self._slots.ids.start, leaves), memory

    @property
    def plan(self) -> dict[str, Any]:
        """What the plan of a run says about self-play."""
        per_rank = [len(self.world.assignment.items_of(rank, self.num_slots)) for rank in range(self.world.size)]
        return {
            "slots": self.num_slots,
            "slots_per_rank": per_rank,
            "games_per_iteration": self.games_per_iteration,
            "search": self.cfg.search,
            "simulations": 0 if self.cfg.search == "none" else self.cfg.simulations,
        }

    def play(self, net: Any, iteration: int) -> Games:
        """Play until `games_per_iteration` games have ended, and return all that ended, from all ranks.

        `net`: a module from planes to policy logits and value (`encoding.PolicyValueNet`). The ranks
        agree on the number of ended games every few ticks, while they play on; the iteration ends that
        many ticks later. Every rank calls it. Raises Stopped where a stop was requested; UserError
        where the net's outputs have wrong shapes or are no numbers, or where a move has no logit. Warns where an open
        run does not keep this object.
        """
        started = time.perf_counter()
        slots, world = self._slots, self.world
        world.session.warn_unless_kept(self, "a SelfPlay of this loop")
        if self.num_slots > self.games_per_iteration:
            few = f"{self.num_slots:,} slots and {self.games_per_iteration:,} games in an iteration"
            more = "the first iterations learn from the games that end first, the shortest"
            self._warn_once(f"{few}: {more}; give at least as many games as slots")
        slots.times = PlayTimes()
        with world.session.timed("acting"), eval_mode(net, world):
            slots.begin_iteration(iteration)
            evaluator = BatchEvaluator(self.encoding, world.device, slots.times, self._num_logits, self._graphs)
            agreement = Agreement(world, self.ticks_between_counts(iteration))
            try:
                self._play(net, evaluator, agreement)
            finally:
                for _, memory in self._batches:
                    evaluator.wait(memory)
                if self._graphs is not None:
                    self._graphs.clear()
            agreement.finish()
            games = self._gather()
        if 2 * int(games.truncated_N.sum()) > len(games):
            text = f"most games were cut at --selfplay.max-plies {self.cfg.max_plies}, and teach no outcome"
            self._warn_once(f"{text}: give as many plies as a game of {self.game.name} has")
        slots.times.wall_s = time.perf_counter() - started
        self._speed = speed(world.comm.gather_objects(slots.times.numbers()))
        self._searches = games.search_statistics()
        if self.cfg.resign_value is not None:
            is_checked_N = slots.is_checked(games.game_N)
            self._searches |= games.false_resignations(self.cfg.resign_value, is_checked_N)
        world.session.count("plies", len(games.records))
        return games

    def ticks_between_counts(self, iteration: int) -> int:
        """Ticks from one count of ended games to the next."""
        return 1 if self.cfg.search == "none" else max(1, self.cfg.simulations_at(iteration) // 8)

    def _play(self, net: Any, evaluator: BatchEvaluator, agreement: Agreement) -> None:
        slots = self._slots
        for group, memory in self._batches:
            slots.step(group, 0)
            evaluator.launch(net, memory)
        tick, last = 0, False
        while not last:
            started = time.perf_counter()
            ended = agreement.games(tick, len(slots.ended))
            slots.times.waiting_ranks_s += time.perf_counter() - started
            last = ended is not None and ended >= self.games_per_iteration
            if ended is not None:
                self.world.session.progress("games", ended, self.games_per_iteration)
            for group, memory in self._batches:
                evaluator.wait(memory)
                group.evaluation = memory.evaluation
                try:
                    slots.step(group, tick + 1)
                except UserError:
                    check_trees(self.game, slots.search.trees, group.slots_P)
                    check_move_indices(self.game, net, self.encoding, memory.leaves, self.world.device)
                    memory.check_numbers(f"in self-play, iteration {slots.iteration + 1}")
                    raise
                if not last:
                    evaluator.launch(net, memory)
            tick += 1

    def _gather(self) -> Games:
        """The games that ended on all ranks."""
        started = time.perf_counter()
        records = self._slots.end_iteration()
        mine = {**ended_arrays(self._slots.ended), **records.arrays()}
        ranks = gather_arrays(self.world.comm, mine)
        every = Records.cat([Records(**{name: of[name] for name in DTYPES}) for of in ranks])
        column = {name: np.concatenate([of[name] for of in ranks]) for name in mine if name.endswith("_N")}
        self._slots.times.gather_s += time.perf_counter() - started
        return Games(
            self._slots.iteration,
            game_N=column["game_N"],
            plies_N=column["plies_N"].astype(np.int32),
            outcome_N=column["outcome_N"].astype(np.int8),
            truncated_N=column["truncated_N"].astype(np.bool_),
            resigned_N=column["resigned_N"].astype(np.bool_),
            draw_kind_N=column["draw_kind_N"].astype(np.int8),
            draw_kinds=self.game.draw_kinds,
            records=every,
        )

    def statistics(self) -> dict[str, float]:
        """Metrics of the last iteration: rates and shares of the time over all ranks, and what the
        searches found."""
        return {**self._speed, **self._searches}

    def state_dict(self) -> dict[str, Any]:
        """The games of all slots: their numbers, and of the unfinished ones the moves with what the search said.

        Every rank calls it.
        """
        self.world.session.kept.add(id(self))
        arrays = {name: getattr(self._slots.unfinished, name) for name in SAVED}
        ranks = gather_arrays(self.world.comm, {"number_G": self._slots.number_G, **arrays})
        names = ("number_G", *SAVED)
        whole = {name: np.concatenate([of[name] for of in ranks]) for name in names}
        return {"game": self.game.name, **{name: torch.tensor(storable(array)) for name, array in whole.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` returned, on any number of ranks. Raises UserError where it does
        not belong to this game or number of slots."""
        self.world.session.kept.add(id(self))
        check_game(self.game, state["game"], "unfinished games")
        ids = self._slots.ids
        number_G = state["number_G"].numpy()
        if len(number_G) != self.num_slots:
            raise UserError(
                f"{self.num_slots} slots", f"the checkpoint has {len(number_G)}", f"give {len(number_G)} slots"
            )
        arrays = {name: state[name].numpy().view(dtype) for name, dtype in SAVED.items()}
        num_words = len(self.game.initial)
        every = Records(**arrays, state_PW=np.zeros((len(arrays["game_P"]), num_words), np.uint64))
        slot_P = every.game_P // 2**32
        mine = every.select(np.flatnonzero((slot_P >= ids.start) & (slot_P < ids.stop)))
        self._slots.restore(number_G[ids.start : ids.stop], mine)


def storable(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same bits in a type that every torch operation knows."""
    known: dict[str, Any] = {"uint16": np.int16, "bool": np.uint8}
    return np.ascontiguousarray(array).view(known.get(array.dtype.name, array.dtype))


def _what_gives_slots(world: World) -> str:
    """What to do where a rank has no slot."""
    if any(not len(world.assignment.shards_of(rank)) for rank in range(world.size)):
        return "give every rank a shard: --shares less far apart, or more --shards"
    fits = (n for n in range(1, world.shards) if all(len(world.assignment.items_of(r, n)) for r in range(world.size)))
    return f"give at least {next(fits, world.shards)} slots"
