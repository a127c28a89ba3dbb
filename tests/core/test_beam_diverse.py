"""Diverse beam search against the same search written down plainly."""

from __future__ import annotations

from typing import Any

import pytest

from decodescope.core.errors import ParameterError
from decodescope.core.events import BeamStep
from tests.core import tiny
from tests.core.beam_reference import diverse, run
from tests.long import every

KINDS = ("gpt2", "llama", "mistral", "gemma2", "gemma3", "t5", "bart")


@pytest.mark.parametrize("kind", every(3, KINDS))
@pytest.mark.parametrize(("groups", "width", "penalty"), [(4, 1, 1.5), (2, 2, 0.7), (3, 2, 0.0)])
def test_diverse_search_equals_the_reference_search(kind: str, groups: int, width: int, penalty: float) -> None:
    model, ids = tiny.make(kind, scale=3.0), tiny.prompt()
    expected = diverse(model, ids, groups, width, penalty, steps=10, eos={2})
    beams = groups * width
    found = run(
        model, ids, num_beams=beams, num_beam_groups=groups, diversity_penalty=penalty, num_return_sequences=beams,
        max_new_tokens=10,
    )  # fmt: skip
    assert [tuple(text) for text in found.sequences] == [text for text, _ in expected]
    assert found.scores == pytest.approx([score for _, score in expected], abs=2e-4)


@pytest.mark.parametrize("settings", [{"early_stopping": True}, {"length_penalty": -1.0}, {"length_penalty": 0.0}])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_diverse_search_with_several_end_tokens_equals_reference(seed: int, settings: dict[str, Any]) -> None:
    model, ids, eos = tiny.make("llama", seed, scale=2.0), tiny.prompt(seed=seed), {2, 11, 17, 30, 41}
    expected = diverse(
        model, ids, 3, 2, 1.0, 9, eos, settings.get("length_penalty", 1.0), settings.get("early_stopping", False)
    )
    found = run(
        model, ids, num_beams=6, num_beam_groups=3, diversity_penalty=1.0, num_return_sequences=6, max_new_tokens=9,
        eos_token_id=sorted(eos), **settings,
    )  # fmt: skip
    assert [tuple(text) for text in found.sequences] == [text for text, _ in expected]
    assert found.scores == pytest.approx([score for _, score in expected], abs=2e-4)


def test_candidates_report_their_diversity_penalty() -> None:
    found = run(
        tiny.shared("llama"), tiny.prompt(), num_beams=4, num_beam_groups=4, diversity_penalty=0.5, max_new_tokens=4
    )
    for step in (event for event in found.events if isinstance(event, BeamStep)):
        stored: list[int] = []
        for group in range(4):
            members = [item for item in step.candidates if item.group == group]
            assert [item.rank for item in members] == list(range(1, len(members) + 1))
            for item in members:
                assert item.diversity_penalty == pytest.approx(0.5 * stored.count(item.id))
            stored += [item.id for item in members if item.fate in ("kept", "early_stopped", "finished")][:1]


def test_large_penalty_makes_groups_choose_different_tokens() -> None:
    """With a great penalty no two groups choose the same token at a step."""
    found = run(
        tiny.shared("llama"), tiny.prompt(), num_beams=4, num_beam_groups=4, diversity_penalty=500.0, max_new_tokens=6,
        num_return_sequences=4, eos_token_id=60,
    )  # fmt: skip
    assert all(len(set(column)) == 4 for column in zip(*found.sequences, strict=True))


def test_groups_must_divide_the_beams() -> None:
    with pytest.raises(ParameterError, match="5 beams") as caught:
        run(tiny.shared("llama"), tiny.prompt(), num_beams=5, num_beam_groups=2)
    assert caught.value.parameter == "num_beam_groups"


def test_stateful_processors_follow_their_groups() -> None:
    """A watermark with a memory of its rows neither fails nor mixes groups up."""
    model, ids = tiny.shared("llama"), tiny.prompt()
    watermark = {"keys": [3, 5, 7], "ngram_len": 3, "context_history_size": 16}
    from transformers import SynthIDTextWatermarkingConfig

    settings: dict[str, Any] = {"watermarking_config": SynthIDTextWatermarkingConfig(**watermark), "num_beams": 4}
    grouped = run(model, ids, num_beam_groups=2, diversity_penalty=0.3, num_return_sequences=4, **settings)
    assert len(grouped.sequences) == 4
