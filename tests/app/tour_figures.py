"""The numbers of tours, computed a second time from a run's events without the program's own code.

`CHECKS` has a function for every measure. It takes the events of one run (two, for a pair) and what else is needed.
Those that go through a text token by token are in `tour_tokens`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from decodescope.app.features.tours.state.tour import TourCondition
from decodescope.core import words
from decodescope.core.events import (
    BeamCandidate,
    BeamStep,
    CacheMeasured,
    CachePlan,
    DraftNode,
    DraftRound,
    Finished,
    RunStarted,
)
from tests.app.tour_tokens import CHECKS, Events, check, chosen

__all__ = ["CHECKS", "holds", "shown"]


def shown(kind: str, value: Any) -> str:
    """Format a value as a sentence of a tour does."""
    if isinstance(value, str):
        return words.quote(value)
    if kind == "place":
        return f"{value + 1:,}"
    if kind == "share":
        return words.percent(value)
    if kind == "ratio":
        return words.percent(value, is_exact=True)
    if kind == "bytes":
        return words.size(value)
    if kind == "degree":
        return words.decimal(value, 2)
    if kind == "bits":
        return words.decimal(value, 1)
    return f"{value:,.0f}" if kind == "count" else f"{value:.6g}"


def holds(condition: TourCondition, values: Mapping[str, Any]) -> bool:
    """Return whether a condition is true of these values."""
    left, right = (values[side] if isinstance(side, str) else side for side in (condition.left, condition.right))
    if left is None or right is None:
        return False
    before, same = left < right, left == right
    return {"<": before, "<=": before or same, ">": not before and not same, ">=": not before, "==": same,
            "!=": not same}[condition.relation]  # fmt: skip


def finished(events: Events) -> Finished:
    """Return the final event of the run."""
    (event,) = (event for event in events if isinstance(event, Finished))
    return event


# Several texts, and searches


def candidates(events: Events) -> list[BeamCandidate]:
    return [one for event in events if isinstance(event, BeamStep) for one in event.candidates]


@check
def texts(events: Events) -> int:
    return len(finished(events).texts)


@check
def first_words(events: Events) -> int:
    return len({text.split()[0] for text in finished(events).texts})


@check
def common_start(events: Events) -> int:
    written = [text.split() for text in finished(events).texts]
    longest = min(map(len, written))
    return max(n for n in range(longest + 1) if all(text[:n] == written[0][:n] for text in written))


@check
def ways_on(events: Events) -> int:
    alike = common_start(events)
    following = [text.split()[alike : alike + 1] for text in finished(events).texts]
    return len({word[0] if word else None for word in following})


@check
def shortest(events: Events) -> int:
    return sorted(len(text.split()) for text in finished(events).texts)[0]


@check
def considered(events: Events) -> int:
    return len(candidates(events))


@check
def pruned(events: Events) -> int:
    return [one.fate for one in candidates(events)].count("pruned")


@check
def pruned_node(events: Events) -> int | None:
    lost = sorted((-one.probability, one.node) for one in candidates(events) if one.fate == "pruned")
    return lost[0][1] if lost else None


@check
def node_piece(events: Events, node: int) -> str:
    return {one.node: one.piece for one in candidates(events)}[node]


@check
def node_chance(events: Events, node: int) -> float:
    return {one.node: one.probability for one in candidates(events)}[node]


@check
def paid_node(events: Events) -> int | None:
    return min((one.node for one in candidates(events) if one.diversity_penalty), default=None)


@check
def paid_at(events: Events, node: int) -> float:
    return {one.node: one.diversity_penalty for one in candidates(events)}[node]


# Drafts


def rounds(events: Events) -> list[DraftRound]:
    return [event for event in events if isinstance(event, DraftRound)]


@check
def passes(events: Events) -> int:
    return finished(events).metrics.target_passes


@check
def passes_without_drafts(events: Events) -> int:
    return passes(events) - sum(isinstance(event, DraftRound) for event in events)


CHECKS["rounds"] = lambda events: len(rounds(events))


@check
def good_round(events: Events) -> int | None:
    good = [one.extra_kind == "bonus" and len(one.accepted) > 0 for one in rounds(events)]
    return good.index(True) if True in good else None


@check
def refusing_round(events: Events) -> int | None:
    corrected = [one.extra_kind == "correction" and refused(one) is not None for one in rounds(events)]
    return corrected.index(True) if True in corrected else None


def refused(entry: DraftRound) -> DraftNode | None:
    end = max(entry.accepted, default=0)
    found = [node for node in entry.nodes if (node.parent, node.fate) == (end, "refused")]
    return found[0] if found else None


@check
def drafted_in(events: Events, number: int) -> int:
    return len([node.id for node in rounds(events)[number].nodes])


@check
def drafted(events: Events) -> int:
    return sum(len(entry.nodes) for entry in events if isinstance(entry, DraftRound))


@check
def accepted(events: Events) -> int:
    return sum(len(entry.accepted) for entry in events if isinstance(entry, DraftRound))


@check
def acceptance(events: Events) -> float | None:
    count = drafted(events)
    return accepted(events) / count if count else None


@check
def draft_models(events: Events) -> int:
    return sum(isinstance(event, RunStarted) and event.strategy == "assisted" for event in events)


@check
def pruned_share(events: Events) -> float | None:
    fates = [one.fate for one in candidates(events)]
    return fates.count("pruned") / len(fates) if fates else None


@check
def accepted_in(events: Events, number: int) -> int:
    return [node.fate for node in rounds(events)[number].nodes].count("accepted")


@check
def added_in(events: Events, number: int) -> str:
    return rounds(events)[number].extra_piece


@check
def last_accepted(events: Events, number: int) -> int | None:
    return max(rounds(events)[number].accepted, default=None)


@check
def refused_node(events: Events, number: int) -> int:
    node = refused(rounds(events)[number])
    assert node is not None
    return node.node


@check
def refused_piece(events: Events, number: int) -> str:
    node = refused(rounds(events)[number])
    assert node is not None
    return node.piece


@check
def refused_chance(events: Events, number: int) -> float:
    node = refused(rounds(events)[number])
    assert node is not None
    return node.target_probability


@check
def paths_in(events: Events, number: int) -> int:
    nodes = rounds(events)[number].nodes
    return len({node.node for node in nodes} - {node.parent for node in nodes})


@check
def saved_round(events: Events) -> int | None:
    """Return a round whose accepted path contains a node that was not the draft's first choice."""
    for n, entry in enumerate(rounds(events)):
        first = {
            parent: max(node.draft_probability for node in entry.nodes if node.parent == parent)
            for parent in {node.parent for node in entry.nodes}
        }
        stored = [node for node in entry.nodes if node.fate == "accepted"]
        if any(node.draft_probability < first[node.parent] for node in stored):
            return n
    return None


