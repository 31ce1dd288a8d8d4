"""Gymnasium environments: the autoreset modes, and what a checkpoint restores."""

from __future__ import annotations

import itertools
import warnings
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from ranks import RunConfig, UserError, World
from ranks.rl.collector import Collector
from ranks.rl.config import PPOConfig
from ranks.rl.environments import MakeVecEnv, VecEnv
from ranks.rl.policies.policy import Policy
from tests.engine.group import run_ranks
from tests.rl.fixtures import StepCounter, merge_ranks, run_collector, single_rank

pytest.importorskip("gymnasium")
import gymnasium
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from ranks.rl.gymnasium.environments import (
    GymnasiumVecEnv,
    ReplayedVecEnv,
    from_gymnasium,
)
from ranks.rl.gymnasium.spaces import to_tensors
from tests.rl.environments.gymnasium_envs import (
    ACTION_SPACES,
    CPU,
    Game,
    NamedObservations,
    NonDeterministic,
    counting,
    policy_of,
)

# Autoreset modes ------------------------------------------------------------------------------------------------------


def vector_games(ids: range, mode: Any, env: Any = counting, metadata: Any = None) -> GymnasiumVecEnv:
    """A vector environment with this autoreset mode; `metadata`: the mode that its metadata names,
    if another."""
    vector = SyncVectorEnv([env] * len(ids), autoreset_mode=mode)
    vector.metadata["autoreset_mode"] = metadata or mode
    return GymnasiumVecEnv(vector, ids, 0, CPU)


def three_episodes(make: MakeVecEnv) -> list[list[list[float]]]:
    """For each of 4 environments: the columns of a rollout in its first three episodes."""
    with single_rank() as world:
        collector = Collector(StepCounter(1), make, 4, 17, PPOConfig(minibatches=2, gamma=0.9), world)
        rollout = collector.collect(StepCounter(1), 0)
        statistics = collector.statistics()
    assert isinstance(rollout.obs, Tensor)
    weight_TB = torch.ones_like(rollout.value_TB) if rollout.weight_TB is None else rollout.weight_TB
    of_episodes = {name: value for name, value in statistics.items() if name != "step_reward"}
    assert of_episodes == {"episodes": 12, "episode_length": 4, "episode_reward": (6 + 10 + 15) / 3}
    columns = [
        *(rollout.obs[..., 0], rollout.obs[..., 2], rollout.reward_TB, rollout.value_TB, rollout.discount_TB),
        *(rollout.ended_TB.float(), rollout.next_value_TB * rollout.discount_TB, rollout.advantage_TB),
    ]
    rows_TBX = torch.stack(columns, -1)
    return [rows_TBX[weight_TB[:, b] > 0, b][: 3 + 4 + 5].tolist() for b in range(4)]


def test_all_autoreset_modes_give_the_same_transitions_and_advantages() -> None:
    ours = three_episodes(from_gymnasium(counting, 0, CPU))
    (episode, other, *_) = ours
    assert episode == other, "a counted game does not depend on its seed"
    assert [row[:3] for row in episode] == [[s, n, s + 1] for n in range(3) for s in range(3 + n)]
    assert [row[4] for row in episode if row[5]] == [0, 1, 0], "only the second episode was truncated"
    for mode in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP):
        assert three_episodes(partial(vector_games, mode=mode)) == ours


def test_a_step_that_only_resets_has_weight_0() -> None:
    with single_rank() as world:
        make = partial(vector_games, mode=AutoresetMode.NEXT_STEP)
        rollout = Collector(StepCounter(1), make, 4, 22, PPOConfig(minibatches=2), world).collect(StepCounter(1), 0)
    assert rollout.weight_TB is not None
    assert rollout.first_TB is not None
    assert torch.equal(rollout.weight_TB[1:] == 0, rollout.ended_TB[:-1]), "the step after an end"
    assert torch.equal(rollout.first_TB[1:], rollout.ended_TB[:-1] | (rollout.weight_TB[:-1] == 0))


def test_counting_the_reset_step_as_a_step_gives_other_advantages() -> None:
    """This shows that the equality above can fail."""
    terminating = partial(counting, truncates=False)
    right = three_episodes(partial(vector_games, mode=AutoresetMode.NEXT_STEP, env=terminating))
    assert three_episodes(from_gymnasium(terminating, 0, CPU)) == right
    with pytest.raises(AssertionError):
        assert (
            three_episodes(
                partial(vector_games, mode=AutoresetMode.NEXT_STEP, env=terminating, metadata=AutoresetMode.SAME_STEP)
            )
            == right
        )


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_the_final_observation_of_a_truncated_episode_of_a_dict_space(mode: Any) -> None:
    environment = vector_games(range(2), mode, lambda: NamedObservations(counting()))
    transitions = [environment.step(torch.zeros(2)) for _ in range(8)]
    (truncated,) = [m for m in transitions if m.final_obs is not None]
    assert truncated.ended_B.all()
    assert isinstance(truncated.final_obs, dict)
    assert truncated.final_obs["all"].tolist() == [[4, 0, 1, 0]] * 2
    assert truncated.final_obs["steps"].tolist() == [4, 4]


