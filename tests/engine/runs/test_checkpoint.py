"""Checkpoints are complete or absent. Damage is found before a tensor is used, and the damaged file
is named."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from ranks import UserError
from ranks.engine.runs.checkpoints import checkpoint
from ranks.engine.runs.checkpoints.checkpoint import DamagedCheckpoint, HostState
from ranks.engine.runs.checkpoints.manifest import FORMAT, sealed
from ranks.engine.runs.folder import RunFolder, listing

FACTS: dict[str, Any] = {"time_s": 1.0, "score": None, "metrics_bytes": 0, "events_bytes": 0, "measured": {}}


def state(seed: int) -> HostState:
    generator = torch.Generator().manual_seed(seed)
    return HostState.of(
        {
            "learner": {
                "model": {"w": torch.randn(40, 30, generator=generator), "n": torch.tensor(seed)},
                "updates": seed,
            },
            "window": {"moves": torch.randint(0, 9, (50,), generator=generator), "games": {"count": 3}},
        }
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "checkpoints").mkdir()
    for iteration in (10, 20):
        checkpoint.write(tmp_path / "checkpoints", iteration, state(iteration), FACTS)
    return tmp_path / "checkpoints"


def test_what_is_read_is_what_was_written(folder: Path) -> None:
    loaded = checkpoint.newest(folder, [])
    assert loaded is not None
    assert loaded.iteration == 20
    assert loaded.state["learner"]["updates"] == 20
    assert loaded.state["window"]["games"] == {"count": 3}
    original = state(20)
    assert torch.equal(loaded.state["learner"]["model"]["w"], original.tensors["learner"]["model/w"])
    assert HostState.of(loaded.state).fingerprint() == loaded.fingerprint == original.fingerprint()


def flip(path: Path, chance: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


def damage(folder: Path, kind: str, chance: random.Random) -> Path:
    """Damage one file of the newest checkpoint; the file."""
    newest = folder / "00000020"
    path = chance.choice(sorted(newest.iterdir()))
    if kind == "flipped bit":
        flip(path, chance)
    elif kind == "truncated":
        path.write_bytes(path.read_bytes()[: chance.randrange(1, path.stat().st_size)])
    elif kind == "missing":
        path.unlink()
    elif kind == "zero length":
        path.write_bytes(b"")
    else:
        shutil.copy(folder / "00000010" / path.name, path)
    return path


def test_two_hundred_damaged_files_are_found_and_the_older_good_one_is_taken(folder: Path, tmp_path: Path) -> None:
    chance = random.Random(0)
    kinds = ["flipped bit", "truncated", "missing", "swapped", "zero length"]
    found = 0
    for case in range(200):
        copy = tmp_path / f"case{case}"
        shutil.copytree(folder, copy)
        path = damage(copy, kinds[case % 5], chance)
        damaged: list[str] = []
        loaded = checkpoint.newest(copy, damaged)
        assert loaded is not None
        assert loaded.iteration == 10, (kinds[case % 5], path)
        assert str(path) in damaged[0], (kinds[case % 5], path, damaged)
        found += 1
        shutil.rmtree(copy)
    assert found == 200


def test_an_undamaged_copy_is_taken(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    damaged: list[str] = []
    loaded = checkpoint.newest(tmp_path / "copy", damaged)
    assert loaded is not None
    assert (loaded.iteration, damaged) == (20, [])


def test_a_checkpoint_of_a_newer_format_is_refused_by_name(folder: Path) -> None:
    manifest = json.loads((folder / "00000020" / "manifest.json").read_text())
    manifest["format"] = FORMAT + 1
    (folder / "00000020" / "manifest.json").write_bytes(sealed(manifest))
    with pytest.raises(UserError, match="its format is 3"):
        checkpoint.newest(folder, [])


def test_a_foreign_folder_is_damage(tmp_path: Path) -> None:
    (tmp_path / "00000005").mkdir()
    (tmp_path / "00000005" / "model.pt").write_bytes(b"PK\x03\x04")
    damaged: list[str] = []
    assert checkpoint.newest(tmp_path, damaged) is None
    assert "missing" in damaged[0]


def test_a_manifest_that_points_outside_is_damage(folder: Path) -> None:
    path = folder / "00000020" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["files"]["../00000010/state.json"] = manifest["files"].pop("state.json")
    path.write_bytes(sealed(manifest))
    with pytest.raises(DamagedCheckpoint, match="leaves the folder"):
        checkpoint.read(folder / "00000020")


def test_rotation_keeps_the_newest_three_the_best_and_the_last_finite_one(tmp_path: Path) -> None:
    for iteration in range(1, 8):
        bad = state(iteration)
        if iteration >= 4:
            bad.tensors["learner"]["model/w"][0, 0] = float("nan")
        facts = {**FACTS, "score": {1: 0.1, 2: 0.5}.get(iteration)}
        checkpoint.write(tmp_path, iteration, bad, facts)
        checkpoint.rotate(tmp_path)
    assert [int(p.name) for p in listing(tmp_path)] == [1, 3, 5, 6, 7]
    assert checkpoint.best(tmp_path) == tmp_path / "00000001"


def test_leftovers_of_an_interrupted_save_are_removed(folder: Path) -> None:
    (folder / ".tmp-00000030-99").mkdir()
    (folder / ".tmp-00000030-99" / "state.json").write_text("{")
    RunFolder(folder.parent).remove_temporaries()
    assert sorted(p.name for p in folder.iterdir()) == ["00000010", "00000020"]


def test_fingerprints_see_every_part() -> None:
    base = state(1).fingerprint()
    renamed, retyped, counted = state(1), state(1), state(1)
    renamed.tensors["learner"]["model/v"] = renamed.tensors["learner"].pop("model/w")
    retyped.tensors["learner"]["model/w"] = retyped.tensors["learner"]["model/w"].reshape(30, 40)
    counted.rest["learner"]["updates"] = 2
    assert len({base, renamed.fingerprint(), retyped.fingerprint(), counted.fingerprint()}) == 4
    assert state(1).fingerprint() == base
