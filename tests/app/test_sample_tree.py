"""Samples merged into one tree: counts, fractions, order, growth; by hand and for random texts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from decodescope import core
from decodescope.app.state.run import Run
from decodescope.app.state.sample_tree import ROOT, SampleTree, has_samples, list_samples, make_samples_request
from decodescope.app.state.worker_messages import LoadRequest, RunRequest
from decodescope.core.events import SequenceFinished
from tests.core import tiny
from tests.ui.scripted import started, token

TEXTS = (("a", "b", "c"), ("a", "b", "d"), ("x",), ("a", "e"), ("a", "b", "c"))


def run_of(texts: Sequence[Sequence[str]], ended: bool = True) -> Run:
    run = Run(RunRequest("Once", strategy="sampling", options={"seed_each": True}, seed=40))
    run.apply([started(sequences=len(texts))])
    for step in range(max(map(len, texts), default=0)):
        for number, text in enumerate(texts):
            if step < len(text):
                run.apply([token(step, text[step], sequence=number)])
            if ended and step == len(text) - 1:
                run.apply([SequenceFinished(number, "eos")])
    if ended:
        run.apply([SequenceFinished(number, "eos") for number, text in enumerate(texts) if not text])
    return run


def grown(texts: Sequence[Sequence[str]]) -> SampleTree:
    sample_tree = SampleTree()
    sample_tree.update(run_of(texts))
    return sample_tree


def test_tree_of_samples_matches_hand_computed_counts() -> None:
    sample_tree = grown(TEXTS)
    reported = [(n.id, n.parent, n.text, n.count, n.samples) for n in sample_tree.nodes]
    assert reported == [
        (1, 0, "a", 4, (0, 1, 3, 4)),
        (2, 0, "x", 1, (2,)),
        (3, 1, "b", 3, (0, 1, 4)),
        (4, 1, "e", 1, (3,)),
        (5, 3, "c", 2, (0, 4)),
        (6, 3, "d", 1, (1,)),
    ]
    assert sample_tree.fraction(1) == 0.8
    assert sample_tree.fraction(ROOT) == 1.0
    assert sample_tree.text(5) == "abc"
    assert dict(sample_tree.endings()) == {2: 1, 4: 1, 5: 2, 6: 1}
    with pytest.raises(KeyError):
        sample_tree.node(7)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.lists(st.sampled_from("abc"), max_size=5), min_size=1, max_size=12))
def test_counts_add_up_for_any_texts(texts: list[list[str]]) -> None:
    sample_tree = grown(texts)
    assert sum(sample_tree.endings().values()) == len(texts)
    ends = sample_tree.endings()
    for node in sample_tree.nodes:
        assert node.count == ends.get(node.id, 0) + sum(child.count for child in sample_tree.children(node.id))
        assert [child.count for child in sample_tree.children(node.id)] == sorted(
            (child.count for child in sample_tree.children(node.id)), reverse=True
        )
    for number, text in enumerate(texts):
        assert sample_tree.text(sample_tree.end_of(number)) == "".join(text)


def test_incremental_updates_add_whole_depths_and_equal_full_tree() -> None:
    whole, run, sample_tree = grown(TEXTS), run_of(TEXTS), SampleTree()
    part = Run(run.request)
    sizes = []
    for event in run.events:
        part.apply([event])
        sample_tree.update(part)
        assert sum(sample_tree.endings().values()) == part.started.sequences if part.started else True
        sizes.append(len(sample_tree.nodes))
    assert repr(sample_tree.nodes).encode() == repr(whole.nodes).encode()
    assert set(sizes) == {0, 2, 4, 6}, "a depth comes when every text is there"


def test_the_same_seeds_grow_the_same_tree() -> None:
    trees = []
    for _ in range(2):
        run, sample_tree = Run(RunRequest("")), SampleTree()
        config = {"do_sample": True, "max_new_tokens": 12, "num_return_sequences": 8}
        request = core.Request(tiny.prompt(), config, "sampling", {"seed_each": True})
        run.apply(core.stream(tiny.shared("llama"), request))
        sample_tree.update(run)
        trees.append(repr(sample_tree.nodes).encode())
        assert sum(sample_tree.endings().values()) == 8
    assert trees[0] == trees[1]


def test_samples_have_seeds_nodes_and_states() -> None:
    run = run_of(TEXTS)
    sample_tree = SampleTree()
    sample_tree.update(run)
    rows = list_samples(run, sample_tree)
    assert [row.seed for row in rows] == [40, 41, 42, 43, 44]
    assert [row.node for row in rows] == [5, 6, 2, 4, 5]
    assert (rows[2].text, rows[2].length, rows[2].state) == ("x", 1, "finished")
    run.request = RunRequest("Once", strategy="sampling")
    assert list_samples(run, sample_tree)[0].seed is None


def test_make_samples_request_converts_to_sampling() -> None:
    base = RunRequest(
        "Once", strategy="beam_search", config={"max_new_tokens": 30, "num_beams": 4, "repetition_penalty": 1.2},
        load=LoadRequest("storyteller"), seed=5,
    )  # fmt: skip
    request = make_samples_request(base, 64)
    assert (request.strategy, request.seed, request.prompt, request.model) == ("sampling", 5, "Once", "storyteller")
    assert request.settings == {
        "max_new_tokens": 30, "repetition_penalty": 1.2, "num_return_sequences": 64, "seed_each": True,
    }  # fmt: skip
    assert not has_samples(Run(request))
    assert has_samples(run_of(TEXTS))