def test_a_vector_environment_of_another_mode_or_size_is_rejected() -> None:
    with pytest.raises(UserError, match="make it with NEXT_STEP or SAME_STEP"):
        vector_games(range(2), AutoresetMode.DISABLED)
    with pytest.raises(UserError, match="it has 2 environments, 3 are needed"):
        GymnasiumVecEnv(SyncVectorEnv([counting] * 2), range(3), 0, CPU)


def test_native_vector_environments_get_one_seed_and_warn_once() -> None:
    def poles(ids: range) -> GymnasiumVecEnv:
        vector = gymnasium.make_vec("CartPole-v1", num_envs=len(ids), vectorization_mode="vector_entry_point")
        return GymnasiumVecEnv(gymnasium.wrappers.vector.RecordEpisodeStatistics(vector), ids, 0, CPU)

    with single_rank(exact=True, shards=2) as world, warnings.catch_warnings(record=True) as lines:
        warnings.simplefilter("always")
        collector = Collector(StepCounter(2), poles, 8, 5, PPOConfig(minibatches=2), world)
        again = Collector(StepCounter(2), poles, 8, 5, PPOConfig(minibatches=2), world)
        observations = [collector.collect(StepCounter(2), iteration).obs for iteration in range(3)]
        assert torch.equal(again.collect(StepCounter(2), 2).obs, observations[2])  # type: ignore[arg-type]
    initial = torch.stack([obs[0] for obs in observations if isinstance(obs, Tensor)]).flatten(0, 1)
    assert len(initial.unique(dim=0)) == 3 * 8
    messages = [str(line.message) for line in lines if "takes one seed for all" in str(line.message)]
    assert len(messages) == 4, "one for each group of each collector"


def test_a_failing_vector_environment_is_reported_with_its_ids() -> None:
    environment = GymnasiumVecEnv(SyncVectorEnv([Game] * 2), range(4, 6), 0, CPU)
    with pytest.raises(
        UserError, match=r"(?s)environments 4 to 5, .*AssertionError: np.* \(.*gymnasium_envs\.py:\d+\)"
    ):
        environment.step(torch.full((2,), 7))
    environment.close()
    assert environment.vector.closed
    with pytest.raises(UserError, match=r"(?s)reset of environments 4 to 5, .*ZeroDivisionError"):
        GymnasiumVecEnv(SyncVectorEnv([FailsToReset] * 2), range(4, 6), 0, CPU)


class FailsToReset(Game):
    def next_turn(self) -> int:
        return 1 // 0


# Checkpoints ----------------------------------------------------------------------------------------------------------


def random_actions(space: Any, step: int, num: int) -> Tensor:
    generator = torch.Generator().manual_seed(step)
    if isinstance(space, spaces.Box):
        return torch.randn(num, *space.shape, generator=generator)
    if isinstance(space, spaces.Discrete):
        return torch.randint(int(space.n), (num,), generator=generator)
    return torch.randint(2, (num, 2), generator=generator)


def transitions_of(environment: VecEnv, space: Any, begin: int, end: int) -> list[Any]:
    """The transitions and observations of some steps."""
    found: list[Any] = []
    for step in range(begin, end):
        transition = environment.step(random_actions(space, step, 5))
        found.append([transition.reward_B.tolist(), transition.discount_B.tolist(), transition.ended_B.tolist()])
        found.append(to_tensors(environment.observe(), CPU))
    return found


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("workers", [False, True], ids=["in process", "in workers"])
@pytest.mark.parametrize("name", ACTION_SPACES)
def test_a_checkpoint_restores_running_episodes_bit_for_bit(name: str, workers: bool) -> None:
    space, _ = ACTION_SPACES[name]
    make = from_gymnasium(partial(Game, space), 7, CPU, workers=workers)
    uninterrupted, resumed = make(range(3, 8)), make(range(3, 8))
    lengths: set[int] = set()
    for begin in (0, 1, 4) if workers else range(12):
        state = {key: rows.clone() for key, rows in uninterrupted.state_dict().items()}
        lengths |= set(state["length_B"].tolist())
        resumed.load_state_dict(state)
        observations = [to_tensors(environment.observe(), CPU) for environment in (resumed, uninterrupted)]
        assert torch.equal(*cast("list[Tensor]", observations))
        after = resumed.state_dict()
        assert all(torch.equal(after[key], rows) for key, rows in state.items())
        ahead = transitions_of(resumed, space, begin, begin + 8)
        uninterrupted.load_state_dict(state)
        for mine, other in zip(transitions_of(uninterrupted, space, begin, begin + 8), ahead, strict=True):
            assert torch.equal(mine, other) if isinstance(mine, Tensor) else mine == other
        uninterrupted.load_state_dict(state)
        transitions_of(uninterrupted, space, begin, begin + 1)
    assert lengths >= {0, 1, 2, 3, 4} or workers
    for environment in (uninterrupted, resumed):
        environment.close()


