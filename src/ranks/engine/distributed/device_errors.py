"""What an error text of torch, CUDA or one of its libraries says about the device. Imports no torch.

Sources: the texts of cudaGetErrorString (CUDA 12 and 13, `cudaError_t` in driver_types.h), of CUBLAS_STATUS_*,
CUDNN_STATUS_* and ncclResult_t as torch 2.11 to 2.13 prints them, and of torch's CPU allocator.
"""

from __future__ import annotations

import re
from typing import Literal

DeviceError = Literal["out_of_memory", "fault", "assert"]

PATTERNS: tuple[tuple[DeviceError, str], ...] = (
    # An index out of range or a failed check in a kernel: the same data fails again.
    ("assert", r"device-side assert triggered"),
    ("out_of_memory", r"CUDA out of memory|CUDA error: out of memory|HIP out of memory"),
    ("out_of_memory", r"CUBLAS_STATUS_ALLOC_FAILED|CUSOLVER_STATUS_ALLOC_FAILED|CUSPARSE_STATUS_ALLOC_FAILED"),
    ("out_of_memory", r"CUDNN_STATUS_ALLOC_FAILED|CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"),
    ("out_of_memory", r"CUFFT_ALLOC_FAILED"),
    ("out_of_memory", r"(?i)nccl[\s\S]*Failed to CUDA (host )?(m|c)alloc|nccl[\s\S]*Cuda failure[^\n]*out of memory"),
    ("out_of_memory", r"DefaultCPUAllocator: (can't allocate memory|not enough memory)"),
    # The card, its memory, its link or its driver failed. Another start may find it healthy.
    ("fault", r"uncorrectable ECC error encountered"),
    ("fault", r"unspecified launch failure"),
    ("fault", r"uncorrectable NVLink error"),
    ("fault", r"Invalid access of peer GPU memory over nvlink or a hardware error"),
    ("fault", r"hardware stack error"),
    ("fault", r"GPU is lost|GPU has fallen off the bus|GPU requires reset"),
    ("fault", r"CUDA error: (no CUDA-capable device is detected|unknown error|system not yet initialized)"),
    ("fault", r"CUDA-capable device\(s\) is/are busy or unavailable"),
)


def device_error(text: str) -> DeviceError | None:
    """The kind of device error that a text describes, None for any other text.

    `out_of_memory` also where cuBLAS, cuDNN or NCCL ran out of memory. `fault`: the device failed, so another start may
    succeed. `assert`: a check in a kernel failed, which is an error of the program.
    """
    return next((kind for kind, pattern in PATTERNS if re.search(pattern, text)), None)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception says that memory ran out: torch.OutOfMemoryError, or a text of another library."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return isinstance(error, RuntimeError) and device_error(str(error)) == "out_of_memory"
