"""The figures of tours, taken once more and otherwise: from a run's bare events, without any of the program's own ways.

`CHECKS` has a function for every measure. It takes the events of one run (two, for a pair) and what else is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from app.state.tours.tour import Condition
from core import words
from core.events import (
    Alternative,
    BeamCandidate,
    BeamsRanked,
    BeamStep,
    CacheMeasured,
    CachePlan,
    DraftNode,
    DraftRound,
    Event,
    Finished,
    RunStarted,
    TokenChosen,
)

Events = Sequence[Event]
CHECKS: dict[str, Callable[..., Any]] = {}


def check(function: Callable[..., Any]) -> Callable[..., Any]:
    """Registers a figure by the name of its measure."""
    CHECKS[function.__name__] = function
    return function


def shown(kind: str, value: Any) -> str:
    """How a sentence has it."""
    if isinstance(value, str):
        return words.quote(value)
    if kind == "place":
        return f"{value + 1:,}"
    if kind == "share":
        return words.percent(value)
    if kind == "bytes":
        return words.size(value)
    if kind == "degree":
        return words.decimal(value, 2)
    if kind == "bits":
        return words.decimal(value, 1)
    return f"{value:,.0f}" if kind == "count" else f"{value:.6g}"


def holds(condition: Condition, values: Mapping[str, Any]) -> bool:
    """Whether a condition is true of these values."""
    left, right = (values[side] if isinstance(side, str) else side for side in (condition.left, condition.right))
    if left is None or right is None:
        return False
    before, same = left < right, left == right
    return {"<": before, "<=": before or same, ">": not before and not same, ">=": not before, "==": same,
            "!=": not same}[condition.relation]  # fmt: skip


def chosen(events: Events) -> list[TokenChosen]:
    """The tokens of the first text."""
    return [event for event in events if isinstance(event, TokenChosen) and event.sequence == 0]


def finished(events: Events) -> Finished:
    """How it ended."""
    (event,) = (event for event in events if isinstance(event, Finished))
    return event


def named(token: TokenChosen) -> bool:
    """Whether it is a word, or a part of one."""
    return any(letter.isalpha() for letter in token.text)


def best(token: TokenChosen) -> Alternative | None:
    """What the model alone would have said first."""
    ranked = {one.rank: one for one in token.alternatives}
    return ranked.get(1)


def place_of(values: Sequence[float | None], wanted: Callable[[list[float]], float]) -> int | None:
    """The first place of the value that is wanted."""
    there = [value for value in values if value is not None]
    return list(values).index(wanted(there)) if there else None


@check
def tokens(events: Events) -> int:
    return len(chosen(events))


@check
def repeated_share(events: Events) -> float | None:
    ids = [token.id for token in chosen(events)]
    grams = ["-".join(map(str, ids[end - 4 : end])) for end in range(4, len(ids) + 1)]
    return 1 - len(set(grams)) / len(grams) if grams else None


@check
def loop_start(events: Events) -> int | None:
    ids = [token.id for token in chosen(events)]
    grams = [tuple(ids[start : start + 4]) for start in range(len(ids) - 3)]
    fresh = [n for n, gram in enumerate(grams) if gram not in grams[:n]]
    return fresh[-1] + 1 if fresh and fresh[-1] + 1 < len(grams) else None


@check
def likeliest_taken(events: Events) -> int:
    return len([1 for token in chosen(events) if (token.rank if token.final_rank is None else token.final_rank) == 1])


@check
def unsurest(events: Events) -> int | None:
    return place_of([token.entropy if named(token) else None for token in chosen(events)], max)


@check
def piece_at(events: Events, place: int) -> str:
    return chosen(events)[place].piece


@check
def chance_at(events: Events, place: int) -> float:
    return math.exp(chosen(events)[place].raw_log_probability)


@check
def rank_at(events: Events, place: int) -> int:
    token = chosen(events)[place]
    more = [one for one in token.alternatives if one.raw_probability > token.raw_probability]
    return len(more) + 1 if token.rank <= 5 else token.rank


@check
def second_choice_at(events: Events, place: int) -> str:
    token = chosen(events)[place]
    others = sorted((-one.raw_probability, one.rank, one.text) for one in token.alternatives if one.id != token.id)
    return others[0][2]


@check
def second_chance_at(events: Events, place: int) -> float:
    token = chosen(events)[place]
    return sorted(one.raw_probability for one in token.alternatives if one.id != token.id)[-1]


@check
def vocabulary(events: Events) -> int:
    return next(event.vocabulary for event in events if isinstance(event, RunStarted))


@check
def setting(events: Events, name: str) -> Any:
    """As the run itself says that it was set, or its plan of the cache."""
    return next(dict(event.settings).get(name) for event in events if isinstance(event, RunStarted))


@check
def odd_tokens(events: Events) -> int:
    return [token.raw_log_probability < math.log(1 / 1000) for token in chosen(events)].count(True)


@check
def oddest(events: Events) -> int | None:
    return place_of([token.raw_log_probability for token in chosen(events)], min)


@check
def unlikely_taken(events: Events) -> int:
    return len(chosen(events)) - [token.rank for token in chosen(events)].count(1)


@check
def surprise(events: Events) -> float | None:
    steps = {one.node: one for event in events if isinstance(event, BeamStep) for one in event.candidates}
    logs = [token.raw_log_probability for token in chosen(events)]
    if steps:
        node = [event for event in events if isinstance(event, BeamStep)][-1].best
        ranked = [event for event in events if isinstance(event, BeamsRanked)]
        node, logs = ranked[-1].hypotheses[0].node if ranked else node, []
        while node in steps:
            logs.append(steps[node].raw_log_probability)
            node = steps[node].parent
    return -sum(logs) / len(logs) * math.log2(math.e) if logs else None


@check
def passed_over(events: Events) -> int | None:
    lower = [named(token) and token.rank != 1 and best(token) is not None for token in chosen(events)]
    return lower.index(True) if True in lower else None


@check
def final_chance_at(events: Events, place: int) -> float:
    return math.exp(chosen(events)[place].log_probability)


@check
def first_choice_at(events: Events, place: int) -> str | None:
    first = best(chosen(events)[place])
    return first.text if first else None


@check
def first_chance_at(events: Events, place: int) -> float | None:
    first = best(chosen(events)[place])
    return math.exp(first.raw_log_probability) if first else None


@check
def first_final_at(events: Events, place: int) -> float | None:
    first = best(chosen(events)[place])
    return math.exp(first.log_probability) if first else None


@check
def likeness_at(events: Events, place: int) -> float | None:
    token = chosen(events)[place]
    return {one.id: one.degeneration_penalty for one in token.alternatives}.get(token.id)


@check
def first_likeness_at(events: Events, place: int) -> float | None:
    first = best(chosen(events)[place])
    return first.degeneration_penalty if first else None


@check
def kept_at(events: Events, place: int, stage: str) -> int | None:
    return {one.name: one.survivors for one in chosen(events)[place].funnel}.get(stage)


@check
def held_at(events: Events, place: int, stage: str) -> float | None:
    return {one.name: one.mass for one in chosen(events)[place].funnel}.get(stage)


@check
def most_kept(events: Events, stage: str) -> int | None:
    return place_of([kept_at(events, n, stage) if named(t) else None for n, t in enumerate(chosen(events))], max)


@check
def fewest_kept(events: Events, stage: str) -> int | None:
    return place_of([kept_at(events, n, stage) if named(t) else None for n, t in enumerate(chosen(events))], min)


@check
def first_choice_cut(events: Events) -> int | None:
    cut = [named(token) and (first := best(token)) is not None and first.probability == 0 for token in chosen(events)]
    return cut.index(True) if True in cut else None


@check
def first_choices_cut(events: Events) -> int:
    return [one.probability for token in chosen(events) for one in token.alternatives if one.rank == 1].count(0)


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
    """One on whose accepted path a node stands that the draft did not put first."""
    for n, entry in enumerate(rounds(events)):
        first = {
            parent: max(node.draft_probability for node in entry.nodes if node.parent == parent)
            for parent in {node.parent for node in entry.nodes}
        }
        kept = [node for node in entry.nodes if node.fate == "accepted"]
        if any(node.draft_probability < first[node.parent] for node in kept):
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
