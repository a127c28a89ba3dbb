"""The common part of the three trainings: steps, checkpoints, stopping and resuming."""

from __future__ import annotations

import hashlib
import json
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import NamedTuple, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from decodescope.core.checks.arguments import check_kind
from decodescope.core.labs.preference.events import LabEvent, Stage, TrainingSaved, TrainingStarted, TrainingStopped
from decodescope.core.labs.preference.model_saving import Savable, save_model
from decodescope.core.models.error_translation import translate_errors
from decodescope.core.models.loaded_model import LoadedModel, load
from decodescope.core.system.file_writing import atomic_write, not_written_error
from decodescope.resources.language import tr

CHECKPOINT_NAME = "training.safetensors"
Tensors = dict[str, torch.Tensor]
T = TypeVar("T")
_READ_ERRORS = (OSError, SafetensorError, LookupError, TypeError, ValueError, AttributeError, RecursionError)
"""Exceptions raised when reading a file that is missing or invalid."""


class TrainingProgress(NamedTuple):
    """The progress of a training."""

    step: int
    seconds: float
    """Computing time so far."""
    figures: dict[str, float]
    """Values that the training restores."""


class Checkpoint:
    """The state needed to resume: the trained weights and their optimizer.

    Random numbers need no state, because each step derives its own from the seed and its number. `plan`: everything
    that determines the training; a file with another plan is not resumed.
    """

    def __init__(
        self,
        folder: Path,
        plan: Mapping[str, object],
        module: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
    ) -> None:
        self._path = folder / CHECKPOINT_NAME
        self._plan = json.dumps(plan, sort_keys=True)
        self._module, self._optimizer = module, optimizer

    def save(self, progress: TrainingProgress) -> None:
        """Write the checkpoint atomically."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        weights: Tensors = dict(self._module.named_parameters())
        tensors = {f"weight.{name}": value for name, value in weights.items()}
        tensors |= {f"adam.{name}": value for name, value in self._optimizer_tensors().items()}
        progress_json = json.dumps(progress)
        about = {"plan": self._plan, "progress": progress_json, "check": _checksum(progress_json)}
        with atomic_write(self._path) as part:
            save_file({name: value.detach().contiguous() for name, value in tensors.items()}, part, about)

    def restore(self) -> TrainingProgress:
        """Restore from the file if it exists, is intact and has the same plan; otherwise start from the beginning."""
        try:
            progress, tensors = self._read()
            self._load_state(tensors)
        except _READ_ERRORS:
            return TrainingProgress(0, 0.0, {})
        return progress

    def delete(self) -> None:
        """Delete the file after the training is done."""
        self._path.unlink(missing_ok=True)

    def _read(self) -> tuple[TrainingProgress, Tensors]:
        with safe_open(self._path, "pt", backend="pread") as file:
            about = file.metadata() or {}
            if about.get("plan") != self._plan:
                raise ValueError(self._path)  # belongs to another training
            tensors = {name: file.get_tensor(name) for name in file.keys()}
        if about.get("check", _checksum(about["progress"])) != _checksum(about["progress"]):
            raise ValueError(self._path)
        return TrainingProgress(*json.loads(about["progress"])), tensors

    def _optimizer_tensors(self) -> Tensors:
        state = self._optimizer.state_dict()["state"]
        return {
            f"{place}.{key}": torch.as_tensor(value)
            for place, parameter_state in state.items()
            for key, value in parameter_state.items()
        }

    def _load_state(self, tensors: Tensors) -> None:
        """Load all tensors or none. Raises the errors in `_READ_ERRORS`."""
        weights = {name.removeprefix("weight."): value for name, value in tensors.items() if name.startswith("weight.")}
        if _shapes(weights) != _shapes(dict(self._module.named_parameters())):
            raise ValueError(self._path)
        moments: dict[int, Tensors] = {}
        for name, value in tensors.items():
            kind, _, rest = name.partition(".")
            if kind == "adam":
                place, key = rest.split(".", 1)
                moments.setdefault(int(place), {})[key] = value
        self._optimizer.load_state_dict({**self._optimizer.state_dict(), "state": moments})
        self._module.load_state_dict(weights, strict=False)


def _checksum(progress: str) -> str:
    return str(zlib.crc32(progress.encode()))


def _shapes(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Size]:
    return {name: value.shape for name, value in tensors.items()}


SAVE_INTERVAL_SECONDS = 10.0
"""Minimum time between two checkpoints, in seconds."""
SMALL_MODEL_PARAMETERS = 10_000_000
"""Number of parameters up to which the full learning rate is suitable."""
MIN_LEARNING_RATE = 1e-5
WARMUP_FRACTION = 0.1
"""Fraction of the steps used for warm-up."""


class TrainingInterrupted(Exception):
    """A step was interrupted; its changes are discarded."""


class TrainingLoop:
    """A training in progress: checkpoint, elapsed time and cancellation."""

    def __init__(
        self, stage: Stage, source: LoadedModel, plan: Mapping[str, object], total: int, module: torch.nn.Module,
        optimizer: torch.optim.Optimizer, folder: Path, cancel: threading.Event,
    ) -> None:  # fmt: skip
        """Prepare `total` steps of `module`, which is made from `source`; `plan`: what else determines the training."""
        self.stage, self.total, self.cancel = stage, total, cancel
        self._source, self._folder = source, folder
        whole_plan = {"stage": stage, "model": weights_digest(source), **plan}
        self._checkpoint = Checkpoint(folder, whole_plan, module, optimizer)
        self.step, self.seconds = 0, 0.0
        self.figures: dict[str, float] = {}

    def resume(self, learned: Sequence[object], held_out: Sequence[object]) -> TrainingStarted:
        """Resume after the steps in the checkpoint."""
        self.step, self.seconds, self.figures = self._checkpoint.restore()
        return TrainingStarted(self.stage, self._source.name, self.step, self.total, len(learned), len(held_out))

    def keep(self, network: Savable, card: str) -> TrainingSaved:
        """Save the trained network with its model card, and delete the checkpoint."""
        save_model(network, self._source.tokenizer, self._folder, card)
        self._checkpoint.delete()
        return TrainingSaved(self.stage, str(self._folder), self.seconds)

    def steps(self, update: Callable[[int], Iterator[LabEvent]]) -> Iterator[LabEvent]:
        """Yield the events of the remaining updates; save a checkpoint from time to time and when interrupted."""
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
            yield TrainingStopped(self.stage, self.step, self.total)

    @property
    def is_done(self) -> bool:
        """Whether all steps are done."""
        return self.step >= self.total

    def _save(self) -> None:
        self._checkpoint.save(TrainingProgress(self.step, self.seconds, self.figures))


HELD_OUT_INTERVAL = 5
"""One in this many items is held out."""


def split_held_out(items: Sequence[T]) -> tuple[list[T], list[T]]:
    """Split into items for training and held-out ones; fewer than five are used for both."""
    held = list(items[HELD_OUT_INTERVAL - 1 :: HELD_OUT_INTERVAL])
    learned = [one for place, one in enumerate(items, 1) if place % HELD_OUT_INTERVAL]
    return learned, held or learned


def learning_rate_at(step: int, total: int, peak: float) -> float:
    """Return the learning rate of a step: a short warm-up, then a linear decay to zero."""
    warm = max(1, round(total * WARMUP_FRACTION))
    return peak * min((step + 1) / warm, (total - step) / max(1, total - warm + 1))


def default_learning_rate(model: LoadedModel, rate: float) -> float:
    """Return a learning rate for the size of the model.

    `rate` suits models of up to 10 million parameters; larger ones get less, such as 2e-5 instead of 1e-3 at 135
    million.
    """
    size = max(1, sum(parameter.numel() for parameter in model.model.parameters()))
    lowered = rate * (SMALL_MODEL_PARAMETERS / size) ** 1.5
    return rate if size <= SMALL_MODEL_PARAMETERS else float(f"{max(MIN_LEARNING_RATE, lowered):.1g}")


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate of every parameter group."""
    for group in optimizer.param_groups:
        group["lr"] = rate


