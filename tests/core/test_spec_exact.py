"""Greedy speculation equals greedy decoding token for token, with every drafter, architecture and processor."""

from __future__ import annotations

from typing import Any

import pytest
from transformers import GenerationConfig, WatermarkingConfig

from decodescope import core
from decodescope.core.errors import CacheError, StrategyError
from tests.core import tiny
from tests.core.spec_models import LENGTH, chosen_tokens, config, greedy, rounds, similar_model
from tests.long import every

TREES = tiny.DECODERS
FIXED = {"schedule": "constant"}


def _ways(kind: str) -> dict[str, dict[str, Any]]:
    """Every way to speculate that the architecture allows."""
    both = [similar_model(kind), similar_model(kind, 5, 0.4)]
    chains: dict[str, dict[str, Any]] = {
        "assisted": {"strategy": "assisted", "drafters": [similar_model(kind)], "options": FIXED},
        "heuristic": {
            "strategy": "assisted",
            "drafters": [similar_model(kind)],
            "options": {"schedule": "heuristic_transient"},
        },
        "auto": {"strategy": "assisted", "drafters": [similar_model(kind)]},
        "lookup": {"strategy": "prompt_lookup", "options": FIXED},
    }
    if kind in tiny.ENCODER_DECODERS:
        return chains
    return chains | {
        "early exit": {"strategy": "early_exit", "options": FIXED},
        "tree": {"strategy": "token_tree", "drafters": [similar_model(kind)], "options": {"widths": [1, 2, 3, 1]}},
        "merged": {
            "strategy": "token_tree", "drafters": both, "options": {"widths": "2 2 1 1"}
        },
        "merged chains": {"strategy": "assisted", "drafters": both, "options": FIXED},
        "automatic tree": {"strategy": "token_tree", "drafters": [similar_model(kind)]},
        "drawn tree": {
            "strategy": "token_tree", "drafters": [similar_model(kind)],
            "options": {"widths": "3 2 1", "children": "drawn"},
        },
    }  # fmt: skip


@pytest.mark.every(2)
@pytest.mark.parametrize("kind", every(3, [*tiny.DECODERS, *tiny.ENCODER_DECODERS]))
def test_speculation_equals_greedy_decoding(kind: str) -> None:
    model, expected = tiny.shared(kind), greedy(tiny.shared(kind))
    assert len(expected) == LENGTH
    for name, way in _ways(kind).items():
        result = core.run(model, core.Request(tiny.prompt(), config(), top_n=0, **way))
        assert result.sequences[0] == expected, name


@pytest.mark.parametrize("kind", [*tiny.DECODERS, *tiny.ENCODER_DECODERS])
def test_a_drafter_equal_to_the_target_is_always_accepted(kind: str) -> None:
    """Fails when a drafter's memory is not exactly the text after a round."""
    model = tiny.shared(kind)
    ways: list[dict[str, Any]] = [{"strategy": "assisted", "options": FIXED}]
    if kind in TREES:
        ways.append({"strategy": "token_tree", "options": {"widths": "2 1 2 1"}})
    for way in ways:
        result = core.run(model, core.Request(tiny.prompt(), config(), drafters=[model], top_n=0, **way))
        assert result.metrics.acceptance_rate == 1.0
        assert result.metrics.tokens_per_target_pass is not None
        assert result.metrics.tokens_per_target_pass > 3.5


PROCESSORS: dict[str, dict[str, Any]] = {
    "repetition": {"repetition_penalty": 1.4},
    "no repeat": {"no_repeat_ngram_size": 2},
    "bias": {"sequence_bias": [[[7], 4.0], [[9, 11], 3.0]]},
    "bad words": {"bad_words_ids": [[8], [12, 13]]},
    "minimum": {"min_new_tokens": 12, "eos_token_id": [10, 20, 30, 40, 50]},
    "decay": {"exponential_decay_length_penalty": (4, 1.3), "eos_token_id": [33]},
    "forced end": {"forced_eos_token_id": 44},
    "suppressed": {"suppress_tokens": [5, 6, 14], "begin_suppress_tokens": [7]},
    "of the prompt": {"encoder_repetition_penalty": 1.5, "encoder_no_repeat_ngram_size": 2},
    "guidance": {"guidance_scale": 1.7},
    "renormalised": {"renormalize_logits": True, "repetition_penalty": 1.2},
    "watermark": {"watermarking_config": WatermarkingConfig(bias=3.0)},
}


@pytest.mark.every(2)
@pytest.mark.parametrize("name", PROCESSORS)
def test_speculation_with_every_processor_equals_greedy(name: str) -> None:
    """Each node of a tree is processed with its own prefix."""
    model, settings = tiny.shared("llama"), PROCESSORS[name]
    expected = greedy(model, **settings)
    ways = _ways("llama")
    for way in ("assisted", "lookup", "merged"):
        result = core.run(model, core.Request(tiny.prompt(), config(**settings), top_n=3, **ways[way]))
        assert result.sequences[0] == expected, way


def test_processors_of_an_encoder_decoder_equal_greedy() -> None:
    model = tiny.shared("bart")
    settings: dict[str, Any] = {"repetition_penalty": 1.3, "no_repeat_ngram_size": 2, "forced_bos_token_id": 9}
    expected = greedy(model, **settings)
    assert expected[0] == 9
    for way in _ways("bart").values():
        assert core.run(model, core.Request(tiny.prompt(), config(**settings), **way)).sequences[0] == expected


