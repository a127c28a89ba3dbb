"""Measures of a beam search, and of several sequences of one run."""

from __future__ import annotations

from itertools import takewhile

from decodescope.app.features.tours.state.measures.measure import MeasureValue, measure, measure_parts
from decodescope.app.state.run import Run
from decodescope.core.events import BeamCandidate, DraftNode, DraftRound


def _words_of_texts(run: Run) -> list[list[str]]:
    """Return the words of every text."""
    written = run.finished.texts if run.finished else [sequence.text for sequence in run.sequences]
    return [text.split() for text in written if text.strip()]


@measure("count")
def texts(run: Run) -> MeasureValue:
    """Number of texts."""
    return len(_words_of_texts(run))


@measure("count")
def first_words(run: Run) -> MeasureValue:
    """Number of different first words of the texts."""
    return len({words[0] for words in _words_of_texts(run)})


@measure("count")
def common_start(run: Run) -> MeasureValue:
    """Length of the common prefix of all texts, in words."""
    columns = zip(*_words_of_texts(run), strict=False)
    return sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, columns))


@measure("count")
def ways_on(run: Run) -> MeasureValue:
    """Number of different words after the common prefix; the end of a text counts as one."""
    texts, start = _words_of_texts(run), common_start(run)
    assert isinstance(start, int)
    return len({tuple(words[start : start + 1]) for words in texts})


@measure("count", may_be_missing=True)
def shortest(run: Run) -> MeasureValue:
    """Number of words in the shortest text."""
    return min(map(len, _words_of_texts(run)), default=None)


def _candidates(run: Run) -> list[BeamCandidate]:
    return [one for step in run.beams.steps for one in step.candidates] if run.beams else []


@measure("count")
def considered(run: Run) -> MeasureValue:
    """Number of continuations considered by the search."""
    return len(_candidates(run))


@measure("count")
def pruned(run: Run) -> MeasureValue:
    """Number of pruned continuations."""
    return sum(one.fate == "pruned" for one in _candidates(run))


@measure("ratio", may_be_missing=True)
def pruned_share(run: Run) -> MeasureValue:
    """Fraction of the considered continuations that were pruned."""
    found = _candidates(run)
    return sum(one.fate == "pruned" for one in found) / len(found) if found else None


@measure("count", may_be_missing=True)
def pruned_node(run: Run) -> MeasureValue:
    """Node of the most likely pruned continuation."""
    lost = [one for one in _candidates(run) if one.fate == "pruned"]
    return max(lost, key=lambda one: one.probability).node if lost else None


@measure("count", may_be_missing=True)
def paid_node(run: Run) -> MeasureValue:
    """Diverse beam search: node of the first continuation penalised because another group had just chosen its token."""
    return next((one.node for one in _candidates(run) if one.diversity_penalty > 0), None)


measure_parts(
    lambda run, node: next((one for one in _candidates(run) if one.node == node), None),
    node_piece=("token", "piece"),
    node_chance=("share", "probability"),  # after its prefix
    paid_at=("decimal", "diversity_penalty"),  # diverse beam search
)


def _rounds(run: Run) -> list[DraftRound]:
    return run.rounds.rounds


def _round(run: Run, number: int) -> DraftRound | None:
    return _rounds(run)[number] if 0 <= number < len(_rounds(run)) else None


def _rejected_node(entry: DraftRound | None) -> DraftNode | None:
    """Return the draft token after the accepted ones that the target model rejected."""
    last = entry.accepted[-1] if entry and entry.accepted else 0
    found = (node for node in entry.nodes if node.fate == "refused" and node.parent == last) if entry else iter(())
    return next(found, None)


def _path_count(entry: DraftRound) -> int:
    """Return the number of paths through the draft tree of a round."""
    parents = {node.parent for node in entry.nodes}
    return sum(node.node not in parents for node in entry.nodes)


measure_parts(
    _round,
    drafted_in=("count", lambda entry: len(entry.nodes)),
    accepted_in=("count", lambda entry: len(entry.accepted)),
    added_in=("token", lambda entry: entry.extra_piece if entry.extra_kind != "none" else None),  # the target's own
    last_accepted=("count", lambda entry: entry.accepted[-1] if entry.accepted else None),  # its node
    paths_in=("count", _path_count),
)
measure_parts(
    lambda run, number: _rejected_node(_round(run, number)),
    refused_node=("count", "node"),
    refused_piece=("token", "piece"),
    refused_chance=("share", "target_probability"),
)


@measure("count")
def rounds(run: Run) -> MeasureValue:
    """Number of rounds."""
    return len(_rounds(run))


@measure("count")
def drafted(run: Run) -> MeasureValue:
    """Number of draft tokens in all rounds."""
    return sum(len(entry.nodes) for entry in _rounds(run))


@measure("count")
def accepted(run: Run) -> MeasureValue:
    """Number of accepted draft tokens."""
    return sum(len(entry.accepted) for entry in _rounds(run))


@measure("ratio", may_be_missing=True)
def acceptance(run: Run) -> MeasureValue:
    """Fraction of the draft tokens that were accepted."""
    count = sum(len(entry.nodes) for entry in _rounds(run))
    return sum(len(entry.accepted) for entry in _rounds(run)) / count if count else None


@measure("count")
def draft_models(run: Run) -> MeasureValue:
    """Number of draft models."""
    return len(run.request.draft_names)


@measure("count", may_be_missing=True)
def passes(run: Run) -> MeasureValue:
    """Number of forward passes of the target model."""
    return run.finished.metrics.target_passes if run.finished else None


@measure("count", may_be_missing=True)
def passes_without_drafts(run: Run) -> MeasureValue:
    """Number of forward passes of the target model without drafts, including the prefill."""
    return run.finished.metrics.target_passes - len(_rounds(run)) if run.finished else None


@measure("place", may_be_missing=True)
def good_round(run: Run) -> MeasureValue:
    """First round in which a whole path was accepted."""
    return next((entry.round for entry in _rounds(run) if entry.extra_kind == "bonus" and entry.accepted), None)


@measure("place", may_be_missing=True)
def refusing_round(run: Run) -> MeasureValue:
    """First round in which a draft token was rejected and replaced by the target model's own."""
    found = (n for n, entry in enumerate(_rounds(run)) if entry.extra_kind == "correction" and _rejected_node(entry))
    return next(found, None)


@measure("place", may_be_missing=True)
def saved_round(run: Run) -> MeasureValue:
    """First round in which the accepted path leaves the draft's top choices: a single chain would have been
    rejected.
    """
    for n, entry in enumerate(_rounds(run)):
        if entry.accepted and any(_is_second_guess(entry, node) for node in entry.accepted):
            return n
    return None


@measure("count", may_be_missing=True)
def second_guess(run: Run, number: int) -> MeasureValue:
    """Node on the accepted path of a round that was not the draft model's top choice."""
    entry = _round(run, number)
    found = (node for node in entry.accepted if _is_second_guess(entry, node)) if entry else iter(())
    return next(found, None)


@measure("token", may_be_missing=True)
def drafted_piece(run: Run, number: int, node: int) -> MeasureValue:
    """Token of a draft node."""
    entry = _round(run, number)
    return next((one.piece for one in entry.nodes if one.node == node), None) if entry else None


def _is_second_guess(entry: DraftRound, number: int) -> bool:
    """Return whether the draft model gave a sibling of that node a higher probability."""
    node = next(one for one in entry.nodes if one.node == number)
    return any(one.parent == node.parent and one.draft_probability > node.draft_probability for one in entry.nodes)
