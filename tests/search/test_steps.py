"""`Search.steps` and `Search.run`: batches, early stops, slots that end at different times, evaluators that raise."""

from __future__ import annotations

import itertools
from typing import Literal

import numpy as np
import pytest

from ranks.errors import UserError
from ranks.search.config import SearchConfig
from ranks.search.evaluation import Evaluation, Leaves, uniform_evaluator
from ranks.search.games.connect_four import CONNECT_FOUR
from ranks.search.games.tictactoe import TICTACTOE
from ranks.search.scheduler import empty_leaves
from ranks.search.search import Search
from tests.search import reference


def idle(search: Search) -> list[int]:
    """The slots with nothing to do."""
    return search.group(0, empty_leaves(search.game, search.num_games)).idle().tolist()


@pytest.mark.parametrize(("games", "groups", "rows"), [(5, 1, 10), (5, 2, 6), (1, 2, 2), (128, None, 128)])
def test_batches_have_one_size_and_no_finished_games(games: int, groups: int | None, rows: int) -> None:
    config = SearchConfig(simulations=50, leaves_per_game=2)
    search = Search(TICTACTOE, config, games, groups=groups)
    for slot in range(0, games, 2):
        search.set_root(slot, slot, [0, 3, 1, 4] if slot else [])
    batch_sizes: list[int] = []

    def evaluator(leaves: Leaves) -> Evaluation:
        batch_sizes.append(len(leaves.num_moves_B))
        for words, moves, count in zip(*leaves, strict=True):
            if count:
                node = reference.new_node(TICTACTOE, words[None].copy(), [])
                assert node.outcome is None
                assert node.moves == moves[:count].tolist()
        return uniform_evaluator(leaves)

    result = search.run(evaluator)
    assert set(batch_sizes) == {rows}
    assert search.batch_size == rows
    assert result.simulations_P.tolist() == [50 if slot % 2 == 0 else 0 for slot in range(games)]
    assert result.num_moves_P[1:2].tolist() == [0] * (games > 1)
    assert search.times.num_rows == sum(batch_sizes)
    assert 0 < search.times.num_leaves <= search.times.num_rows
    assert search.times.tree_s > 0
    assert 0 < search.times.evaluation_s < search.times.wall_s


def test_a_loop_that_was_left_early_is_resumed_by_the_next() -> None:
    uninterrupted = Search(CONNECT_FOUR, SearchConfig(simulations=200), 4, groups=2)
    interrupted = Search(CONNECT_FOUR, SearchConfig(simulations=200), 4, groups=2)
    for search, slot in itertools.product((uninterrupted, interrupted), range(4)):
        search.set_root(slot, slot)
    uninterrupted.run(reference.hash_evaluator)
    interrupted.begin()
    num_steps, simulations_done = 0, []
    while interrupted.trees.slots_G["simulations_left"].any():
        for _ in interrupted.steps(reference.hash_evaluator):
            num_steps += 1
            if num_steps % 7 == 0:
                break
        assert (interrupted.trees.pending_GL == -1).all()
        simulations_done.append(int(interrupted.result().visits_PM.sum()))
        assert simulations_done[-1] == interrupted.trees.slots_G["simulations_done"].sum()
    assert len(simulations_done) > 5
    for slot in range(4):
        assert reference.searched_tree(interrupted, slot) == reference.searched_tree(uninterrupted, slot)


@pytest.mark.parametrize("root", ["puct", "gumbel"])
def test_a_search_that_was_left_does_not_go_on_after_a_move(root: Literal["puct", "gumbel"]) -> None:
    search = Search(CONNECT_FOUR, SearchConfig(simulations=200, root=root), 2)
    for slot in range(2):
        search.set_root(slot, slot)
    search.begin()
    for _ in itertools.islice(search.steps(reference.hash_evaluator), 50):
        pass
    search.play(search.result().chosen_P)
    before = search.result([0])
    search.begin([1], 10)
    ended = np.concatenate([*search.steps(reference.hash_evaluator)])
    assert ended.tolist() == [1]
    assert np.array_equal(search.result([0]).visits_PM, before.visits_PM)
    assert search.result([1]).simulations_P.tolist() == [10]


