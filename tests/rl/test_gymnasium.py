"""Gymnasium environments: the ways in which episodes begin anew, and what a checkpoint brings back."""

from __future__ import annotations

import itertools
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from ranks import RunConfig, UserError, World
from ranks.rl.collector import Collector
from ranks.rl.config import PPOConfig
from ranks.rl.environments import Environment, MakeEnvironment
from ranks.rl.policy import Policy
from tests.engine.group import run_ranks
from tests.rl.known import Clock, acts, alone, joined

pytest.importorskip("gymnasium")
import gymnasium
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from ranks.rl.gymnasium.environments import (
    ReplayedEnvironments,
    VectorEnvironments,
    from_gymnasium,
)
from ranks.rl.gymnasium.spaces import tensors_of
from tests.rl.games import CPU, TAKEN, Fickle, Game, Named, counting, policy_of

# How episodes begin anew ----------------------------------------------------------------------------------------------


def vector_games(ids: range, mode: Any, env: Any = counting, said: Any = None) -> VectorEnvironments:
    """A vector environment that begins episodes in this way, and says so, or something else."""
    vector = SyncVectorEnv([env] * len(ids), autoreset_mode=mode)
    vector.metadata["autoreset_mode"] = said or mode
    return VectorEnvironments(vector, ids, 0, CPU)


def three_episodes(make: MakeEnvironment) -> list[list[list[float]]]:
    """For each of 4 environments: what was known and estimated of each step of its first three episodes."""
    with alone() as world:
        collector = Collector(Clock(1), make, 4, 17, PPOConfig(minibatches=2, gamma=0.9), world)
        rollout = collector.collect(Clock(1), 0)
        statistics = collector.statistics()
    assert isinstance(rollout.obs, Tensor)
    valid_TB = torch.ones_like(rollout.value_TB) if rollout.valid_TB is None else rollout.valid_TB
    of_episodes = {name: value for name, value in statistics.items() if name != "step_rew_mean"}
    assert of_episodes == {"episodes": 12, "ep_len_mean": 4, "ep_rew_mean": (6 + 10 + 15) / 3}
    columns = [
        *(rollout.obs[..., 0], rollout.obs[..., 2], rollout.reward_TB, rollout.value_TB, rollout.discount_TB),
        *(rollout.ended_TB.float(), rollout.next_value_TB * rollout.discount_TB, rollout.advantage_TB),
    ]
    rows_TBX = torch.stack(columns, -1)
    return [rows_TBX[valid_TB[:, b] > 0, b][: 3 + 4 + 5].tolist() for b in range(4)]


def test_however_episodes_begin_anew_the_transitions_and_advantages_are_the_same() -> None:
    ours = three_episodes(from_gymnasium(counting, 0, CPU))
    (episode, other, *_) = ours
    assert episode == other, "a counted game does not depend on its seed"
    assert [row[:3] for row in episode] == [[s, n, s + 1] for n in range(3) for s in range(3 + n)]
    assert [row[4] for row in episode if row[5]] == [0, 1, 0], "only the second one was cut off"
    for mode in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP):
        assert three_episodes(partial(vector_games, mode=mode)) == ours


def test_a_reset_that_takes_a_step_of_its_own_is_no_step_of_an_episode() -> None:
    with alone() as world:
        make = partial(vector_games, mode=AutoresetMode.NEXT_STEP)
        rollout = Collector(Clock(1), make, 4, 22, PPOConfig(minibatches=2), world).collect(Clock(1), 0)
    assert rollout.valid_TB is not None
    assert rollout.first_TB is not None
    assert torch.equal(rollout.valid_TB[1:] == 0, rollout.ended_TB[:-1]), "the step after an end"
    assert torch.equal(rollout.first_TB[1:], rollout.ended_TB[:-1] | (rollout.valid_TB[:-1] == 0))


def test_a_twin_that_takes_the_extra_step_for_one_gets_other_advantages() -> None:
    """So the equality above can fail."""
    finished = partial(counting, cut=False)
    right = three_episodes(partial(vector_games, mode=AutoresetMode.NEXT_STEP, env=finished))
    assert three_episodes(from_gymnasium(finished, 0, CPU)) == right
    with pytest.raises(AssertionError):
        assert (
            three_episodes(
                partial(vector_games, mode=AutoresetMode.NEXT_STEP, env=finished, said=AutoresetMode.SAME_STEP)
            )
            == right
        )


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_the_last_observation_of_an_episode_that_was_cut_off_also_by_name(mode: Any) -> None:
    environment = vector_games(range(2), mode, lambda: Named(counting()))
    moved = [environment.step(torch.zeros(2)) for _ in range(8)]
    (cut,) = [m for m in moved if m.final_obs is not None]
    assert cut.ended_B.all()
    assert isinstance(cut.final_obs, dict)
    assert cut.final_obs["all"].tolist() == [[4, 0, 1, 0]] * 2
    assert cut.final_obs["steps"].tolist() == [4, 4]


