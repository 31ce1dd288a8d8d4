"""The training loss of clips: cross-entropy over classes, or for overlapping behaviours over each class.

Legend: B clips, C classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ranks.engine.update.loss import Loss
from ranks.workloads.video_behavior.clips.balance import ClassBalance
from ranks.workloads.video_behavior.clips.stream import ClipBatch


@dataclass(frozen=True)
class BehaviorLossSettings:
    """Weight of each class in the loss, and what is added to its logit. `multi`: behaviours may overlap."""

    weight_C: Tensor
    offset_C: Tensor
    multi: bool

    @classmethod
    def of(cls, balance: ClassBalance, num_classes: int, multi: bool, device: torch.device) -> BehaviorLossSettings:
        """The settings that make up for rare classes as `balance` says."""
        weight_C, offset_C = (
            torch.from_numpy(values[:num_classes]).to(device, torch.get_default_dtype())
            for values in (balance.weight_C, balance.offset_C)
        )
        return cls(weight_C, offset_C, multi)


def behavior_loss(model: nn.Module, batch: ClipBatch, *, settings: BehaviorLossSettings) -> Loss:
    """The weighted cross-entropy, summed over clips, and the accuracy: of the likeliest class, or with `multi` the
    share of right decisions for each class."""
    logits_BC = model(batch.clips_BTHW).to(settings.weight_C.dtype)
    loss_B = cross_entropy(logits_BC + settings.offset_C, batch.label_BC, settings.weight_C, settings.multi)
    return Loss(loss_B.sum(), len(batch), accuracy=accuracy(logits_BC, batch.label_BC, settings.multi))


def cross_entropy(logits_BC: Tensor, label_BC: Tensor, weight_C: Tensor, multi: bool) -> Tensor:
    """[B]: exclusive: weight of the true class times its negative log-likelihood. multi: the mean over classes of the
    binary cross-entropy, with the weight of a class where it is shown."""
    truth_BC = label_BC.to(logits_BC.dtype)
    if not multi:
        return -(logits_BC.log_softmax(1) * truth_BC * weight_C).sum(1)
    return F.binary_cross_entropy_with_logits(logits_BC, truth_BC, pos_weight=weight_C, reduction="none").mean(1)


def accuracy(logits_BC: Tensor, label_BC: Tensor, multi: bool) -> Tensor:
    """[B]: 1 where a clip is right, or with `multi` the share of classes that are right."""
    if multi:
        return ((logits_BC > 0) == (label_BC > 0)).to(logits_BC.dtype).mean(1)
    return (logits_BC.argmax(1) == label_BC.argmax(1)).to(logits_BC.dtype)


def probabilities(logits_BC: Tensor, multi: bool) -> Tensor:
    """[B, C]: a softmax over classes, or a sigmoid of each."""
    return logits_BC.sigmoid() if multi else logits_BC.softmax(1)
