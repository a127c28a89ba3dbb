"""One process that has the whole model, to hold the others against."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import PreTrainedModel

from core.labs.scale.ranks.rank_setup import LEARNING_RATE
from core.labs.scale.ranks.shared_clock import now_ms


class SingleProcessReference(NamedTuple):
    """The loss of each step; the first step's gradients by name; milliseconds of the last step: a micro-batch forward,
    one backward, the update."""

    losses: list[float]
    gradients: dict[str, Tensor]
    costs: tuple[float, float, float]


def train_reference(model: PreTrainedModel, ids: Tensor, steps: int) -> SingleProcessReference:
    """Train on texts [micro-batches, length + 1], one after the other with an update behind all; at least a step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
    losses: list[float] = []
    gradients: dict[str, Tensor] = {}
    costs = (0.0, 0.0, 0.0)
    for _ in range(steps):
        loss, forward, backward = _forward_backward(model, ids)
        if not losses:
            gradients = {name: part.grad.clone() for name, part in model.named_parameters() if part.grad is not None}
        update = _timed(optimizer.step)
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss)
        costs = (forward / len(ids), backward / len(ids), update)
    return SingleProcessReference(losses, gradients, costs)


def text_loss(model: PreTrainedModel, ids: Tensor) -> Tensor:
    """The mean over tokens of one text [length + 1]."""
    logits = model(input_ids=ids[None, :-1]).logits
    return cross_entropy(logits.flatten(0, 1), ids[1:])


def relative_difference(actual: Sequence[Tensor], expected: Sequence[Tensor]) -> float:
    """The greatest difference of two lists of tensors, as a share of the greatest number in `expected`."""
    most = max(float(tensor.abs().max()) for tensor in expected)
    return max(float((one - other).abs().max()) for one, other in zip(actual, expected, strict=True)) / most


def _forward_backward(model: PreTrainedModel, ids: Tensor) -> tuple[float, float, float]:
    """The loss, and milliseconds forward and backward altogether."""
    whole = forward = backward = 0.0
    for text in ids:
        began = now_ms()
        loss = text_loss(model, text) / len(ids)
        forward += now_ms() - began
        backward += _timed(loss.backward)
        whole += float(loss.detach())
    return whole, forward, backward


def _timed(work: Callable[[], object]) -> float:
    began = now_ms()
    work()
    return now_ms() - began
