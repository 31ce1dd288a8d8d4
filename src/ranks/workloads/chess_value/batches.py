"""From labelled positions to batches on the device."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch

from ranks.workloads.chess_value.labels.label import NO_RESULT, NO_SCORE, Labelled
from ranks.workloads.chess_value.net.inputs import Kind, inputs_of, to_device
from ranks.workloads.chess_value.net.losses import ValueBatch
from ranks.workloads.chess_value.window import ToBatch


def to_batch(labelled: Labelled, kind: Kind, device: torch.device) -> ValueBatch:
    """Inputs and targets of a net of this kind, on the device."""
    dtype = torch.get_default_dtype()
    has_score_B = labelled.cp_N != NO_SCORE
    has_result_B = labelled.result_N != NO_RESULT
    return ValueBatch(
        inputs=inputs_of(kind, labelled.boards_N13, device),
        cp_B=to_device(np.where(has_score_B, labelled.cp_N, np.int16(0)), device).to(dtype),
        has_score_B=to_device(has_score_B, device),
        result_B=to_device(np.where(has_result_B, labelled.result_N, np.int8(0)), device).to(dtype),
        has_result_B=to_device(has_result_B, device),
    )


def batches_for(kind: Kind, device: torch.device) -> ToBatch:
    """`to_batch` for one kind of net and one device."""
    return partial(to_batch, kind=kind, device=device)
