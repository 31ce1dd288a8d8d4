"""From labelled positions to batches of the host."""

from __future__ import annotations

from functools import partial

import torch

from ranks.workloads.chess_value.labels.label import NO_RESULT, NO_SCORE, Labelled
from ranks.workloads.chess_value.net.inputs import Kind, host_inputs
from ranks.workloads.chess_value.net.losses import ValueBatch
from ranks.workloads.chess_value.window import ToBatch


def batch_of(labelled: Labelled, kind: Kind) -> ValueBatch:
    """What a net of this kind needs, and the targets, on the CPU. Any thread can call it."""
    dtype = torch.get_default_dtype()
    has_score_B = torch.from_numpy(labelled.cp_N != NO_SCORE)
    has_result_B = torch.from_numpy(labelled.result_N != NO_RESULT)
    return ValueBatch(
        inputs=tuple(torch.from_numpy(array) for array in host_inputs(kind, labelled.boards_N13)),
        cp_B=torch.from_numpy(labelled.cp_N).to(dtype) * has_score_B,
        has_score_B=has_score_B,
        result_B=torch.from_numpy(labelled.result_N).to(dtype) * has_result_B,
        has_result_B=has_result_B,
    )


def batches_for(kind: Kind) -> ToBatch:
    """`batch_of` for one kind of net."""
    return partial(batch_of, kind=kind)
