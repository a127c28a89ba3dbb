"""LoRA adapters with random numbers, made by PEFT itself, which is the reference."""

from __future__ import annotations

import copy
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from decodescope import core

IDS = torch.arange(5, 25)[None]


def save_lora(model: core.LoadedModel, path: Path, seed: int = 1, **settings: Any) -> Any:
    """Save an adapter of the model and return PEFT's own module with it; the model is left as it is."""
    peft = pytest.importorskip("peft", exc_type=ImportError)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        network = copy.deepcopy(model.model)
        adapted = peft.get_peft_model(network, peft.LoraConfig(r=4, **settings))
        generator = torch.Generator().manual_seed(seed)
        for name, parameter in adapted.named_parameters():
            if "lora_" in name:
                parameter.data = 0.2 * torch.randn(parameter.shape, generator=generator)
            if "magnitude" in name:
                parameter.data = parameter.data.abs() + 0.5
            if parameter.requires_grad and (name.endswith(".bias") or "modules_to_save" in name):
                parameter.data = parameter.data + 0.1 * torch.randn(parameter.shape, generator=generator)
        adapted.save_pretrained(str(path))
    return adapted.eval()


def load_several(model: core.LoadedModel, choices: list[tuple[Path, float]]) -> Any:
    """Return PEFT's module with several saved adapters, each with its strength."""
    peft = pytest.importorskip("peft", exc_type=ImportError)
    names = [f"a{number}" for number, _ in enumerate(choices)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adapted = peft.PeftModel.from_pretrained(copy.deepcopy(model.model), str(choices[0][0]), names[0])
        for name, (path, _) in zip(names[1:], choices[1:], strict=True):
            adapted.load_adapter(str(path), name)
        adapted.base_model.set_adapter(names)
    for layer in adapted.modules():
        if isinstance(layer, peft.tuners.lora.LoraLayer):
            for name, (_, strength) in zip(names, choices, strict=True):
                if name in layer.scaling:
                    layer.scaling[name] *= strength
    return adapted.eval()


def logits_of(network: Any, ids: torch.Tensor = IDS) -> torch.Tensor:
    """Return float32 logits [1, n, V]; an encoder reads the ids, too."""
    with torch.no_grad():
        if network.config.is_encoder_decoder:
            logits = network(input_ids=ids, decoder_input_ids=ids).logits
        else:
            logits = network(ids).logits
    return torch.as_tensor(logits).float()
