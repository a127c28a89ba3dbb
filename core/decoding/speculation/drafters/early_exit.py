"""Early exit: the target's own lower layers, its final norm and its head, sharing every weight."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import TypeVar

import torch
from transformers import PreTrainedConfig

from core.caches.tensors.layouts import roomy
from core.caches.tensors.reading import trial_text
from core.decoding.forward.forward import Forward
from core.device_memory import is_out_of_memory
from core.models.model import LoadedModel
from resources.language import tr

M = TypeVar("M", bound=torch.nn.Module)
_DEPTH = 4
"""How far below the whole network its list of layers is looked for."""
_KEY = "reads_half_way"


def reads_half_way(model: LoadedModel) -> bool:
    """Whether the lowest layer alone, with norm and head, reads a text; tried once and remembered."""
    if model.is_encoder_decoder or layer_path(model) is None:
        return False
    if next(model.model.parameters()).is_meta:
        return True
    if _KEY not in model.remembered:
        model.remembered[_KEY] = _try(model)
    return bool(model.remembered[_KEY])


def lower_layers(model: LoadedModel, count: int) -> LoadedModel:
    """The target with only its first `count` layers; modules and weights are the target's own.

    Raises ValueError when it has no list of layers.
    """
    path = layer_path(model)
    if path is None:
        raise ValueError(tr("{model} has no list of layers").format(model=model.name))
    network = _shallow(model.model, count)
    module: torch.nn.Module = network
    for name in path[:-1]:
        child = _shallow(module.get_submodule(name), count)
        module._modules[name] = child
        module = child
    layers = module.get_submodule(path[-1])
    assert isinstance(layers, torch.nn.ModuleList)
    module._modules[path[-1]] = layers[:count]
    return LoadedModel(network, model.tokenizer, tr("{model}, {count} layers").format(model=model.name, count=count))


def layer_path(model: LoadedModel) -> tuple[str, ...] | None:
    """Names that lead from the network to its list of layers; None without a single such list."""
    found = list(_lists(model.model, model.layers, ()))
    return found[0] if len(found) == 1 else None


def _lists(module: torch.nn.Module, count: int, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Ways to lists of `count` modules that are not parts of one another."""
    for name, child in module.named_children():
        if isinstance(child, torch.nn.ModuleList):
            if len(child) == count:
                yield (*path, name)
        elif len(path) < _DEPTH:
            yield from _lists(child, count, (*path, name))


@torch.inference_mode()
def _try(model: LoadedModel) -> bool:
    try:
        lower = lower_layers(model, 1)
        forward = Forward(lower, roomy(lower))
        for token in trial_text(model)[:3]:
            scores = forward(torch.tensor([[token]], device=model.device)).last
        return scores.shape[-1] == model.vocabulary
    except Exception as error:
        if is_out_of_memory(error):
            raise
        return False


def _shallow(module: M, count: int) -> M:
    """A module object of its own around the same children, whose configuration knows `count` layers."""
    twin = copy.copy(module)
    twin._modules = dict(module._modules)
    if (config := vars(module).get("config")) is not None:
        vars(twin)["config"] = _shorter(config, count)
    return twin


def _shorter(config: PreTrainedConfig, count: int) -> PreTrainedConfig:
    config = copy.deepcopy(config)
    kinds = getattr(config, "layer_types", None)
    if kinds:
        config.layer_types = list(kinds)[:count]
    config.num_hidden_layers = count
    return config
