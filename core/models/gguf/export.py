"""Export a model in transformers' layout as a GGUF file, for llama.cpp and the programs that use it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from decodescope.core.errors import UnpackableError
from decodescope.core.models.gguf.architectures import ARCHITECTURES, Metadata, written_architecture
from decodescope.core.models.gguf.block_formats import QUANTIZERS, to_blocks
from decodescope.core.models.gguf.file_writer import TensorEntry, write_file
from decodescope.core.models.gguf.gguf_file import FILE_TYPES
from decodescope.core.models.gguf.model_config import config_metadata, head_width
from decodescope.core.models.gguf.rotary_positions import FREQUENCY_FACTORS, frequency_factors
from decodescope.core.models.gguf.tensor_names import stored_names
from decodescope.core.models.gguf.tensor_operations import HeadCounts, split_parts, stored_values
from decodescope.core.models.gguf.tokenizer_export import tokenizer_metadata
from decodescope.core.system.file_writing import atomic_write
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

EXPORT_FORMATS = ("F32", "F16", "BF16", *QUANTIZERS)
"""Formats in which matrices are written."""
_KEPT_IN_FLOAT32 = (
    "norm", "ffn_gate_inp", "shortconv.conv", "position_embd", "ssm_conv1d", "ssm_a", "attn_sinks", ".bias",
)  # fmt: skip
"""Parts of the names of tensors that llama.cpp expects in float32."""


class ExportedModel(NamedTuple):
    """The parts of a model that are written."""

    name: str
    config: PreTrainedConfig
    """transformers' config."""
    weights: Iterable[tuple[str, torch.Tensor]]
    """All parameters as float32, by name."""
    is_head_shared: bool
    """Whether the head has the weights of the embedding, and is left out."""
    tokenizer: Any
    """transformers' tokenizer, or None."""
    vocabulary: int
    """Number of tokens."""
    end_tokens: Sequence[int]
    """Ids that end a text."""
    context: int | None
    """Maximum number of tokens; None if it is unknown."""


def export_model(model: ExportedModel, path: Path, weights: str, architecture: str | None = None) -> None:
    """Write a model with its matrices in the format `weights`, one of EXPORT_FORMATS; the file appears at `path` once
    it is complete.

    `architecture`: the entry of ARCHITECTURES where several have the model's type. Raises UnpackableError for an
    architecture or a tokenizer that cannot be written, OSError, ValueError.
    """
    metadata, entries = file_content(model, weights, architecture)
    with atomic_write(path) as part, part.open("wb") as stream:
        write_file(stream, metadata, entries)


def file_content(
    model: ExportedModel, weights: str, architecture: str | None = None
) -> tuple[Metadata, list[TensorEntry]]:  # fmt: skip
    """Return the metadata and the tensors that are written, by llama.cpp's names. Raises UnpackableError."""
    name = architecture or written_architecture(model.config)
    if name is None:
        raise UnpackableError(
            tr("{model} has the architecture {kind}, which is not written as GGUF here.").format(
                model=model.name, kind=model.config.model_type
            ),
            tr("Use llama.cpp's own converter."),
        )
    metadata = {
        "general.name": model.name, "general.quantization_version": 2,
        "general.file_type": next(number for number, known in FILE_TYPES.items() if known == weights),
        **config_metadata(model.name, model.config, name, model.context),
        **tokenizer_metadata(model.name, model.tokenizer, model.vocabulary, model.end_tokens),
    }  # fmt: skip
    return metadata, list(_entries(model, name, weights))


def _entries(model: ExportedModel, architecture: str, weights: str) -> Iterable[TensorEntry]:
    """Yield all tensors, with their numbers in llama.cpp's order."""
    known, heads = ARCHITECTURES[architecture], HeadCounts.of(model.config)
    factors = frequency_factors(model.config, head_width(model.config))
    if factors is not None:
        yield _entry(FREQUENCY_FACTORS, torch.tensor(factors), "F32")
    seen: set[str] = set()
    for parameter, values in model.weights:
        if parameter.startswith("lm_head.") and model.is_head_shared:
            continue
        stored = stored_names(known, parameter)
        if not stored:
            raise UnpackableError(
                tr("{model} has a weight that llama.cpp has no name for: {name}.").format(
                    model=model.name, name=parameter
                ),
                tr("Use llama.cpp's own converter."),
            )
        parts = (values,) if len(stored) == 1 else split_parts(values, stored[0].operation)
        for tensor, part in zip(stored, parts, strict=True):
            if tensor.name not in seen:
                seen.add(tensor.name)
                yield _entry(tensor.name, stored_values(part, tensor.operation, heads), weights)


def _entry(name: str, values: torch.Tensor, weights: str) -> TensorEntry:
    fits = weights not in QUANTIZERS or values.shape[-1] % 32 == 0
    is_matrix = values.dim() > 1 and not any(part in name for part in _KEPT_IN_FLOAT32)
    chosen = "F32" if not is_matrix else weights if fits else "F16"
    return TensorEntry(name, tuple(values.shape), chosen, to_blocks(values.contiguous(), chosen))
