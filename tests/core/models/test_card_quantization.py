"""Weights that torchao quantizes for a card: which are selected, how it is called, and, where it is installed, the
result on the CPU.
"""

from __future__ import annotations

import importlib.util
import sys
import types
from typing import Any

import pytest
import torch
from transformers import GenerationConfig

from decodescope import core
from decodescope.core.errors import ParameterError
from decodescope.core.models import devices, loaded_model
from decodescope.core.models.quantized import card_quantization
from tests.core import tiny

CARD = torch.device("cuda")


@pytest.fixture
def with_torchao(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (devices, loaded_model):
        monkeypatch.setattr(module, "can_quantize_on_card", lambda kind: kind in ("int8", "int4", "fp8"))


@pytest.mark.parametrize("kind", ["int8", "int4", "fp8"])
def test_card_uses_torchao_formats(kind: str, with_torchao: None) -> None:
    config = tiny.shared("llama").model.config
    assert devices.choose_weights(kind, "auto", CARD, config)[:3] == (torch.bfloat16, None, kind)
    assert not loaded_model.needs_cpu(kind)
    assert loaded_model.needs_cpu(kind, memory_limit=0)


def test_weights_without_torchao_stay_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    config = tiny.shared("llama").model.config
    monkeypatch.setattr("decodescope.core.system.optional_deps.find_spec", lambda name: None)
    assert loaded_model.needs_cpu("int8")
    assert devices.choose_weights("int8", "auto", torch.device("cpu"), config)[:3] == (torch.float32, "int8", None)
    with pytest.raises(ParameterError, match="CPU only") as caught:
        devices.choose_weights("int8", "auto", CARD, config)
    assert "pip install torchao" in caught.value.remedy
    with pytest.raises(ParameterError, match="NVIDIA"):
        devices.choose_weights("fp8", "auto", torch.device("cpu"), config)


@pytest.mark.parametrize(("kind", "head"), [("int8", "int8"), ("int4", "int8"), ("fp8", "fp8")])
def test_layers_are_selected_and_moved(kind: str, head: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, list[str], torch.device]] = []

    def quantize(network: Any, config: str, selects: Any, device: torch.device) -> None:
        calls.append((config, [name for name, one in network.named_modules() if selects(one, name)], device))

    monkeypatch.setitem(sys.modules, "torchao", types.ModuleType("torchao"))
    monkeypatch.setitem(sys.modules, "torchao.quantization", types.SimpleNamespace(quantize_=quantize))
    monkeypatch.setattr(card_quantization, "torchao_config", lambda chosen: chosen)
    monkeypatch.setattr(card_quantization, "INT4_GROUP", 16)
    network = tiny.make("llama").model
    card_quantization.quantize_for_card(network, kind, CARD)
    (body, layers, where), (last, heads, _) = calls
    assert (body, last, where) == (kind, head, CARD)
    assert heads == ([] if network.config.tie_word_embeddings else ["lm_head"])
    assert len(layers) == 7 * network.config.num_hidden_layers
    assert card_quantization.card_kind(network) == kind


if importlib.util.find_spec("torchao") is not None:  # not collected without it: it belongs to machines with a card

    @pytest.mark.parametrize("kind", ["int8", "fp8"])
    def test_quantized_model_reports_its_size_and_generates(kind: str) -> None:
        plain = tiny.make("llama", hidden_size=128, intermediate_size=256)
        plain.model.to(torch.bfloat16)
        model = tiny.make("llama", hidden_size=128, intermediate_size=256)
        model.model.to(torch.bfloat16)
        card_quantization.quantize_for_card(model.model, kind, torch.device("cpu"))
        assert model.weights == kind
        assert model.weight_bytes < 0.75 * plain.weight_bytes
        ids = torch.tensor([tiny.prompt()])
        with torch.inference_mode():
            ours, theirs = (one.model(ids).logits.float() for one in (model, plain))
        assert 0 < float((ours - theirs).norm() / theirs.norm()) < 0.2
        config = GenerationConfig(max_new_tokens=6, eos_token_id=[tiny.VOCABULARY + 5])
        result = core.run(model, core.Request(tiny.prompt(), config))
        assert result.sequences == tiny.reference(model, tiny.prompt(), config)

    def test_torchao_configurations_exist() -> None:
        for kind in ("int8", "int4", "fp8"):
            assert card_quantization.torchao_config(kind) is not None
