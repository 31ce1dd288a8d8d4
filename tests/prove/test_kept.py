"""What the proofs read of kept files: names, contents, games, and what became of them. No process is started."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from numpy.typing import NDArray

from ranks import KeptFile
from ranks.engine.runs.kept.kept_folder import KeptFolder
from ranks.prove.crashes.damage import DAMAGES, WORDS, choose_file
from ranks.prove.kept import (
    fate_of,
    games_sha256,
    is_intact,
    named_by_checkpoints,
    read_kept,
    unnamed_files,
)
from ranks.prove.processes import ProofError
from ranks.prove.train_command import RankLayout, TrainCommand, Workspace, fingerprint
from tests.damage.cases import in_this_process

from .conftest import TOYS

FLAGS = ("--replay.no-on-policy", "--slots", "8", "--games-per-iteration", "8", "--global-batch", "16", "--exact")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], TrainCommand]:
    """trained(seed): a run of four iterations with a checkpoint after each."""
    where = Workspace(tmp_path_factory.mktemp("kept"))

    def run(seed: int) -> TrainCommand:
        made = TrainCommand(where, str(TOYS / "tictactoe.py"), f"run-{seed}", RankLayout(1), FLAGS)
        place = ["--runs-dir", str(where.runs), "--name", made.name, "--gpus", "none", "--hang-timeout", "none"]
        more = ["--seed", str(seed), "--iterations", "4", "--save-every", "1", "--threads", "1"]
        if not made.folder.exists():
            assert in_this_process(["train", made.workload, *place, *FLAGS, *more])[0] == 0
        return made

    return run


@pytest.fixture
def copy(trained: Callable[[int], TrainCommand], tmp_path: Path) -> TrainCommand:
    """A copy of a run, which a test may change."""
    shutil.copytree(trained(0).folder, tmp_path / "runs" / "run-0")
    return TrainCommand(Workspace(tmp_path), trained(0).workload, "run-0", RankLayout(1), FLAGS)


def test_other_games_have_other_names_and_another_sum_of_moves(trained: Callable[[int], TrainCommand]) -> None:
    one, other = trained(0), trained(1)
    assert len(read_kept(one).names) == len(read_kept(other).names) == 4
    assert read_kept(one).sha256 != read_kept(other).sha256
    assert "" != games_sha256(one) != games_sha256(other) != ""
    assert fingerprint(one) != fingerprint(other)


@pytest.mark.parametrize(("array", "is_seen"), [("value_P", False), ("share_E", False), ("move_P", True)])
def test_the_sum_of_moves_ignores_what_a_net_has_computed(
    array: str, is_seen: bool, copy: TrainCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, opened = games_sha256(copy), KeptFolder.open

    def changed(self: KeptFolder, file: KeptFile) -> dict[str, NDArray[Any]]:
        arrays = opened(self, file)
        return arrays | {array: arrays[array] + arrays[array].dtype.type(1)}

    monkeypatch.setattr(KeptFolder, "open", changed)
    assert (games_sha256(copy) != before) == is_seen


@pytest.mark.parametrize("kind", WORDS, ids=lambda kind: kind.__name__)
def test_each_kind_of_damage_damages(kind: Callable[[Path, random.Random], None], copy: TrainCommand) -> None:
    name = read_kept(copy).names[-1]
    assert is_intact(copy, name)
    kind(copy.folder / "kept" / name, random.Random(0))
    assert not is_intact(copy, name)
    with pytest.raises(ProofError, match=name):
        read_kept(copy)


def test_a_file_is_chosen_by_the_checkpoints_that_name_it(copy: TrainCommand) -> None:
    names = read_kept(copy).names
    assert [len(kept) for kept in named_by_checkpoints(copy).values()] == [2, 3, 4]
    assert choose_file(copy, "newest", random.Random(0)) == names[3]
    assert choose_file(copy, "every", random.Random(0)) in names[:2]
    with pytest.raises(ProofError, match="unnamed"):
        choose_file(copy, "unnamed", random.Random(0))
    shutil.rmtree(copy.folder / "checkpoints" / "00000004")
    assert {*unnamed_files(copy)} == {names[3]}
    assert choose_file(copy, "unnamed", random.Random(0)) == names[3]
    assert {which for _, which in DAMAGES} == {"newest", "unnamed", "every"}


def test_what_became_of_a_file(copy: TrainCommand) -> None:
    shutil.rmtree(copy.folder / "checkpoints" / "00000004")
    before = unnamed_files(copy)
    (name,) = before
    path = copy.folder / "kept" / name
    assert fate_of(copy, before) == {name: "found equal"}
    content = path.read_bytes()
    path.rename(path.with_name("other"))
    assert fate_of(copy, before) == {name: "deleted"}
    path.write_bytes(content)
    assert fate_of(copy, before) == {name: "written again"}
