"""Pauses of speculation: plain steps in one batch change neither the text nor the schedules."""

from __future__ import annotations

import random
import threading

import pytest
import torch

from decodescope import core
from decodescope.core.decoding.speculation import speculation_factory
from decodescope.core.decoding.speculation.auto_length import AutoLength
from decodescope.core.decoding.speculation.drafter_selection import BestDrafterSelector, MergeAllDrafters
from decodescope.core.decoding.speculation.drafters.base import SpeculationText
from decodescope.core.decoding.speculation.drafters.prompt_lookup_drafter import PromptLookupDrafter
from decodescope.core.decoding.speculation.round_plan import ConstantLength, DraftLengthSchedule, RoundPlan, RoundResult
from decodescope.core.decoding.speculation.tree import Branch, merge_branches
from decodescope.core.decoding.speculation.tree_passes import VerifyCost
from decodescope.core.decoding.speculation.verification import VerifiedPath
from decodescope.core.events import TokenChosen
from tests.core import tiny
from tests.core.spec_models import chosen_tokens, config, greedy, rounds, similar_model

COST = VerifyCost((1, 32), (1.0, 1.9))
PAUSE = 5


class PausingLength(ConstantLength):
    """A schedule with five plain steps after every draft, during which no length is requested."""

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self._left = 0

    def length(self) -> int:
        assert not self._left, "asked in a pause"
        self._left = PAUSE
        return super().length()

    def remaining_pause(self) -> int:
        return self._left

    def consume_pause(self, steps: int) -> None:
        self._left -= steps


def _update_with_rejected_draft(schedule: DraftLengthSchedule, length: int) -> None:
    tree = merge_branches(0, [Branch.chain([1] * length, [0.1] * length)])
    schedule.update(RoundResult(tree, VerifiedPath([], 0, False), length, length / 8, 1.0))


def _lengths_step_by_step(schedule: AutoLength, steps: int) -> list[int]:
    lengths: list[int] = []
    for _ in range(steps):
        lengths.append(schedule.length())
        _update_with_rejected_draft(schedule, lengths[-1]) if lengths[-1] else schedule.update_plain(1.0, 0.0)
    return lengths


def _lengths_between_pauses(schedule: AutoLength, steps: int) -> list[int]:
    asking, lengths = MergeAllDrafters(1, schedule), list[int]()
    while len(lengths) < steps:
        rest = asking.take_pause()
        for _ in range(rest):
            schedule.update_plain(1.0, 0.0)
        lengths += [0] * rest
        lengths.append(schedule.length())
        _update_with_rejected_draft(schedule, lengths[-1])
    return lengths[:steps]


def test_batched_pauses_equal_step_by_step_pauses() -> None:
    one, other = AutoLength(COST, {}, "test"), AutoLength(COST, {}, "test")
    lengths = _lengths_step_by_step(one, 400)
    assert 0 in lengths
    assert _lengths_between_pauses(other, 400) == lengths


def test_several_drafters_pause_until_the_first_resumes() -> None:
    one, other = PausingLength(3), PausingLength(3)
    chooser = BestDrafterSelector([one, other], COST, None)
    assert chooser.take_pause() == 0
    one.length(), other.length()
    one.consume_pause(2)
    assert chooser.take_pause() == 3
    assert (one.remaining_pause(), other.remaining_pause()) == (0, 2)
    assert chooser.take_pause() == 0
    assert other.remaining_pause() == 2


@pytest.mark.parametrize("sampling", [{}, {"do_sample": True, "top_k": 1}], ids=["greedy", "dice"])
def test_run_with_pauses_equals_greedy_decoding(monkeypatch: pytest.MonkeyPatch, sampling: dict[str, object]) -> None:
    monkeypatch.setattr(speculation_factory, "ConstantLength", PausingLength)
    model, options = tiny.shared("llama"), {"schedule": "constant"}
    request = core.Request(tiny.prompt(), config(**sampling), "assisted", options, drafters=[similar_model("llama")])
    result = core.run(model, request)
    assert result.sequences[0] == greedy(model)
    begins = [event.step for event in rounds(result)]
    assert begins[0] == 1
    for event, after in zip(rounds(result), begins[1:], strict=False):
        assert after == event.step + len(event.accepted) + 1 + PAUSE
    drafted = {step for event in rounds(result) for step in range(event.step, event.step + len(event.accepted) + 1)}
    plain = [token for token in chosen_tokens(result) if token.step not in drafted]
    assert len(plain) > PAUSE
    assert {token.origin for token in plain} == {chosen_tokens(result)[0].origin}
    assert result.metrics.verify_seconds


def test_a_pause_ends_where_the_text_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """End a run during a pause, by the length limit and by Stop."""
    monkeypatch.setattr(speculation_factory, "ConstantLength", PausingLength)
    model, options, drafts = tiny.shared("llama"), {"schedule": "constant"}, [similar_model("llama")]
    whole = greedy(model)
    for limit in range(2, 12):
        request = core.Request(tiny.prompt(), config(max_new_tokens=limit), "assisted", options, drafters=drafts)
        assert core.run(model, request).sequences[0] == whole[:limit]
    request = core.Request(tiny.prompt(), config(), "assisted", options, drafters=drafts)
    first, *_ = rounds(core.run(model, request))
    in_pause, cancel, seen = first.step + len(first.accepted) + 2, threading.Event(), list[int]()
    for event in core.stream(model, request, cancel):
        if isinstance(event, TokenChosen):
            seen.append(event.id)
            cancel.set() if event.step == in_pause else None
    assert seen == whole[: len(seen)]
    assert in_pause < len(seen) <= in_pause + 3  # the step that was begun, and its pair


def _matches(ids: list[int], longest: int) -> tuple[int | None, int]:
    """By looking: where the longest n-gram at the end went on the last time."""
    for size in range(longest, 0, -1):
        places = [place for place in range(size, len(ids)) if ids[place - size : place] == ids[-size:]]
        if places:
            return places[-1], size
    return None, 0


def test_lookup_equals_a_linear_text_search() -> None:
    dice = random.Random(0)
    for longest in (1, 2, 3, 5):
        drafter, text = PromptLookupDrafter([], longest, 4), SpeculationText([dice.randrange(6)], torch.device("cpu"))
        for _ in range(120):
            branch = drafter.propose(text, RoundPlan(1))
            place, _size = _matches(text.ids, longest)
            assert branch is not None
            assert branch.ids == ([] if place is None else [text.ids[place]])
            text.extend([dice.randrange(6)])
