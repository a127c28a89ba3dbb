"""The figures of tours, taken once more and otherwise: from a run's bare events, without any of the program's own ways.

`CHECKS` has a function for every measure. It takes the events of one run (two, for a pair) and what else is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from app.state.tours.tour import Condition
from core import words
from core.events import Alternative, Event, Finished, RunStarted, TokenChosen

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
