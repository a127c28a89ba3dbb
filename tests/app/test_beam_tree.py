"""The beams of a run: paths, leaders, lead changes, the table of hypotheses, and the texts that a Run shows."""

from __future__ import annotations

import math

import pytest

from decodescope.app.state.beam_tree import BeamTree, divergence_index
from decodescope.core.events import BeamCandidate, BeamsRanked, BeamStep, Hypothesis, SequenceFinished
from tests.ui.beams import beam_run, beam_steps


def candidate(node: int, parent: int, word: str, fate: str = "kept", normalized: float = -1.0, **more: object):
    """Return a candidate; values that a test does not set are filled in."""
    fields = {"node": node, "parent": parent, "id": node, "piece": word, "probability": 0.5, "log_probability": -0.69,
              "score": normalized, "normalized": normalized, "rank": 1, "fate": fate, "raw_probability": 0.4,
              "raw_log_probability": -0.92, "raw_rank": 2, "entropy": 1.5, "text": word}  # fmt: skip
    return BeamCandidate(**(fields | more))  # type: ignore[arg-type]


def small_tree() -> BeamTree:
    """a leads, then b's child does, then a's other grandchild ends the text."""
    tree = BeamTree()
    tree.append(BeamStep(0, (candidate(1, 0, "a", normalized=-0.5), candidate(2, 0, "b", normalized=-0.7)), 1, 0.1))
    tree.append(BeamStep(1, (candidate(3, 2, "c", normalized=-0.6), candidate(4, 1, "d", normalized=-0.8),
                             candidate(5, 1, "e", "pruned", -2.0)), 3, 0.1))  # fmt: skip
    tree.append(BeamStep(2, (candidate(6, 4, "<|end|>", "finished", -0.4, text="", ended="eos"),
                             candidate(7, 3, "f", normalized=-0.9)), 6, 0.1))  # fmt: skip
    return tree


def test_token_has_raw_and_processed_probabilities() -> None:
    token = small_tree().tokens(3)[-1]
    assert (token.raw_probability, token.raw_log_probability, token.rank, token.entropy) == (0.4, -0.92, 2, 1.5)
    assert token.probability == 0.5
    assert token.log_probability == pytest.approx(math.log(0.5))
    assert [(item.id, item.raw_probability, item.rank) for item in token.alternatives] == [(3, 0.4, 2)]


def test_path_and_text_of_node() -> None:
    tree = small_tree()
    assert [c.node for c in tree.path(7)] == [2, 3, 7]
    assert tree.text(7) == "bcf"
    assert tree.text(6) == "ad"
    assert tree.path(0) == []


def test_leader_after_each_step() -> None:
    tree = small_tree()
    assert [tree.leader(count) for count in range(5)] == [0, 1, 3, 6, 6]
    assert [c.piece for c in tree.leading_path(2)] == ["b", "c"]


def test_leader_change_is_at_divergence_of_texts() -> None:
    tree = small_tree()
    assert (tree.leader_changes(1), tree.leader_changes(2)) == ([], [0])
    assert tree.leader_changes(3) == [0]
    assert divergence_index(tree.path(3), tree.path(7)) is None
    assert divergence_index(tree.path(4), tree.path(6)) is None
    assert divergence_index(tree.path(7), tree.path(3)) == 2


def test_hypotheses_are_running_and_best_finished_beams() -> None:
    rows = small_tree().hypotheses(3)
    assert [(row.node, row.state, row.length) for row in rows] == [(6, "finished", 3), (7, "running", 3)]
    assert [row.node for row in small_tree().hypotheses(2)] == [3, 4]


def test_finished_hypotheses_are_limited_to_number_of_beams() -> None:
    tree = BeamTree()
    for step in beam_steps(40, beams=3, ends=0.3):
        tree.append(step)
    ended = [row for row in tree.hypotheses(40) if row.state == "finished"]
    assert len(ended) == 3
    every = [c.normalized for step in tree.steps for c in step.candidates if c.fate == "finished"]
    assert sorted((row.score for row in ended), reverse=True) == sorted(every, reverse=True)[:3]


def test_final_ranking_overrides_leader_and_hypotheses() -> None:
    tree = small_tree()
    tree.append(BeamsRanked((Hypothesis(7, (2, 3, 7), "bcf", -2.7, 3, -0.3, False),)))
    assert tree.leader(3) == 7
    assert [(row.text, row.state) for row in tree.hypotheses(3)] == [("bcf", "stopped")]
    assert tree.leader(2) == 3


def test_tokens_have_alternatives_of_their_step() -> None:
    tree = small_tree()
    first, second = tree.tokens(4)
    assert [(t.step, t.piece, t.method) for t in (first, second)] == [(0, "a", "beam"), (1, "d", "beam")]
    assert [a.text for a in second.alternatives] == ["d", "e"]
    assert tree.tokens(6)[-1].special
    assert tree.tokens(4)[0] is tree.tokens(6)[0]
    assert tree.node_of(second) == 4


def test_cursor_shows_text_of_leader_at_that_step() -> None:
    run = beam_run(small_tree().steps)
    assert (run.length, run.cursor, run.text) == (3, 3, "ad")
    assert run.move_cursor(2)
    assert run.text == "bc"
    assert not run.is_following
    run.move_cursor(99)
    assert (run.cursor, run.is_following, run.text) == (3, True, "ad")


def test_cursor_tokens_has_one_token_per_step() -> None:
    run = beam_run(beam_steps(30, ends=0.1))
    assert len(run.cursor_tokens) == run.length == 30


def test_multiple_sequences_are_best_hypotheses_in_order() -> None:
    run = beam_run(beam_steps(8), sequences=3, ranked=True)
    assert run.beams is not None
    wanted = [row.text for row in run.beams.hypotheses(8)][:3]
    assert [sequence.text for sequence in run.sequences] == wanted


def test_tail_is_shown_at_last_step_only() -> None:
    run = beam_run(small_tree().steps)
    run.apply([SequenceFinished(0, "eos", tail="!")])
    assert run.text == "ad!"
    run.move_cursor(1)
    assert run.text == "a"
    run.move_cursor(3)
    assert run.text == "ad!"


def test_tree_has_number_of_groups_and_width() -> None:
    tree = BeamTree()
    for step in beam_steps(3, beams=8, groups=4):
        tree.append(step)
    assert (tree.groups, tree.width) == (4, 2)
