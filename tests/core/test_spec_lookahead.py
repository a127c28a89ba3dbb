"""Lookahead decoding: n-grams from the target's own passes, the same text, and what the pool holds."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from transformers import GenerationConfig

from decodescope import core
from decodescope.core.decoding.speculation.drafters.base import SpeculationText
from decodescope.core.decoding.speculation.drafters.lookahead_drafter import LookaheadDrafter, NgramStore
from decodescope.core.decoding.speculation.round_plan import RoundPlan
from decodescope.core.errors import StrategyError
from decodescope.core.events import DraftRound, NgramPool
from decodescope.resources import depth
from tests.core import tiny
from tests.core.spec_models import config, few_token_model, greedy, rounds
from tests.core.spec_tables import p_value
from tests.core.test_spec_lossless import ALARM, _model_shares

FIXED = {"schedule": "constant"}


@pytest.mark.parametrize("kind", ["llama", "gemma3", "gpt2"])
def test_lookahead_equals_greedy_decoding(kind: str) -> None:
    """Also where the window of the attention is shorter than the text, and with a processor."""
    model = tiny.shared(kind)
    for settings in ({}, {"repetition_penalty": 1.3}):
        request = core.Request(tiny.prompt(), config(**settings), "lookahead", FIXED, top_n=0)
        assert core.run(model, request).sequences[0] == greedy(model, **settings)


def test_window_rows_are_read_like_plain_text() -> None:
    """Each column's next guess is what the model generates after that column's own path."""
    model = tiny.shared("llama")
    text, drafter = SpeculationText(tiny.prompt(), torch.device("cpu")), LookaheadDrafter(3, 4, 5, False)
    from decodescope.core.caches.tensors.continuation_probe import draft_cache
    from decodescope.core.decoding.forward.forward_pass import Forward
    from decodescope.core.decoding.speculation.tree_passes import TreePasses

    passes = TreePasses(Forward(model, draft_cache(model)))
    with torch.inference_mode():
        passes.read_text(text.ids_from(0)[:, :-1])
        for _ in range(5):
            riders = drafter.extra_rows(text)
            sees = torch.ones(len(riders.ids) + 1, len(riders.ids) + 1, dtype=torch.bool).numpy()
            sees[0, 1:], sees[1:, 1:] = False, riders.sees
            ids = [text.ids[-1], *riders.ids]
            choices = passes.read_nodes(torch.tensor([ids]), [0, *riders.depths], sees)[1:].argmax(-1).tolist()
            passes.commit(())
            for row, choice in enumerate(choices):
                path = [token for token, seen in zip(riders.ids, riders.sees[row], strict=True) if seen]
                alone = model.model(torch.tensor([[*text.ids, *path]])).logits[0, -1]
                assert int(alone.argmax()) == choice
            drafter.update_rows(choices)
    assert len(drafter.pool) > 0
    assert all(len(ngram) == 4 for ngram in drafter.new_ngrams)


def test_window_alone_accelerates_a_repetitive_model() -> None:
    """No n-gram of the text: what is accepted came from the passes alone."""
    model = core.load("storyteller")
    prompt, settings = "I saw a red bird in the forest.", GenerationConfig(max_new_tokens=60)
    options = {**FIXED, "pool_from_text": False}
    result = core.run(model, core.Request(prompt, settings, "lookahead", options, top_n=0))
    assert result.sequences == core.run(model, core.Request(prompt, settings, "greedy", top_n=0)).sequences
    assert (result.metrics.tokens_per_target_pass or 0) > 1.2
    pools = [event.pool for event in rounds(result)]
    assert all(pool is not None for pool in pools)
    assert pools[-1].size > 10  # type: ignore[union-attr]


def test_sampled_runs_follow_the_target_distribution() -> None:
    model, prompt, counts = few_token_model(0), [1, 2, 3, 1, 2], Counter[tuple[int, ...]]()
    settings = GenerationConfig(max_new_tokens=5, do_sample=True, temperature=1.3, top_k=4)
    drafted = 0
    for seed in range(160):
        result = core.run(model, core.Request(prompt, settings, "lookahead", FIXED, seed=seed, top_n=0))
        drafted += sum(len(event.nodes) for event in rounds(result))
        counts[tuple(result.sequences[0][1:3])] += 1
    assert drafted > 160
    shares = _model_shares(model, prompt, 1.3, 4)
    assert p_value(counts, {path: share for path, share in shares.items() if share > 0}) > ALARM


def test_pool_keeps_the_latest_ngrams_per_token() -> None:
    pool = NgramStore(2)
    assert [pool.add(ngram) for ngram in ((1, 2, 3), (1, 4, 5), (1, 2, 3), (1, 6, 7), (8, 9, 9))] == [
        True, True, False, True, True,
    ]  # fmt: skip
    assert list(pool.continuations(1)) == [(6, 7), (2, 3)]
    assert len(pool) == 3
    drafter = LookaheadDrafter(2, 3, 4, True)
    branch = drafter.propose(SpeculationText([5, 6, 7, 5, 6, 8, 5, 6], torch.device("cpu")), RoundPlan(2, keeps_q=True))
    assert branch is not None
    assert (branch.ids, branch.parents) == ([8, 5, 7, 5], [0, 1, 0, 3])


def test_encoder_decoder_is_refused_and_the_pool_is_explained() -> None:
    with pytest.raises(StrategyError, match="order"):
        core.run(tiny.shared("t5"), core.Request(tiny.prompt(), config(), "lookahead"))
    pool = NgramPool(41, tuple((f" a{n}", " b") for n in range(7)))
    event = DraftRound(0, 0, (), (), -1, "", "none", 0.0, 0.0, 0.0, 2, pool=pool)
    for each in depth.DEPTHS:
        with depth.depth_context(each):
            reported = core.explain_pool(event)
            assert "41" in reported
            assert "a4 b" in reported
            assert "a5 b" not in reported
            assert "and 2 more" in reported