def single_scenario(world: World) -> tuple[Policy, MakeVecEnv]:
    return policy_of(Game(), lstm_hidden=3), from_gymnasium(Game, world.seed, world.device)


def vector_scenario(world: World) -> tuple[Policy, MakeVecEnv]:
    return policy_of(Game(), lstm_hidden=3), partial(vector_games, mode=AutoresetMode.NEXT_STEP, env=Game)


@pytest.mark.parametrize(
    "scenario", [single_scenario, vector_scenario], ids=["single environments", "vector environment"]
)
def test_exact_rollouts_are_bit_identical_on_any_assignment_and_after_a_resume(scenario: Any, tmp_path: Path) -> None:
    """Also with a checkpoint before the first step, when no episode has an action."""
    run = partial(run_ranks, config=RunConfig(shards=3, exact=True), tmp_path=tmp_path)
    path = str(tmp_path / "checkpoint")
    uninterrupted = merge_ranks(run(2, run_collector, scenario, path, 0, 0, 3))
    assert merge_ranks(run(3, run_collector, scenario, path, 0, 2, 3)) == uninterrupted
    for size in (1, 3):
        resumed = merge_ranks(run(size, run_collector, scenario, path, 2, None, 3))
        assert resumed == {name: uninterrupted[name] for name in resumed}


def test_an_episode_that_cannot_be_replayed_restarts_with_a_warning() -> None:
    cfg = PPOConfig(minibatches=2)
    with single_rank() as world:
        policy = policy_of(Game(), lstm_hidden=3)
        old, new = (Collector(policy, from_gymnasium(NonDeterministic, 0, CPU), 4, 2, cfg, world) for _ in range(2))
        old.collect(policy, 0)
        state = old.state_dict()
        with pytest.warns(UserWarning, match="4 environments did not repeat an episode .*; new episodes start there"):
            new.load_state_dict(state)
        rollout = new.collect(policy, 1)
        (group,) = new.groups
    assert isinstance(group.environment, ReplayedVecEnv)
    assert group.environment.episode_B.tolist() == [1] * 4
    assert group.length_B.tolist() == [2.0] * 4
    assert rollout.first_TB is not None
    assert rollout.first_TB[0].all()
    assert not rollout.start_state["h"].any()


def test_an_episode_that_ends_early_in_the_replay_restarts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NonDeterministic, "numbers", itertools.count(3))
    environment = from_gymnasium(NonDeterministic, 0, CPU)(range(1))
    for _ in range(5):  # of six, where an episode of turn 3 ends; one of turn 4 has three
        environment.step(torch.zeros(1))
    with pytest.warns(UserWarning, match="1 environments did not repeat"):
        environment.load_state_dict(environment.state_dict())
    assert environment.log.length_B.tolist() == [0]
    restarted_B = environment.begin_iteration(1, exact=False)
    assert restarted_B is not None
    assert restarted_B.all()
    assert environment.begin_iteration(2, exact=False) is None
    environment.step(torch.zeros(1))


def test_exact_vector_environments_restart_each_iteration_and_warn_once() -> None:
    with single_rank(exact=True, shards=1) as world:
        make = partial(vector_games, mode=AutoresetMode.SAME_STEP, env=Game)
        collector = Collector(StepCounter(), make, 4, 2, PPOConfig(minibatches=2), world)
        with pytest.warns(UserWarning, match="under --exact new ones start with every iteration") as lines:
            rollouts = [collector.collect(StepCounter(), iteration) for iteration in range(3)]
    assert len(lines) == 1
    observations = [r.obs for r in rollouts if isinstance(r.obs, Tensor)]
    assert all(not obs[0, :, 0].any() for obs in observations), "these episodes have no step"
    assert not torch.equal(observations[1][0], observations[2][0]), "seeds are a function of (environment, iteration)"
    assert len({float(noise) for noise in observations[1][0, :, 3]}) == 4


def test_fast_vector_environments_restart_only_after_a_resume() -> None:
    with single_rank() as world:
        make = partial(vector_games, mode=AutoresetMode.SAME_STEP, env=Game)
        uninterrupted, resumed = (
            Collector(StepCounter(), make, 4, 2, PPOConfig(minibatches=2), world) for _ in range(2)
        )
        uninterrupted.collect(StepCounter(), 0)
        resumed.load_state_dict(uninterrupted.state_dict())
        continued, restarted = uninterrupted.collect(StepCounter(), 1), resumed.collect(StepCounter(), 1)
        assert isinstance(continued.obs, Tensor)
        assert isinstance(restarted.obs, Tensor)
        assert continued.obs[0, :, 0].tolist() == [2.0] * 4
        assert restarted.obs[0, :, 0].tolist() == [0.0] * 4
        assert not restarted.start_state["n"].any()
        after = resumed.collect(StepCounter(), 2)
        assert isinstance(after.obs, Tensor)
        assert after.obs[0, :, 0].any()
