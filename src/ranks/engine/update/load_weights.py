"""Loads weights into a model: all of them, or none."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from ranks.errors import UserError

SHOWN = 12
"""How many differences an error lists."""


def load_weights(
    model: nn.Module,
    weights: Mapping[str, Tensor],
    asked: str = "to load weights",
    do: str = "use the config that these weights were made with",
) -> None:
    """Raises UserError listing missing, unexpected and differently shaped tensors; the model is then
    unchanged."""
    own = model.state_dict()
    wrong = [f"missing {n}" for n in own if n not in weights]
    wrong += [f"unexpected {n}" for n in weights if n not in own]
    wrong += [
        f"{n} is {tuple(weights[n].shape)}, the model needs {tuple(t.shape)}"
        for n, t in own.items()
        if n in weights and weights[n].shape != t.shape
    ]
    if wrong:
        more = f", and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
        raise UserError(asked, "; ".join(wrong[:SHOWN]) + more, do)
    model.load_state_dict(dict(weights))
