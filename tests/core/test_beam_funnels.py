"""Stages of the distributions after beams, in events, recordings and the tokens of the window."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import RepetitionPenaltyLogitsProcessor

from decodescope import core
from decodescope.app.state.beam_tree import BeamTree
from decodescope.core.events import BeamCandidate, BeamStep, Stage
from tests.core import tiny

PROMPT = tiny.prompt()
PENALTY, BANNED = 1.7, [5, 9, 11]
SETTINGS = {"num_beams": 3, "max_new_tokens": 5, "repetition_penalty": PENALTY, "suppress_tokens": BANNED}


def steps_of(settings: dict[str, object], top_n: int = 10) -> list[BeamStep]:
    result = core.run(tiny.shared("llama"), core.Request(PROMPT, settings, top_n=top_n))
    return [event for event in result.events if isinstance(event, BeamStep)]


def texts(steps: list[BeamStep]) -> dict[int, list[int]]:
    """Return the ids of the path to each node."""
    found: dict[int, list[int]] = {0: []}
    for candidate in (one for step in steps for one in step.candidates):
        found[candidate.node] = [*found[candidate.parent], candidate.id]
    return found


def funnels(step: BeamStep) -> list[tuple[int, tuple[Stage, ...]]]:
    return [(one.parent, one.stages) for one in step.funnels]


def children(step: BeamStep, parent: int) -> list[BeamCandidate]:
    return [one for one in step.candidates if one.parent == parent]


@torch.inference_mode()
def test_funnel_of_each_beam_is_that_of_its_distribution() -> None:
    model, steps = tiny.shared("llama"), steps_of(SETTINGS)
    paths, penalize = texts(steps), RepetitionPenaltyLogitsProcessor(PENALTY)
    for step in steps:
        assert {one.parent for one in step.funnels} == {one.parent for one in step.candidates}
        for parent, stages in funnels(step):
            ids = torch.tensor([[*PROMPT, *paths[parent]]])
            raw = torch.log_softmax(model.model(ids).logits[:, -1].float(), -1)
            penalized = penalize(ids, raw)
            banned = penalized.clone()
            banned[:, BANNED] = -torch.inf
            assert [stage.name for stage in stages] == ["raw", "repetition_penalty", "suppress_tokens"]
            for stage, scores in zip(stages, (raw, penalized, banned), strict=True):
                shares = scores.softmax(-1)[0]
                assert stage.survivors == int(scores.isfinite().sum())
                assert [share for _, share in stage.top] == pytest.approx(shares.topk(10).values.tolist(), abs=1e-5)
            for one in children(step, parent):
                assert one.probability == pytest.approx(float(banned.softmax(-1)[0, one.id]), abs=1e-5)


def test_no_funnel_without_stages_or_tracing() -> None:
    assert all(step.funnels == () for step in steps_of({"num_beams": 3, "max_new_tokens": 3}))
    assert all(step.funnels == () for step in steps_of(SETTINGS, top_n=0))


def test_diversity_penalty_is_a_stage_of_later_groups() -> None:
    settings = {"num_beams": 4, "num_beam_groups": 2, "diversity_penalty": 0.5, "max_new_tokens": 3, "do_sample": False}
    for step in steps_of(settings):
        for _, stages in funnels(step):
            assert [(stage.name, stage.value) for stage in stages] == [("raw", None), ("diversity_penalty", 0.5)]
        groups = {one.parent: one.group for one in step.candidates}
        changed = {groups[parent]: stages[0].top != stages[1].top for parent, stages in funnels(step)}
        assert changed[1], "the second group is penalized for the choices of the first"


def test_funnels_are_recorded_and_read_again(tmp_path: Path) -> None:
    request = core.Request(PROMPT, SETTINGS)
    events = list(core.record(tmp_path / "a.decodescope", core.stream(tiny.shared("llama"), request), request))
    assert list(core.replay(tmp_path / "a.decodescope")) == events


def test_token_of_a_beam_has_the_funnel_of_its_parent() -> None:
    tree = BeamTree()
    for step in steps_of(SETTINGS):
        tree.append(step)
    tokens = tree.tokens(tree.leader(len(tree.steps)))
    assert [[stage.name for stage in token.funnel] for token in tokens] == [
        ["raw", "repetition_penalty", "suppress_tokens"]
    ] * len(tokens)
