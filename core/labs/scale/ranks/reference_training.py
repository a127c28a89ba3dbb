"""Load the model for training, and train it in one process as a reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import PreTrainedModel

from decodescope.core.labs.scale.ranks.instrumentation import now_ms
from decodescope.core.labs.scale.ranks.rank_messages import RankJob
from decodescope.core.models.loaded_model import LoadedModel, load

LEARNING_RATE = 1e-3


def load_for_training(job: RankJob) -> LoadedModel:
    """Load the model for training, in float32."""
    torch.set_num_threads(1)
    found = load(job.folder, device="cpu", dtype="float32")
    found.model.requires_grad_(True)
    found.model.config.use_cache = False
    return found


def random_texts(model: PreTrainedModel, count: int, length: int) -> torch.Tensor:
    """Return random token ids [count, length], the same for every process."""
    vocabulary_size = int(model.config.get_text_config().vocab_size)
    return torch.randint(vocabulary_size, (count, length), generator=torch.Generator().manual_seed(0))


class SingleProcessReference(NamedTuple):
    """The loss of each step; the first step's gradients by name; and milliseconds of the last step: a micro-batch's
    forward, its backward, the update.
    """

    losses: list[float]
    gradients: dict[str, Tensor]
    costs: tuple[float, float, float]


def train_reference(model: PreTrainedModel, ids: Tensor, steps: int) -> SingleProcessReference:
    """Train on texts [micro-batches, length + 1], with one update per step, for at least one step."""
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
    """Return the mean loss over the tokens of one text [length + 1]."""
    logits = model(input_ids=ids[None, :-1]).logits
    return cross_entropy(logits.flatten(0, 1), ids[1:])


def relative_difference(actual: Sequence[Tensor], expected: Sequence[Tensor]) -> float:
    """Return the largest difference of two lists of tensors, relative to the largest number in `expected`."""
    largest = max(float(tensor.abs().max()) for tensor in expected)
    return max(float((one - other).abs().max()) for one, other in zip(actual, expected, strict=True)) / largest


def _forward_backward(model: PreTrainedModel, ids: Tensor) -> tuple[float, float, float]:
    """Return the loss, and the total milliseconds of forward and backward."""
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
