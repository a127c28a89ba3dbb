"""Contrastive search against a reference that recomputes everything from the whole text, one candidate at a time."""

from __future__ import annotations

import pytest
import torch
from transformers import GenerationConfig

from decodescope import core
from decodescope.core.decoding.contrastive import contrastive_scores
from decodescope.core.events import TokenChosen
from tests.core import tiny
from tests.long import every


def last_states(model: core.LoadedModel, prompt: list[int], text: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits after, and last-layer states of, the whole text, without any cache."""
    network = model.model
    with torch.no_grad():
        if model.is_encoder_decoder:
            start = network.config.decoder_start_token_id
            out = network(
                input_ids=torch.tensor([prompt]), decoder_input_ids=torch.tensor([[start, *text]]),
                output_hidden_states=True, use_cache=False,
            )  # fmt: skip
            return out.logits[0, -1], out.decoder_hidden_states[-1][0]
        out = network(torch.tensor([prompt + text]), output_hidden_states=True, use_cache=False)
    return out.logits[0, -1], out.hidden_states[-1][0]


def naive(model: core.LoadedModel, prompt: list[int], steps: int, k: int, alpha: float) -> list[int]:
    """Su et al. 2022, equation 5, written out."""
    text: list[int] = []
    for _ in range(steps):
        logits, history = last_states(model, prompt, text)
        confidence, candidates = torch.softmax(logits, -1).topk(k)
        scores = []
        for share, token in zip(confidence.tolist(), candidates.tolist(), strict=True):
            state = last_states(model, prompt, [*text, token])[1][-1]
            penalty = torch.cosine_similarity(state[None], history, dim=-1).max()
            scores.append((1 - alpha) * share - alpha * float(penalty))
        text.append(candidates.tolist()[scores.index(max(scores))])
    return text


@pytest.mark.parametrize("kind", every(3, [*tiny.DECODERS, *tiny.ENCODER_DECODERS]))
@pytest.mark.parametrize(("k", "alpha"), [(4, 0.6), (7, 0.3)])
def test_contrastive_search_equals_full_recomputation(kind: str, k: int, alpha: float) -> None:
    model, ids = tiny.shared(kind), tiny.prompt()
    settings = GenerationConfig(penalty_alpha=alpha, top_k=k, max_new_tokens=12, eos_token_id=60)
    assert core.run(model, core.Request(ids, settings)).sequences[0] == naive(model, ids, 12, k, alpha)


def test_alpha_zero_is_greedy() -> None:
    model, ids = tiny.shared("llama"), tiny.prompt()
    greedy = core.run(model, core.Request(ids, GenerationConfig(max_new_tokens=15))).sequences
    settings = GenerationConfig(max_new_tokens=15, penalty_alpha=0.0, top_k=4)
    assert core.run(model, core.Request(ids, settings, strategy="contrastive")).sequences == greedy


def test_candidates_carry_penalty_and_score() -> None:
    model, ids = tiny.shared("llama"), tiny.prompt()
    settings = GenerationConfig(max_new_tokens=6, penalty_alpha=0.6, top_k=4)
    for event in core.run(model, core.Request(ids, settings, top_n=2)).events:
        if not isinstance(event, TokenChosen):
            continue
        tried = [item for item in event.alternatives if item.score is not None]
        assert len(tried) == 4
        for item in tried:
            assert item.degeneration_penalty is not None
            assert item.score == pytest.approx(0.4 * item.probability - 0.6 * item.degeneration_penalty, abs=1e-6)
        assert event.id == max(tried, key=lambda item: item.score or 0.0).id


def test_contrastive_scores_match_a_manual_computation() -> None:
    score = contrastive_scores(torch.tensor([0.5, 0.3, 0.0]), torch.tensor([0.9, 0.1, -1.0]), 0.5)
    assert score.tolist() == pytest.approx([-0.2, 0.1, float("-inf")])


def test_penalties_apply_to_the_candidates() -> None:
    model, ids = tiny.shared("llama"), tiny.prompt()
    settings = GenerationConfig(max_new_tokens=20, penalty_alpha=0.6, top_k=4, no_repeat_ngram_size=1, eos_token_id=60)
    tokens = core.run(model, core.Request(ids, settings)).sequences[0]
    assert len(set(tokens)) == len(tokens)


def test_contrastive_search_of_a_recurrent_model_is_refused() -> None:
    settings = GenerationConfig(penalty_alpha=0.6, top_k=4)
    with pytest.raises(core.errors.StrategyError, match="recurrent state"):
        core.run(tiny.shared("mamba"), core.Request(tiny.prompt(), settings))
