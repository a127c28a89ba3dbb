"""Find a network's list of layers by its structure, whatever its class, and build the network with other layers."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import torch
from transformers import PreTrainedConfig

from decodescope.core.models.loaded_model import LoadedModel
from decodescope.core.models.text_decoder import media_input_of

M = TypeVar("M", bound=torch.nn.Module)
_DEPTH = 4
"""Maximum depth at which the list of layers is searched."""


def layer_path(model: LoadedModel) -> tuple[str, ...] | None:
    """Return the attribute path to the decoder's list of layers; None unless there is exactly one such list."""
    writes_apart = model.is_encoder_decoder or media_input_of(model.model, model.modalities) == "prompt"
    start = _decoder_path(model) if writes_apart else ()
    if start is None:
        return None
    found = _paths_in(model, start)
    if len(found) > 1 and (start := _decoder_path(model) or ()):
        found = _paths_in(model, start)  # the audio or vision part may have as many layers as the text decoder
    return found[0] if len(found) == 1 else None


def get_layers(model: LoadedModel, path: Sequence[str]) -> torch.nn.ModuleList:
    """Return the list that `layer_path` found."""
    layers = model.model.get_submodule(".".join(path))
    assert isinstance(layers, torch.nn.ModuleList)
    return layers


def replace_layers(
    model: LoadedModel, path: Sequence[str], layers: Iterable[torch.nn.Module], name: str = ""
) -> LoadedModel:
    """Return the network with these layers instead of its own; all other modules and weights are shared."""
    stack = torch.nn.ModuleList(layers)
    count = len(stack)
    network = _shallow_copy(model.model, count)
    module: torch.nn.Module = network
    for part in path[:-1]:
        child = _shallow_copy(module.get_submodule(part), count)
        module._modules[part] = child
        module = child
    module._modules[path[-1]] = stack
    return LoadedModel(
        network, model.tokenizer, name or model.name, processor=model.processor, modalities=model.modalities,
        mapped_files=model.mapped_files,
    )  # fmt: skip


def _paths_in(model: LoadedModel, start: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return the paths to the layer lists of a part."""
    part = model.model.get_submodule(".".join(start)) if start else model.model
    return list(_list_paths(part, model.layers, start))


def _decoder_path(model: LoadedModel) -> tuple[str, ...] | None:
    decoder = model.model.get_decoder()
    named = (name for name, module in model.model.named_modules() if module is decoder)
    found = next(named, "")
    return tuple(found.split(".")) if found else None


def _list_paths(module: torch.nn.Module, count: int, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the paths to lists of `count` modules that are not nested in one another."""
    for name, child in module.named_children():
        if isinstance(child, torch.nn.ModuleList):
            if len(child) == count:
                yield (*path, name)
        elif len(path) < _DEPTH:
            yield from _list_paths(child, count, (*path, name))


def _shallow_copy(module: M, count: int) -> M:
    """Return a new module object with the same children and a config of `count` layers."""
    twin = copy.copy(module)
    twin._modules = dict(module._modules)
    config: PreTrainedConfig | None = vars(module).get("config")
    if config is not None and _decoder_config(config).num_hidden_layers != count:
        vars(twin)["config"] = _with_layer_count(config, count)
    return twin


def _with_layer_count(config: PreTrainedConfig, count: int) -> PreTrainedConfig:
    config = copy.deepcopy(config)
    text = _decoder_config(config)
    kinds = vars(text).get("layer_types")  # Mamba computes them, and they cannot be set
    if kinds:
        text.layer_types = list(kinds)[:count]
    text.num_hidden_layers = count
    return config


def _decoder_config(config: PreTrainedConfig) -> PreTrainedConfig:
    """Return the part of a config that describes the text decoder; for most models the full config."""
    if hasattr(config, "num_hidden_layers"):
        return config
    text: PreTrainedConfig = config.get_text_config(decoder=True)
    return text