@check
def second_guess(events: Events, number: int) -> int:
    entry = rounds(events)[number]
    for node in entry.nodes:
        rivals = [one.draft_probability for one in entry.nodes if one.parent == node.parent]
        if node.fate == "accepted" and node.draft_probability < max(rivals):
            return node.node
    raise AssertionError("every accepted token was a first guess")


@check
def drafted_piece(events: Events, number: int, node: int) -> str:
    return {one.node: one.piece for one in rounds(events)[number].nodes}[node]


# The cache


def cache(events: Events) -> list[CacheMeasured]:
    return [event for event in events if isinstance(event, CacheMeasured)]


def plan(events: Events) -> CachePlan:
    return next(event for event in events if isinstance(event, CachePlan))


@check
def first_bytes(events: Events) -> int:
    return sum(size for *_place, size in cache(events)[0].parts)


@check
def last_bytes(events: Events) -> int:
    return sum(size for *_place, size in cache(events)[-1].parts)


@check
def first_tokens(events: Events) -> int:
    return cache(events)[0].tokens


@check
def bytes_a_token(events: Events) -> float | None:
    first, last = cache(events)[0], cache(events)[-1]
    return (last.bytes - first.bytes) / (last.tokens - first.tokens) if last.tokens > first.tokens else None


@check
def grows_evenly(events: Events) -> int:
    found = cache(events)
    each = found[0].bytes / found[0].tokens
    return int(each > 0 and all(one.bytes == each * one.tokens for one in found) and found[-1].bytes > found[0].bytes)


@check
def tokens_held(events: Events) -> int:
    return cache(events)[-1].tokens


@check
def tokens_read(events: Events) -> int:
    return max([stop for _start, stop in cache(events)[-1].held], default=cache(events)[-1].tokens)


@check
def forgotten(events: Events) -> int | None:
    held = cache(events)[-1].held
    gaps = [after[0] - before[1] for before, after in pairwise(held)]
    return held[0][0] + sum(gaps) if held else None


@check
def sinks(events: Events) -> int | None:
    return plan(events).sinks or None


@check
def bits(events: Events) -> int | None:
    return plan(events).bits


@check
def rounding(events: Events) -> float | None:
    return next((one.error for one in reversed(cache(events)) if one.error is not None), None)


@check
def bytes_beside(one: Events, other: Events) -> float:
    return last_bytes(one) / last_bytes(other)


# Two runs


@check
def same_start(one: Events, other: Events) -> int:
    ids = [[token.id for token in chosen(events)] for events in (one, other)]
    return max(n for n in range(min(map(len, ids)) + 1) if ids[0][:n] == ids[1][:n])


@check
def parting(one: Events, other: Events) -> int | None:
    shared = same_start(one, other)
    return shared if shared < min(len(chosen(one)), len(chosen(other))) else None
