"""Distillation: a small model learns the probabilities of a large one, not only the corpus.

The teacher's distribution over the next token is the target, on corpus documents and on text that the
teacher itself samples, since that is what a draft model has to foresee.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import torch
from batches import Batch
from torch import Tensor
from torch.nn import functional

SAMPLED_EVERY = 8  # every eighth batch is the teacher's own text
PROMPT = 24  # tokens of a document that the teacher continues
NEW = 128


def soft_loss(teacher: Any) -> Callable[[Any, Batch], Tensor]:
    """Cross entropy between the teacher's and the student's next-token distributions, in nats."""

    def loss(student: Any, batch: Batch) -> Tensor:
        weights = batch.weights[:, 1:]
        kept = weights > 0
        with torch.no_grad():
            target = teacher.lm_head(teacher.base_model(batch.ids[:, :-1], use_cache=False)[0][kept]).softmax(-1)
        hidden = student.base_model(batch.ids[:, :-1], use_cache=False)[0][kept]
        losses = -(target * functional.log_softmax(student.lm_head(hidden), -1)).sum(-1)
        return (losses * weights[kept]).sum() / weights[kept].sum()

    return loss


@torch.no_grad()
def continued(teacher: Any, batch: Batch, rng: random.Random) -> Batch:
    """The beginnings of a batch's documents, continued by the teacher's sampling at a random temperature."""
    start = batch.ids[:, : rng.randint(2, PROMPT)]
    torch.manual_seed(rng.randrange(2**31))
    ids = teacher.generate(
        start,
        attention_mask=torch.ones_like(start),
        do_sample=True,
        top_k=0,
        temperature=rng.choice([0.01, 0.5, 0.8, 1.0]),
        max_new_tokens=NEW,
    )
    weights = (ids != teacher.config.pad_token_id).float()
    weights[:, : start.shape[1]] = 0.0
    return Batch(ids, weights, batch.after)


def with_samples(teacher: Any, batches: Iterator[Batch], start: int) -> Iterator[Batch]:
    """The batches, every eighth replaced by the teacher's continuation of it."""
    teacher.eval()
    for number, batch in enumerate(batches, start):
        yield continued(teacher, batch, random.Random(number)) if number % SAMPLED_EVERY == 0 else batch
