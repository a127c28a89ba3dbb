"""Greedy decoding and every processor, token for token against transformers' own generate."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import GenerationConfig

from decodescope import core
from tests.core import tiny

PROCESSORS: dict[str, dict[str, Any]] = {
    "sequence_bias": {"sequence_bias": [[[17], -8.0], [[9, 11], 6.0]]},
    "encoder_repetition_penalty": {"encoder_repetition_penalty": 1.7},
    "repetition_penalty": {"repetition_penalty": 1.4},
    "no_repeat_ngram": {"no_repeat_ngram_size": 2},
    "encoder_no_repeat_ngram": {"encoder_no_repeat_ngram_size": 1},
    "bad_words": {"bad_words_ids": [[17], [34, 11], [44]]},
    "min_length": {"min_length": 15},
    "min_new_tokens": {"min_new_tokens": 12},
    "min_new_tokens_and_min_length": {"min_length": 25, "min_new_tokens": 3, "eos_token_id": list(range(2, 60, 3))},
    "no_new_tokens_and_min_length": {"min_length": 25, "min_new_tokens": 0, "eos_token_id": list(range(2, 60, 3))},
    "forced_eos": {"forced_eos_token_id": 2},
    "remove_invalid": {"remove_invalid_values": True},
    "decay": {"exponential_decay_length_penalty": (3, 1.8)},
    "suppress": {"suppress_tokens": [17, 34, 44, 32]},
    "begin_suppress": {"begin_suppress_tokens": [17, 34, 44, 32, 51]},
    "renormalize": {"renormalize_logits": True},
    "several": {"repetition_penalty": 1.2, "no_repeat_ngram_size": 3, "suppress_tokens": [17], "min_new_tokens": 8},
    "max_length": {"max_length": 20, "max_new_tokens": None},
    "several_eos": {"eos_token_id": [2, 11, 17, 32, 6]},
}  # fmt: skip
FILTERS: dict[str, dict[str, Any]] = {
    "plain": {"top_k": 0},
    "default_top_k": {},
    "temperature": {"temperature": 0.6, "top_k": 0},
    "top_k": {"top_k": 5},
    "top_p": {"top_p": 0.7, "top_k": 0},
    "min_p": {"min_p": 0.1, "top_k": 0},
    "typical": {"typical_p": 0.6, "top_k": 0},
    "epsilon": {"epsilon_cutoff": 0.02, "top_k": 0},
    "eta": {"eta_cutoff": 0.05, "top_k": 0},
    "top_h": {"top_h": 0.5, "top_k": 0},
    "all": {
        "temperature": 1.3,
        "top_k": 30,
        "top_p": 0.95,
        "min_p": 0.01,
        "typical_p": 0.95,
        "repetition_penalty": 1.1,
    },
}


def config(**settings: Any) -> GenerationConfig:
    return GenerationConfig(**{"max_new_tokens": 14, "do_sample": False, **settings})


def ours(model: core.LoadedModel, ids: list[int], settings: GenerationConfig, seed: int = 0) -> list[list[int]]:
    return core.run(model, core.Request(ids, settings, seed=seed)).sequences


@pytest.mark.every(2)
@pytest.mark.parametrize("kind", tiny.ALL)
def test_greedy_equals_generate(kind: str) -> None:
    model = tiny.shared(kind)
    for seed in range(3):
        ids = tiny.prompt(5 + 9 * seed, seed)
        settings = config(max_new_tokens=30)
        assert ours(model, ids, settings) == tiny.reference(model, ids, settings)


@pytest.mark.every(4)
@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("kind", tiny.ALL)
def test_processors_equal_generate(kind: str, processor: str) -> None:
    model, ids, settings = tiny.shared(kind), tiny.prompt(), config(**PROCESSORS[processor])
    assert ours(model, ids, settings) == tiny.reference(model, ids, settings)


@pytest.mark.every(2)
@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("kind", ["llama", "gpt2", "t5", "mamba"])
def test_sampling_draws_as_generate_does(kind: str, name: str) -> None:
    """The same seed gives the same tokens as transformers' global generator: the distributions are equal."""
    model, ids = tiny.shared(kind), tiny.prompt()
    settings = config(do_sample=True, num_return_sequences=2, **FILTERS[name])
    torch.manual_seed(5)
    expected = tiny.reference(model, ids, settings)
    for result, reference in zip(ours(model, ids, settings, seed=5), expected, strict=True):
        assert result == reference[: len(result)]
        assert set(reference[len(result) :]) <= {0}  # padding


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_guidance_equals_generate(kind: str) -> None:
    model, ids = tiny.shared(kind), tiny.prompt()
    settings = config(guidance_scale=1.6)
    assert ours(model, ids, settings) == tiny.reference(model, ids, settings)


