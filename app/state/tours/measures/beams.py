"""Figures of a search, and of several texts of one run."""

from __future__ import annotations

from itertools import takewhile

from app.state.run import Run
from app.state.tours.measures.measure import measure
from app.state.tours.tour_numbers import MeasureValue
from core.events import BeamCandidate


def _words_of_texts(run: Run) -> list[list[str]]:
    """The words of every text."""
    written = run.finished.texts if run.finished else [sequence.text for sequence in run.sequences]
    return [text.split() for text in written if text.strip()]


@measure("count")
def texts(run: Run) -> MeasureValue:
    """How many texts it wrote."""
    return len(_words_of_texts(run))


@measure("count")
def first_words(run: Run) -> MeasureValue:
    """How many different words its texts begin with."""
    return len({words[0] for words in _words_of_texts(run)})


@measure("count")
def common_start(run: Run) -> MeasureValue:
    """How many words all its texts begin with alike."""
    columns = zip(*_words_of_texts(run), strict=False)
    return sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, columns))


@measure("count")
def ways_on(run: Run) -> MeasureValue:
    """How many different words follow where its texts are no longer alike; an end counts as one."""
    texts, start = _words_of_texts(run), common_start(run)
    assert isinstance(start, int)
    return len({tuple(words[start : start + 1]) for words in texts})


@measure("count", may_be_missing=True)
def shortest(run: Run) -> MeasureValue:
    """Words of its shortest text."""
    return min(map(len, _words_of_texts(run)), default=None)


def _candidates(run: Run) -> list[BeamCandidate]:
    return [one for step in run.beams.steps for one in step.candidates] if run.beams else []


@measure("count")
def considered(run: Run) -> MeasureValue:
    """Continuations that the search looked at."""
    return len(_candidates(run))


@measure("count")
def pruned(run: Run) -> MeasureValue:
    """How many of them it gave up."""
    return sum(one.fate == "pruned" for one in _candidates(run))


@measure("count", may_be_missing=True)
def pruned_node(run: Run) -> MeasureValue:
    """The likeliest continuation that was given up."""
    lost = [one for one in _candidates(run) if one.fate == "pruned"]
    return max(lost, key=lambda one: one.probability).node if lost else None


@measure("token", may_be_missing=True)
def node_piece(run: Run, node: int) -> MeasureValue:
    """The token of a node."""
    return next((one.piece for one in _candidates(run) if one.node == node), None)


@measure("share", may_be_missing=True)
def node_chance(run: Run, node: int) -> MeasureValue:
    """Its probability behind the text before it."""
    return next((one.probability for one in _candidates(run) if one.node == node), None)


@measure("count", may_be_missing=True)
def paid_node(run: Run) -> MeasureValue:
    """Diverse search: the first continuation that paid for a token which another group had just taken."""
    return next((one.node for one in _candidates(run) if one.diversity_penalty > 0), None)


@measure("decimal", may_be_missing=True)
def paid_at(run: Run, node: int) -> MeasureValue:
    """Diverse search: what it paid."""
    return next((one.diversity_penalty for one in _candidates(run) if one.node == node), None)
