"""A model on disk described by its files alone. Importing this module imports neither torch nor what reads files: the
window starts faster without.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from decodescope.core.errors import ConfigMissingError, ModelError, ModelFileError
from decodescope.core.explain.words import count, size
from decodescope.core.models.config_validation import (
    impossible_value_reason,
    invalid_names_reason,
    unloadable_quantization,
)
from decodescope.core.models.gguf.file_names import is_gguf
from decodescope.core.models.modalities import TEXT, Modalities, modalities_of
from decodescope.core.system.main_memory import free_memory as free_memory
from decodescope.resources.language import mark, tr, trn

if TYPE_CHECKING:
    from decodescope.core.models.model_files import FileStats, JsonObject, WeightFiles, WeightTotals


class ModelEntry(NamedTuple):
    """A model on disk, described without loading it."""

    name: str
    """The name for `core.load`."""
    title: str
    source: str
    """bundled, hub, folder, or the name of the program whose GGUF file it is."""
    path: Path
    architecture: str
    """Short description such as `Llama · 12 layers × 192`."""
    model_type: str
    parameters: int | None
    bytes: int
    """Bytes of the stored weights."""
    context: int | None
    encoder_decoder: bool
    pickled: bool = False
    """Whether its weights are pickles, which must be allowed first."""
    modalities: Modalities = TEXT
    """Modalities it reads: text, audio, images."""
    problem: str | None = None
    """Why it cannot be loaded as it is, as a sentence."""
    format_name: str = ""
    """Format of the weights in a GGUF file (Q4_K_M); empty for a folder."""


def read_config(path: Path, about: os.stat_result | None = None) -> JsonObject:
    """Return the folder's config.json, whose status is `about`. Raises ConfigMissingError if it is missing or
    unreadable.
    """
    from decodescope.core.models.model_files import read_json

    if is_gguf(path):
        return _gguf_config(path)
    file = os.path.join(path, "config.json")
    try:
        return read_json(file, about=about)
    except FileNotFoundError:
        raise ConfigMissingError(
            tr("{path} contains no config.json, so it is not a Hugging Face model folder.").format(path=path),
            tr("Choose the folder that contains config.json and the weights."),
        ) from None
    except ModelFileError as error:
        raise ConfigMissingError(error.cause, error.remedy) from error


def _gguf_config(path: Path) -> JsonObject:
    from decodescope.core.models.gguf.file_summary import summarize_gguf

    summary = summarize_gguf(path)
    if summary.problem is not None and not summary.config:
        raise ConfigMissingError(
            tr("{path} cannot be used: {problem}.").format(path=path, problem=summary.problem.rstrip(".")),
            tr("Choose another GGUF file, or the model in safetensors format."),
        )
    return summary.config


def describe_gguf(path: Path, name: str, source: str, title: str = "") -> ModelEntry:
    """Describe a GGUF file by the beginning of its metadata. Never raises, but sets `problem`."""
    from decodescope.core.models.gguf.file_summary import summarize_gguf

    summary = summarize_gguf(path)
    shape = describe_shape(summary.config) if summary.config else ""
    return ModelEntry(
        name=name,
        title=title or path.stem,
        source="file" if source == "folder" else source,
        path=path,
        architecture=" · ".join(filter(None, (shape, summary.format_name))),
        model_type=str(summary.config.get("model_type", "")),
        parameters=summary.parameters,
        bytes=summary.bytes,
        context=_first_size(summary.config, ("max_position_embeddings", "n_positions")),
        encoder_decoder=False,
        problem=summary.problem,
        format_name=summary.format_name or "GGUF",
    )


def describe(
    path: Path, name: str, source: str, known: JsonObject | None = None, stats: FileStats | None = None
) -> ModelEntry:
    """Describe a model by its config.json and weight headers. Never raises for a broken model, but sets `problem`.

    `known` is its config.json, and `stats` the status of the folder's entries, if they were already read.
    """
    if is_gguf(path):
        return describe_gguf(path, name, source)
    config, problem = (known, None) if known is not None else _try_read_config(path)
    weights, stored, trouble = _examine_weights(path, stats)
    values = invalid_names_reason(config) or impossible_value_reason(
        config, stored.tensors if stored is not None else None
    )
    usable = config if values is None else {}
    values = values or unloadable_quantization(config, is_quick=True)
    return ModelEntry(
        name=name,
        title=Path(name).name if source == "folder" else name,
        source=source,
        path=path,
        architecture=describe_shape(usable),
        model_type=str(usable.get("model_type", "")),
        parameters=stored.numbers if stored is not None else None,
        bytes=weights.bytes if stats is None else sum(_stored_size(file, stats) for file in weights.files),
        context=_first_size(usable, ("max_position_embeddings", "n_positions")),
        encoder_decoder=bool(usable.get("is_encoder_decoder")) or usable.get("model_type") == "blip",
        pickled=weights.pickled and not (problem or values),
        modalities=modalities_of(usable),
        problem=problem or values or trouble,
    )


def _try_read_config(path: Path) -> tuple[JsonObject, str | None]:
    if not os.path.isdir(path):
        return {}, tr("there is no folder {path}").format(path=path)
    try:
        return read_config(path), None
    except ConfigMissingError as error:
        return {}, error.cause


def _examine_weights(path: Path, stats: FileStats | None) -> tuple[WeightFiles, WeightTotals | None, str | None]:
    """Return the weight files, the totals in their headers, and what is wrong with them."""
    from decodescope.core.models.model_files import WeightFiles, count_stored, find_weights

    try:
        weights = find_weights(path, stats)
    except ModelError as error:
        return WeightFiles((), False), None, error.cause
    stored = count_stored(weights, stats)
    return weights, stored, None if stored is not None else _weights_problem(weights)


def _stored_size(file: Path, stats: FileStats) -> int:
    from decodescope.core.models.model_files import size_of

    return stats[file.name].st_size if file.name in stats else size_of(file)


def _weights_problem(weights: WeightFiles) -> str | None:
    from decodescope.core.models.model_files import is_file

    if not weights.files:
        return tr("contains no weights")
    if missing := [file.name for file in weights.files if not is_file(file)]:
        return tr("{file} is missing").format(file=missing[0])
    return tr("only pickled weights, which must be allowed first") if weights.pickled else None


def family_name(config: Mapping[str, object]) -> str:
    """Return the model type as a name: `Llama`, `Qwen3 Moe`."""
    return str(config.get("model_type", "unknown")).replace("_", " ").title()


def describe_shape(config: JsonObject) -> str:
    """Return a short description such as `Llama · 12 layers × 192`, as far as config.json contains it."""
    named = family_name(config)
    layers = _first_size(config, ("num_hidden_layers", "n_layer", "num_layers"))
    width = _first_size(config, ("hidden_size", "n_embd", "d_model"))
    return (
        trn("{family} · {layers} layer × {width}", "{family} · {layers} layers × {width}", layers).format(
            family=named, layers=layers, width=width
        )
        if layers and width
        else named
    )


def _first_size(config: JsonObject, names: tuple[str, ...]) -> int | None:
    """Return the first of these keys that is a positive number."""
    sizes = (config.get(name) for name in names)
    return next((size for size in sizes if isinstance(size, int) and size > 0), None)


_LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
_HEADS = ("num_attention_heads", "n_head", "num_heads", "n_heads")
_WIDTH = ("hidden_size", "n_embd", "d_model")


def cache_bytes(config: Mapping[str, object], tokens: int, element_bytes: int = 4) -> int:
    """Return the bytes of keys and values of `tokens` tokens: 2 · layers · kv_heads · tokens · head_dim · bytes.

    This is an upper bound if layers keep only a window; 0 for models without attention, or if the config is incomplete.
    """
    inner = config.get("text_config")
    text = inner if isinstance(inner, dict) else config
    layers, heads, width = (_config_size(text, names) for names in (_LAYERS, _HEADS, _WIDTH))
    if not layers or not heads or not width:
        return 0
    kv_heads = _config_size(text, ("num_key_value_heads",)) or heads
    head_dim = _config_size(text, ("head_dim", "d_kv")) or width // heads
    layers = _config_size(text, ("num_decoder_layers",)) or layers
    return 2 * layers * kv_heads * tokens * head_dim * element_bytes


def _config_size(config: Mapping[str, object], names: tuple[str, ...]) -> int:
    """Return the first of these keys that is a size, or the maximum of a list; 0 if there is none."""
    sizes = (_size(config.get(name)) for name in names)
    return next((size for size in sizes if size > 0), 0)


def _size(value: object) -> int:
    if isinstance(value, list):
        return max((item for item in value if type(item) is int), default=0)
    return value if type(value) is int else 0


BYTES = {"float32": 4.0, "bfloat16": 2.0, "float16": 2.0, "int8": 1.05, "fp8": 1.05, "int4": 0.7}
"""Approximate bytes per weight: packed weights have scales, and norms and positions stay floats."""


class Fit(NamedTuple):
    """Result of the check whether a model's weights fit into memory; sizes in bytes."""

    ok: bool
    needed_bytes: int
    free: int
    sentence: str