def test_a_vector_environment_that_does_not_say_how_it_begins_episodes_or_is_of_another_size() -> None:
    with pytest.raises(UserError, match="make it with NEXT_STEP or SAME_STEP"):
        vector_games(range(2), AutoresetMode.DISABLED)
    with pytest.raises(UserError, match="2 environments, 3 were asked for"):
        VectorEnvironments(SyncVectorEnv([counting] * 2), range(3), 0, CPU)


def test_gymnasiums_own_vectors_take_one_seed_which_belongs_to_first_id_and_iteration_and_a_line_says_so_once() -> None:
    def poles(ids: range) -> VectorEnvironments:
        vector = gymnasium.make_vec("CartPole-v1", num_envs=len(ids), vectorization_mode="vector_entry_point")
        return VectorEnvironments(gymnasium.wrappers.vector.RecordEpisodeStatistics(vector), ids, 0, CPU)

    with alone(exact=True, shards=2) as world, warnings.catch_warnings(record=True) as lines:
        warnings.simplefilter("always")
        collector = Collector(Clock(2), poles, 8, 5, PPOConfig(minibatches=2), world)
        again = Collector(Clock(2), poles, 8, 5, PPOConfig(minibatches=2), world)
        shown = [collector.collect(Clock(2), iteration).obs for iteration in range(3)]
        assert torch.equal(again.collect(Clock(2), 2).obs, shown[2])  # type: ignore[arg-type]
    begun = torch.stack([obs[0] for obs in shown if isinstance(obs, Tensor)]).flatten(0, 1)
    assert len(begun.unique(dim=0)) == 3 * 8
    said = [str(line.message) for line in lines if "takes one seed for all" in str(line.message)]
    assert len(said) == 4, "one for each group of each collector"


def test_a_vector_environment_that_fails_is_told_with_its_ids() -> None:
    environment = VectorEnvironments(SyncVectorEnv([Game] * 2), range(4, 6), 0, CPU)
    with pytest.raises(UserError, match=r"(?s)environments 4 to 5, .*AssertionError: np.* \(.*games\.py:\d+\)"):
        environment.step(torch.full((2,), 7))
    environment.close()
    assert environment.vector.closed
    with pytest.raises(UserError, match=r"(?s)reset of environments 4 to 5, .*ZeroDivisionError"):
        VectorEnvironments(SyncVectorEnv([Doomed] * 2), range(4, 6), 0, CPU)


class Doomed(Game):
    def next_turn(self) -> int:
        return 1 // 0


# Checkpoints ----------------------------------------------------------------------------------------------------------


def draw(space: Any, step: int, num: int) -> Tensor:
    luck = torch.Generator().manual_seed(step)
    if isinstance(space, spaces.Box):
        return torch.randn(num, *space.shape, generator=luck)
    if isinstance(space, spaces.Discrete):
        return torch.randint(int(space.n), (num,), generator=luck)
    return torch.randint(2, (num, 2), generator=luck)


def moves(environment: Environment, space: Any, begin: int, end: int) -> list[Any]:
    """What came of some steps."""
    found: list[Any] = []
    for step in range(begin, end):
        moved = environment.step(draw(space, step, 5))
        found.append([moved.reward_B.tolist(), moved.discount_B.tolist(), moved.ended_B.tolist()])
        found.append(tensors_of(environment.observe(), CPU))
    return found


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("workers", [False, True], ids=["in process", "in workers"])
@pytest.mark.parametrize("name", TAKEN)
def test_a_checkpoint_brings_running_episodes_back_to_the_last_bit(name: str, workers: bool) -> None:
    space, _ = TAKEN[name]
    make = from_gymnasium(partial(Game, space), 7, CPU, workers=workers)
    straight, resumed = make(range(3, 8)), make(range(3, 8))
    lengths: set[int] = set()
    for begin in (0, 1, 4) if workers else range(12):
        state = {key: rows.clone() for key, rows in straight.state_dict().items()}
        lengths |= set(state["length_B"].tolist())
        resumed.load_state_dict(state)
        assert torch.equal(tensors_of(resumed.observe(), CPU), tensors_of(straight.observe(), CPU))
        after = resumed.state_dict()
        assert all(torch.equal(after[key], rows) for key, rows in state.items())
        ahead = moves(resumed, space, begin, begin + 8)
        straight.load_state_dict(state)
        for mine, other in zip(moves(straight, space, begin, begin + 8), ahead, strict=True):
            assert torch.equal(mine, other) if isinstance(mine, Tensor) else mine == other
        straight.load_state_dict(state)
        moves(straight, space, begin, begin + 1)
    assert lengths >= {0, 1, 2, 3, 4} or workers
    for environment in (straight, resumed):
        environment.close()


