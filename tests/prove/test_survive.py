"""`ranks prove survive` on a toy, and what it compares with the baseline run.

No result depends on the speed of the machine. For a kill inside a save, the proof watches the checkpoint folder. When
the temporary folder of a save appears, it freezes the process that saves (SIGSTOP) and looks again: if the folder is
still there, the kill falls inside the save for certain. If not, the process continues and the next save is awaited. If
a run ends before a save was hit, a further run gets the kill, at most four. Times are goals, which fail nothing.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ranks.cli.main import main
from ranks.engine.runs.folder import TEMPORARY
from ranks.prove.baseline import BaselineRun
from ranks.prove.options import ProofOptions
from ranks.prove.report import Report
from ranks.prove.survive_proof import SurviveProof
from ranks.prove.train_command import TrainCommand, Workspace, fingerprint

from .conftest import TOYS, Outcome

SMALL = ("--quick", "--iterations", "300", "--runs", "1")
HANGS = ("--hangs", "1", "--hung-sigterms", "1", "--train=--stop-grace 2s")
KILLS_AND_STOPS = ("survive", str(TOYS / "images.py"), *SMALL, "--kills", "2", "--sigterms", "1", *HANGS)


@pytest.mark.proof(*KILLS_AND_STOPS)
def test_kills_lose_nothing(outcome: Outcome) -> None:
    assert outcome.code == 0, outcome.printed
    kills = [kill for run in outcome.file["raw"]["kills"] for kill in run["kills"]]
    assert len(kills) >= 2
    assert any(kill["inside_save"] for kill in kills)
    assert outcome.file["raw"]["listening"].keys() <= {"127.0.0.1"}


@pytest.mark.proof(*KILLS_AND_STOPS)
def test_stops_lose_nothing(outcome: Outcome) -> None:
    assert outcome.code == 0, outcome.printed
    assert len(outcome.file["raw"]["stops"]) == 1


@pytest.mark.proof(*KILLS_AND_STOPS)
def test_hangs_lose_nothing(outcome: Outcome) -> None:
    assert outcome.code == 0, outcome.printed
    assert [hang["problem"] for hang in outcome.file["raw"]["hangs"]] == [""]
    assert [stop["code"] for stop in outcome.file["raw"]["hung_stops"]] == [143]


def test_each_run_has_a_folder_of_its_own(tmp_path: Path) -> None:
    images, options = str(TOYS / "images.py"), ProofOptions(train="--store {folder}/frames --seed 1")
    proof = SurviveProof(Report("survive", images, {}), Workspace(tmp_path), images, options, 4, random.Random(0))
    for name in ("killed", "stopped"):
        arguments = proof.command(name, 2, "exact").arguments
        assert arguments[-4:] == ["--store", f"{tmp_path}/own/{name}-2-exact/frames", "--seed", "1"]


def test_every_difference_from_the_baseline_run_is_named(tmp_path: Path) -> None:
    images, where = str(TOYS / "images.py"), Workspace(tmp_path)
    where.runs.mkdir()
    proof = SurviveProof(Report("survive", images, {}), where, images, ProofOptions(), 4, random.Random(0))

    def trained(name: str, seed: int) -> TrainCommand:
        run = proof.command(name, 1, "fast")
        assert main([*run.arguments, "--seed", str(seed), "--hang-timeout", "none"]) == 0
        return run

    run, other = trained("run", 0), trained("other", 1)
    baseline = BaselineRun(fingerprint(run), 4, 0.0, 0.0, 0.0, 0.0, 0.0)
    assert proof.difference(run, baseline) == ""
    assert proof.difference(other, baseline) == "another fingerprint"
    metrics, half_written = run.folder / "metrics.jsonl", f"{TEMPORARY}00000003"
    first, second, *_ = rows = metrics.read_text().splitlines(keepends=True)
    for damaged in (rows[:-1], [first, *rows], [second, first, *rows[2:]]):
        metrics.write_text("".join(damaged))
        assert proof.difference(run, baseline) == "metrics.jsonl does not hold each iteration once"
    (run.folder / "checkpoints" / half_written).mkdir()
    assert proof.difference(other, baseline) == "another fingerprint"
    assert proof.difference(run, baseline) == f"metrics.jsonl does not hold each iteration once; {half_written}"