def test_a_slot_that_is_being_searched_cannot_be_played() -> None:
    search = Search(CONNECT_FOUR, SearchConfig(simulations=20), 2)
    search.set_root(0, 0)
    search.begin()
    for _ in search.steps(uniform_evaluator):
        if (search.trees.pending_GL[0] != -1).any():
            with pytest.raises(UserError, match="slot 0"):
                search.play([3], [0])
            with pytest.raises(UserError, match="slot 0"):
                search.begin([0])
    search.play([3], [0])


def test_should_stop_works_where_every_simulation_ends_in_a_finished_game() -> None:
    """No leaf needs an evaluation there, and the search still yields regularly."""
    search = Search(TICTACTOE, SearchConfig(simulations=100_000, edges_per_node=9, reuse=False), 1)
    search.set_root(0, 0, [0, 3, 1, 4])
    calls = iter(range(10**9))
    result = search.run(uniform_evaluator, should_stop=lambda: next(calls) >= 30)
    assert 30 < result.simulations_P[0] < 3000
    assert search.principal_variation(0) == [2]
    assert result.value_P[0] > 0.8


def test_slots_are_played_and_searched_again_as_they_end() -> None:
    """Games that do not wait for each other are equal to games that are searched one at a time."""
    config = SearchConfig(simulations=24, dirichlet_fraction=0.25, seed=2)
    games: dict[int, list[int]] = {slot: [] for slot in range(6)}
    search = Search(CONNECT_FOUR, config, 6, groups=2)
    for slot in games:
        search.set_root(slot, slot)
    search.begin(simulations=np.array([24, 3, 9, 24, 5, 1]))
    for ended_P in search.steps(reference.hash_evaluator):
        result = search.result(ended_P)
        for slot, move in zip(ended_P.tolist(), result.chosen_P.tolist(), strict=True):
            games[slot].append(move)
        search.play(result.chosen_P, ended_P)
        search.begin([slot for slot in ended_P.tolist() if len(games[slot]) < 5], 24 // 2)
    assert {len(moves) for moves in games.values()} == {5}
    for slot, first in enumerate([24, 3, 9, 24, 5, 1]):
        single = Search(CONNECT_FOUR, config, 1)
        single.set_root(0, slot)
        moves: list[int] = []
        for simulations in [first, 12, 12, 12, 12]:
            moves.append(int(single.run(reference.hash_evaluator, simulations).chosen_P[0]))
            single.play([moves[-1]])
        assert moves == games[slot]


@pytest.mark.parametrize("root", ["puct", "gumbel"])
def test_no_virtual_loss_remains_after_a_search_with_several_leaves_per_game(root: Literal["puct", "gumbel"]) -> None:
    search = Search(CONNECT_FOUR, SearchConfig(simulations=300, root=root, leaves_per_game=8), 1)
    search.set_root(0, 0, [3])
    result = search.run(reference.hash_evaluator)

    def check(node: int, visits: int) -> float:
        """The sum of values that the edge above must have, from the evaluations below it."""
        record = search.trees.nodes_N[node]
        total = float(record["value"]) * (1 if record["num_edges"] > 0 else visits)
        below = 0
        for edge in range(record["first_edge"], record["first_edge"] + max(record["num_initialized"], 0)):
            entry = search.trees.edges_E[edge]
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


def test_a_search_resumes_after_an_evaluator_raised() -> None:
    search = Search(CONNECT_FOUR, SearchConfig(simulations=40), 4, groups=2)
    uninterrupted = Search(CONNECT_FOUR, SearchConfig(simulations=40), 4, groups=1)
    for slot in range(4):
        search.set_root(slot, slot)
        uninterrupted.set_root(slot, slot)
    calls = itertools.count()

    def failing(leaves: Leaves) -> Evaluation:
        if next(calls) == 11:
            raise RuntimeError("out of memory")
        return reference.hash_evaluator(leaves)

    with pytest.raises(RuntimeError, match="out of memory"):
        search.run(failing)
    for _ in search.steps(failing):
        pass
    uninterrupted.run(reference.hash_evaluator)
    assert [reference.searched_tree(search, slot) for slot in range(4)] == [
        reference.searched_tree(uninterrupted, slot) for slot in range(4)
    ]


@pytest.mark.parametrize("root", ["puct", "gumbel"])
def test_a_search_without_simulations_evaluates_the_root(root: Literal["puct", "gumbel"]) -> None:
    search = Search(CONNECT_FOUR, SearchConfig(simulations=8, root=root), 3, groups=2)
    for slot in range(3):
        search.set_root(slot, slot, [3] * slot)
    search.begin([0, 1], 0)
    assert idle(search) == [2]
    ended = [slot for slots_P in search.steps(uniform_evaluator) for slot in slots_P.tolist()]
    assert sorted(ended) == [0, 1]
    result = search.result()
    assert result.num_moves_P.tolist() == [7, 7, 0]
    assert result.visits_PM.sum() == result.simulations_P.sum() == 0
    assert idle(search) == list(range(search.num_games))
    search.begin([0])
    for _ in search.steps(uniform_evaluator):
        pass
    assert search.result([0]).simulations_P.tolist() == [8]


@pytest.mark.parametrize("parts", [1, 2, 5])
def test_a_loop_of_the_callers_own_equals_steps(parts: int) -> None:
    """A group that is stepped by hand, also in more parts than there are slots."""
    searches = [Search(CONNECT_FOUR, SearchConfig(simulations=20, root="gumbel"), 4, groups=1) for _ in range(2)]
    for search in searches:
        for slot in range(4):
            search.set_root(slot, slot)
    by_steps, by_hand = searches
    by_steps.run(uniform_evaluator)
    leaves = Leaves(np.zeros((3, 2), np.uint64), np.zeros((3, 7), np.uint16), np.zeros(3, np.int32))
    group = by_hand.group(1, leaves)
    assert group.slots_P.tolist() == [1, 2, 3]
    by_hand.begin(group.slots_P)
    group.simulate(group.slots_P, parts)
    while len(group.idle()) < len(group.slots_P):
        group.evaluation = uniform_evaluator(group.leaves)
        group.simulate(group.slots_P, parts)
    expected = by_steps.result([1, 2, 3])
    for name, array in by_hand.result([1, 2, 3])._asdict().items():
        np.testing.assert_array_equal(array, getattr(expected, name), name)
    assert (by_hand.states() == by_hand.states([0])).all()
    by_hand.play([3], [2])
    assert by_hand.states([2]).tolist() == [by_hand.state(2).tolist()] != by_hand.states([1]).tolist()


def test_a_bad_evaluation_of_one_of_several_threads_is_named() -> None:
    search = Search(CONNECT_FOUR, SearchConfig(simulations=8), 8, groups=1)
    for slot in range(8):
        search.set_root(slot, slot)
    search.begin()
    group = search.group(0, empty_leaves(CONNECT_FOUR, 8))
    group.simulate(group.slots_P, 4)
    group.evaluation = uniform_evaluator(group.leaves)
    group.evaluation.value_B[5] = np.nan
    with pytest.raises(UserError, match="leaf 5 in a batch of 8"):
        group.simulate(group.slots_P, 4)


def test_without_simulations_every_root_is_evaluated_also_in_the_second_group() -> None:
    search = Search(CONNECT_FOUR, SearchConfig(simulations=8), 4, groups=2)
    for slot in range(4):
        search.set_root(slot, slot)
    ended: list[int] = []
    for slots in ([0, 1], [2, 3]):
        search.begin(slots, 0)
        for slots_P in search.steps(uniform_evaluator):
            ended += slots_P.tolist()
    assert search.result().num_moves_P.tolist() == [7] * 4
    assert idle(search) == list(range(search.num_games))
    assert ended == [0, 1, 2, 3]


def test_a_search_without_simulations_that_was_left_early_is_complete() -> None:
    search = Search(CONNECT_FOUR, SearchConfig(simulations=8), 4, groups=1)
    for slot in range(4):
        search.set_root(slot, slot)
    search.begin(simulations=0)
    for _ in search.steps(uniform_evaluator):
        break
    assert search.result().num_moves_P.tolist() == [7] * 4
    assert idle(search) == list(range(search.num_games))
    assert [slot for slots_P in search.steps(uniform_evaluator) for slot in slots_P.tolist()] == [0, 1, 2, 3]
