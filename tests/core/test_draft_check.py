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


def test_draft_acceptance_is_the_overlap_of_both_distributions(storyteller: core.LoadedModel) -> None:
    draft = core.load("storyteller-draft")
    found = core.check_draft(storyteller, draft, REQUEST)
    assert [row.id for row in found] == core.run(storyteller, REQUEST).sequences[0]
    rows = {row.rule: row for row in found.effects}
    assert rows["sampled"].distance == pytest.approx(0.0, abs=1e-9)
    assert rows["sampled"].accepted == pytest.approx(found.accepted)
    prompt = core.encode(storyteller, REQUEST.prompt)
    texts = [core.score(one, [found[0].id], storyteller.vocabulary, given=prompt) for one in (storyteller, draft)]
    shares = [{one.id: one.raw_probability for one in text[0].alternatives} for text in texts]
    overlap = sum(min(shares[0][token], shares[1].get(token, 0.0)) for token in shares[0])
    assert found[0].accepted == pytest.approx(overlap, abs=1e-4)


def test_same_model_as_draft_is_always_accepted_without_findings(storyteller: core.LoadedModel) -> None:
    found = core.check_draft(storyteller, storyteller, REQUEST)
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


def test_drafts_of_other_tokenizers_and_strategies_are_refused(storyteller: core.LoadedModel) -> None:
    with pytest.raises(ComparisonError):
        core.check_draft(storyteller, models.make("llama"), REQUEST)
    with pytest.raises(StrategyError):
        core.check_draft(storyteller, storyteller, core.Request("Once", {"num_beams": 2}))


def test_head_is_checked_with_every_layer_and_reads_the_best_one(storyteller: core.LoadedModel) -> None:
    request = core.Request("Once upon a time, there was a little fox named Mia.", {"max_new_tokens": 16})
    found = core.check_draft(storyteller, "storyteller-eagle", request)
    assert [row.layer for row in found.layers] == list(range(storyteller.layers + 1))
    assert found.layers[-1].accepted == pytest.approx(found.accepted)
    assert found.accepted == max(row.accepted for row in found.layers) > 0.5
    assert found.findings == ()
    assert len(found) == 16


def test_head_drafts_are_those_of_a_run(storyteller: core.LoadedModel) -> None:
    """Without a choice, the head's likeliest token is the draft of each round with one token."""
    request = core.Request(
        "Once upon a time, there was a little fox named Mia.", {"max_new_tokens": 12, "num_assistant_tokens": 1},
        strategy="prediction_heads",
        options={"draft_head": "storyteller-eagle"},
    )  # fmt: skip
    plain = core.Request(request.prompt, {"max_new_tokens": 12})
    found = core.check_draft(storyteller, "storyteller-eagle", plain)
    agreed = {row.position: row.likeliest_agrees for row in found}
    rounds = [event for event in core.stream(storyteller, request) if isinstance(event, core.events.DraftRound)]
    assert len(rounds) > 4
    for one in rounds[:-1]:
        assert agreed[one.step] == (len(one.accepted) == 1), one.step


def test_head_made_for_another_layer_is_named_with_the_gain(
    storyteller: core.LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: what the head calls the last layer is the output of the layer before."""
    network, read = storyteller.model, storyteller.model.forward

    def shifted(*arguments: Any, **more: Any) -> Any:
        output = read(*arguments, **more)
        if output.hidden_states is not None:
            *before, last = output.hidden_states
            output.hidden_states = (*before[:-1], last, before[-1])
        return output

    monkeypatch.setattr(network, "forward", shifted)
    found = core.check_draft(storyteller, "storyteller-eagle", core.Request("Once upon a time", {"max_new_tokens": 16}))
    assert found.accepted < 0.5
    (sentence,) = found.findings
    assert sentence.startswith(f"Layer {storyteller.layers} is read. Layer {storyteller.layers - 1} would be accepted")


def test_head_of_another_model_is_refused_by_name(storyteller: core.LoadedModel) -> None:
    with pytest.raises(StrategyError):
        core.check_draft(models.make("llama"), "storyteller-eagle", core.Request([1, 5, 7], {"max_new_tokens": 4}))
    with pytest.raises(StrategyError, match="storyteller"):
        core.check_draft(storyteller, "", REQUEST)
