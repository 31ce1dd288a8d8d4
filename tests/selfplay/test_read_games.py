"""Games read from the parts of a run, also while it trains; damaged, older and missing parts."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from ranks import Run, UserError
from ranks.cli.main import main
from ranks.engine.runs.folder import RunFolder
from ranks.engine.runs.kept.kept_folder import KeptFolder
from ranks.search import CONNECT_FOUR
from ranks.selfplay import Games, PlayedGame, ReplayConfig, ReplayWindow
from ranks.selfplay.replay.game_moves import FOLDER, GameMoves
from ranks.selfplay.replay.read_games import WindowGames
from tests.selfplay.fixtures import net_of, selfplay, single_rank

SETTINGS = {"full_searches": 0.5, "fast_simulations": 2, "opening_plies": 3, "max_plies": 20, "resign_value": 0.9}


def train(folder: Path, iterations: int = 3) -> list[Games]:
    """The games of a run `r`; each part is read as soon as it is written."""
    played: list[Games] = []
    with single_rank(runs_dir=folder, name="r") as world:
        source = selfplay(world, CONNECT_FOUR, slots=16, games=12, **SETTINGS)
        window = ReplayWindow(CONNECT_FOUR, ReplayConfig(), world)
        with Run.open(ReplayConfig(), world, keep=dict(selfplay=source, window=window)) as run:
            for iteration in run.iterations(iterations, long=True):
                played.append(source.play(net_of(CONNECT_FOUR), iteration))
                window.add(played[-1])
                assert len(read(folder)) == sum(map(len, played))
        run.finish()
    return played


def read(folder: Path, skipped: list[str] | None = None) -> list[PlayedGame]:
    """All games of the run; nothing may be skipped where no list for it is given."""
    said: list[str] = []
    games = list(WindowGames(RunFolder(folder / "r"), said.append if skipped is None else skipped.append).select())
    assert not said
    return games


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Games]]:
    folder = tmp_path_factory.mktemp("games")
    return folder, train(folder)


@pytest.fixture
def runs(trained: tuple[Path, list[Games]], tmp_path: Path) -> Path:
    """A copy that a test may change."""
    shutil.copytree(trained[0] / "r", tmp_path / "r")
    return tmp_path


def part(runs: Path, iteration: int) -> Path:
    """Its file. `iteration`: from 0."""
    (found,) = (runs / "r" / "kept" / FOLDER).glob(f"{iteration:08d}-*")
    return found


def test_each_game_has_its_moves_values_weights_result_and_ending(trained: tuple[Path, list[Games]]) -> None:
    folder, played = trained
    found = iter(read(folder))
    endings, changes = set[str](), 0
    for games in played:
        end_N = games.plies_N.cumsum()
        for n in range(len(games)):
            game, rows = next(found), slice(int(end_N[n] - games.plies_N[n]), int(end_N[n]))
            assert game.slot * 2**32 + game.number == games.game_N[n]
            assert list(game.moves) == games.moves(n)
            assert game.iteration == games.iteration + 1
            iterations_P = games.records.iteration_P[rows]
            assert list(game.weights) == iterations_P.tolist()
            assert game.weights_text == (f"{iterations_P[0]}-" if len({*iterations_P}) > 1 else "") + str(
                games.iteration
            )
            full_P, value_P = games.records.full_P[rows], games.records.value_P[rows]
            expected = [float(v) if full else None for full, v in zip(full_P, value_P, strict=True)]
            assert list(game.values) == expected
            assert game.outcome == games.outcome_N[n]
            assert game.result == {1: "1-0", 0: "1/2-1/2", -1: "0-1"}[game.outcome]
            ending = "most plies" if games.truncated_N[n] else "resigned" if games.resigned_N[n] else "rules"
            assert game.ending == ending
            endings.add(ending)
            changes += len({*game.weights}) > 1
    assert next(found, None) is None
    assert endings == {"rules", "most plies", "resigned"}, "change SETTINGS"
    assert changes > 0, "no game went on in another iteration"


def test_some_of_the_games(trained: tuple[Path, list[Games]]) -> None:
    folder, played = trained
    every = read(folder)
    window = WindowGames(RunFolder(folder / "r"), pytest.fail)
    assert window.iterations == [1, 2, 3]
    assert list(window.select(iteration=2)) == [game for game in every if game.iteration == 2]
    assert list(window.select(iteration=2, last=2)) == [game for game in every if game.iteration == 2][-2:]
    for count in (1, len(played[-1]), len(played[-1]) + 1, 1000):
        assert list(window.select(last=count)) == every[-count:]
    with pytest.raises(UserError, match="no part of it, but of others from 1 to 3"):
        window.select(iteration=4)


def test_a_damaged_part_is_named_and_the_others_are_read(runs: Path) -> None:
    every = read(runs)
    path = part(runs, 1)
    content = bytearray(path.read_bytes())
    content[-10] ^= 1
    path.write_bytes(content)
    skipped: list[str] = []
    assert read(runs, skipped) == [game for game in every if game.iteration != 2]
    assert [str(path) in line for line in skipped] == [True]


@pytest.mark.parametrize("kind", ["cut", "empty", "folder", "link"])
def test_anything_in_the_place_of_a_part_is_damage(runs: Path, kind: str, tmp_path: Path) -> None:
    path = part(runs, 1)
    content = path.read_bytes()
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "link":
        (tmp_path / "elsewhere").write_bytes(content)
        path.symlink_to(tmp_path / "elsewhere")
    else:
        path.write_bytes(content[:100] if kind == "cut" else b"")
    skipped: list[str] = []
    assert {game.iteration for game in read(runs, skipped)} == {1, 3}
    assert [str(path) in line for line in skipped] == [True]


def test_a_part_that_the_run_deletes_meanwhile_is_left_out(runs: Path) -> None:
    window = WindowGames(RunFolder(runs / "r"), pytest.fail)
    part(runs, 0).unlink()
    assert {game.iteration for game in window.select()} == {2, 3}


def test_a_part_of_an_older_version_is_named_and_still_learned_from(runs: Path) -> None:
    path = part(runs, 0)
    arrays = safetensors.numpy.load(path.read_bytes())
    path.unlink()
    older = {name: array for name, array in arrays.items() if name not in GameMoves.__dataclass_fields__}
    kept = KeptFolder(runs / "r" / "kept")
    file = kept.write(FOLDER, 0, older)
    skipped: list[str] = []
    assert {game.iteration for game in read(runs, skipped)} == {2, 3}
    assert ["older version" in line for line in skipped] == [True]
    with single_rank(runs_dir=runs, name="r") as world:
        window = ReplayWindow(CONNECT_FOUR, ReplayConfig(), world)
        window.load_state_dict(
            {"game": CONNECT_FOUR.name, "added": 0, "updates": 0, "parts": {"files": [file.as_json()]}}
        )
        assert len(window) == len(older["move_P"]) > 0


def test_a_part_that_cannot_be_learned_from_is_refused_when_a_run_resumes(runs: Path) -> None:
    arrays = safetensors.numpy.load(part(runs, 0).read_bytes())
    file = KeptFolder(runs / "r" / "kept").write(FOLDER, 0, {n: a for n, a in arrays.items() if n != "end_P"})
    state = {"game": CONNECT_FOUR.name, "added": 0, "updates": 0, "parts": {"files": [file.as_json()]}}
    with single_rank(runs_dir=runs, name="r") as world:
        window = ReplayWindow(CONNECT_FOUR, ReplayConfig(), world)
        with pytest.raises(UserError, match=r"without the arrays end_P: another version(.|\n)*another --name"):
            window.load_state_dict(state)


def test_of_two_parts_of_one_iteration_the_newer_one_counts(runs: Path) -> None:
    """A run that was killed and repeats an iteration in fast mode may play other games."""
    arrays = safetensors.numpy.load(part(runs, 1).read_bytes())
    kept = KeptFolder(runs / "r" / "kept")
    kept.write(FOLDER, 1, {**arrays, "iteration_T": np.full_like(arrays["iteration_T"], 7)})
    assert {weight for game in read(runs) if game.iteration == 2 for weight in game.weights} == {7}


def test_bad_input_is_one_error(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def says(*flags: str) -> str:
        assert main(["selfplay", "games", *flags, "--runs-dir", str(runs)]) == 2
        ended = capsys.readouterr()
        assert (ended.out, ended.err.count("asked: ")) == ("", 1)
        return ended.err

    assert "no run q in" in says("q")
    assert "--last 0" in says("r", "--last", "0")
    assert "it must be 1 or more" in says("r", "--iteration", "-1")
    part(runs, 0).parent.rename(runs / "r" / "kept" / "elsewhere")
    assert "holds no games" in says("r")
    assert main(["selfplay", "game"]) == 2
    assert "did you mean games?" in capsys.readouterr().err
