"""Choice between drafters by measured speed: the drafter used, the reason, and an unchanged text."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest
from transformers import GenerationConfig

from decodescope import core
from decodescope.core.decoding.speculation import speculation_loop as frame
from decodescope.core.decoding.speculation import tree_passes
from decodescope.core.decoding.speculation.drafter_selection import BestDrafterSelector
from decodescope.core.decoding.speculation.round_plan import ConstantLength, RoundResult
from decodescope.core.decoding.speculation.tree import Branch, merge_branches
from decodescope.core.decoding.speculation.tree_passes import VerifyCost
from decodescope.core.decoding.speculation.verification import VerifiedPath
from decodescope.core.events import DrafterChoice, DraftRound
from decodescope.resources import depth
from tests.core import tiny
from tests.core.spec_models import config, few_token_model, greedy, rounds, similar_model
from tests.core.spec_tables import p_value
from tests.core.test_spec_lossless import ALARM, _model_shares

CHOOSE = {"several": "choose", "with_lookup": True}
FLAT = VerifyCost((1, 32), (1.0, 1.0))


def _outcome(accepted: int, seconds: float) -> RoundResult:
    tree = merge_branches(0, [Branch.chain([1, 2, 3, 4], [0.9] * 4)])
    return RoundResult(tree, VerifiedPath(list(range(1, accepted + 1)), 0, accepted == 4), 4, seconds, 1.0)


def _play(chooser: BestDrafterSelector, accepted: list[int], seconds: list[float], plays: int) -> Counter[int]:
    requested: Counter[int] = Counter()
    for _ in range(plays):
        group = chooser.ranked_groups()[0]
        (number,) = group.drafters
        requested[number] += 1
        chooser.update(group, _outcome(accepted[number], seconds[number]))
    return requested


def _chooser(shares: list[float] | None = None, count: int = 3) -> BestDrafterSelector:
    return BestDrafterSelector([ConstantLength(4) for _ in range(count)], FLAT, shares)


def test_best_drafter_is_used_most_and_others_are_still_tried() -> None:
    requested = _play(_chooser(), [1, 4, 3], [0.5, 0.5, 0.5], 120)
    assert requested[1] > 80
    assert min(requested.values()) >= 2
    assert requested[2] > requested[0]


def test_choice_uses_measured_time_or_given_weights() -> None:
    slow = [0.2, 5.0]
    assert _play(_chooser(None, 2), [3, 3], slow, 60)[0] > 50
    assert _play(_chooser([0.5, 0.02], 2), [3, 3], slow, 60)[1] > 50


def test_drafter_that_improves_is_selected() -> None:
    chooser = _chooser(None, 2)
    _play(chooser, [4, 0], [0.2, 0.2], 30)
    assert _play(chooser, [0, 4], [0.2, 0.2], 60)[1] > 40


def _run(settings: dict[str, Any] | None = None, **request: Any) -> core.Result:
    drafts = [similar_model("llama"), similar_model("llama", 5, 0.4)]
    made = core.Request(tiny.prompt(), config(**settings or {}), "assisted", CHOOSE, drafters=drafts, **request)
    return core.run(tiny.shared("llama"), made)


def test_rounds_report_the_selected_drafter() -> None:
    result = _run()
    assert result.sequences[0] == greedy(tiny.shared("llama"))
    times = Counter[int]()
    for event in rounds(result):
        choice = event.choice
        assert choice is not None
        assert {node.drafter for node in event.nodes} == {choice.asked}
        assert choice.times == tuple(times[number] for number in range(3))
        assert not choice.is_counted
        times[choice.asked] += 1
    alone = core.Request(tiny.prompt(), config(), "assisted", {"several": "choose"}, drafters=[similar_model("llama")])
    assert {event.choice for event in rounds(core.run(tiny.shared("llama"), alone))} == {None}


def test_sampled_runs_choose_drafters_without_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    dice = {"do_sample": True, "temperature": 1.5}
    first = _run(dice, seed=1)
    assert all(event.choice is not None and event.choice.is_counted for event in rounds(first))
    clock = itertools.count()
    monkeypatch.setattr(tree_passes, "pricing_clock", lambda _device: lambda: float(next(clock) ** 2 % 7919))
    monkeypatch.setattr(frame, "pricing_clock", tree_passes.pricing_clock)
    again = _run(dice, seed=1)
    assert again.sequences == first.sequences
    assert [event.choice for event in rounds(again)] == [event.choice for event in rounds(first)]


@pytest.mark.slow
def test_sampled_runs_follow_the_target_distribution() -> None:
    model, drafts = few_token_model(0), [few_token_model(1), few_token_model(2)]
    prompt, counts = [1, 2, 3, 1, 2], Counter[tuple[int, ...]]()
    settings = GenerationConfig(max_new_tokens=5, do_sample=True, temperature=1.3, top_k=4)
    options = {**CHOOSE, "schedule": "constant"}
    for seed in range(160):
        request = core.Request(prompt, settings, "assisted", options, seed=seed, top_n=0, drafters=drafts)
        counts[tuple(core.run(model, request).sequences[0][1:3])] += 1
    shares = _model_shares(model, prompt, 1.3, 4)
    assert p_value(counts, {path: share for path, share in shares.items() if share > 0}) > ALARM


CHOICES = {
    "best": DrafterChoice(0, "best", (2.25, 1.5), (4, 2)),
    "untried": DrafterChoice(1, "untried", (2.25, 0.0), (4, 1)),
    "retried": DrafterChoice(1, "retried", (2.25, 1.5), (9, 2)),
    "silent": DrafterChoice(1, "silent", (2.25, 1.5), (4, 2), (0,), True),
}


@pytest.mark.parametrize("name", CHOICES)
def test_choice_is_explained_at_every_depth(name: str) -> None:
    choice = CHOICES[name]
    event = DraftRound(0, 0, (), (), -1, "", "none", 0.0, 0.0, 0.0, 4, choice)
    reported = {}
    for each in depth.DEPTHS:
        with depth.depth_context(each):
            reported[each] = core.explain_choice(event, ("small", "text"))
            assert ("(small)", "(text)")[choice.asked] in reported[each]
    usual, exact = reported["usual"], reported["exact"]
    assert ("2.25" in usual) == (name == "best")
    assert ("1 time" in usual) == (name == "untried")
    assert ("(small) has been faster" in usual) == (name == "retried")
    assert ("proposed nothing" in usual) == (name == "silent")
    assert ("(text) 1.50" in exact) == (name != "untried")
    assert ("counted)" in exact) == (name == "silent")
    assert core.explain_choice(DraftRound(0, 0, (), (), -1, "", "none", 0.0, 0.0, 0.0, 4)) == ""
