"""Prefixes in safetensors files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from core.caches.tensors.legacy import from_legacy, to_legacy
from core.errors import CacheError
from core.models.model import LoadedModel

if TYPE_CHECKING:
    from core.caches.prefixes.store import Prefix

_FORMAT = "tokenscope-prefix-1"
_SAMPLE = 64
"""Numbers of each weight that make up a model's fingerprint."""


def save_prefix(path: str | Path, model: LoadedModel, prefix: Prefix) -> None:
    """Keys and values of every layer, the token ids and the model's fingerprint. Raises CacheError."""
    if model.is_recurrent:
        raise CacheError(
            f"{model.name} folds what it reads into a state; there are no keys and values of single tokens to save.",
            "Choose a model with attention in every layer.",
        )
    tensors = {
        f"{number}.{part}": tensor.to("cpu").contiguous()
        for number, layer in enumerate(to_legacy(prefix.cache))
        for part, tensor in zip(("keys", "values"), layer, strict=True)
    }
    about = {
        "format": _FORMAT, "model": model.name, "fingerprint": fingerprint(model), "ids": json.dumps(list(prefix.ids)),
    }  # fmt: skip
    try:
        save_file(tensors, str(path), metadata=about)
    except (OSError, SafetensorError) as error:
        raise CacheError(f"The prefix could not be written to {path}: {error}", "Choose another place.") from error


def load_prefix(path: str | Path, model: LoadedModel) -> tuple[list[int], Any]:
    """Token ids and a dynamic cache on the model's device. Raises CacheError."""
    try:
        with safe_open(str(path), framework="pt", device=str(model.device)) as file:
            about = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}
    except (OSError, SafetensorError) as error:
        raise CacheError(f"{path} could not be read: {error}", "Choose a prefix saved by this program.") from error
    if about.get("format") != _FORMAT:
        raise CacheError(f"{path} is no saved prefix.", "Choose a prefix saved by this program.")
    if about.get("fingerprint") != fingerprint(model):
        raise CacheError(
            f"{path} was made by {about.get('model')}, or by another version or precision of it, and {model.name} "
            "would read nonsense from it.",
            "Load the model it was made with.",
        )
    return _read_ids(path, about, tensors), from_legacy(
        [(tensors[f"{number}.keys"], tensors[f"{number}.values"]) for number in range(len(tensors) // 2)]
    )


def _read_ids(path: str | Path, about: dict[str, str], tensors: dict[str, torch.Tensor]) -> list[int]:
    """The token ids, as many as every tensor has places. Raises CacheError when the file does not agree with itself."""
    names = {f"{number}.{part}" for number in range(len(tensors) // 2) for part in ("keys", "values")}
    try:
        ids = [int(token) for token in json.loads(about["ids"])]
    except (KeyError, TypeError, ValueError):
        ids = []
    if not ids or set(tensors) != names or {tensor.shape[-2] for tensor in tensors.values()} != {len(ids)}:
        raise CacheError(f"{path} is damaged: its tokens and its tensors do not agree.", "Save the prefix again.")
    return ids


def fingerprint(model: LoadedModel) -> str:
    """Changes with the architecture, the precision and the weights (a sample of each is looked at)."""
    digest = hashlib.sha256(f"{type(model.model).__name__} {model.dtype}".encode())
    for name, weight in model.model.named_parameters():
        sample = weight.detach().flatten()[:_SAMPLE].to("cpu", torch.float32)
        digest.update(f"{name} {tuple(weight.shape)}".encode() + sample.numpy().tobytes())
    return digest.hexdigest()