def games(world: World) -> tuple[Policy, MakeEnvironment]:
    return policy_of(Game(), memory=3), from_gymnasium(Game, world.seed, world.device)


def their_games(world: World) -> tuple[Policy, MakeEnvironment]:
    return policy_of(Game(), memory=3), partial(vector_games, mode=AutoresetMode.NEXT_STEP, env=Game)


@pytest.mark.parametrize("cast", [games, their_games], ids=["ours", "a vector of their own"])
def test_under_exact_on_any_deal_and_through_a_checkpoint_to_the_last_bit(cast: Any, tmp_path: Path) -> None:
    """Also through one before the first step, when no episode has an action."""
    run = partial(run_ranks, config=RunConfig(shards=3, exact=True), tmp_path=tmp_path)
    path = str(tmp_path / "checkpoint")
    straight = joined(run(2, acts, cast, path, 0, 0, 3))
    assert joined(run(3, acts, cast, path, 0, 2, 3)) == straight
    for size in (1, 3):
        resumed = joined(run(size, acts, cast, path, 2, None, 3))
        assert resumed == {name: straight[name] for name in resumed}


def test_a_game_that_does_not_repeat_itself_begins_anew_and_a_line_says_so() -> None:
    cfg = PPOConfig(minibatches=2)
    with alone() as world:
        policy = policy_of(Game(), memory=3)
        old, new = (Collector(policy, from_gymnasium(Fickle, 0, CPU), 4, 2, cfg, world) for _ in range(2))
        old.collect(policy, 0)
        state = old.state_dict()
        with pytest.warns(UserWarning, match="4 environments did not repeat an episode .*; new ones begin"):
            new.load_state_dict(state)
        rollout = new.collect(policy, 1)
        (group,) = new.groups
    assert isinstance(group.environment, ReplayedEnvironments)
    assert group.environment.episode_B.tolist() == [1] * 4
    assert group.length_B.tolist() == [2.0] * 4
    assert rollout.first_TB is not None
    assert rollout.first_TB[0].all()
    assert not rollout.start_state["h"].any()


def test_a_game_that_ends_early_when_it_is_played_again_begins_anew_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fickle, "lives", itertools.count(3))
    environment = from_gymnasium(Fickle, 0, CPU)(range(1))
    for _ in range(5):  # of six, where an episode of turn 3 ends; one of turn 4 has three
        environment.step(torch.zeros(1))
    with pytest.warns(UserWarning, match="1 environments did not repeat"):
        environment.load_state_dict(environment.state_dict())
    assert environment.log.length_B.tolist() == [0]
    anew_B = environment.begin_iteration(1, exact=False)
    assert anew_B is not None
    assert anew_B.all()
    assert environment.begin_iteration(2, exact=False) is None
    environment.step(torch.zeros(1))


def test_episodes_of_a_vector_of_their_own_begin_with_each_iteration_under_exact_and_a_line_says_so_once() -> None:
    with alone(exact=True, shards=1) as world:
        make = partial(vector_games, mode=AutoresetMode.SAME_STEP, env=Game)
        collector = Collector(Clock(), make, 4, 2, PPOConfig(minibatches=2), world)
        with pytest.warns(UserWarning, match="under --exact new ones begin with every iteration") as lines:
            rollouts = [collector.collect(Clock(), iteration) for iteration in range(3)]
    assert len(lines) == 1
    shown = [r.obs for r in rollouts if isinstance(r.obs, Tensor)]
    assert all(not obs[0, :, 0].any() for obs in shown), "no step was made of these episodes"
    assert not torch.equal(shown[1][0], shown[2][0]), "seeds belong to (environment, iteration)"
    assert len({float(noise) for noise in shown[1][0, :, 3]}) == 4


def test_in_fast_mode_they_begin_anew_only_after_a_checkpoint() -> None:
    with alone() as world:
        make = partial(vector_games, mode=AutoresetMode.SAME_STEP, env=Game)
        straight, resumed = (Collector(Clock(), make, 4, 2, PPOConfig(minibatches=2), world) for _ in range(2))
        straight.collect(Clock(), 0)
        resumed.load_state_dict(straight.state_dict())
        went_on, anew = straight.collect(Clock(), 1), resumed.collect(Clock(), 1)
        assert isinstance(went_on.obs, Tensor)
        assert isinstance(anew.obs, Tensor)
        assert went_on.obs[0, :, 0].tolist() == [2.0] * 4
        assert anew.obs[0, :, 0].tolist() == [0.0] * 4
        assert not anew.start_state["n"].any()
        after = resumed.collect(Clock(), 2)
        assert isinstance(after.obs, Tensor)
        assert after.obs[0, :, 0].any()
