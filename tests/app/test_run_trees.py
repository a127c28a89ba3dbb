"""Trees of runs: parents, branches, and their descriptions."""

from __future__ import annotations

from dataclasses import replace

from decodescope.app.state.branching import TokenReplacement, make_branch, make_score_request
from decodescope.app.state.run import Run
from decodescope.app.state.run_history import RunTreeEntry, RunTrees, make_entry, parents_first
from decodescope.app.views.branches.view import node_tooltip, report_on, tree_nodes
from decodescope.core.events import PromptToken
from tests.ui.scripted import make_run, started, token


def member(name: str, parent: str = "", **more: object) -> RunTreeEntry:
    return RunTreeEntry(name, parent, 3, name, "greedy", 5, f"text of {name}")._replace(**more)


def branch(parent: Run, place: int, words: str) -> Run:
    """A run that took up the other's text."""
    run = Run(make_branch(parent, TokenReplacement(place, words), parent.request))
    stored = [PromptToken(one.id, one.text) for one in parent.tokens[:place]]
    run.apply([replace(started(), beginning=(*stored, PromptToken(1, words))), token(0, " slept")])
    return run


def test_tree_contains_all_descendants_of_one_run() -> None:
    family = RunTrees()
    for one in (member("a"), member("x"), member("c", "b"), member("b", "a"), member("y", "x")):
        family.add(one)
    assert [one.id for one in parents_first(family.tree_of("b"))] == ["a", "b", "c"]
    assert {one.id for one in family.tree_of("y")} == {"x", "y"}
    assert family.tree_of("nobody") == []


def test_later_entry_replaces_earlier_entry() -> None:
    family = RunTrees()
    family.add(member("a"))
    family.add(member("a", tokens=9))
    assert [one.tokens for one in family.tree_of("a")] == [9]


def test_cyclic_parents_terminate() -> None:
    family = RunTrees()
    family.add(member("a", "b"))
    family.add(member("b", "a"))
    assert len(family.tree_of("a")) <= 2
    assert parents_first([member("a", "b"), member("b", "a")]) == []


def test_branch_excerpt_is_replacement_text() -> None:
    first = make_run([token(0, " fox"), token(1, " named"), token(2, " Mia")])
    second = branch(first, 2, " Leo")
    reported = make_entry(second)
    assert (reported.parent, reported.shared_tokens, reported.excerpt) == (first.id, 2, "Leo")
    assert reported.text == " fox named Leo slept"
    assert make_entry(first).excerpt == "fox named Mia"
    assert make_entry(first).summary == "Greedy · 3 tokens"


def test_tree_nodes_mark_shown_run() -> None:
    first = make_run([token(0, " fox"), token(1, " named")])
    second = branch(first, 1, " called")
    scored = Run(make_score_request(second))
    members = [make_entry(run) for run in (first, second, scored)]
    nodes = tree_nodes(members, second.id)
    assert [(node.parent, node.state) for node in nodes] == [(None, "root"), (0, "best"), (1, "unreached")]
    assert [node.note for node in nodes] == ["first run", "at token 2", "0 tokens"]
    assert "“called”" in report_on(members[1], members[0]).sentence
    assert report_on(members[0], None).sentence.endswith("others branched.")
    assert node_tooltip(members[1]).startswith("called\nat token 2")
