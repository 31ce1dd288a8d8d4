"""The replay window: what it holds, which positions a batch takes, and that a resumed run has the same."""

from __future__ import annotations

import itertools
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from ranks import Learner, OptimConfig, Run, Stopped, Summary, UserError, World
from ranks.engine.files.jsonl import read_rows
from ranks.search import CONNECT_FOUR, TICTACTOE
from ranks.selfplay import Encoding, Games, ReplayConfig, ReplayWindow, alphazero_loss
from ranks.selfplay.records import SHARE_ONE
from tests.selfplay.fixtures import ENCODING, net_of, planes, selfplay, single_rank

ITERATIONS = 4


def open_run(world: World, **keep: object) -> Run:
    return Run.open(ReplayConfig(), world, keep=keep)  # type: ignore[arg-type]


def test_a_batch_has_the_positions_policies_and_outcomes_of_the_games(tmp_path: Path) -> None:
    with single_rank(runs_dir=tmp_path, name="r") as world:
        source, net = selfplay(world, TICTACTOE, full_searches=0.5, fast_simulations=2), net_of(TICTACTOE)
        window = ReplayWindow(TICTACTOE, ReplayConfig(root_value=0.25), world)
        with open_run(world, selfplay=source, window=window) as run:
            played: list[Games] = []
            for iteration in run.iterations(3, long=True):
                played.append(source.play(net, iteration))
                window.add(played[-1])
        records = [games.records for games in played]
        full = [np.flatnonzero(r.full_P) for r in records]
        assert len(window) == sum(map(len, full))
        ids = torch.randperm(len(window), generator=torch.Generator().manual_seed(1))[:50]
        batch = window.gather(ids)
        flat = [(part, int(row)) for part, rows in enumerate(full) for row in rows]
        for b, (part, row) in enumerate(flat[i] for i in ids.tolist()):
            r, end = records[part], int(records[part].num_moves_P[: row + 1].sum())
            count = int(r.num_moves_P[row])
            assert batch.positions.num_moves_B[b] == count
            assert (batch.positions.states_BW[b].numpy().view(np.uint64) == r.state_PW[row]).all()
            assert batch.positions.moves_BM[b, :count].tolist() == r.legal_E[end - count : end].tolist()
            share = r.share_E[end - count : end] / SHARE_ONE
            np.testing.assert_allclose(batch.policy_BM[b, :count], share / share.sum(), rtol=1e-6)
            assert not batch.policy_BM[b, count:].any()
            outcome = played[part].outcome_P()[row]
            assert batch.outcome_B[b] == outcome
            np.testing.assert_allclose(batch.value_B[b], 0.75 * outcome + 0.25 * r.value_P[row], rtol=1e-6)


def test_each_new_position_is_used_reuse_times_on_average_and_old_parts_are_dropped(tmp_path: Path) -> None:
    with single_rank(runs_dir=tmp_path, name="r") as world:
        source = selfplay(world, TICTACTOE, search="none", games=30)
        window = ReplayWindow(TICTACTOE, ReplayConfig(reuse=2.5, positions=300), world)
        net, updates, parts = net_of(TICTACTOE), 0, list[int]()
        with open_run(world, selfplay=source, window=window) as run:
            for iteration in run.iterations(6, long=True):
                window.add(source.play(net, iteration))
                parts.append(len(window.parts[-1]))
                due = list(window.batches(64))
                updates += len(due)
                assert updates == int(2.5 * sum(parts) / 64) == window.updates
                assert len(window) >= min(300, sum(parts))
                assert len(window) - len(window.parts[0]) < 300
        kept = sorted(path.name[:8] for path in (tmp_path / "r" / "kept" / "replay").iterdir())
        assert len(window.parts) < 6
        assert kept[-1] == "00000005"