def optimizer_step(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    """Take one optimizer step along the gradients of `loss`, clipped to norm 1 for each group."""
    optimizer.zero_grad()
    torch.autograd.backward(loss)
    for group in optimizer.param_groups:
        torch.nn.utils.clip_grad_norm_(group["params"], 1.0)
    optimizer.step()


def load_source(model: LoadedModel | str) -> LoadedModel:
    """Return the model, or load the one with that name. Raises ParameterError, ModelError."""
    check_kind("model", model, (LoadedModel, str, PathLike), tr("Pass a loaded model or the name of a model."))
    return model if isinstance(model, LoadedModel) else load(model, device="cpu", dtype="float32")


@contextmanager
def training_context(model: LoadedModel) -> Iterator[None]:
    """Enable gradients, and translate exceptions into errors with cause and remedy.

    Errors of the system and of safetensors mean that something could not be written, because nothing else is read or
    written here.
    """
    with translate_errors(model), torch.inference_mode(False), torch.enable_grad():
        try:
            yield
        except (OSError, SafetensorError) as error:
            raise not_written_error(tr("The training result"), error) from error


DIGEST_LENGTH = 16


def digest(values: Sequence[object]) -> str:
    """Return a digest of plain values, from their representation."""
    return hashlib.sha256(repr(list(values)).encode()).hexdigest()[:DIGEST_LENGTH]


def weights_digest(model: LoadedModel) -> str:
    """Return a digest of a model, from its name and the first numbers of each tensor."""
    seen = hashlib.sha256(model.name.encode())
    for value in model.model.state_dict().values():
        seen.update(value.reshape(-1)[:64].detach().float().numpy().tobytes())
    return seen.hexdigest()[:DIGEST_LENGTH]
