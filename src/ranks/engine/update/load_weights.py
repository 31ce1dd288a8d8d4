"""Loads weights into a model: all of them, or none."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from ranks.errors import UserError


def load_weights(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Raises UserError listing missing, unknown and differently shaped tensors; the model is then
    unchanged."""
    own = model.state_dict()
    wrong = [f"missing {n}" for n in own if n not in weights] + [f"unknown {n}" for n in weights if n not in own]
    wrong += [
        f"{n} is {tuple(weights[n].shape)}, the model needs {tuple(t.shape)}"
        for n, t in own.items()
        if n in weights and weights[n].shape != t.shape
    ]
    if wrong:
        more = f", and {len(wrong) - 6} more" if len(wrong) > 6 else ""
        raise UserError(
            "to load weights", "; ".join(wrong[:6]) + more, "use the config that these weights were made with"
        )
    model.load_state_dict(dict(weights))
