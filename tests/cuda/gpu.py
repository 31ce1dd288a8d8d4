"""What the tests in this folder need."""

from __future__ import annotations

import pytest
import torch

NEEDS_GPU = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="a GPU is needed: python -m pytest -n 0 tests/cuda"
)
