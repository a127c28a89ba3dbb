"""Early exit: the target's own lower layers, its final norm and its head, sharing every weight."""

from __future__ import annotations

import torch

from core.caches.tensors.continuation_probe import probe_text
from core.caches.tensors.layouts import draft_cache
from core.decoding.forward.forward_pass import Forward
from core.device_memory import is_out_of_memory
from core.models.decoder_layers import get_layers, layer_path, replace_layers
from core.models.loaded_model import LoadedModel
from resources.language import tr

_EARLY_EXIT_KEY = "reads_half_way"


def supports_early_exit(model: LoadedModel) -> bool:
    """Whether the lowest layer alone, with norm and head, reads a text; tried once and remembered."""
    if model.is_encoder_decoder or layer_path(model) is None:
        return False
    if next(model.model.parameters()).is_meta:
        return True
    if _EARLY_EXIT_KEY not in model.remembered:
        model.remembered[_EARLY_EXIT_KEY] = _test_early_exit(model)
    return bool(model.remembered[_EARLY_EXIT_KEY])


def build_early_exit_model(model: LoadedModel, count: int) -> LoadedModel:
    """The target with only its first `count` layers; modules and weights are the target's own.

    Raises ValueError when it has no list of layers.
    """
    path = layer_path(model)
    if path is None:
        raise ValueError(tr("{model} has no list of layers").format(model=model.name))
    name = tr("{model}, {count} layers").format(model=model.name, count=count)
    return replace_layers(model, path, get_layers(model, path)[:count], name)


@torch.inference_mode()
def _test_early_exit(model: LoadedModel) -> bool:
    try:
        lower = build_early_exit_model(model, 1)
        forward = Forward(lower, draft_cache(lower))
        for token in probe_text(model)[:3]:
            scores = forward(torch.tensor([[token]], device=model.device)).last
        return scores.shape[-1] == model.vocabulary
    except Exception as error:
        if is_out_of_memory(error):
            raise
        return False
