"""What tells one model from another, and one prefix from another: hashes of everything that matters."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

import torch

from core.models.loaded_model import LoadedModel
from core.models.quantized.weight_stats import content_hashes

_IRRELEVANT_KEYS = {"_name_or_path", "name_or_path", "transformers_version", "architectures"}
"""Parts of a configuration that change nothing in what the model computes."""


def model_fingerprint(model: LoadedModel) -> str:
    """Changes with the architecture, the configuration, the precision and every number of the weights.

    All weights are read once; the result is kept until one of them is changed in place.
    """
    key = _count_changes(model)
    known: tuple[int, str] | None = model.remembered.get("fingerprint")
    if known is None or known[0] != key:
        known = (key, _hash_model(model))
        model.remembered["fingerprint"] = known
    return known[1]


def prefix_digest(ids: str, tensors: Mapping[str, torch.Tensor]) -> str:
    """Of a prefix: its ids and every tensor under its name."""
    return _hash_tensors(hashlib.blake2b(ids.encode()), tensors)


def _hash_model(model: LoadedModel) -> str:
    config = {name: value for name, value in model.model.config.to_dict().items() if name not in _IRRELEVANT_KEYS}
    about = f"{type(model.model).__name__} {json.dumps(config, sort_keys=True, default=str)} {content_hashes(model.model.modules())}"
    return _hash_tensors(hashlib.blake2b(about.encode()), dict(_tensors(model)))


def _tensors(model: LoadedModel) -> list[tuple[str, torch.Tensor]]:
    return [*model.model.named_parameters(), *model.model.named_buffers()]


def _count_changes(model: LoadedModel) -> int:
    """How often weights were changed in place, as torch counts it."""
    return sum(tensor._version for _, tensor in _tensors(model) if not tensor.is_inference())


def _hash_tensors(running: hashlib.blake2b, tensors: Mapping[str, torch.Tensor]) -> str:
    for name, tensor in tensors.items():
        running.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        running.update(_flat_cpu(tensor).view(torch.uint8).numpy().data)
    return str(running.hexdigest())


def _flat_cpu(tensor: torch.Tensor) -> torch.Tensor:
    """Its numbers in a row; the one that is there where it is shown everywhere (the placeholder of packed weights)."""
    if tensor.numel() and not any(tensor.stride()):
        tensor = tensor.flatten()[:1]
    return tensor.detach().to("cpu").contiguous().flatten()
