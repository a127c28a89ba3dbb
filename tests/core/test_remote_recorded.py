"""Replies that real engines gave for SmolLM2-135M-Instruct, read as they came."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from decodescope import core
from decodescope.core.events import TokenChosen
from tests import recorded_engine

PARIS = [7042, 30, 198, 198, 504, 2988, 314, 42]
"""“ Paris.\n\nThe answer is:”, as the model writes with this program."""
PARIS_LOGS = (-0.25808, -0.38014, -1.00936, -0.87929)


@pytest.fixture
def vllm() -> Iterator[core.RemoteModel]:
    """vLLM 0.32.0 with n-gram drafts."""
    with recorded_engine.replayed("vllm") as model:
        yield model


def test_greedy_text_of_vllm_has_the_ids_and_probabilities_of_the_model(vllm: core.RemoteModel) -> None:
    run = core.run(vllm, recorded_engine.GREEDY)
    assert run.sequences[0] == PARIS
    chosen = [event for event in run.events if isinstance(event, TokenChosen)]
    assert [event.log_probability for event in chosen[:4]] == pytest.approx(PARIS_LOGS, abs=1e-4)
    assert [token.id for token in run.events[0].prompt] == [504, 3575, 282, 4649, 314]  # type: ignore[union-attr]


def test_acceptance_of_drafts_of_vllm_is_read(vllm: core.RemoteModel) -> None:
    assert core.run(vllm, recorded_engine.REPEATED).metrics.acceptance_rate == 0.75
    assert core.run(vllm, recorded_engine.GREEDY).metrics.acceptance_rate is None


def test_scored_text_of_vllm_has_the_ids_of_its_tokens(vllm: core.RemoteModel) -> None:
    scored = core.score(vllm, recorded_engine.SCORED)
    assert [token.id for token in scored] == [2365, 6354, 16438, 27003]
    assert [token.id for token in scored.events[0].prompt] == [504]  # type: ignore[attr-defined]
    assert [token.log_probability for token in scored] == pytest.approx(
        [-14.30891, -6.2765, -1.4159, -7.04196], abs=1e-4
    )
    likely = [one.id for one in scored[1].alternatives]
    assert likely[:3] == [970, 284, 29]
    assert all(one >= 0 for one in likely)


def test_chat_with_vllm_has_the_tokens_of_the_answer(vllm: core.RemoteModel) -> None:
    run = core.run(vllm, recorded_engine.CHAT)
    assert run.texts[0]
    assert all(token >= 0 for token in run.sequences[0])


def test_greedy_text_of_llama_cpp_has_the_ids_and_probabilities_of_its_tokens() -> None:
    """From the server of xllamacpp 2026.10.11549, whose weights are in 4 bits."""
    with recorded_engine.replayed("llama_cpp") as model:
        assert model.kind.name == "llama.cpp"
        run = core.run(model, recorded_engine.GREEDY)
        answer = core.run(model, recorded_engine.CHAT)
    assert run.sequences[0] == [7042, 30, 198, 198, 504, 1797, 1918, 553]
    chosen = [event for event in run.events if isinstance(event, TokenChosen)]
    assert [event.log_probability for event in chosen[:3]] == pytest.approx([-0.2589, -0.39815, -0.95390], abs=1e-4)
    assert [token.id for token in run.events[0].prompt] == [504, 3575, 282, 4649, 314]  # type: ignore[union-attr]
    assert answer.sequences[0] == [57, 5248, 22657, 327, 750]
