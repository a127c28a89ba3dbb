"""Read LoRA adapters in GGUF files (llama.cpp's convert_lora_to_gguf.py and llama-adapter.cpp)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import torch

from decodescope.core.common.text import cut_short
from decodescope.core.errors import AdapterError
from decodescope.core.models.gguf.architectures import ARCHITECTURES, BY_HEAD, ROWS_OF_K, ROWS_OF_Q, described_type
from decodescope.core.models.gguf.block_formats import DEQUANTIZABLE
from decodescope.core.models.gguf.block_layers import GgufParameter
from decodescope.core.models.gguf.file_summary import unsupported_adapter_reason
from decodescope.core.models.gguf.gguf_file import GgufFile, read_gguf
from decodescope.core.models.gguf.tensor_names import target_of
from decodescope.core.models.gguf.tensor_operations import HeadCounts
from decodescope.resources.language import tr


class StoredFactors(NamedTuple):
    """The change of one layer: `scale` · up · down."""

    down: torch.Tensor
    """float32 [rank, inputs]."""
    up: torch.Tensor
    """float32 [outputs, rank]."""
    scale: float


class GgufAdapter(NamedTuple):
    """The content of an adapter's file."""

    base: str
    """The model it was trained for, as the file says; empty if it does not."""
    layers: Mapping[str, StoredFactors]
    """By the name of the layer in transformers."""


def read_gguf_adapter(path: Path, name: str, model_type: str, heads: HeadCounts) -> GgufAdapter:
    """Read an adapter for a model of this type. `name`: of the adapter, in error messages.

    Raises AdapterError, ModelFileError, CorruptWeightsError.
    """
    file = read_gguf(path)
    if reason := unsupported_adapter_reason(file.metadata):
        raise AdapterError(
            tr("The adapter {name} cannot be applied: {reason}.").format(name=name, reason=reason),
            tr("Choose a folder that PEFT has saved, or a GGUF adapter."),
        )
    known = ARCHITECTURES.get(file.architecture)
    if known is None or known.model_type != described_type(model_type):
        raise AdapterError(
            tr(
                "The adapter {name} was trained for the architecture {kind}, and the model is of the type {model}."
            ).format(name=name, kind=cut_short(file.architecture, 40), model=model_type),
            tr("Choose the model that the adapter was trained for, or another adapter."),
        )
    alpha = file.number("adapter.lora.alpha")
    pairs: dict[str, dict[str, str]] = {}
    for tensor in file.tensors:
        stem, _, part = tensor.rpartition(".")
        if part not in ("lora_a", "lora_b"):
            raise unknown_tensor_error(name, tensor)
        pairs.setdefault(stem, {})[part] = tensor
    layers: dict[str, StoredFactors] = {}
    for stem, pair in pairs.items():
        target = target_of(known, stem)
        if target is None or target.part or len(pair) < 2:
            raise unknown_tensor_error(name, stem)
        down = _floats(name, file, pair["lora_a"], "", heads)
        up = _floats(name, file, pair["lora_b"], target.operation, heads)
        if stem == "token_embd.weight":
            down = down.t().contiguous()
        if down.dim() != 2 or up.dim() != 2 or len(down) != up.shape[1]:
            raise unknown_tensor_error(name, stem)
        scale = alpha / len(down) if alpha else 1.0
        layers[target.name.removesuffix(".weight")] = StoredFactors(down, up, float(scale))
    if not layers or not math.isfinite(alpha or 0.0):
        raise unknown_tensor_error(name, "adapter.lora.alpha")
    return GgufAdapter(file.text("general.base_model.0.name") or file.text("general.name") or "", layers)


def _floats(name: str, file: GgufFile, tensor: str, operation: str, heads: HeadCounts) -> torch.Tensor:
    stored = file.tensors[tensor]
    if stored.fmt.name not in DEQUANTIZABLE or len(stored.shape) != 2:
        raise unknown_tensor_error(name, tensor)
    applied = operation if operation in (ROWS_OF_Q, ROWS_OF_K, BY_HEAD) else ""
    try:
        return GgufParameter(file, stored, applied, heads).floats().clone()
    except RuntimeError:  # rows that cannot be divided among the heads
        raise unknown_tensor_error(name, tensor) from None


def unknown_tensor_error(name: str, tensor: str) -> AdapterError:
    """Return the error of an adapter with a tensor that belongs to nothing, or has an impossible shape."""
    return AdapterError(
        tr("The adapter {name} contains tensors of unknown meaning ({tensor}).").format(
            name=name, tensor=cut_short(tensor, 60)
        ),
        tr("Choose a folder that PEFT has saved, or convert it again with llama.cpp's converter."),
    )
