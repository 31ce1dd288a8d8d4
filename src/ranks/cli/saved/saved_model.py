"""Load the model of a saved run."""

from __future__ import annotations

import torch
from torch import nn

from ranks.cli.saved.run_folder import SavedRun
from ranks.engine.runs.checkpoints.checkpoint import Checkpoint
from ranks.engine.runs.checkpoints.pick import model_weights
from ranks.engine.update.load_weights import load_weights


def load_model(run: SavedRun, found: Checkpoint, device: torch.device) -> nn.Module:
    """The run's model with the checkpoint's weights, in evaluation mode. Raises UserError."""
    model: nn.Module = run.module.build(run.config)
    load_weights(model, model_weights(found))
    return model.to(device, torch.get_default_dtype()).eval()
