"""A loaded model, as far as the window must know it. Only ever called from the worker's thread: it imports torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from app.state.worker_messages import LoadRequest, ModelInfo
from resources.language import tr

if TYPE_CHECKING:
    from transformers import GenerationConfig

    import core


def describe(model: core.LoadedModel, request: LoadRequest) -> ModelInfo:
    """What it is, where it runs, and which strategies and caches it refuses."""
    import torch

    import core

    refused = {name: strategy.why_not(model) for name, strategy in core.strategies.registry.items()}
    caches = {name: cache.unsupported_reason(model) for name, cache in core.caches.registry.items()}
    return ModelInfo(
        name=request.model,
        title=model.name,
        device=str(model.device),
        dtype=model.weights,
        threads=torch.get_num_threads() if model.device.type == "cpu" else 0,
        note=_device_note(request.device, model.device.type),
        parameters=model.parameters,
        context=model.context,
        vocabulary=model.vocabulary,
        has_chat=model.tokenizer is not None and bool(model.tokenizer.chat_template),
        modalities=model.takes,
        defaults=_model_defaults(model.generation_config),
        unsupported_strategies={name: why for name, why in refused.items() if why},
        unsupported_caches={name: why for name, why in caches.items() if why},
    )


def _device_note(requested: str, device: str) -> str:
    """Why a model runs on the CPU although the choice of a device was left open; empty elsewhere."""
    return tr("no GPU that this torch can use") if requested == "auto" and device == "cpu" else ""


def _model_defaults(config: GenerationConfig) -> Mapping[str, Any]:
    """What the model's generation_config sets itself."""
    plain: dict[str, Any] = config.to_diff_dict()
    return {name: value for name, value in plain.items() if value is not None}
