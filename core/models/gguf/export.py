"""Export a model in transformers' layout as a GGUF file, for llama.cpp and the programs that use it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from decodescope.core.errors import ModelError, UnpackableError
from decodescope.core.models.gguf.architectures import (
    ARCHITECTURES,
    GgufArchitecture,
    Metadata,
    architecture_of,
    written_architecture,
)
from decodescope.core.models.gguf.block_formats import QUANTIZERS, to_blocks
from decodescope.core.models.gguf.config_comparison import (
    FieldDifference,
    different_fields,
    fields_named_in,
    head_width,
    unusual_fields,
)
from decodescope.core.models.gguf.file_writer import TensorEntry, write_file
from decodescope.core.models.gguf.gguf_file import FILE_TYPES, FORMATS, GgufFile, GgufTensor, read_gguf
from decodescope.core.models.gguf.loading import check_shapes, stored_parameters
from decodescope.core.models.gguf.model_config import (
    FURTHER_FIELDS,
    build_config,
    config_metadata,
    further_metadata,
    sampling_metadata,
    unwritten_settings,
)
from decodescope.core.models.gguf.rotary_positions import FACTOR_TENSORS, frequency_factors
from decodescope.core.models.gguf.tensor_names import stored_names
from decodescope.core.models.gguf.tensor_operations import HeadCounts, split_parts, stored_values
from decodescope.core.models.gguf.tokenizer_export import tokenizer_metadata
from decodescope.core.models.gguf.vocabulary import end_tokens
from decodescope.core.system.file_writing import atomic_write, temporary_folder
from decodescope.resources.language import join_names, tr

if TYPE_CHECKING:
    from transformers import GenerationConfig, PreTrainedConfig

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
    settings: GenerationConfig
    """Its own decoding settings."""
    build_outline: Callable[[PreTrainedConfig], Any]
    """Builds the module of a config on torch's meta device."""


def export_model(model: ExportedModel, path: Path, weights: str, architecture: str | None = None) -> list[str]:
    """Write a model with its matrices in the format `weights`, one of EXPORT_FORMATS; the file appears at `path` once
    it is complete. Return sentences about what the file does not contain, or other programs do not read.

    `architecture`: the entry of ARCHITECTURES where several have the model's type. Raises UnpackableError for an
    architecture, a setting or a tokenizer that cannot be written, OSError, ValueError.
    """
    metadata, entries = file_content(model, weights, architecture)
    notes = _notes(model, metadata, entries)
    with atomic_write(path) as part, part.open("wb") as stream:
        write_file(stream, metadata, entries)
    return notes


def _notes(model: ExportedModel, metadata: Metadata, entries: Sequence[TensorEntry]) -> list[str]:
    known, notes = architecture_of(file := _as_read(metadata, entries)), []
    prefix = metadata["general.architecture"]
    unread = [
        key for field in FURTHER_FIELDS.values() if (key := f"{prefix}.{field.key}") in metadata
        and field.key not in known.keys and field.key not in known.flags
        and not (known.has_window_period and isinstance(metadata[key], int))
    ]  # fmt: skip
    if unread:
        notes.append(
            tr("llama.cpp does not read {keys} and computes with other values; this program reads them.").format(
                keys=join_names(unread)
            )
        )
    if unwritten := unwritten_settings(model.settings):
        notes.append(tr("The file does not contain the settings {names}.").format(names=join_names(unwritten)))
    ours = model.settings.eos_token_id
    own = {one for one in (ours if isinstance(ours, list) else [ours]) if one is not None and one < model.vocabulary}
    read = set(end_tokens(file))
    if lost := sorted(own - read) if model.tokenizer is not None else []:
        notes.append(tr("The file does not say that these tokens end a text: {ids}.").format(ids=_listed(lost)))
    if more := sorted(read - own):
        notes.append(tr("In the file, these tokens end a text too: {ids}.").format(ids=_listed(more)))
    return notes


def _listed(ids: Sequence[int]) -> str:
    return ", ".join(map(str, ids))


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
    _check_layers_alike(model)
    _check_heads(model)
    unnamed: list[str] = []
    entries = list(_entries(model, name, weights, unnamed))
    metadata = {
        "general.name": model.name, "general.quantization_version": 2,
        "general.file_type": next(number for number, known in FILE_TYPES.items() if known == weights),
        **config_metadata(model.config, name, model.context),
        **tokenizer_metadata(model.name, model.tokenizer, model.vocabulary, model.end_tokens),
        **sampling_metadata(model.settings),
    }  # fmt: skip
    if model.tokenizer is None:
        for own, key in (("bos", "bos"), ("eos", "eos"), ("pad", "padding")):
            number = getattr(model.config, f"{own}_token_id", None)
            if isinstance(number, int):
                metadata[f"tokenizer.ggml.{key}_token_id"] = number
    _check_not_empty(model, entries)
    different = _fields_read_differently(model, ARCHITECTURES[name], metadata, entries)
    while different:
        further = further_metadata(model.config, name, [one.field for one in different])
        if all(metadata.get(key) == value for key, value in further.items()):
            break
        metadata |= further  # a window gives the kinds of layers another meaning, so that they may differ next
        different = _fields_read_differently(model, ARCHITECTURES[name], metadata, entries)
    if different:
        raise UnpackableError(
            tr("A GGUF file of the architecture {kind} cannot contain these settings of {model}: {fields}.").format(
                kind=metadata["general.architecture"], model=model.name, fields=join_names(map(str, different))
            ),
            tr("Use the model in its own format, or llama.cpp's own converter if it supports them."),
        )
    if unnamed:
        raise UnpackableError(
            tr("{model} has a weight that llama.cpp has no name for: {name}.").format(
                model=model.name, name=unnamed[0]
            ),
            tr("Use llama.cpp's own converter."),
        )
    _check_complete(model, metadata, entries)
    return metadata, entries