def test_guidance_with_a_negative_prompt_equals_greedy() -> None:
    model, more = tiny.shared("gpt2"), {"guidance_scale": 2.0}
    request = core.Request(tiny.prompt(), config(**more), strategy="greedy", negative_prompt=[5, 6, 7])
    expected = core.run(model, request).sequences[0]
    assert expected != greedy(model, **more)
    way = _ways("gpt2")["tree"]
    result = core.run(model, core.Request(tiny.prompt(), config(**more), negative_prompt=[5, 6, 7], **way))
    assert result.sequences[0] == expected


@pytest.mark.slow
@pytest.mark.parametrize("kind", every(3, ["mistral", "gemma2", "gemma3"]))
def test_prompts_longer_than_the_window_equal_greedy(kind: str) -> None:
    """Prompts as long as and longer than the window of 8."""
    model = tiny.shared(kind)
    for length in (8, 30):
        ids = tiny.prompt(length, seed=length)
        expected = greedy(model, ids)
        for name, way in _ways(kind).items():
            result = core.run(model, core.Request(ids, config(), top_n=0, **way))
            assert result.sequences[0] == expected, (name, length)


@pytest.mark.parametrize("limit", range(1, 9))
def test_token_limit_cuts_a_round_like_plain_decoding(limit: int) -> None:
    model, settings = tiny.shared("llama"), {"max_new_tokens": limit}
    expected = greedy(model, **settings)
    assert len(expected) == limit
    for way in _ways("llama").values():
        assert core.run(model, core.Request(tiny.prompt(), config(**settings), **way)).sequences[0] == expected


def test_an_end_token_within_a_round_ends_the_text() -> None:
    model = tiny.shared("llama")
    text = greedy(model)
    for position in range(1, 12):
        ending = text[position]
        expected = text[: text.index(ending) + 1]
        request = core.Request(tiny.prompt(), config(eos_token_id=[ending]), "assisted", FIXED, drafters=[model])
        result = core.run(model, request)
        assert result.sequences[0] == expected
        assert [event.id for event in chosen_tokens(result)] == expected


def test_speculation_stops_at_the_end_of_the_context() -> None:
    """Learned positions end at 256: neither target nor drafter may read beyond."""
    model, ids = tiny.shared("gpt2"), tiny.prompt(240)
    expected = greedy(model, ids)
    assert len(expected) == 17
    for name, way in _ways("gpt2").items():
        assert core.run(model, core.Request(ids, config(), **way)).sequences[0] == expected, name


def test_a_draft_model_with_a_shorter_context_stops_drafting() -> None:
    model, ids = tiny.shared("gpt2"), tiny.prompt(20)
    short = tiny.make("llama", max_position_embeddings=30)
    result = core.run(model, core.Request(ids, config(), "assisted", FIXED, drafters=[short]))
    assert result.sequences[0] == greedy(model, ids)
    assert max(event.step for event in rounds(result)) <= 11


def test_drafters_of_another_architecture_are_supported() -> None:
    model = tiny.shared("llama")
    for kind in ("gpt2", "gemma2"):
        for way in ("assisted", "token_tree"):
            request = core.Request(tiny.prompt(), config(), way, FIXED, drafters=[tiny.shared(kind)])
            assert core.run(model, request).sequences[0] == greedy(model)


def test_flags_choose_the_strategy() -> None:
    model = tiny.shared("llama")
    cases: list[tuple[GenerationConfig, list[Any], str]] = [
        (config(), [similar_model("llama")], "assisted"),
        (config(prompt_lookup_num_tokens=4), [], "prompt_lookup"),
        (config(assistant_early_exit=2), [], "early_exit"),
    ]
    for settings, drafters, name in cases:
        result = core.run(model, core.Request(tiny.prompt(), settings, drafters=drafters))
        assert result.events[0].strategy == name  # type: ignore[attr-defined]
        assert result.sequences[0] == greedy(model)


REFUSALS: list[tuple[str, str, dict[str, Any], str]] = [
    ("mamba", "prompt_lookup", {}, "recurrent"),
    ("t5", "token_tree", {"drafters": ["t5"]}, "order"),
    ("t5", "early_exit", {}, "stack"),
    ("t5", "assisted", {"drafters": ["llama"]}, "encoder"),
    ("llama", "assisted", {}, "no draft model"),
    ("llama", "assisted", {"drafters": ["mamba"]}, "recurrent"),
    ("llama", "assisted", {"drafters": ["llama"], "config": config(num_beams=3)}, "beam"),
    ("llama", "assisted", {"drafters": ["llama"], "cache": "quantized"}, "rejected drafts"),
    ("llama", "prompt_lookup", {"config": config(num_return_sequences=2, do_sample=True)}, "one sequence"),
    ("llama", "early_exit", {"config": config(assistant_early_exit=4)}, "4 layers"),
]


@pytest.mark.parametrize(("kind", "strategy", "more", "word"), REFUSALS)
def test_unsupported_combinations_are_refused_with_the_reason(
    kind: str, strategy: str, more: dict[str, Any], word: str
) -> None:
    drafters = [tiny.shared(name) for name in more.get("drafters", ())]
    settings = {key: value for key, value in more.items() if key not in ("drafters", "config")}
    request = core.Request(tiny.prompt(), more.get("config", config()), strategy, drafters=drafters, **settings)
    with pytest.raises((StrategyError, CacheError), match=word):
        core.run(tiny.shared(kind), request)


def test_beams_with_a_draft_model_are_refused_by_flags_too() -> None:
    request = core.Request(tiny.prompt(), config(num_beams=2), drafters=[similar_model("llama")])
    with pytest.raises(StrategyError, match="beam"):
        core.run(tiny.shared("llama"), request)


def test_draft_model_with_another_vocabulary_is_refused() -> None:
    other = tiny.make("llama", vocab_size=50)
    with pytest.raises(StrategyError, match="tokenizer"):
        core.run(tiny.shared("llama"), core.Request(tiny.prompt(), config(), drafters=[other]))
