"""Figures of speculation: rounds, drafted tokens and what became of them. Rounds count from 0."""

from __future__ import annotations

from app.state.run import Run
from app.state.tours.measures.measure import measure
from app.state.tours.tour_numbers import MeasureValue
from core.events import DraftNode, DraftRound


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
