"""The registry of processors: transformers' order, and the metadata of every file."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import pytest
import torch
from transformers import (
    GenerationConfig,
    GenerationMixin,
    MinLengthLogitsProcessor,
    MinNewTokensLengthLogitsProcessor,
)
from transformers.generation import logits_process

from decodescope import core
from decodescope.core.decoding.processor_pipeline import build_pipeline
from decodescope.core.errors import ParameterError
from decodescope.core.generate_recording.stage_headings import heading_of
from decodescope.core.processors import Context, registry
from decodescope.core.processors.base import MinLengthBan
from tests.core import tiny

ON: dict[str, Any] = {
    "guidance_scale": 1.5, "sequence_bias": [[[7], 2.0]], "encoder_repetition_penalty": 1.2, "repetition_penalty": 1.3,
    "no_repeat_ngram_size": 2, "encoder_no_repeat_ngram_size": 3, "bad_words_ids": [[9]], "min_length": 5,
    "min_new_tokens": 3, "forced_bos_token_id": 4, "forced_eos_token_id": 3, "remove_invalid_values": True,
    "exponential_decay_length_penalty": [2, 1.1], "suppress_tokens": [8], "begin_suppress_tokens": [6],
    "temperature": 0.7, "top_h": 0.5, "top_k": 20, "top_p": 0.9, "min_p": 0.05, "typical_p": 0.95,
    "epsilon_cutoff": 0.001, "eta_cutoff": 0.001, "renormalize_logits": True,
}  # fmt: skip


OWN: dict[type, type] = dict.fromkeys((MinLengthLogitsProcessor, MinNewTokensLengthLogitsProcessor), MinLengthBan)
"""What does the same as a class of transformers."""


def context(**settings: Any) -> Context:
    model = tiny.shared("llama")
    ids, eos = torch.tensor([[5, 6]]), torch.tensor([3])
    return Context(model, {"do_sample": True, **settings}, 2, 12, ids, eos, 1, torch.zeros)


@pytest.mark.parametrize("minimum", ["min_length", "min_new_tokens"])
def test_processor_order_equals_that_of_transformers(minimum: str) -> None:
    """Both lists are made with everything switched on, but for one minimum: a length in new tokens is the one used."""
    on = {name: value for name, value in ON.items() if name == minimum or not name.startswith("min_")}
    on["min_p"] = ON["min_p"]
    made = context(**on)
    result = [type(stage.process) for stage in build_pipeline(made).stages]
    config = GenerationConfig(do_sample=True, eos_token_id=3, **on)
    config._eos_token_tensor = made.eos  # type: ignore[attr-defined]
    model = made.model.model
    reference = GenerationMixin._get_logits_processor(
        model, config, 2, made.encoder_ids, None, [], device="cpu", model_kwargs={}
    )
    assert result == [OWN.get(type(processor), type(processor)) for processor in reference]


@pytest.mark.parametrize("name", registry)
def test_every_processor_file_has_complete_metadata(name: str) -> None:
    processor = registry[name]
    assert sys.modules[f"decodescope.core.processors.{name}"].PROCESSOR is processor
    assert processor.parameter is None or processor.parameter.name == name
    assert re.fullmatch(r"[^{}]*({v})?[^{}]*", processor.label)
    others = [other for other in registry.values() if other is not processor]
    assert processor.order not in [other.order for other in others]
    beside = [other for other in others if other.panel == processor.panel and other.parameter is not None]
    assert processor.parameter is None or processor.shown not in [other.shown for other in beside]


@pytest.mark.parametrize("name", [name for name in registry if registry[name].uses_scores_only])
def test_processors_declared_score_only_ignore_the_ids(name: str) -> None:
    (stage,) = build_pipeline(context(**{"top_k": 0, name: ON.get(name, 1.0)})).stages
    scores = torch.randn(2, 96, generator=torch.Generator().manual_seed(3))
    one, other = torch.tensor([[5, 6], [5, 6]]), torch.tensor([[8, 9, 1], [2, 2, 2]])
    assert torch.equal(stage.process(one, scores), stage.process(other, scores))


def test_listing_processors_loads_no_torch() -> None:
    code = "import sys, core.processors; print(len(core.processors.registry), 'torch' in sys.modules)"
    reported = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert reported == [str(len(registry)), "False"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("top_p", "x"), ("temperature", float("nan")), ("temperature", float("inf")), ("watermarking_config", "x")],
)
def test_a_value_of_the_wrong_kind_is_named(name: str, value: object) -> None:
    with pytest.raises(ParameterError, match=name):
        core.run(tiny.shared("llama"), core.Request([5, 6], {"do_sample": True, name: value}))


def test_transformers_classes_of_every_processor_exist_and_have_one_owner() -> None:
    classes = [name for processor in registry.values() for name in processor.transformers_classes]
    assert [name for name in classes if not isinstance(getattr(logits_process, name, None), type)] == []
    assert len(set(classes)) == len(classes)


def test_headings_of_transformers_processors_are_those_of_their_settings() -> None:
    """Every processor that transformers builds from a configuration is recognized, with the value it applies."""
    made = context(**ON)
    config = GenerationConfig(do_sample=True, eos_token_id=3, **ON)
    config._eos_token_tensor = made.eos  # type: ignore[attr-defined]
    processors = GenerationMixin._get_logits_processor(
        made.model.model, config, 2, made.encoder_ids, None, [], device="cpu", model_kwargs={}
    )
    headings = [heading_of(processor, config) for processor in processors]
    assert [heading.name for heading in headings] == [
        name for name in registry if name in ON and name in config.to_dict()
    ]
    values = {heading.name: heading.value for heading in headings}
    assert values["top_p"] == ON["top_p"]
    assert values["repetition_penalty"] == ON["repetition_penalty"]
