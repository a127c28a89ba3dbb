"""Early exit: the target's own lower layers, its final norm and its head, sharing every weight."""

from __future__ import annotations

import copy
from typing import Any

from core.decoding.speculation.drafters.fit import layer_list_name
from core.models.model import LoadedModel


def lower_layers(model: LoadedModel, count: int) -> LoadedModel:
    """The target with only its first `count` layers; modules and weights are the target's own.

    Raises ValueError when the model is no plain stack of layers.
    """
    name = layer_list_name(model)
    if name is None:
        raise ValueError(f"{model.name} is no plain stack of layers")
    network = _shallow(model.model)
    base = _shallow(network.base_model)
    base.config = _shorter(base.config, count)
    base._modules[name] = base._modules[name][:count]
    network._modules[network.base_model_prefix] = base
    network.config = _shorter(network.config, count)
    return LoadedModel(network, model.tokenizer, f"{model.name}, {count} layers")


def _shallow(module: Any) -> Any:
    """A module object of its own around the same children."""
    twin = copy.copy(module)
    twin._modules = dict(module._modules)
    return twin


def _shorter(config: Any, count: int) -> Any:
    config = copy.deepcopy(config)
    kinds = getattr(config, "layer_types", None)
    if kinds:
        config.layer_types = list(kinds)[:count]
    config.num_hidden_layers = count
    return config