def weight_bytes(entry: ModelEntry, kind: str) -> int:
    """Return the memory that a model's weights take in the format `kind`; auto and others count as float32."""
    if entry.format_name and kind == "auto":
        return entry.bytes
    return int(entry.parameters * BYTES.get(kind, 4.0)) if entry.parameters else entry.bytes


def fits(entry: ModelEntry, dtype: str = "auto", tokens: int = 0, rows: int = 1) -> Fit:
    """Check whether the weights in format `dtype` (int8 and int4 too) fit into the free memory.

    This checks the host's memory; a GPU's is checked on loading. With `tokens`, the keys and values of `rows` texts of
    that length are included, limited to the context. `core.estimate` estimates a whole request with the model's own
    shapes.
    """
    weights = weight_bytes(entry, dtype)
    tokens = min(tokens, entry.context or tokens)
    cache = rows * _cache_bytes(entry, tokens, 2 if dtype in ("bfloat16", "float16") else 4) if tokens else 0
    return check_memory(weights, cache, tokens, rows)


def check_memory(weights: int, cache: int, tokens: int = 0, rows: int = 1, free: int | None = None) -> Fit:
    """Check whether the given bytes of weights, and of keys and values of `rows` texts of `tokens`, fit into `free`
    bytes, by default those of the host.
    """
    needed, free = weights + cache, free_memory() if free is None else free
    ok = has_room(needed, free)
    if cache:
        fits_template = mark("needs {needed} ({weights} for weights, {cache} for {tokens}) of {free} free")
        failed = mark("needs {needed} ({weights} for weights, {cache} for {tokens}) of {free} free: does not fit")
    else:
        fits_template = mark("needs {needed} of {free} free")
        failed = mark("needs {needed} of {free} free: does not fit")
    sizes = {"needed": size(needed), "weights": size(weights), "cache": size(cache), "free": size(free)}
    return Fit(
        ok, needed, free, tr(fits_template if ok else failed).format(tokens=counted_tokens(tokens, rows), **sizes)
    )


def counted_tokens(tokens: int, rows: int) -> str:
    """Return for example `560 tokens × 4`: the tokens per text, and the number of texts if there are several."""
    token_count = count(tokens, "token")
    return tr("{tokens} × {rows}").format(tokens=token_count, rows=rows) if rows > 1 else token_count


def has_room(needed: int, free: int) -> bool:
    """Return whether the needed bytes fit into the free ones with a tenth to spare for activations."""
    return needed * 1.1 < free


def _cache_bytes(entry: ModelEntry, tokens: int, element_bytes: int) -> int:
    try:
        return cache_bytes(read_config(entry.path), tokens, element_bytes)
    except ModelError:
        return 0
