"""The token-level numbers of tours, and the table of all numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from decodescope.core.events import Alternative, BeamsRanked, BeamStep, Event, RunStarted, TokenChosen

Events = Sequence[Event]
CHECKS: dict[str, Callable[..., Any]] = {}


def check(function: Callable[..., Any]) -> Callable[..., Any]:
    """Registers a figure by the name of its measure."""
    CHECKS[function.__name__] = function
    return function


def chosen(events: Events) -> list[TokenChosen]:
    """The tokens of the first text."""
    return [event for event in events if isinstance(event, TokenChosen) and event.sequence == 0]


def named(token: TokenChosen) -> bool:
    """Return whether it is a word, or a part of one."""
    return any(letter.isalpha() for letter in token.text)


def best(token: TokenChosen) -> Alternative | None:
    """Return the model's own first choice."""
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
def first_place(events: Events) -> int | None:
    return 0 if chosen(events) else None


@check
def letters_a_token(events: Events) -> float | None:
    texts = [token.text for token in chosen(events)]
    return len("".join(texts)) / len(texts) if texts else None


@check
def longest_token(events: Events) -> int | None:
    lengths = [len(token.text.strip()) if named(token) else None for token in chosen(events)]
    return place_of(lengths, max)


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
    """Return a setting reported by the run or by its cache plan."""
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
