"""A draft model against its target: acceptance, effects of rules, reasons for low acceptance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from decodescope import core
from decodescope.core.decoding.keyed_noise import FloatArray
from decodescope.core.differences import draft_check
from decodescope.core.errors import ComparisonError, StrategyError
from tests.core import tiny as models

REQUEST = core.Request("Once upon a time", {"max_new_tokens": 12, "do_sample": True, "top_k": 0}, seed=2)


@pytest.fixture(scope="module")
def story() -> core.LoadedModel:
    return core.load("storyteller")


def test_draft_acceptance_is_the_overlap_of_both_distributions(story: core.LoadedModel) -> None:
    draft = core.load("storyteller-draft")
    found = core.check_draft(story, draft, REQUEST)
    assert [row.id for row in found] == core.run(story, REQUEST).sequences[0]
    rows = {row.rule: row for row in found.effects}
    assert rows["sampled"].distance == pytest.approx(0.0, abs=1e-9)
    assert rows["sampled"].accepted == pytest.approx(found.accepted)
    prompt = core.encode(story, REQUEST.prompt)
    texts = [core.score(one, [found[0].id], story.vocabulary, given=prompt) for one in (story, draft)]
    shares = [{one.id: one.raw_probability for one in text[0].alternatives} for text in texts]
    overlap = sum(min(shares[0][token], shares[1].get(token, 0.0)) for token in shares[0])
    assert found[0].accepted == pytest.approx(overlap, abs=1e-4)


def test_same_model_as_draft_is_always_accepted_without_findings(story: core.LoadedModel) -> None:
    found = core.check_draft(story, story, REQUEST)
    assert found.accepted == pytest.approx(1.0)
    assert all(row.likeliest_agrees for row in found)
    assert found.findings == ()
    assert max(row.distance for row in found.effects if row.is_lossless) < 1e-9


def test_needless_begin_token_is_found_as_reason_for_low_acceptance(monkeypatch: pytest.MonkeyPatch) -> None:
    """A draft that reads well only without the begin token."""
    model = models.make("llama")
    draft = core.wrap(model.model, None)
    read = draft_check.final_scores

    def disturbed(one: core.LoadedModel, request: core.Request, *more: Any) -> Iterator[FloatArray]:
        if one is not draft:
            return read(one, request, *more)
        ids = [item for item in request.prompt if isinstance(item, int)]
        if ids[0] == 1:
            return (scores[::-1] for scores in read(one, request, *more))
        return read(one, replace(request, prompt=[1, *ids]), *more)

    monkeypatch.setattr(draft_check, "final_scores", disturbed)
    monkeypatch.setattr(draft_check, "LOW_ACCEPTANCE", 0.9)
    request = core.Request([1, 9, 30, 17], {"max_new_tokens": 16, "do_sample": True, "top_k": 0}, seed=1)
    found = core.check_draft(model, draft, request)
    assert found.accepted < 0.9
    assert any("begin token" in sentence for sentence in found.findings), found.findings


def test_drafts_of_other_tokenizers_and_strategies_are_refused(story: core.LoadedModel) -> None:
    with pytest.raises(ComparisonError):
        core.check_draft(story, models.make("llama"), REQUEST)
    with pytest.raises(StrategyError):
        core.check_draft(story, story, core.Request("Once", {"num_beams": 2}))
