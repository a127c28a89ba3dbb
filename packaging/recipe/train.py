"""The training loop: losses, optimizers, schedule, state that survives an interruption."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from batches import START, Batch, PairBatch, Place
from muon import Muon
from shapes import ModelRecipe
from torch import Tensor
from torch.nn import functional

SAVE_EVERY = 150.0  # seconds
WARM_UP = 40  # steps
HILL_RATE = 0.6  # peak of the later hills, of the first
NOT_INSIDE = ("embed", "shared", "bias", "A_log", "aside")  # parts of names of matrices at the borders of a network


def decoder_loss(model: Any, batch: Batch) -> Tensor:
    """Weighted cross entropy of the next token, in nats; tokens of weight zero are not predicted."""
    weights = batch.weights[:, 1:]
    kept = weights > 0
    hidden = model.base_model(batch.ids[:, :-1], use_cache=False)[0][kept]
    losses = functional.cross_entropy(model.lm_head(hidden), batch.ids[:, 1:][kept], reduction="none")
    return (losses * weights[kept]).sum() / weights[kept].sum()


def pair_loss(model: Any, batch: PairBatch) -> Tensor:
    """Cross entropy of the target tokens given the input, in nats."""
    loss: Tensor = model(input_ids=batch.ids, attention_mask=batch.mask, labels=batch.labels).loss
    return loss


def rate_at(shape: ModelRecipe, step: int) -> float:
    """The learning rate of a step: warm-up, plateau, a straight line to zero; then perhaps lower hills."""
    hill, number = shape.hill_at(step)
    if hill == 0:
        return shape.rate * min(1.0, (number + 1) / WARM_UP, (shape.steps - number) / (shape.decay * shape.steps))
    length = shape.hills[hill - 1]
    return HILL_RATE * shape.rate * min((number + 1) / WARM_UP, (length - number) / length)


def optimizers(model: Any, shape: ModelRecipe) -> list[torch.optim.Optimizer]:
    """Muon for the matrices inside, AdamW for embeddings, norms and the rest."""
    inside, rest = [], []
    for name, parameter in model.named_parameters():
        matrix = parameter.ndim == 2 and not any(part in name for part in NOT_INSIDE)
        (inside if matrix else rest).append(parameter)
    return [Muon(inside, shape.rate), torch.optim.AdamW(rest, shape.rate, betas=(0.9, 0.98), weight_decay=0.0)]


def write_state(path: Path, **state: Any) -> None:
    """Save through a second file, so that an interruption leaves the old state whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(state, path.with_suffix(".new"))
    os.replace(path.with_suffix(".new"), path)


class Trainer:
    """Trains one model for a fixed number of steps and can go on where it was stopped."""

    def __init__(self, model: Any, shape: ModelRecipe, state: Path) -> None:
        self.model, self.shape, self.state = model, shape, state
        self.optimizers = optimizers(model, shape)
        self.step, self.tokens, self.losses = 0, 0, list[float]()
        self.place: Place = START
        if state.exists():
            self._restore()

    def _restore(self) -> None:
        saved = torch.load(self.state, weights_only=True)
        self.model.load_state_dict(saved["model"])
        for optimizer, values in zip(self.optimizers, saved["optimizers"], strict=True):
            optimizer.load_state_dict(values)
        self.step, self.tokens, self.losses = saved["step"], saved["tokens"], saved["losses"]
        self.place = tuple(saved["place"])

    def save(self) -> None:
        """Write everything that is needed to go on."""
        write_state(
            self.state,
            model=self.model.state_dict(),
            optimizers=[optimizer.state_dict() for optimizer in self.optimizers],
            step=self.step,
            tokens=self.tokens,
            losses=self.losses,
            place=self.place,
        )

    def run(self, batches: Iterator[Any], loss_of: Callable[[Any, Any], Tensor], report: Callable[[str], None]) -> None:
        """Train up to the last step; ``batches`` continues at the place that was reached."""
        self.model.train()
        saved = began = time.monotonic()
        first = self.tokens
        while self.step < self.shape.all_steps:
            self._one(next(batches), loss_of)
            if self.step % 25 == 0:
                report(self._progress((self.tokens - first) / (time.monotonic() - began)))
            if time.monotonic() - saved > SAVE_EVERY:
                self.save()
                saved = time.monotonic()
        self.save()

    def _progress(self, speed: float) -> str:
        recent = sum(self.losses[-25:]) / 25
        where = f"{self.shape.name} step {self.step}/{self.shape.all_steps} tokens {self.tokens}"
        return f"{where} loss {recent:.4f} {speed:.0f} tokens/s"

    def _one(self, batch: Any, loss_of: Callable[[Any, Any], Tensor]) -> None:
        loss = loss_of(self.model, batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate_at(self.shape, self.step)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        self.step += 1
        self.place = batch.after
        self.tokens += int((batch.ids > 0).sum())
        self.losses.append(loss.item())
