"""Tree search over many games at once: AlphaZero's PUCT and Gumbel search.

One simulation adds one node to the tree of one game. In pseudo-code, with the function that does each line:

    select    node = root                                                    traverse                     simulate.py
              while node is evaluated:                                       is_evaluated                 trees.py
                  PUCT: edge = argmax Q(a) + U(a)                            select_edge_puct             puct.py
                  Gumbel, root: edge = best of the considered moves          select_edge_gumbel_root      gumbel.py
                  Gumbel, interior: edge = argmax pi'(a) - visit share       select_edge_gumbel_interior  gumbel.py
                  node = child behind the edge, created if it is new         add_child                    simulate.py
    expand    if the game is over at node: value = its outcome               outcome_of                   game.py
              else: priors, value = network(node)                            GameGroup.evaluate           scheduler.py
                    store them in node                                       expand                       simulate.py
    backup    for each edge from node up to the root:                        backup                       simulate.py
                  value = -value                                             the side to move changes
                  N(edge) += 1;  W(edge) += value                            Q = W / N is mean_value      trees.py

The kernel `step` (simulate.py) does this for many games: it expands and backs up the leaves that the network has
evaluated, then selects the next leaf of each game. The leaves of all games make one batch for the network. With several
leaves of one game in a batch, `add_virtual_loss` makes them differ. `prepare_root` (roots.py) adds the noise of the
root. Which games are stepped when, and on which threads: scheduler.py.

Legend: G slots, P some of them, T moves of a game, W words of a state.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ranks.errors import UserError
from ranks.search.arguments import (
    check_game_id,
    check_moves,
    check_simulations,
    check_slot,
    check_slots,
    check_state,
)
from ranks.search.config import SearchConfig
from ranks.search.evaluation import BoolArray, Evaluator, Float64Array, Int64Array, Leaves, Moves, Words
from ranks.search.game import LEGAL_MOVES, PLAY, CompiledRule, Game, outcome_of
from ranks.search.gumbel import considered_visits
from ranks.search.result import SearchResult, principal_variation, read_result
from ranks.search.roots import begin, play_moves, set_root
from ranks.search.scheduler import MIN_GAMES_PER_THREAD, GameGroup, Scheduler, SearchTimes
from ranks.search.simulate import step
from ranks.search.trees import NONE, UNEVALUATED, allocate_trees, search_params, tree_sizes


class Search:
    """Searches `num_games` games at once; each has a slot.

        search = Search(CONNECT_FOUR, SearchConfig(simulations=100), num_games=256)
        for slot in range(256):
            search.set_root(slot, game_id=slot)
        result = search.run(evaluator)
        search.play(result.chosen_P)

    A game's tree depends only on the seed, the game's id, its moves and its evaluations. It does not depend on
    the slot, the other games, `threads` or `groups`. Slots that are not set, and games that are over, take no part. An
    argument out of range, for example a slot that does not exist, raises UserError, and nothing is changed.

    `threads` work on trees; the evaluator runs in the caller's thread. A thread gets at least `min_games_per_thread`
    games. `groups` is 1 or 2; by default 2 from 128 games on. With two groups, the trees of one are stepped while the
    other is evaluated. With one, batches are twice as large, which is better where the evaluator uses the same cores as
    the trees. A batch always has batch_size = ceil(num_games / groups) * leaves_per_game rows.
    """

    def __init__(
        self,
        game: Game,
        config: SearchConfig,
        num_games: int,
        threads: int = 1,
        groups: int | None = None,
        *,
        min_games_per_thread: int = MIN_GAMES_PER_THREAD,
    ) -> None:
        if num_games < 1 or threads < 1 or groups not in (None, 1, 2) or min_games_per_thread < 1:
            raise UserError(
                f"num_games = {num_games}, threads = {threads}, groups = {groups}, "
                f"min_games_per_thread = {min_games_per_thread}",
                "less than one game or thread, or groups other than 1 and 2",
                "give at least one game and one thread, and 1 or 2 groups",
            )
        self.game, self.config, self.num_games = game, config, num_games
        self._play = CompiledRule(game.play, PLAY)
        self._legal_moves = CompiledRule(game.legal_moves, LEGAL_MOVES)
        self.sizes, self.params = tree_sizes(game, config), search_params(config)
        self.trees = allocate_trees(game, config, self.sizes, num_games)
        self._step = functools.partial(step, self._play, self._legal_moves, self.trees, self.sizes, self.params)
        self._scheduler = Scheduler(self._step, game, self.trees, threads, groups, min_games_per_thread)
        self.batch_size = self._scheduler.batch_size

    @property
    def times(self) -> SearchTimes:
        """Where the time went; assign a new SearchTimes() to start from zero."""
        return self._scheduler.times

    @times.setter
    def times(self, times: SearchTimes) -> None:
        self._scheduler.times = times

    def set_root(self, slot: int, game_id: int, moves: Sequence[int] | Moves = (), start: Words | None = None) -> None:
        """Put a game into a slot: `start` (the game's initial state if None) and the moves played from it.

        `start` has shape (W,) or (1, W); that it is a state of the game is not checked. `game_id`, 64 bits, and the
        number of moves are the key of the root's noise. The repetition rule does not see positions before `start`.
        Raises UserError for a move that is not legal; the slot is then empty.
        """
        slot, key = check_slot(slot, self.num_games), check_game_id(game_id)
        state_W, moves_T = check_state(start, self.game), check_moves(moves)
        illegal = set_root(self._play, self._legal_moves, self.trees, self.sizes, slot, key, state_W, moves_T)
        self._scheduler.searching_G[slot] = False
        if illegal != NONE:
            raise UserError(
                f"{len(moves_T)} moves of {self.game.name}",
                f"move number {illegal} (from 0), {moves_T[illegal]}, is not legal there",
                "give legal moves",
            )

    def clear(self, slot: int) -> None:
        """Empty a slot."""
        root = self._root(slot)
        self.trees.nodes_N["num_edges"][root] = 0
        self.trees.nodes_N["num_initialized"][root] = UNEVALUATED
        self.trees.slots_G["simulations_left"][slot] = 0
        self.trees.slots_G["evaluate_root"][slot] = 0
        self.trees.pending_GL[slot] = NONE
        self._scheduler.searching_G[slot] = False

    def begin(
        self,
        slots: Sequence[int] | Int64Array | None = None,
        simulations: int | Int64Array | None = None,
        noise: bool | BoolArray = True,
    ) -> None:
        """Begin a new search in these slots (all if None); the work is done by `steps`.

        `simulations` is one number or one for each slot, at most the config's. A root without an evaluation gets one,
        which does not count as a simulation; with 0 simulations that is all. `noise` is one flag or one for each slot:
        whether the search has the config's noise at the root. Noise that a `puct` root has stays.
        """
        slots_P = self._idle(slots)
        most = self.config.simulations
        simulations_P = check_simulations(most if simulations is None else simulations, len(slots_P), most)
        root_P = slots_P * self.sizes.nodes_per_game
        if self.config.count_reused:
            reused_P = np.where(
                self.trees.nodes_N["num_initialized"][root_P] == UNEVALUATED,
                0,
                self.trees.slots_G["root_visits"][slots_P] - 1,
            )
            simulations_P = np.maximum(simulations_P - reused_P, 0)
        if self.config.root == "gumbel":
            considered_P = np.minimum(self.trees.nodes_N["num_edges"][root_P], self.config.num_considered)
            for considered, count in {*zip(considered_P.tolist(), simulations_P.tolist(), strict=True)}:
                rows = slots_P[(considered_P == considered) & (simulations_P == count)]
                self.trees.considered_visits_GS[rows, :count] = considered_visits(considered, count)
        noise_P = np.broadcast_to(np.asarray(noise, np.bool_), slots_P.shape).copy()
        begin(self.trees, self.sizes, self.params, slots_P, simulations_P, noise_P)
        self._scheduler.searching_G[slots_P] = self._is_wanted(slots_P)

    def steps(self, evaluator: Evaluator) -> Iterator[Int64Array]:
        """Search until every simulation is done; yields after each step the slots whose search ended in it, if any.

        Between two steps the caller may read any slot, and may play and begin again those that were yielded: their
        games continue without waiting for others. The caller may leave the loop early (a deadline, a stop): the pending
        leaves are evaluated and backed up, and another `steps` resumes where this one ended.
        """
        return self._scheduler.steps(evaluator)

    def run(
        self,
        evaluator: Evaluator,
        simulations: int | Int64Array | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> SearchResult:
        """Search all slots, from `begin` to `result`; `should_stop` is called once a step."""
        self.begin(simulations=simulations)
        for _ in self.steps(evaluator):
            if should_stop is not None and should_stop():
                break
        return self.result()

    def group(self, first_slot: int, leaves: Leaves) -> GameGroup:
        """The slots from `first_slot` on, as many as `leaves` has room for, for a loop of the caller's own.

        The caller evaluates the leaves into `group.evaluation` and steps slots with `group.simulate`.
        """
        end = min(self.num_games, first_slot + len(leaves.num_moves_B) // self.config.leaves_per_game)
        return GameGroup(self._step, self.trees, first_slot, end, self.config.leaves_per_game, leaves)

    def result(self, slots: Sequence[int] | Int64Array | None = None) -> SearchResult:
        """The results of the last searches of these slots (all if None), in new arrays."""
        return read_result(self.trees, self.sizes, self.params, self._slots(slots))

    def play(self, moves: Sequence[int] | Int64Array | Moves, slots: Sequence[int] | Int64Array | None = None) -> None:
        """Play one move in each of these slots (all if None). Raises UserError for a move that is not legal."""
        slots_P, moves_P = self._idle(slots), check_moves(moves)
        if moves_P.shape != slots_P.shape:
            raise UserError(f"{len(moves_P)} moves", f"{len(slots_P)} slots", "give one move for each slot")
        illegal = play_moves(self._play, self._legal_moves, self.trees, self.sizes, self.params, slots_P, moves_P)
        self._scheduler.searching_G[slots_P] = self._is_wanted(slots_P)
        if illegal != NONE:
            raise UserError(
                f"move {moves_P[illegal]} in slot {slots_P[illegal]}",
                f"not a legal move of {self.game.name} there; the slots before it have moved",
                "play a move that the result lists",
            )

    def outcome(self, slots: Sequence[int] | Int64Array | None = None) -> Float64Array:
        """How the game of each slot (all if None) ended for the side to move, -1, 0 or 1; NaN while it is not over."""
        num_moves_P = self.trees.nodes_N["num_edges"][self._slots(slots) * self.sizes.nodes_per_game]
        return np.where(num_moves_P < 0, outcome_of(num_moves_P), np.nan)

    def state(self, slot: int) -> Words:
        """The position at the root of a slot: a copy, W words."""
        return self.trees.states_NW[self._root(slot)].copy()

    def states(self, slots: Sequence[int] | Int64Array | None = None) -> Words:
        """The positions at the roots of these slots (all if None), one row of W words each: a copy."""
        return self.trees.states_NW[self._slots(slots) * self.sizes.nodes_per_game]

    def legal_moves(self, slot: int) -> Moves:
        """The legal moves at the root of a slot: a copy; none if the game is over or the slot empty."""
        root = self._root(slot)
        first = self.trees.nodes_N["first_edge"][root]
        return self.trees.move_E[first : first + max(0, self.trees.nodes_N["num_edges"][root])].copy()

    def principal_variation(self, slot: int, move: int | None = None) -> list[int]:
        """The most visited moves from the root on. With `move`, the line starts with this move of the root."""
        return principal_variation(self.trees, self.sizes, check_slot(slot, self.num_games), move)

    def _slots(self, slots: Sequence[int] | Int64Array | None) -> Int64Array:
        return check_slots(slots, self.num_games)

    def _root(self, slot: int) -> int:
        return check_slot(slot, self.num_games) * self.sizes.nodes_per_game

    def _is_wanted(self, slots_P: Int64Array) -> BoolArray:
        """Whether a search has simulations left to begin, or a root to evaluate."""
        left_G, root_G = self.trees.slots_G["simulations_left"], self.trees.slots_G["evaluate_root"]
        return (left_G[slots_P] > 0) | (root_G[slots_P] != 0)

    def _idle(self, slots: Sequence[int] | Int64Array | None) -> Int64Array:
        """The slots, if none of them has leaves out for evaluation."""
        slots_P = self._slots(slots)
        busy_P = (self.trees.pending_GL[slots_P] != NONE).any(axis=1)
        if busy_P.any():
            raise UserError(
                f"a change of slot {slots_P[busy_P][0]}",
                "it has leaves out for evaluation",
                "change slots that `steps` has yielded, leave the loop first, or call set_root again",
            )
        return slots_P
