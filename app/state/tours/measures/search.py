"""Figures of a search, and of several texts of one run."""

from __future__ import annotations

from itertools import takewhile

from app.state.run import Run
from app.state.tours.measures.measure import MeasureValue, measure
from core.events import BeamCandidate, DraftNode, DraftRound


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


def _rounds(run: Run) -> list[DraftRound]:
    return run.rounds.rounds


def _round(run: Run, number: int) -> DraftRound | None:
    return _rounds(run)[number] if 0 <= number < len(_rounds(run)) else None


def _rejected_node(entry: DraftRound | None) -> DraftNode | None:
    """The drafted token behind the accepted ones that the target would not have."""
    last = entry.accepted[-1] if entry and entry.accepted else 0
    found = (node for node in entry.nodes if node.fate == "refused" and node.parent == last) if entry else iter(())
    return next(found, None)


@measure("count")
def rounds(run: Run) -> MeasureValue:
    """How many rounds there were."""
    return len(_rounds(run))


@measure("count")
def drafted(run: Run) -> MeasureValue:
    """Drafted tokens of all rounds."""
    return sum(len(entry.nodes) for entry in _rounds(run))


@measure("count")
def accepted(run: Run) -> MeasureValue:
    """Those of them that became text."""
    return sum(len(entry.accepted) for entry in _rounds(run))


@measure("count", may_be_missing=True)
def passes(run: Run) -> MeasureValue:
    """Passes of the large model."""
    return run.finished.metrics.target_passes if run.finished else None


@measure("count", may_be_missing=True)
def passes_without_drafts(run: Run) -> MeasureValue:
    """Passes of the large model that checked no drafts; the first one reads the prompt."""
    return run.finished.metrics.target_passes - len(_rounds(run)) if run.finished else None


@measure("place", may_be_missing=True)
def good_round(run: Run) -> MeasureValue:
    """The first round in which everything on one path was accepted."""
    return next((entry.round for entry in _rounds(run) if entry.extra_kind == "bonus" and entry.accepted), None)


@measure("place", may_be_missing=True)
def refusing_round(run: Run) -> MeasureValue:
    """The first round in which a drafted token was refused and the model's own stood instead."""
    found = (n for n, entry in enumerate(_rounds(run)) if entry.extra_kind == "correction" and _rejected_node(entry))
    return next(found, None)


@measure("count", may_be_missing=True)
def drafted_in(run: Run, number: int) -> MeasureValue:
    """Drafted tokens of a round."""
    entry = _round(run, number)
    return len(entry.nodes) if entry else None


@measure("count", may_be_missing=True)
def accepted_in(run: Run, number: int) -> MeasureValue:
    """Accepted tokens of a round."""
    entry = _round(run, number)
    return len(entry.accepted) if entry else None


@measure("token", may_be_missing=True)
def added_in(run: Run, number: int) -> MeasureValue:
    """The model's own token at the end of a round."""
    entry = _round(run, number)
    return entry.extra_piece if entry and entry.extra_kind != "none" else None


@measure("count", may_be_missing=True)
def refused_node(run: Run, number: int) -> MeasureValue:
    """The node of the refused token of a round."""
    node = _rejected_node(_round(run, number))
    return node.node if node else None


@measure("token", may_be_missing=True)
def refused_piece(run: Run, number: int) -> MeasureValue:
    """The refused token of a round."""
    node = _rejected_node(_round(run, number))
    return node.piece if node else None


@measure("share", may_be_missing=True)
def refused_chance(run: Run, number: int) -> MeasureValue:
    """How likely the large model found it."""
    node = _rejected_node(_round(run, number))
    return node.target_probability if node else None


@measure("count", may_be_missing=True)
def last_accepted(run: Run, number: int) -> MeasureValue:
    """The node of the last accepted token of a round."""
    entry = _round(run, number)
    return entry.accepted[-1] if entry and entry.accepted else None


@measure("count", may_be_missing=True)
def paths_in(run: Run, number: int) -> MeasureValue:
    """How many ways through the tree of a round there are."""
    entry = _round(run, number)
    if entry is None:
        return None
    parents = {node.parent for node in entry.nodes}
    return sum(node.node not in parents for node in entry.nodes)


@measure("place", may_be_missing=True)
def saved_round(run: Run) -> MeasureValue:
    """The first round in which the accepted path leaves the first guess: a single chain would have been refused."""
    for n, entry in enumerate(_rounds(run)):
        if entry.accepted and any(_is_second_guess(entry, node) for node in entry.accepted):
            return n
    return None


@measure("count", may_be_missing=True)
def second_guess(run: Run, number: int) -> MeasureValue:
    """The node on the accepted path of a round that the draft did not put first."""
    entry = _round(run, number)
    found = (node for node in entry.accepted if _is_second_guess(entry, node)) if entry else iter(())
    return next(found, None)


@measure("token", may_be_missing=True)
def drafted_piece(run: Run, number: int, node: int) -> MeasureValue:
    """The token of a drafted node."""
    entry = _round(run, number)
    return next((one.piece for one in entry.nodes if one.node == node), None) if entry else None


def _is_second_guess(entry: DraftRound, number: int) -> bool:
    """Whether a drafted sibling of that node was thought likelier by the draft."""
    node = next(one for one in entry.nodes if one.node == number)
    return any(one.parent == node.parent and one.draft_probability > node.draft_probability for one in entry.nodes)
