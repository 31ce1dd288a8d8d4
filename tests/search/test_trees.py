"""Whole trees, compared exactly: with the reference implementation, with other batches and threads, and after reuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from ranks.chess.core.rules import CHESS
from ranks.errors import UserError
from ranks.search.config import SearchConfig
from ranks.search.evaluation import Evaluation, Leaves, uniform_evaluator
from ranks.search.game import Game
from ranks.search.games.connect_four import CONNECT_FOUR
from ranks.search.games.tictactoe import TICTACTOE
from ranks.search.search import Search
from tests.search import reference

GAMES = {game.name: game for game in (TICTACTOE, CONNECT_FOUR, CHESS)}
OPENINGS = {TICTACTOE.name: [[], [4], [0, 4, 8]], CONNECT_FOUR.name: [[], [3, 3], [3, 2, 3, 2]], CHESS.name: [[]]}
CONFIGS = {
    "puct": SearchConfig(simulations=120),
    "puct, other constants": SearchConfig(simulations=120, c_init=2.5, c_base=500, fpu_reduction=0.6),
    "gumbel": SearchConfig(simulations=120, root="gumbel", num_considered=5),
    "gumbel, as mctx": SearchConfig(simulations=90, root="gumbel", rescale_values=True, c_scale=0.1, seed=3),
}


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_trees_equal_those_of_the_reference_implementation(name: str, config: SearchConfig) -> None:
    search = Search(GAMES[name], config, num_games=len(OPENINGS[name]))
    for slot, moves in enumerate(OPENINGS[name]):
        search.set_root(slot, 100 + slot, moves)
    result = search.run(reference.hash_evaluator)
    for slot, moves in enumerate(OPENINGS[name]):
        root = reference.search(
            GAMES[name], config, reference.hash_evaluator, config.simulations, moves, game_id=100 + slot
        )
        assert reference.searched_tree(search, slot) == reference.as_dict(root)
        visits = dict(zip(root.moves, root.visits, strict=True))
        count = result.num_moves_P[slot]
        assert {int(m): int(v) for m, v in zip(result.moves_PM[slot], result.visits_PM[slot], strict=True) if v} == {
            move: n for move, n in visits.items() if n
        }
        policy = dict(zip(result.moves_PM[slot, :count].tolist(), result.policy_PM[slot, :count], strict=True))
        share = np.array(root.visits) / config.simulations
        expected = reference.improved_policy(root, config) if config.root == "gumbel" else share
        np.testing.assert_allclose([policy[move] for move in root.moves], expected, rtol=1e-9, atol=1e-12)


def batch(game: Game, config: SearchConfig, ids: list[int], threads: int, groups: int) -> dict[int, object]:
    """Trees by game id, after two moves of play."""
    search = Search(game, config, len(ids), threads, groups, min_games_per_thread=35)  # so that two threads have work
    for slot, game_id in enumerate(ids):
        search.set_root(slot, game_id, [game_id % 7])
    for _ in range(2):
        search.play(search.run(numpy_hash_evaluator).chosen_P)
    search.run(numpy_hash_evaluator)
    return {game_id: reference.searched_tree(search, slot) for slot, game_id in enumerate(ids)}


def numpy_hash_evaluator(leaves: Leaves) -> Evaluation:
    """A faster hash of the position than reference.hash_evaluator; each row depends on its own words only."""
    with np.errstate(over="ignore"):
        key_B = leaves.states_BW[:, 0] * np.uint64(0x9E3779B97F4A7C15) ^ leaves.states_BW[:, 1]
        mixed_BM = (key_B[:, None] + leaves.moves_BM + np.uint64(1)) * np.uint64(0xBF58476D1CE4E5B9)
    weight_BM = (mixed_BM >> np.uint64(40)).astype(np.float64) + 1.0
    weight_BM *= np.arange(weight_BM.shape[1]) < leaves.num_moves_B[:, None]
    total_B1 = np.maximum(weight_BM.sum(axis=1, keepdims=True), 1.0)
    value_B = (key_B * np.uint64(0x94D049BB133111EB) >> np.uint64(40)).astype(np.float64) / 2**24 - 0.5
    return Evaluation((weight_BM / total_B1).astype(np.float32), value_B.astype(np.float32))


@pytest.mark.parametrize("leaves_per_game", [1, 3])
@pytest.mark.parametrize("root", ["puct", "gumbel"])
def test_trees_do_not_depend_on_other_games_order_threads_and_groups(
    root: Literal["puct", "gumbel"], leaves_per_game: int
) -> None:
    config = SearchConfig(
        simulations=40, root=root, dirichlet_fraction=0.25, leaves_per_game=leaves_per_game, seed=5
    )  # fmt: skip
    ids = list(range(140))
    trees = batch(CONNECT_FOUR, config, ids, threads=1, groups=1)
    assert len({str(tree) for tree in trees.values()}) > 50
    assert batch(CONNECT_FOUR, config, ids[::-1], threads=2, groups=1) == trees
    assert batch(CONNECT_FOUR, config, ids[1::2] + ids[::2], threads=2, groups=2) == trees
    assert batch(CONNECT_FOUR, config, [77], threads=1, groups=1)[77] == trees[77]
    other_seed = SearchConfig(**{**vars(config), "seed": 6})
    assert batch(CONNECT_FOUR, other_seed, [77], threads=1, groups=1)[77] != trees[77]


@pytest.mark.parametrize("game", [CONNECT_FOUR, CHESS], ids=lambda game: game.name)
def test_a_reused_tree_with_n_visits_equals_the_tree_of_n_visits_from_scratch(game: Game) -> None:
    reusing = Search(game, SearchConfig(simulations=60, count_reused=True), 1)
    reusing.set_root(0, 0)
    moves: list[int] = []
    reused = 0
    for _ in range(8):
        result = reusing.run(reference.hash_evaluator)
        scratch = Search(game, SearchConfig(simulations=60, reuse=False), 1)
        scratch.set_root(0, 0, moves)
        scratch.run(reference.hash_evaluator)
        assert reference.searched_tree(reusing, 0) == reference.searched_tree(scratch, 0)
        assert result.visits_PM.sum() == 60
        reused += 60 - int(result.simulations_P[0])
        moves.append(int(result.chosen_P[0]))
        reusing.play(result.chosen_P)
    assert reused > 0


def test_a_slot_out_of_nodes_ends_its_search_early_and_writes_to_no_other_slot() -> None:
    config = SearchConfig(simulations=200, edges_per_node=3, reuse=False)
    search = Search(CONNECT_FOUR, config, 3)
    for slot in range(3):
        search.set_root(slot, slot, [slot])
    before = search.trees.move_E[search.sizes.edges_per_game :].copy()
    search.begin([0])
    for _ in search.steps(uniform_evaluator):
        pass
    result = search.result()
    assert result.out_of_nodes_P.tolist() == [1, 0, 0]
    assert 0 < result.simulations_P[0] < 200
    assert result.visits_PM[0].sum() == result.simulations_P[0]
    assert (search.trees.move_E[search.sizes.edges_per_game :] == before).all()
    with_room = Search(CONNECT_FOUR, SearchConfig(simulations=200, edges_per_node=7, reuse=False), 1)
    with_room.set_root(0, 0, [0])
    assert not with_room.run(uniform_evaluator).out_of_nodes_P[0]


def test_a_subtree_of_more_than_half_the_slot_is_not_reused() -> None:
    search = Search(CONNECT_FOUR, SearchConfig(simulations=10), 1)
    search.set_root(0, 0)

    def forced(leaves: Leaves) -> Evaluation:
        first_BM = leaves.moves_BM == leaves.moves_BM[:, :1]
        priors_BM = np.where(first_BM, 1.0, 1e-4) * (np.arange(7) < leaves.num_moves_B[:, None])
        total_B1 = np.maximum(priors_BM.sum(axis=1, keepdims=True), 1e-4)
        return Evaluation((priors_BM / total_B1).astype(np.float32), np.zeros(len(first_BM), np.float32))

    kept: list[int] = []
    for _ in range(6):
        result = search.run(forced)
        assert result.simulations_P[0] == 10
        assert not result.out_of_nodes_P[0]
        search.play(result.chosen_P)
        kept.append(int(search.trees.slots_G["num_nodes"][0]))
    assert max(kept) * 2 <= search.sizes.nodes_per_game
    assert min(kept) == 1 < 7 < max(kept)


def test_illegal_moves_and_invalid_evaluations_are_rejected() -> None:
    search = Search(TICTACTOE, SearchConfig(simulations=10), 2)
    with pytest.raises(UserError, match="move number 1"):
        search.set_root(0, 0, [4, 4])
    assert np.isnan(search.outcome()[0])
    assert len(search.legal_moves(0)) == 0
    search.set_root(0, 0, [4])
    with pytest.raises(UserError, match="slot 0"):
        search.play([4], [0])
    with pytest.raises(UserError, match="0 to 10"):
        search.begin(simulations=11)
    valid = uniform_evaluator
    for invalid in (
        lambda leaves: Evaluation(valid(leaves).priors_BM * 1.1, valid(leaves).value_B),
        lambda leaves: Evaluation(-valid(leaves).priors_BM, valid(leaves).value_B),
        lambda leaves: Evaluation(valid(leaves).priors_BM, valid(leaves).value_B + np.nan),
        lambda leaves: Evaluation(valid(leaves).priors_BM, valid(leaves).value_B - 2),
        lambda leaves: Evaluation(valid(leaves).priors_BM[:, :3], valid(leaves).value_B),
        lambda leaves: Evaluation(valid(leaves).priors_BM, valid(leaves).value_B[:1]),
    ):
        search.set_root(0, 0, [4])
        with pytest.raises(UserError):
            search.run(invalid)
    search.set_root(0, 0, [4])
    assert search.run(uniform_evaluator).visits_PM[0].sum() == 10


def test_gumbel_search_equals_mctx() -> None:
    """Visit counts, policies and moves that mctx computed with its own constants (make_mctx_golden.py)."""
    rows = json.loads(Path(__file__).with_name("golden_mctx.json").read_text(encoding="utf-8"))["rows"]
    for row in rows:
        config = SearchConfig(
            simulations=row["simulations"], root="gumbel", num_considered=4, gumbel_scale=0.0, c_scale=0.1,
            rescale_values=True,
        )  # fmt: skip
        search = Search(CONNECT_FOUR, config, 1)
        search.set_root(0, 0, row["moves"])
        result = search.run(reference.hash_evaluator)
        by_move = np.argsort(result.moves_PM[0])
        assert result.visits_PM[0][by_move].tolist() == row["visits"]
        assert result.chosen_P[0] == row["action"]
        np.testing.assert_allclose(result.policy_PM[0][by_move], row["policy"], atol=2e-5)


@pytest.mark.parametrize("root", ["puct", "gumbel"])
def test_reading_results_writes_nothing(root: Literal["puct", "gumbel"]) -> None:
    """After a search, after a move that keeps a subtree, and on empty and finished games."""
    search = Search(CONNECT_FOUR, SearchConfig(simulations=60, root=root), 3)
    search.set_root(0, 0)
    search.set_root(1, 1, [0, 1, 0, 1, 0, 1, 0])
    search.run(reference.hash_evaluator)
    for _ in range(2):
        before = [array.tobytes() for array in search.trees]
        result = search.result()
        search.principal_variation(0)
        search.outcome()
        assert [array.tobytes() for array in search.trees] == before
        assert result.num_moves_P.tolist() == [7, 0, 0]
        assert result.value_P[1] == -1
        search.play([result.chosen_P[0]], [0])
        assert search.result([0]).visits_PM.sum() > 0
