"""`ranks chess-value report` on a run without Stockfish, and the calibration behind its plot."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from ranks.chess.fen import parse_fen
from ranks.cli.main import main
from ranks.workloads.chess_value.labels.label import NO_RESULT, Labelled
from ranks.workloads.chess_value.parts import LabelledParts
from ranks.workloads.chess_value.report.calibration import calibration
from tests.chess_value import tiny


class Constant(nn.Module):
    """Predicts one logit for all positions."""

    def forward(self, planes_B13RF: Tensor, *rest: Tensor) -> Tensor:
        return torch.full((len(planes_B13RF),), 1.0)


def test_a_page_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tiny.train(tmp_path).folder
    assert main(["chess-value", "report", str(folder)]) == 0
    assert "written: " in capsys.readouterr().out
    page = (folder / "report" / "report.md").read_text()
    drawn = {path.name for path in (folder / "report").glob("*.png")}
    assert {*re.findall(r"\]\((\S+)\)", page)} == drawn
    assert drawn >= {"losses.png", "labels.png", "calibration.png"}
    assert "- cycles: 2, games: " in page
    assert "| labels/s |" in page
    assert main(["chess-spiking", "report", str(folder)]) == 2
    assert "a run of chess-value" in capsys.readouterr().err


def test_the_calibration_is_a_mean_of_each_range() -> None:
    board = parse_fen("8/8/8/4k3/8/4K3/4P3/8 w - - 0 1")[0]
    cp = np.array([0, 400, -400, 0], np.int16)
    columns = {"boards_N13": np.stack([board] * 4), "cp_N": cp, "result_N": np.full(4, NO_RESULT, np.int8)}
    part = Labelled(**columns, source_N=np.zeros(4, np.int8))
    count_C, predicted_C, labelled_C = calibration(Constant(), LabelledParts([part]), 0.0)
    assert count_C.tolist() == [0, 0, 0, 0, 0, 0, 0, 4, 0, 0]
    assert predicted_C[7] == pytest.approx(1 / (1 + np.exp(-1.0)))
    assert labelled_C[7] == pytest.approx(0.5)


def test_a_run_whose_name_is_a_number_has_its_calibration(tmp_path: Path) -> None:
    folder = tiny.train(tmp_path).folder.rename(tmp_path / "3")
    assert main(["chess-value", "report", str(folder)]) == 0
    assert (folder / "report" / "calibration.png").exists()
