"""The automatic draft length: when drafting pauses, how it is tried again, and how wide drafts become."""

from __future__ import annotations

from typing import Any

import pytest

from decodescope import core
from decodescope.core.decoding.speculation.auto_length import AutoLength, SpeedupGate
from decodescope.core.decoding.speculation.round_events import Stopwatch
from decodescope.core.decoding.speculation.round_plan import DraftGate, RoundResult
from decodescope.core.decoding.speculation.tree import Branch, merge_branches
from decodescope.core.decoding.speculation.tree_passes import VerifyCost
from decodescope.core.decoding.speculation.verification import VerifiedPath
from tests.core import tiny
from tests.core.spec_models import config, greedy, outcome, rounds, similar_model

DEAR = VerifyCost((1, 32), (1.0, 1.01))
"""Of a target whose pass takes as long for thirty tokens as for one."""


def _gate(schedule: AutoLength) -> DraftGate:
    assert schedule.gate is not None
    return schedule.gate


def _schedule(memory: dict[str, Any] | None = None) -> AutoLength:
    return AutoLength(VerifyCost((1, 32), (1.0, 1.9)), memory if memory is not None else {}, "test")


def test_auto_pauses_when_drafts_are_useless_and_for_longer_each_time() -> None:
    memory: dict[str, Any] = {}
    schedule, lengths = _schedule(memory), []
    for _ in range(400):
        length = schedule.length()
        lengths.append(length)
        schedule.update(outcome(0, length, 0.1)) if length else schedule.update_plain(1.0, 0.0)
    assert sum(1 for length in lengths if length) < 28
    assert sum(1 for length in lengths[-200:] if length) <= 4
    later = _schedule(memory)
    assert sum(1 for _ in range(8) if later.length()) <= 1


def test_auto_keeps_drafting_while_drafts_are_accepted() -> None:
    schedule = _schedule()
    for _ in range(20):
        length = schedule.length()
        assert length > 0
        schedule.update(outcome(min(length, 6), min(length, 6)))
    gate = _gate(schedule)
    assert gate.should_extend((0.95,), 3)
    assert not gate.should_extend((0.01,), 3)
    assert gate.acceptance(0, 0.92) > 0.9


def test_auto_drafts_longer_where_a_pass_waits_for_the_disk() -> None:
    """Reading takes as long for one token as for forty, and far longer than a drafted token."""
    cost = VerifyCost((1, 32), (1.0, 1.05))
    lengths = {}
    for on_disk in (False, True):
        schedule = AutoLength(cost, {}, "test", on_disk=on_disk)
        for _ in range(10):
            schedule.update(outcome(8, 8, 0.97))
        lengths[on_disk] = (schedule.length(), _gate(schedule).should_extend((0.9,), 40))
    assert lengths == {False: (16, False), True: (48, True)}


def test_target_that_waits_for_the_disk_is_timed_by_wall_clock() -> None:
    for waits in (False, True):
        watch = Stopwatch(lambda: 0.0, waits)
        watch.lap()
        watch.finish()
        assert (watch.lap_cost(0) > 0.0) == waits


def test_auto_calibrates_the_draft_probabilities() -> None:
    """The estimate for a drafter that is always certain and always wrong drops quickly."""
    schedule = _schedule()
    assert _gate(schedule).acceptance(0, 0.95) > 0.9
    for _ in range(10):
        schedule.update(outcome(0, 2, 0.95))
    assert _gate(schedule).acceptance(0, 0.95) < 0.4


def test_auto_widens_when_the_drafter_is_uncertain() -> None:
    schedule = _schedule()
    assert _gate(schedule).child_count(1.0, [0.97, 0.01, 0.01], 0, 0, False) == 1
    assert _gate(schedule).child_count(1.0, [0.4, 0.35, 0.1], 0, 0, False) >= 2


def _schedule_after_rejected_run(memory: dict[str, Any]) -> AutoLength:
    """The schedule of the next run."""
    vain = _schedule(memory)
    for _ in range(300):
        length = vain.length()
        vain.update(outcome(0, length, 0.1)) if length else vain.update_plain(1.0, 0.0)
    return _schedule(memory)


