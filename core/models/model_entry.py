"""A model on this disk, described by its files alone; importing this does not import torch."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from core.errors import ConfigMissingError, ModelError, ModelFileError
from core.models.config_validation import impossible_value_reason, invalid_names_reason
from core.models.json_types import JsonObject
from core.models.modalities import TEXT, Takes, modalities_of
from core.models.model_files import is_file, read_json
from core.models.quantizations import unloadable_quantization
from core.models.weights import WeightFiles, WeightTotals, count_stored, find_weights
from resources.language import tr, trn


class ModelEntry(NamedTuple):
    """A model on this disk, described without loading it."""

    name: str
    """What `core.load` takes."""
    title: str
    source: str
    """bundled, hub or folder."""
    path: Path
    architecture: str
    """Family and shape in a few words: `Llama · 12 layers × 192`."""
    model_type: str
    parameters: int | None
    bytes: int
    """Of the weights as stored."""
    context: int | None
    encoder_decoder: bool
    pickled: bool = False
    """Its weights are pickles, which must be allowed first."""
    takes: Takes = TEXT
    """What it reads: text, sound, pictures."""
    problem: str | None = None
    """Why it cannot be loaded as it is, in a sentence."""


def read_config(path: Path) -> JsonObject:
    """config.json of the folder. Raises ConfigMissingError when there is none or it cannot be read."""
    file = path / "config.json"
    try:
        return read_json(file)
    except FileNotFoundError:
        raise ConfigMissingError(
            tr("{path} holds no config.json, so it is not a Hugging Face model folder.").format(path=path),
            tr("Choose the folder that holds config.json beside the weights."),
        ) from None
    except ModelFileError as error:
        raise ConfigMissingError(error.cause, error.remedy) from error


def describe(path: Path, name: str, source: str, known: JsonObject | None = None) -> ModelEntry:
    """What config.json and the weights' headers tell; never raises for a broken model, but says so in `problem`.

    `known` is its config.json where that has been read already.
    """
    config, problem = (known, None) if known is not None else _try_read_config(path)
    weights, stored, trouble = _examine_weights(path)
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
        bytes=weights.bytes,
        context=_first_size(usable, ("max_position_embeddings", "n_positions")),
        encoder_decoder=bool(usable.get("is_encoder_decoder")) or usable.get("model_type") == "blip",
        pickled=weights.pickled and not (problem or values),
        takes=modalities_of(usable),
        problem=problem or values or trouble,
    )


def _try_read_config(path: Path) -> tuple[JsonObject, str | None]:
    if not os.path.isdir(path):
        return {}, tr("there is no folder {path}").format(path=path)
    try:
        return read_config(path), None
    except ConfigMissingError as error:
        return {}, error.cause


def _examine_weights(path: Path) -> tuple[WeightFiles, WeightTotals | None, str | None]:
    """The files, what their headers promise, and what is wrong with them."""
    try:
        weights = find_weights(path)
    except ModelError as error:
        return WeightFiles((), False), None, error.cause
    return weights, count_stored(weights), _weights_problem(weights)


def _weights_problem(weights: WeightFiles) -> str | None:
    if not weights.files:
        return tr("holds no weights")
    if missing := [file.name for file in weights.files if not is_file(file)]:
        return tr("{file} is missing").format(file=missing[0])
    return tr("only pickled weights; they must be allowed first") if weights.pickled else None


def family_name(config: Mapping[str, object]) -> str:
    """The model type as a name: `Llama`, `Qwen3 Moe`."""
    return str(config.get("model_type", "unknown")).replace("_", " ").title()


def describe_shape(config: JsonObject) -> str:
    """Family and shape in a few words, as far as config.json tells: `Llama · 12 layers × 192`."""
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
    """The first of these that is a number above 0."""
    sizes = (config.get(name) for name in names)
    return next((size for size in sizes if isinstance(size, int) and size > 0), None)