@torch.inference_mode()
def guided_sum(model: core.LoadedModel, ids: list[int], written: list[int], scale: float) -> float:
    """Return the sum of the guided log-probabilities of a text: of each token after the prompt, and after its last
    token alone, which is the context without the prompt (Sanchez et al. 2023, "Stay on topic", section 2).
    """
    prompted = model.model(torch.tensor([[*ids, *written]])).logits[0, len(ids) - 1 : -1].log_softmax(-1)
    free = model.model(torch.tensor([[ids[-1], *written]])).logits[0, :-1].log_softmax(-1)
    guided = free + scale * (prompted - free)
    return float(guided.gather(1, torch.tensor(written)[:, None]).sum())


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_guidance_of_beams_follows_its_definition_where_generate_mixes_the_beams(kind: str) -> None:
    """transformers' processor keeps the context without the prompt in the order of the first step: a beam is compared
    with the text of another one. Here each beam has its own.
    """
    model, ids, scale = tiny.shared(kind), tiny.prompt(), 2.0
    settings = config(guidance_scale=scale, num_beams=3, num_return_sequences=3, length_penalty=0.0, eos_token_id=None)
    result = core.run(model, core.Request(ids, settings))
    assert result.scores is not None
    assert result.scores == pytest.approx([guided_sum(model, ids, text, scale) for text in result.sequences], abs=1e-3)
    with torch.inference_mode():
        theirs = model.model.generate(
            torch.tensor([ids]), settings, attention_mask=torch.ones(1, len(ids), dtype=torch.long),
            return_dict_in_generate=True, output_scores=True,
        )  # fmt: skip
    defined = [guided_sum(model, ids, text, scale) for text in theirs.sequences[:, len(ids) :].tolist()]
    assert theirs.sequences_scores.tolist() != pytest.approx(defined, abs=1e-3), "transformers follows it too now"


@pytest.mark.parametrize("kind", ["bart", "t5"])
def test_forced_bos_token_equals_generate(kind: str) -> None:
    model, ids, settings = tiny.shared(kind), tiny.prompt(), config(forced_bos_token_id=9)
    result = ours(model, ids, settings)
    assert result[0][0] == 9
    assert result == tiny.reference(model, ids, settings)


def test_watermark_equals_generate() -> None:
    model, ids = tiny.shared("llama"), tiny.prompt()
    settings = config(watermarking_config={"bias": 3.0, "greenlist_ratio": 0.3})
    assert ours(model, ids, settings) == tiny.reference(model, ids, settings)
    assert ours(model, ids, settings) != ours(model, ids, config())


def test_model_defaults_are_honoured() -> None:
    """Settings of the model's generation_config apply where the request contains none."""
    model, ids = tiny.make("llama"), tiny.prompt()
    model.model.generation_config.repetition_penalty = 1.5
    model.model.generation_config.max_new_tokens = 9
    assert ours(model, ids, GenerationConfig()) == tiny.reference(model, ids, GenerationConfig())
    settings = core.effective_settings(model, core.Request(ids))
    assert settings == {"eos_token_id": 2, "max_new_tokens": 9, "repetition_penalty": 1.5}


def test_run_without_limits_generates_twenty_tokens() -> None:
    model = tiny.make("llama", eos_token_id=None)
    assert len(ours(model, tiny.prompt(), GenerationConfig())[0]) == 20


@pytest.mark.parametrize("kind", ["llama", "mistral", "gemma3", "t5", "mamba"])
def test_long_text_with_windows_and_states_equals_generate(kind: str) -> None:
    """Far beyond the sliding window of 8."""
    model = tiny.shared(kind)
    settings = config(max_new_tokens=80, repetition_penalty=1.3, suppress_tokens=[2])
    assert ours(model, tiny.prompt(40), settings) == tiny.reference(model, tiny.prompt(40), settings)
