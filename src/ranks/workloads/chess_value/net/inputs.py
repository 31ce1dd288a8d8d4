"""From packed positions to what each kind of net takes."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ranks.chess.engine.nnue.features import active_features, output_bucket
from ranks.data.loading.device_copy import to_device
from ranks.workloads.chess_value.net.planes import cnn_planes, resnet_planes

Kind = Literal["nnue", "cnn", "resnet"]


def host_inputs(kind: Kind, boards_B13: NDArray[np.uint64]) -> tuple[NDArray[np.generic], ...]:
    """For nnue the indices of the active features and the output buckets; otherwise the packed positions."""
    boards_B13 = np.ascontiguousarray(boards_B13)
    if kind == "nnue":
        return active_features(boards_B13), output_bucket(boards_B13)
    return (boards_B13.view(np.int64),)


def device_inputs(kind: Kind, arrays: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The arguments of the net's forward, from the host's arrays as tensors on the device."""
    if kind == "nnue":
        features_B2A, bucket_B = arrays
        return features_B2A.long(), bucket_B.long()
    (boards_B13,) = arrays
    dtype = torch.get_default_dtype()
    return cnn_planes(boards_B13, dtype) if kind == "cnn" else (resnet_planes(boards_B13, dtype),)


def inputs_of(kind: Kind, boards_B13: NDArray[np.uint64], device: torch.device) -> tuple[Tensor, ...]:
    """The arguments of the net's forward on a device. boards: uint64[B, 13]."""
    arrays = tuple(torch.from_numpy(array) for array in host_inputs(kind, boards_B13))
    return device_inputs(kind, to_device(arrays, device))
