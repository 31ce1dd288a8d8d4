"""Batches, ticks, stops and clocks: how the search is driven, whatever the game."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ranks.errors import UserError
from ranks.search.config import SearchConfig
from ranks.search.evaluation import Evaluation, Leaves, uniform
from ranks.search.games.connect_four import CONNECT_FOUR
from ranks.search.games.tictactoe import TICTACTOE
from ranks.search.search import Search
from tests.search import twin


@pytest.mark.parametrize(("games", "groups", "rows"), [(5, 1, 10), (5, 2, 6), (1, 2, 2), (128, None, 128)])
def test_batches_have_one_size_and_no_finished_games(games: int, groups: int | None, rows: int) -> None:
    config = SearchConfig(simulations=50, leaves_per_game=2)
    search = Search(TICTACTOE, config, games, groups=groups)
    for slot in range(0, games, 2):
        search.set_root(slot, slot, [0, 3, 1, 4] if slot else [])
    seen: list[int] = []

    def evaluator(leaves: Leaves) -> Evaluation:
        seen.append(len(leaves.num_moves_B))
        for words, moves, count in zip(*leaves, strict=True):
            if count:
                node = twin.look(TICTACTOE, words[None].copy(), [])
                assert node.outcome is None
                assert node.moves == moves[:count].tolist()
        return uniform(leaves)

    result = search.run(evaluator)
    assert set(seen) == {rows}
    assert search.batch_size == rows
    assert result.simulations_P.tolist() == [50 if slot % 2 == 0 else 0 for slot in range(games)]
    assert result.num_moves_P[1:2].tolist() == [0] * (games > 1)
    assert search.times.num_rows == sum(seen)
    assert 0 < search.times.num_leaves <= search.times.num_rows
    assert search.times.tree_s > 0
    assert 0 < search.times.evaluation_s < search.times.wall_s


def test_leaving_the_loop_settles_the_tree_and_another_goes_on() -> None:
    straight = Search(CONNECT_FOUR, SearchConfig(simulations=200), 4, groups=2)
    broken = Search(CONNECT_FOUR, SearchConfig(simulations=200), 4, groups=2)
    for search, slot in itertools.product((straight, broken), range(4)):
        search.set_root(slot, slot)
    straight.run(twin.hashed)
    broken.begin()
    ticks, made = 0, []
    while broken.arena.slots_G["budget"].any():
        for _ in broken.ticks(twin.hashed):
            ticks += 1
            if ticks % 7 == 0:
                break
        assert (broken.arena.pending_GL == -1).all()
        made.append(int(broken.result().visits_PM.sum()))
        assert made[-1] == broken.arena.slots_G["made"].sum()
    assert len(made) > 5
    for slot in range(4):
        assert twin.told_by(broken, slot) == twin.told_by(straight, slot)


def test_a_slot_that_is_being_searched_cannot_be_played() -> None:
    search = Search(CONNECT_FOUR, SearchConfig(simulations=20), 2)
    search.set_root(0, 0)
    search.begin()
    for _ in search.ticks(uniform):
        if (search.arena.pending_GL[0] != -1).any():
            with pytest.raises(UserError, match="slot 0"):
                search.play([3], [0])
            with pytest.raises(UserError, match="slot 0"):
                search.begin([0])
    search.play([3], [0])


def test_a_deadline_stops_even_where_no_network_is_asked() -> None:
    """A position whose every simulation ends in a mate that is known still ticks."""
    search = Search(TICTACTOE, SearchConfig(simulations=100_000, edges_per_node=9, reuse=False), 1)
    search.set_root(0, 0, [0, 3, 1, 4])
    asked = iter(range(10**9))
    result = search.run(uniform, should_stop=lambda: next(asked) >= 30)
    assert 30 < result.simulations_P[0] < 3000
    assert search.principal_variation(0) == [2]
    assert result.value_P[0] > 0.8


def test_slots_go_on_by_themselves_as_they_end() -> None:
    """Games played without waiting for each other are the games played side by side."""
    config = SearchConfig(simulations=24, dirichlet_fraction=0.25, seed=2)
    games: dict[int, list[int]] = {slot: [] for slot in range(6)}
    search = Search(CONNECT_FOUR, config, 6, groups=2)
    for slot in games:
        search.set_root(slot, slot)
    search.begin(simulations=np.array([24, 3, 9, 24, 5, 1]))
    for ended_P in search.ticks(twin.hashed):
        result = search.result(ended_P)
        for slot, move in zip(ended_P.tolist(), result.chosen_P.tolist(), strict=True):
            games[slot].append(move)
        search.play(result.chosen_P, ended_P)
        search.begin([slot for slot in ended_P.tolist() if len(games[slot]) < 5], 24 // 2)
    assert {len(moves) for moves in games.values()} == {5}
    for slot, first in enumerate([24, 3, 9, 24, 5, 1]):
        alone = Search(CONNECT_FOUR, config, 1)
        alone.set_root(0, slot)
        moves: list[int] = []
        for simulations in [first, 12, 12, 12, 12]:
            moves.append(int(alone.run(twin.hashed, simulations).chosen_P[0]))
            alone.play([moves[-1]])
        assert moves == games[slot]


@pytest.mark.parametrize("root", ["puct", "gumbel"])
def test_several_leaves_of_one_game_leave_no_virtual_loss_behind(root: str) -> None:
    search = Search(CONNECT_FOUR, SearchConfig(simulations=300, root=root, leaves_per_game=8), 1)
    search.set_root(0, 0, [3])
    result = search.run(twin.hashed)

    def check(node: int, visits: int) -> float:
        """The mean that the edge above must have, from the evaluations below it."""
        record = search.arena.nodes_N[node]
        total = float(record["value"]) * (1 if record["num_edges"] > 0 else visits)
        below = 0
        for edge in range(record["first_edge"], record["first_edge"] + max(record["num_ready"], 0)):
            entry = search.arena.edges_E[edge]
            if entry["visits"] > 0:
                below += int(entry["visits"])
                value = -check(int(entry["child"]), int(entry["visits"]))
                assert entry["value_sum"] == pytest.approx(value, abs=1e-9)
                total += value
        assert record["num_edges"] < 0 or below == visits - 1
        return total

    check(0, 301)
    assert result.visits_PM.sum() == 300
    assert search.times.num_leaves / search.times.num_batches > 3


def test_an_evaluator_that_raises_leaves_a_search_that_goes_on() -> None:
    search = Search(CONNECT_FOUR, SearchConfig(simulations=40), 4, groups=2)
    straight = Search(CONNECT_FOUR, SearchConfig(simulations=40), 4, groups=1)
    for slot in range(4):
        search.set_root(slot, slot)
        straight.set_root(slot, slot)
    calls = itertools.count()

    def failing(leaves: Leaves) -> Evaluation:
        if next(calls) == 11:
            raise RuntimeError("out of memory")
        return twin.hashed(leaves)

    with pytest.raises(RuntimeError, match="out of memory"):
        search.run(failing)
    for _ in search.ticks(failing):
        pass
    straight.run(twin.hashed)
    assert [twin.told_by(search, slot) for slot in range(4)] == [twin.told_by(straight, slot) for slot in range(4)]
