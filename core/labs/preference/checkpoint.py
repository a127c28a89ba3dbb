"""A training's state in one file, which takes its place once it is whole: a kill loses the steps since the last one."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from core.file_writing import atomic_write

CHECKPOINT_NAME = "training.safetensors"
Tensors = dict[str, torch.Tensor]
_READ_ERRORS = (OSError, SafetensorError, LookupError, TypeError, ValueError, AttributeError, RecursionError)
"""What reading a file raises that is not there, or is not what was written."""


class TrainingProgress(NamedTuple):
    """How far a training has come."""

    step: int
    seconds: float
    """Of computing so far."""
    figures: dict[str, float]
    """What the training wants to know again."""


class Checkpoint:
    """What is needed to go on: the weights that are trained, and their optimizer. Random numbers need no state: each
    step draws its own from seed and number.

    `plan`: everything that decides what the training does. A file of another plan is not gone on with.
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
        """Write it whole."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        weights: Tensors = dict(self._module.named_parameters())
        tensors = {f"weight.{name}": value for name, value in weights.items()}
        tensors |= {f"adam.{name}": value for name, value in self._optimizer_tensors().items()}
        progress_json = json.dumps(progress)
        about = {"plan": self._plan, "progress": progress_json, "check": _checksum(progress_json)}
        with atomic_write(self._path) as part:
            save_file({name: value.detach().contiguous() for name, value in tensors.items()}, part, about)

    def restore(self) -> TrainingProgress:
        """Go on from the file where it is there, whole, and of the same plan; else nothing, from the beginning."""
        try:
            progress, tensors = self._read()
            self._load_state(tensors)
        except _READ_ERRORS:
            return TrainingProgress(0, 0.0, {})
        return progress

    def delete(self) -> None:
        """The training is done."""
        self._path.unlink(missing_ok=True)

    def _read(self) -> tuple[TrainingProgress, Tensors]:
        with safe_open(self._path, "pt") as file:
            about = file.metadata() or {}
            if about.get("plan") != self._plan:
                raise ValueError(self._path)  # another training's
            tensors = {name: file.get_tensor(name) for name in file.keys()}
        if about.get("check", _checksum(about["progress"])) != _checksum(about["progress"]):
            raise ValueError(self._path)
        return TrainingProgress(*json.loads(about["progress"])), tensors

    def _optimizer_tensors(self) -> Tensors:
        state = self._optimizer.state_dict()["state"]
        return {
            f"{place}.{key}": torch.as_tensor(value) for place, kept in state.items() for key, value in kept.items()
        }

    def _load_state(self, tensors: Tensors) -> None:
        """All of them, or none. Raises what `_READ_ERRORS` names."""
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
