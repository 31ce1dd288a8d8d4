"""The calibration plot: in ranges of the predicted win probability, what the labels say.

Legend: B positions of a batch, C ranges.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ranks.engine.runs.folder import RunFolder
from ranks.errors import UserError
from ranks.watch.report.figures import INK, panels, percent, percent_below, save
from ranks.watch.report.metric_rows import MetricRows
from ranks.workloads.chess_value.batches import batch_of
from ranks.workloads.chess_value.evaluation import CALIBRATION_BINS, MOST_POSITIONS, ROWS, VALIDATION
from ranks.workloads.chess_value.net.losses import target, win_probability_of
from ranks.workloads.chess_value.parts import LabelledParts, saved_parts
from ranks.workloads.chess_value.players.net_player import kind_of
from ranks.workloads.chess_value.players.saved_net import from_run


def draw_calibration(run: RunFolder, settings: Mapping[str, Any], rows: MetricRows, path: Path) -> str | None:
    """The mean label in each range of the prediction, with the best checkpoint of the run on the positions that only
    validate."""
    kept = saved_parts(run.path, VALIDATION)
    if not len(kept):
        return "the run keeps no positions that only validate"
    try:
        saved = from_run(f"{run.path}/best", f"the calibration of {run.path.name}")
    except UserError as error:
        return error.found
    mix = float(settings["config"].get("result_mix", 0.0))
    count_C, predicted_C, labelled_C = calibration(saved.model, kept, mix)
    used_C = count_C > 0
    if not used_C.any():
        return "no position that validates has a label"
    figure, (panel, amounts) = panels(1, 2, inches=(9, 4.2))
    panel.plot([0, 1], [0, 1], color="grey", linewidth=0.8, linestyle=":", label="calibrated")
    panel.plot(predicted_C[used_C], labelled_C[used_C], "o-", color=INK, linewidth=1.3, label=saved.source)
    percent(panel, "mean label")
    percent_below(panel, "predicted win probability")
    panel.legend(fontsize=7)
    width = 1 / len(count_C)
    amounts.bar((np.arange(len(count_C)) + 0.5) * width, count_C, width=0.9 * width, color=INK)
    percent_below(amounts, "predicted win probability")
    amounts.set_ylabel("positions")
    return save(figure, path)


def calibration(
    model: nn.Module, positions: LabelledParts, mix: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """(positions, mean prediction, mean label) of each range, for at most MOST_POSITIONS, evenly spread; 0 in an empty
    range. Positions without any label are left out."""
    count_C, predicted_C, labelled_C = np.zeros((3, CALIBRATION_BINS))
    index_N = np.linspace(0, len(positions) - 1, min(len(positions), MOST_POSITIONS)).astype(np.int64)
    for first in range(0, len(index_N), ROWS):
        batch = batch_of(positions.read(index_N[first : first + ROWS]), kind_of(model))
        with torch.no_grad():
            probability_B = win_probability_of(model, batch, kind_of(model)).double().numpy()
        target_B, weight_B = (tensor.double().numpy() for tensor in target(batch, mix))
        bin_B = np.minimum((probability_B * CALIBRATION_BINS).astype(np.int64), CALIBRATION_BINS - 1)
        for sums_C, values_B in ((count_C, 1.0), (predicted_C, probability_B), (labelled_C, target_B)):
            np.add.at(sums_C, bin_B, values_B * weight_B)
    many_C = np.maximum(count_C, 1)
    return count_C, predicted_C / many_C, labelled_C / many_C
