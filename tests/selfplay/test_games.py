"""The games that self-play returns: legal, complete, ordered, and the same however the slots are batched."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from ranks import Run, UserError
from ranks.engine.files.jsonl import read_rows
from ranks.engine.sharding.assignment import ShardAssignment
from ranks.search import CONNECT_FOUR, TICTACTOE, Game
from ranks.selfplay import Games, SelfPlayConfig, score_against_random
from ranks.selfplay.agreement import Agreement
from ranks.selfplay.net.batch_evaluator import BatchMemory
from ranks.selfplay.random import RESIGNATION, uniform
from ranks.selfplay.records import SHARE_ONE
from ranks.selfplay.slots import Slots
from tests.selfplay.fixtures import ENCODING, assert_equal, net_of, selfplay, single_rank

SEARCHES = ("none", "puct", "gumbel")


def legal_moves(game: Game, state_W: Any) -> tuple[int, list[int]]:
    """What the rules say: their number or code, and the moves."""
    moves = np.zeros(game.max_moves, np.uint16)
    count = game.legal_moves(state_W[None].copy(), 0, np.zeros(1, np.uint64), 0, 0, moves, 0)
    return count, moves[: max(count, 0)].tolist()


def check_game(game: Game, games: Games, index: int) -> None:
    """Play a game again with the rules alone, and compare it with its records."""
    end = int(games.plies_N[: index + 1].sum())
    rows = slice(end - int(games.plies_N[index]), end)
    records = games.records
    assert records.game_P[rows].tolist() == [games.game_N[index]] * int(games.plies_N[index])
    assert records.ply_P[rows].tolist() == list(range(int(games.plies_N[index])))
    first_E = records.num_moves_P.cumsum() - records.num_moves_P
    states = np.stack([game.initial, game.initial])
    for row in range(rows.start, rows.stop):
        entries = slice(int(first_E[row]), int(first_E[row]) + int(records.num_moves_P[row]))
        assert (states[0] == records.state_PW[row]).all()
        assert sorted(records.legal_E[entries].tolist()) == legal_moves(game, states[0])[1]
        assert abs(int(records.share_E[entries].sum()) - SHARE_ONE) <= records.num_moves_P[row]
        assert records.move_P[row] in records.legal_E[entries]
        game.play(states, 0, states, 1, records.move_P[row])
        states[0] = states[1]
    count, _ = legal_moves(game, states[0])
    outcome = {-1: -1, -2: 0, -3: 1}[count] * (1 if games.plies_N[index] % 2 == 0 else -1)
    assert games.outcome_N[index] == outcome
    assert games.outcome_P()[rows].tolist() == [outcome * (-1) ** ply for ply in range(int(games.plies_N[index]))]


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("game", [TICTACTOE, CONNECT_FOUR], ids=lambda game: game.name)
def test_each_game_is_legal_complete_and_in_order(game: Game, search: Literal["none", "puct", "gumbel"]) -> None:
    with single_rank() as world:
        source, net = selfplay(world, game, search=search), net_of(game)
        seen = set[int]()
        for iteration in range(3):
            games = source.play(net, iteration)
            assert len(games) >= 12
            assert games.game_N.tolist() == sorted(games.game_N.tolist())
            assert not seen & {*games.game_N.tolist()}
            seen |= {*games.game_N.tolist()}
            for index in range(len(games)):
                check_game(game, games, index)
                assert games.moves(index) == games.records.move_P[games.records.game_P == games.game_N[index]].tolist()
        slots = {slot: [g % 2**32 for g in sorted(seen) if g // 2**32 == slot] for slot in range(8)}
        assert all(numbers == list(range(len(numbers))) for numbers in slots.values())


def test_a_game_that_goes_on_records_the_iteration_of_each_move() -> None:
    with single_rank() as world:
        source = selfplay(world, CONNECT_FOUR, slots=16, games=4)
        games = [source.play(net_of(CONNECT_FOUR), iteration) for iteration in range(3)]
        assert {*games[0].records.iteration_P.tolist()} == {0}
        iterations = [{*g.records.iteration_P[g.records.game_P == game].tolist()} for g in games for game in g.game_N]
        assert any({1, 2} <= found for found in iterations)
        for g in games:
            same_game = np.diff(g.records.game_P) == 0
            assert (np.diff(g.records.iteration_P)[same_game] >= 0).all()


@pytest.mark.parametrize("search", SEARCHES)
def test_games_do_not_depend_on_how_slots_are_batched(search: Literal["none", "puct", "gumbel"]) -> None:
    """With a net that always answers the same, batches of all slots, of shards of 1 or 3, and ranks that carry some of
    the slots give equal games."""
    fast = {} if search == "none" else {"full_searches": 0.5, "fast_simulations": 3}
    settings: dict[str, Any] = {"search": search, **fast}
    net = net_of(CONNECT_FOUR, scale=0.0)
    found: list[Games] = []
    for shards in (None, 3, 8):
        with single_rank(exact=shards is not None, shards=shards) as world:
            source = selfplay(world, CONNECT_FOUR, **settings)
            source.play(net, 0)
            found.append(source.play(net, 1))
    assert_equal(found[0], found[1])
    assert_equal(found[0], found[2])


def test_a_slot_does_not_depend_on_the_other_slots() -> None:
    cfg = SelfPlayConfig(simulations=8)
    with single_rank() as world:
        every = selfplay(world, CONNECT_FOUR, slots=8, games=20)
        games = every.play(net_of(CONNECT_FOUR, 0.0), 0)
        ticks = 400
        few = Slots(CONNECT_FOUR, range(5, 7), cfg, world.seed, 1)
        few.begin_iteration(0)
        memory = BatchMemory(CONNECT_FOUR, 2, world.device)
        group = few.search.group(0, memory.leaves)
        for tick in range(ticks):
            few.step(group, tick)
            memory.evaluation.priors_BM[:] = 1 / np.maximum(memory.leaves.num_moves_B, 1)[:, None]
            group.evaluation = memory.evaluation
        alone = few.end_iteration()
    for slot in (5, 6):
        game = slot * 2**32
        assert game in games.game_N
        np.testing.assert_array_equal(
            alone.move_P[alone.game_P == game], games.records.move_P[games.records.game_P == game]
        )


def test_an_iteration_ends_a_fixed_number_of_ticks_after_enough_games(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[tuple[int, int]] = []
    reading = Agreement.games

    def games(self: Agreement, tick: int, finished: int) -> float | None:
        counts.append((tick, finished))
        return reading(self, tick, finished)

    monkeypatch.setattr(Agreement, "games", games)
    with single_rank() as world:
        source = selfplay(world, TICTACTOE, games=10, simulations=24)
        every = source.ticks_between_counts(0)
        played = source.play(net_of(TICTACTOE), 0)
    at = dict(counts)
    last = max(at)
    assert every == 3
    assert at[last - every] >= 10 > at[last - 2 * every]
    assert len(played) >= at[last]


def test_a_fast_search_is_no_policy_target() -> None:
    with single_rank() as world:
        source = selfplay(world, TICTACTOE, slots=32, games=200, full_searches=0.25, fast_simulations=2)
        games = source.play(net_of(TICTACTOE), 0)
        assert 0.18 < games.records.full_P.mean() < 0.32


def test_simulations_grow_over_the_iterations() -> None:
    growing = SelfPlayConfig(simulations=16, first_simulations=2, progressive_iterations=4)
    assert [growing.simulations_at(iteration) for iteration in range(6)] == [2, 5, 9, 12, 16, 16]
    assert SelfPlayConfig(simulations=16).simulations_at(0) == 16
    with single_rank() as world:
        source = selfplay(world, TICTACTOE, simulations=9, first_simulations=2, progressive_iterations=2)
        for iteration, simulations in enumerate((2, 5, 9)):
            source.play(net_of(TICTACTOE), iteration)
            found = source.statistics()
            assert found["simulations_per_second"] / found["plies_per_second"] == pytest.approx(simulations)


def test_a_search_that_grows_plays_no_more_games_than_asked_while_it_is_small() -> None:
    """Games are counted as often as the search of the iteration is long, not that of the end."""
    growing = dict(simulations=800, first_simulations=2, progressive_iterations=10)
    with single_rank() as world:
        games = selfplay(world, TICTACTOE, slots=16, games=16, **growing).play(net_of(TICTACTOE), 0)
    assert 16 <= len(games) < 48


@pytest.mark.parametrize("search", SEARCHES)
def test_random_openings_are_uniform_and_not_learned_from(search: Literal["none", "puct", "gumbel"]) -> None:
    with single_rank() as world:
        source = selfplay(world, TICTACTOE, slots=64, games=400, search=search, opening_plies=3)
        games = source.play(net_of(TICTACTOE, 3.0), 0)
    records = games.records
    opening_N = np.array([(~records.full_P[records.game_P == game]).sum() for game in games.game_N])
    assert all(abs(count - len(games) / 4) < 3.5 * (len(games) * 3 / 16) ** 0.5 for count in np.bincount(opening_N))
    for game, length in zip(games.game_N, opening_N, strict=True):
        assert (records.ply_P[(records.game_P == game) & ~records.full_P] == np.arange(length)).all()
    first = records.move_P[(records.ply_P == 0) & ~records.full_P]
    expected = len(first) / 9
    assert ((np.bincount(first, minlength=9) - expected) ** 2 / expected).sum() < 26.1  # chi-square, p = 0.001


def test_moves_of_the_opening_are_no_searches() -> None:
    with single_rank() as world:
        source = selfplay(world, TICTACTOE, opening_plies=4)
        games = source.play(net_of(TICTACTOE), 0)
        slots = source._slots  # pyright: ignore[reportPrivateUsage]
    searched = [int(records.full_P.sum()) for records in (games.records, slots.unfinished)]
    assert slots.times.searches == sum(searched) < slots.times.plies


def test_the_longest_game_is_a_draw() -> None:
    with single_rank() as world:
        games = selfplay(world, CONNECT_FOUR, games=30, max_plies=9).play(net_of(CONNECT_FOUR), 0)
    assert games.plies_N.max() == 9
    assert games.truncated_N.any()
    assert (games.plies_N[games.truncated_N] == 9).all()
    assert (games.outcome_N[games.truncated_N] == 0).all()
    assert games.results()["truncated"] == games.truncated_N.mean()


def test_puct_samples_by_visits_and_then_plays_the_most_visited_move() -> None:
    with single_rank() as world:
        games = selfplay(
            world, TICTACTOE, slots=32, games=200, search="puct", temperature_plies=2, simulations=24
        ).play(net_of(TICTACTOE), 0)
    records = games.records
    end_P = records.num_moves_P.cumsum()
    best_P = np.array(
        [
            records.share_E[end - n : end][records.legal_E[end - n : end] == move][0]
            == records.share_E[end - n : end].max()
            for end, n, move in zip(end_P, records.num_moves_P, records.move_P, strict=True)
        ]
    )
    assert best_P[records.ply_P >= 2].all()
    assert not best_P[records.ply_P < 2].all()


@pytest.mark.parametrize("search", ["puct", "gumbel"])
def test_a_fast_search_has_no_noise_and_plays_the_most_visited_move(search: Literal["puct", "gumbel"]) -> None:
    """With a net that knows nothing all games are then equal, up to the first full search."""
    settings: dict[str, Any] = {"full_searches": 0.3, "fast_simulations": 4, "simulations": 12, "c_scale": 1e-6}
    with single_rank() as world:
        source = selfplay(world, CONNECT_FOUR, slots=64, games=64, search=search, **settings)
        records = source.play(net_of(CONNECT_FOUR, 0.0), 0).records
    first_P = records.ply_P == 0
    fast_P, full_P = first_P & ~records.full_P, first_P & records.full_P
    assert len({*records.move_P[fast_P].tolist()}) == 1
    assert len({*records.move_P[full_P].tolist()}) > 1


def test_without_search_moves_are_sampled_from_the_policy() -> None:
    with single_rank() as world:
        net = net_of(TICTACTOE, 0.0)
        games = selfplay(world, TICTACTOE, slots=64, games=3000, search="none").play(net, 0)
    first = games.records.move_P[games.records.ply_P == 0]
    counts = np.bincount(first, minlength=9)
    expected = len(first) / 9
    assert ((counts - expected) ** 2 / expected).sum() < 26.1  # chi-square, 8 degrees of freedom, p = 0.001
    assert games.records.share_E.max() == SHARE_ONE
    assert games.search_statistics()["target_entropy"] == 0.0


def test_a_side_resigns_at_a_value_and_false_resignations_are_counted() -> None:
    with single_rank() as world:
        source = selfplay(world, CONNECT_FOUR, slots=32, games=300, resign_value=0.1, resign_check=0.3)
        games = source.play(net_of(CONNECT_FOUR), 0)
    records, resigned = games.records, games.resigned_N
    assert 0.1 < resigned.mean() < 0.9
    hopeless_P = records.full_P & (records.value_P <= -0.1)
    last_N = games.plies_N.cumsum() - 1
    assert hopeless_P[last_N[resigned]].all()
    assert (games.outcome_P()[last_N[resigned]] == -1).all()
    earlier_P = hopeless_P.copy()
    earlier_P[last_N] = False
    gave_up = np.isin(records.game_P, games.game_N[resigned])
    assert not earlier_P[gave_up].any(), "it resigns at the first chance"
    wrong = 0
    checked_N = uniform(0, games.game_N, 0 * games.game_N, RESIGNATION) < 0.3
    checked = games.game_N[checked_N].tolist()
    for game in checked:
        rows = np.flatnonzero((records.game_P == game) & hopeless_P)
        wrong += len(rows) > 0 and games.outcome_P()[rows[0]] > -1
    assert not np.isin(checked, games.game_N[resigned]).any()
    count = sum((hopeless_P & (records.game_P == game)).any() for game in checked)
    assert source.statistics()["false_resignation"] == pytest.approx(wrong / count)
    assert 0 < wrong < count


def test_the_root_s_value_is_that_of_the_improved_policy() -> None:
    """The net knows nothing and the search tries all moves: a win in one is worth 1, not a mean over the moves."""
    with single_rank() as world:
        source = selfplay(world, TICTACTOE, slots=16, games=200, simulations=32, num_considered=9)
        games = source.play(net_of(TICTACTOE, 0.0), 0)
    last_N = games.plies_N.cumsum() - 1
    won_N = games.outcome_P()[last_N] == 1
    assert won_N.sum() > 50
    assert games.records.value_P[last_N[won_N]].min() > 0.99


def test_search_with_a_net_that_knows_nothing_beats_random_moves() -> None:
    scores: list[dict[str, float]] = []
    for shards in (None, 4):
        with single_rank(exact=shards is not None, shards=shards) as world:
            net = net_of(TICTACTOE, 0.0)
            scores.append(score_against_random(net, TICTACTOE, ENCODING, 41, SelfPlayConfig(simulations=100), world))
    assert scores[0] == scores[1]
    assert scores[0]["score"] > 0.9
    assert scores[0]["score_low"] < scores[0]["score"] < scores[0]["score_high"] <= 1
    assert scores[0]["won"] + scores[0]["drawn"] + scores[0]["lost"] == pytest.approx(1)
    with single_rank() as world:
        nobody = score_against_random(
            net_of(TICTACTOE), TICTACTOE, ENCODING, 10, SelfPlayConfig(simulations=4, max_plies=4), world
        )
    assert {name: nobody[name] for name in ("score", "won", "drawn", "lost")} == {
        "score": 0.5,
        "won": 0.0,
        "drawn": 1.0,
        "lost": 0.0,
    }
    assert 0 < nobody["score_low"] < 0.5 < nobody["score_high"] < 1, "ten equal games leave doubt"


def test_distinct_openings_are_counted_by_their_first_8_plies() -> None:
    with single_rank() as world:
        source = selfplay(world, TICTACTOE, slots=16, games=200, search="none")
        games = source.play(net_of(TICTACTOE, 3.0), 0)
    lines = {tuple(games.moves(index)[:8]) for index in range(len(games))}
    assert any(len(line) < 8 for line in lines)
    assert games.results()["distinct_openings"] == len(lines) < len(games)


def test_more_slots_than_games_are_one_warning_of_the_run(tmp_path: Path) -> None:
    with single_rank(runs_dir=tmp_path, name="r") as world:
        source = selfplay(world, slots=8, games=4)
        with Run.open(SelfPlayConfig(), world, keep={"selfplay": source}) as run:
            for iteration in run.iterations(2, long=True):
                source.play(net_of(TICTACTOE), iteration)
    warned = [row["text"] for row in read_rows(tmp_path / "r" / "events.jsonl") if row["event"] == "warning"]
    assert len(warned) == 1
    assert "8 slots and 4 games in an iteration" in warned[0]


@pytest.mark.parametrize(("bounds", "do"), [((0, 0, 64), "--shares less far apart"), ((0, 32, 64), "at least 2 slots")])
def test_a_rank_without_slots_is_told_what_gives_it_one(
    bounds: tuple[int, ...], do: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with single_rank() as world:
        monkeypatch.setattr(world, "assignment", ShardAssignment(bounds))
        monkeypatch.setattr(world, "size", 2)
        with pytest.raises(UserError, match=do):
            selfplay(world, slots=1)