def test_a_later_run_tries_again_at_once_with_one_token() -> None:
    memory: dict[str, Any] = {}
    for _ in range(2):
        later = _schedule_after_rejected_run(memory)
        assert (later.remaining_pause(), later.length()) == (0, 1)
        later.update(outcome(0, 1, 0.1))
        assert later.remaining_pause() == 256


def test_pause_ends_with_a_short_trial_chain() -> None:
    schedule = _schedule_after_rejected_run({})
    assert schedule.length() == 1
    assert _gate(schedule).should_extend((0.01,), 2)
    assert _gate(schedule).child_count(1.0, [0.4, 0.35, 0.2], 0, 1, False) == 1
    schedule.update(outcome(1, 1))
    assert schedule.remaining_pause() == 0
    assert schedule.length() == 16
    assert not _gate(schedule).should_extend((0.01,), 2)


def test_first_round_does_not_determine_the_round_costs() -> None:
    """The prompt is read in its first round, and caches are cold: a hundred times the price."""
    memory: dict[str, Any] = {}
    for _ in range(4):
        schedule = _schedule(memory)
        schedule.update(outcome(3, 4, first=100.0, extra=100.0))
        assert schedule.length() == 16
    for _ in range(3):
        schedule.update(outcome(0, 4, first=100.0, extra=100.0))
    assert schedule.length() == 4, "later rounds say it"
    later = _schedule(memory)
    for _ in range(9):
        later = _schedule(memory)
        later.update(outcome(4, 4))
    assert later.length() == 16, "and a first one may say that it has become less"


def test_auto_compares_the_extra_cost_with_plain_steps() -> None:
    lengths = []
    for plain in (0.0, 1.0):
        schedule = _schedule()
        schedule.update_plain(1.0, plain)
        for _ in range(6):
            schedule.update(outcome(1, 2, extra=2.0))
        lengths.append(schedule.length())
    assert lengths == [4, 16]


def test_auto_pauses_after_rounds_with_less_speedup_than_expected() -> None:
    """A window that rides along costs its rows whether or not it has a guess; the guesses it has are right."""
    schedule, silent = _schedule(), RoundResult(merge_branches(0, [Branch()]), VerifiedPath([], -1, True), 0, 0.0, 3.0)
    for round_ in range(12):
        schedule.update(outcome(3, 3) if round_ % 4 == 0 else silent)
    assert schedule.length() == 4
    assert schedule.remaining_pause() == 8
    for _ in range(8):
        schedule.length()
    for _ in range(9):
        schedule.update(outcome(3, 3))
    assert schedule.length() == 16


def test_drafts_branch_when_a_pass_is_expensive() -> None:
    dear, cheap = AutoLength(DEAR, {}, "test"), AutoLength(VerifyCost((1, 8), (1.0, 2.2)), {}, "test")
    assert (_gate(dear).should_branch(), _gate(cheap).should_branch()) == (True, False)
    memory: dict[str, Any] = {}
    _schedule_after_rejected_run(memory)
    trial = AutoLength(DEAR, memory, "test")
    assert _gate(trial).should_branch()
    assert trial.length() == 1
    assert not _gate(trial).should_branch(), "a trial is of a chain"


@pytest.mark.parametrize("kind", ["llama", "gpt2", "qwen3"])
def test_branching_trees_give_the_greedy_text(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drafts also continue after second choices, likelier children come first, and no token changes."""
    monkeypatch.setattr(SpeedupGate, "should_branch", lambda self: True)
    monkeypatch.setattr(SpeedupGate, "is_worthwhile", lambda self, chance, nodes: nodes < 20)
    monkeypatch.setattr(SpeedupGate, "should_extend", lambda self, chances, nodes: nodes < 20)
    model = tiny.make(kind)
    request = core.Request(tiny.prompt(), config(), "token_tree", drafters=[similar_model(kind, noise=0.5)])
    result = core.run(model, request)
    assert result.sequences[0] == greedy(model)
    trees = [{node.node: node for node in event.nodes} for event in rounds(result)]
    assert trees
    for nodes in trees:
        for node in nodes.values():
            earlier = [other for other in nodes.values() if other.parent == node.parent and other.node < node.node]
            assert all(other.draft_probability >= node.draft_probability for other in earlier)
    assert any(
        node.parent in nodes
        and any(other.parent == nodes[node.parent].parent and other.node < node.parent for other in nodes.values())
        for nodes in trees
        for node in nodes.values()
    ), "somewhere a second choice has children"