def test_positions_that_are_measured_are_spread_over_the_newest_iteration(tmp_path: Path) -> None:
    with single_rank(runs_dir=tmp_path, name="r") as world:
        source = selfplay(world, TICTACTOE, search="none", games=30)
        window = ReplayWindow(TICTACTOE, ReplayConfig(), world)
        assert window.spread(4).tolist() == []
        with open_run(world, selfplay=source, window=window) as run:
            for iteration in run.iterations(3, long=True):
                window.add(source.play(net_of(TICTACTOE), iteration))
        newest, first = len(window.parts[-1]), len(window) - len(window.parts[-1])
        ids = window.spread(20).tolist()
        assert len(ids) == 20 < newest
        assert ids[0] == first > 0
        assert {b - a for a, b in itertools.pairwise([*ids, len(window)])} <= {newest // 20, newest // 20 + 1}
        assert window.spread(10_000).tolist() == list(range(first, len(window)))


def test_the_first_update_waits_for_the_first_positions(tmp_path: Path) -> None:
    with single_rank(runs_dir=tmp_path, name="r") as world:
        source = selfplay(world, TICTACTOE, search="none", games=30)
        window = ReplayWindow(TICTACTOE, ReplayConfig(reuse=2.0, first_positions=400), world)
        net, due = net_of(TICTACTOE), list[int]()
        with open_run(world, selfplay=source, window=window) as run:
            for iteration in run.iterations(6, long=True):
                window.add(source.play(net, iteration))
                due.append(len(list(window.batches(32))))
                assert sum(due) == int(2.0 * max(0, window.added - 400) / 32)
    assert due[0] == 0
    assert sum(due) > 0


@pytest.mark.parametrize("share", [0.0, 0.25])
def test_the_value_does_not_learn_from_a_game_that_was_cut(share: float, tmp_path: Path) -> None:
    """Connect Four of at most 9 plies, in which some games are won before. `share`: of the root's value."""
    with single_rank(runs_dir=tmp_path, name="r") as world:
        source = selfplay(world, CONNECT_FOUR, search="none", games=200, max_plies=9)
        window = ReplayWindow(CONNECT_FOUR, ReplayConfig(root_value=share), world)
        with open_run(world, selfplay=source, window=window) as run:
            for iteration in run.iterations(1, long=True):
                games = source.play(net_of(CONNECT_FOUR), iteration)
                window.add(games)
        batch = window.gather(torch.arange(len(window)))
    is_truncated_P = np.repeat(games.truncated_N, games.plies_N)
    assert 0 < is_truncated_P.sum() < len(is_truncated_P)
    np.testing.assert_array_equal(batch.value_weight_B, np.where(is_truncated_P, share, 1).astype(np.float32))
    np.testing.assert_array_equal(batch.is_truncated_B, is_truncated_P)
    np.testing.assert_array_equal(batch.outcome_B, np.where(is_truncated_P, 0, games.outcome_P()))
    np.testing.assert_array_equal(batch.value_B.numpy()[is_truncated_P], games.records.value_P[is_truncated_P])


def test_batches_are_uniform_over_the_window_and_the_same_in_shards(tmp_path: Path) -> None:
    with single_rank(runs_dir=tmp_path, name="r", exact=True, shards=4) as world:
        source = selfplay(world, TICTACTOE, search="none", games=30)
        window = ReplayWindow(TICTACTOE, ReplayConfig(), world)
        with open_run(world, selfplay=source, window=window) as run:
            for iteration in run.iterations(2, long=True):
                window.add(source.play(net_of(TICTACTOE), iteration))
        drawn = torch.cat([window.batch(512, number).shards.ids for number in range(40)])
        counts = np.bincount(drawn.numpy(), minlength=len(window))
        expected = len(drawn) / len(window)
        degrees = len(window) - 1
        assert ((counts - expected) ** 2 / expected).sum() < degrees + 3.1 * (2 * degrees) ** 0.5
        assert [len(s.ids) for s in window.batch(10, 0).shards] == [2, 3, 2, 3]


def test_on_policy_each_position_of_the_newest_iteration_is_used_at_most_once_a_pass(tmp_path: Path) -> None:
    with single_rank(runs_dir=tmp_path, name="r") as world:
        source = selfplay(world, search="none", games=30)
        window = ReplayWindow(TICTACTOE, ReplayConfig(reuse=2.0, on_policy=True), world)
        orders: list[list[int]] = []
        with open_run(world, selfplay=source, window=window) as run:
            for iteration in run.iterations(3, long=True):
                games = source.play(net_of(TICTACTOE), iteration)
                window.add(games)
                assert len(window) == len(games.records), "the older iterations are dropped"
                ids = [batch.shards.ids.tolist() for batch in window.batches(32)]
                assert {len(batch) for batch in ids} == {32}
                assert len(ids) == 2 * len(window) // 32
                order = [i for batch in ids for i in batch]
                first, second = order[: len(window)], order[len(window) :]
                assert sorted(first) == list(range(len(window)))
                assert len({*second}) == len(second) > len(window) - 32
                assert first[: len(second)] != second
                orders.append(first)
        assert orders[0][:20] != orders[1][:20]


def test_on_policy_an_iteration_without_a_whole_batch_is_an_error(tmp_path: Path) -> None:
    with single_rank(runs_dir=tmp_path, name="r") as world:
        source = selfplay(world, search="none")
        window = ReplayWindow(TICTACTOE, ReplayConfig(reuse=1.0, on_policy=True), world)
        with open_run(world, selfplay=source, window=window) as run:
            for iteration in run.iterations(1, long=True):
                window.add(source.play(net_of(TICTACTOE), iteration))
                with pytest.raises(UserError, match="a smaller batch"):
                    list(window.batches(5_000))


def test_a_reuse_too_small_for_a_batch_is_named(tmp_path: Path) -> None:
    with single_rank(runs_dir=tmp_path, name="r") as world:
        source = selfplay(world, search="none", games=30)
        window = ReplayWindow(TICTACTOE, ReplayConfig(reuse=0.1, on_policy=True), world)
        with open_run(world, selfplay=source, window=window) as run:
            for iteration in run.iterations(1, long=True):
                window.add(source.play(net_of(TICTACTOE), iteration))
                with pytest.raises(UserError, match=f"{len(window)} positions, with --replay.reuse 0.1"):
                    list(window.batches(32))


def test_a_batch_keeps_its_positions_when_the_window_moves_on(tmp_path: Path) -> None:
    with single_rank(runs_dir=tmp_path, name="r") as world:
        source, window = selfplay(world, games=30), ReplayWindow(TICTACTOE, ReplayConfig(positions=100), world)
        net = net_of(TICTACTOE)
        with open_run(world, selfplay=source, window=window) as run:
            for iteration in run.iterations(4, long=True):
                window.add(source.play(net, iteration))
                if iteration == 0:
                    batch, added = window.batch(16, 0), len(window)
                    wanted = window.gather(batch.shards.ids)
        assert window.added - len(window) >= added, "the part of the batch was dropped"
        found = batch.gather(batch.shards.ids)
        assert torch.equal(found.positions.states_BW, wanted.positions.states_BW)
        assert torch.equal(found.policy_BM, wanted.policy_BM)


def test_a_batch_counts_as_drawn_where_the_loop_is_left_in_it(tmp_path: Path) -> None:
    with single_rank(runs_dir=tmp_path, name="r") as world:
        source, window = selfplay(world), ReplayWindow(TICTACTOE, ReplayConfig(), world)
        with open_run(world, selfplay=source, window=window) as run:
            for iteration in run.iterations(1, long=True):
                window.add(source.play(net_of(TICTACTOE), iteration))
                first = next(window.batches(16))
                assert window.updates == 1
                second = next(window.batches(16))
                assert not torch.equal(first.shards.ids, second.shards.ids)


def train(
    folder: Path, stop_at: int | None = None, iterations: int = ITERATIONS, stop_in_updates_of: int | None = None
) -> Summary:
    """The loop of the template. `stop_at`: the evaluation in which a signal arrives; `stop_in_updates_of`: the
    iteration in whose first update it arrives."""
    made = 0

    def counted(positions: object) -> torch.Tensor:
        nonlocal made
        made += 1
        if made == stop_at:
            world.stop.received = 15
        return planes(positions)  # type: ignore[arg-type]

    with single_rank(name="r", runs_dir=folder, save_every="1h") as world:
        source, net = selfplay(world, CONNECT_FOUR), net_of(CONNECT_FOUR, 0.1)
        source.encoding = Encoding(counted)
        learner = Learner(net, OptimConfig(lr=1e-2, schedule="constant"), world)
        window = ReplayWindow(CONNECT_FOUR, ReplayConfig(positions=300), world)
        loss = partial(alphazero_loss, encoding=ENCODING)
        with Run.open(ReplayConfig(), world, keep=dict(learner=learner, source=source, window=window)) as run:
            for iteration in run.iterations(iterations, long=True):
                games = source.play(net, iteration)
                window.add(games)
                for batch in window.batches(64):
                    world.stop.received = 15 if iteration == stop_in_updates_of else 0
                    run.log(learner.step(loss, batch))
                run.log(games.results(), prefix="rollout")
        return run.finish()


def test_a_stopped_and_a_continued_run_equal_one_without_a_stop(tmp_path: Path) -> None:
    uninterrupted = train(tmp_path / "uninterrupted")
    for stop_at in (7, 300):
        with pytest.raises(Stopped):
            train(tmp_path / "stopped", stop_at)
    with pytest.raises(Stopped):
        train(tmp_path / "stopped", stop_in_updates_of=2)
    assert train(tmp_path / "stopped").fingerprint == uninterrupted.fingerprint
    train(tmp_path / "longer", iterations=2)
    assert train(tmp_path / "longer").fingerprint == uninterrupted.fingerprint
    rows = [read_rows(tmp_path / name / "r" / "metrics.jsonl") for name in ("uninterrupted", "stopped", "longer")]
    for row, *others in zip(*rows, strict=True):
        for other in others:
            same = {k for k in row if k.startswith(("train/", "rollout/"))}
            assert {k: row[k] for k in same} == {k: other[k] for k in same}


def test_a_checkpoint_holds_move_lists_and_no_trees(tmp_path: Path) -> None:
    with single_rank() as world:
        source = selfplay(world, CONNECT_FOUR)
        source.play(net_of(CONNECT_FOUR), 0)
        state = source.state_dict()
        assert {"number_G", "game_P", "ply_P", "move_P"} <= state.keys()
        assert "state_PW" not in state
        assert sum(found.nbytes for found in state.values() if isinstance(found, torch.Tensor)) < 8 * 42 * 100


def test_a_checkpoint_of_another_number_of_slots_or_another_game_is_refused() -> None:
    with single_rank() as world:
        source = selfplay(world, CONNECT_FOUR)
        source.play(net_of(CONNECT_FOUR), 0)
        state = source.state_dict()
        with pytest.raises(UserError, match="give 8 slots"):
            selfplay(world, CONNECT_FOUR, slots=9).load_state_dict(state)
        state["move_P"] = torch.full_like(state["move_P"], 9)
        with pytest.raises(UserError, match="not a legal move of Connect Four"):
            selfplay(world, CONNECT_FOUR).load_state_dict(state)
