"""What the three trainings share: steps one after another, Stop, and going on behind a kill."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike

import torch
from safetensors import SafetensorError

from core.arguments import check_kind
from core.error_translation import translate_errors
from core.labs.preference.checkpoint import Checkpoint, TrainingProgress
from core.labs.preference.events import LabEvent, Stage, Stopped
from core.labs.preference.write_errors import not_written_error
from core.models.loaded_model import LoadedModel, load
from resources.language import tr

SAVE_INTERVAL_SECONDS = 10.0
"""Seconds between two states on the disk, at least."""
SMALL_MODEL_PARAMETERS = 10_000_000
"""Parameters of a model that learns well at the highest rate."""
MIN_LEARNING_RATE = 1e-5
WARMUP_FRACTION = 0.1
"""Share of the steps in which the rate grows to its whole."""


class TrainingInterrupted(Exception):
    """A step was left half-way because it is to stop: what it has changed counts for nothing."""


@dataclass
class TrainingLoop:
    """One training under way: its state on the disk, its clock, and whether it is to stop."""

    stage: Stage
    total: int
    checkpoint: Checkpoint
    cancel: threading.Event
    step: int = 0
    seconds: float = 0.0
    figures: dict[str, float] = field(default_factory=dict)

    def resume(self) -> None:
        """Go on behind the steps that lie on the disk."""
        self.step, self.seconds, self.figures = self.checkpoint.restore()

    def steps(self, update: Callable[[int], Iterator[LabEvent]]) -> Iterator[LabEvent]:
        """The events of every update that is left; the state is saved now and then, and when it is stopped or left."""
        saved, saved_at, is_whole = self.step, self.seconds, True
        try:
            while self.step < self.total and not self.cancel.is_set():
                begun = time.monotonic()
                try:
                    events = list(update(self.step))
                except TrainingInterrupted:
                    self.step, is_whole = saved, False
                    break
                if self.cancel.is_set() and not events:
                    break
                self.step += 1
                self.seconds += time.monotonic() - begun
                if self.seconds - saved_at >= SAVE_INTERVAL_SECONDS:
                    self._save()
                    saved, saved_at = self.step, self.seconds
                yield from events
        finally:
            if self.step < self.total and is_whole:
                self._save()
        if self.step < self.total:
            yield Stopped(self.stage, self.step, self.total)

    @property
    def is_done(self) -> bool:
        """Whether no step is left."""
        return self.step >= self.total

    def _save(self) -> None:
        self.checkpoint.save(TrainingProgress(self.step, self.seconds, self.figures))


def learning_rate_at(step: int, total: int, peak: float) -> float:
    """The learning rate of a step: a short warm-up, then a straight line to zero."""
    warm = max(1, round(total * WARMUP_FRACTION))
    return peak * min((step + 1) / warm, (total - step) / max(1, total - warm + 1))


def default_learning_rate(model: LoadedModel, rate: float) -> float:
    """Return a learning rate for the size of a model. `rate` is right for a model of up to 10 million parameters; a
    larger one takes less, 2e-5 instead of 1e-3 at 135 million."""
    size = max(1, sum(parameter.numel() for parameter in model.model.parameters()))
    lowered = rate * (SMALL_MODEL_PARAMETERS / size) ** 1.5
    return rate if size <= SMALL_MODEL_PARAMETERS else float(f"{max(MIN_LEARNING_RATE, lowered):.1g}")


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Every group of the optimizer at that rate."""
    for group in optimizer.param_groups:
        group["lr"] = rate


def optimizer_step(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    """One update along the gradients of `loss`, those of each group cut to a length of 1."""
    optimizer.zero_grad()
    torch.autograd.backward(loss)
    for group in optimizer.param_groups:
        torch.nn.utils.clip_grad_norm_(group["params"], 1.0)
    optimizer.step()


def load_source(model: LoadedModel | str) -> LoadedModel:
    """A model as it is, or the one of that name. Raises ParameterError, ModelError."""
    check_kind("model", model, (LoadedModel, str, PathLike), tr("Give a loaded model, or the name of one."))
    return model if isinstance(model, LoadedModel) else load(model, device="cpu", dtype="float32")


@contextmanager
def training_context(model: LoadedModel) -> Iterator[None]:
    """With gradients, and whatever fails told as an error with cause and remedy: of the system and of safetensors, that
    something was not written, for nothing else is asked of them here."""
    with translate_errors(model), torch.inference_mode(False), torch.enable_grad():
        try:
            yield
        except (OSError, SafetensorError) as error:
            raise not_written_error(tr("The training"), error) from error