def _check_complete(model: ExportedModel, metadata: Metadata, entries: Sequence[TensorEntry]) -> None:
    """Check that the tensors of the file are those of the module that is read. Raises UnpackableError."""
    file = _as_read(metadata, entries)
    config = build_config(file)
    outline = model.build_outline(config)
    stored = stored_parameters(file, config)
    shared = {*outline.all_tied_weights_keys} if model.is_head_shared else set()
    missing = sorted(outline.state_dict().keys() - stored.keys() - shared)
    try:
        check_shapes(file, outline, stored)
        reason = tr("{name} is missing").format(name=missing[0]) if missing else ""
    except ModelError as error:
        reason = error.cause
    if reason:
        raise UnpackableError(
            tr("{model} could not be read back from a GGUF file: {reason}").format(model=model.name, reason=reason),
            tr("Use the model in its own format."),
        )


def _check_layers_alike(model: ExportedModel) -> None:
    """Check that no layer has a config of its own. Raises UnpackableError."""
    if getattr(model.config, "is_heterogeneous", False):
        raise UnpackableError(
            tr("The layers of {model} differ in {fields} (per_layer_config), which GGUF cannot store.").format(
                model=model.name, fields=join_names(sorted(model.config.per_layer_attributes or ()))
            ),
            tr("Use the model in its own format."),
        )


def _check_not_empty(model: ExportedModel, entries: Sequence[TensorEntry]) -> None:
    """Check that all tensors have numbers. Raises UnpackableError."""
    empty = next((entry.name for entry in entries if 0 in entry.shape), None)
    if empty is not None:
        config = model.config
        zeros = [f"{own} = 0" for own in unusual_fields(config) if getattr(config, own) == 0]
        raise UnpackableError(
            tr("{model} has the empty weight {name} ({fields}), which GGUF cannot store.").format(
                model=model.name, name=empty, fields=join_names(zeros) or config.model_type
            ),
            tr("Use the model in its own format."),
        )


def _check_heads(model: ExportedModel) -> None:
    """Check that numbers of a head can be rotated in pairs. Raises UnpackableError."""
    width = head_width(model.config)
    if width % 2 and getattr(model.config, "rope_parameters", None):
        raise UnpackableError(
            tr(
                "{model} has heads of {width} numbers (head_dim), an odd number, which GGUF files cannot contain."
            ).format(model=model.name, width=width),
            tr("Use the model in its own format."),
        )


def _fields_read_differently(
    model: ExportedModel, known: GgufArchitecture, metadata: Metadata, entries: Sequence[TensorEntry]
) -> list[FieldDifference]:  # fmt: skip
    """Return the fields whose values are not those of the model when the file is read back.

    Raises UnpackableError if it cannot be read back at all.
    """
    try:
        read = build_config(_as_read(metadata, entries))
    except ModelError as error:
        prefix, config = metadata["general.architecture"], model.config
        own_names: dict[str, str] = config.attribute_map
        named = [own_names.get(own, own) for key, own in known.keys.items() if f"{prefix}.{key}" in error.cause]
        named += [own for own in fields_named_in(error.cause, config) if own not in named]
        written = {own_names.get(own, own) for own in known.keys.values()}
        unusual = unusual_fields(config)
        named += [own for own in unusual if getattr(config, own) == 0 and own not in named]
        named = named or [own for own in unusual if own not in written]
        settings = ", ".join(f"{own} = {getattr(config, own, None)}" for own in named)
        raise UnpackableError(
            tr("{model} ({settings}) could not be read back from a GGUF file: {reason}").format(
                model=model.name, settings=settings or config.model_type, reason=error.cause
            ),
            tr("Use the model in its own format."),
        ) from error
    return different_fields(model.config, read, model.is_head_shared)


def _as_read(metadata: Metadata, entries: Sequence[TensorEntry]) -> GgufFile:
    """Return a file as the reader sees it: all metadata, the names and shapes of all tensors, and the numbers of those
    that the config depends on.
    """
    with temporary_folder() as folder:
        path = folder / "outline.gguf"
        with path.open("wb") as stream:
            write_file(stream, metadata, [entry for entry in entries if entry.name in FACTOR_TENSORS])
        file = read_gguf(path)
        formats = {fmt.name: fmt for fmt in FORMATS.values()}
        outlines = {
            entry.name: GgufTensor(entry.name, entry.shape, formats[entry.format_name], path, 0, len(entry.data))
            for entry in entries
        }
        return file._replace(tensors={**outlines, **file.tensors})


def _entries(
    model: ExportedModel, architecture: str, weights: str, unnamed: list[str]
) -> Iterable[TensorEntry]:  # fmt: skip
    """Yield all tensors, with their numbers in llama.cpp's order; add weights without a name there to `unnamed`."""
    known, heads = ARCHITECTURES[architecture], HeadCounts.of(model.config)
    for name, factors in frequency_factors(model.config, head_width(model.config)).items():
        yield _entry(name, torch.tensor(factors, dtype=torch.float32), "F32")
    seen: set[str] = set()
    for parameter, values in model.weights:
        if parameter.startswith("lm_head.") and model.is_head_shared:
            continue
        stored = stored_names(known, parameter)
        if not stored:
            unnamed.append(parameter)
            continue
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
