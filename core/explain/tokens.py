"""Why this token, in a few plain sentences made of the step's own figures: each of them is true of the step.

What the settings forbade or changed comes first, then what was cut, then the choice, then what a draft had to do with
it. Shares are those after the settings unless a sentence says “by the model alone”.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from core.explain.sentence import Figure, Sentence, fill, say, together
from core.explain.words import decimal, ordinal, percent, quote

if TYPE_CHECKING:
    from core.events import Alternative, Stage, TokenChosen

_CERTAIN = 0.95
_NEARLY_ALL = 0.9995
_TELLING = 1.5
"""A share that a setting made so many times greater or smaller is worth a sentence, …"""
_TINY = 0.01
"""… unless it was and is less than this."""


def explain_token(event: TokenChosen) -> Sentence:
    """Plain words for a step; a string that knows its figures."""
    return together(_overruled(event) or _changed(event), _cut(event), _TELLERS[event.method](event), _draft(event))


def share(value: float) -> Figure:
    """A share as a figure of a sentence."""
    return Figure(percent(value, "under", "over"))


# What the settings did


def _overruled(event: TokenChosen) -> str:
    """A sentence when a setting took likelier tokens out, or put the chosen one before the model's first choice."""
    ahead = [item for item in event.alternatives if item.rank < event.rank]
    if not ahead or not event.funnel or event.method == "beam":
        return ""
    gone = [item for item in ahead if item.probability == 0]
    if gone and _is_forbidden(gone, event):
        return _forbidden(event, ahead, gone)
    return _put_ahead(event, ahead[0])


def _is_forbidden(gone: list[Alternative], event: TokenChosen) -> bool:
    end = _end_of(gone[0], event.funnel)
    return end is not None and end.kind in ("ban", "cut")


def _forbidden(event: TokenChosen, ahead: list[Alternative], gone: list[Alternative]) -> Sentence:
    """Likelier tokens that are out: all of them at once, the first choice, or one of the rest."""
    stage = _end_of(gone[0], event.funnel)
    assert stage is not None
    verb = "forbade" if stage.kind == "ban" else "left out"
    alike = all(_end_of(item, event.funnel) is stage for item in ahead if item.probability == 0)
    if len(gone) == event.rank - 1 > 1 and alike:
        return say("{} {} the model's {} likeliest tokens here.", stage.phrase, verb, _few(len(gone)))
    if gone[0].rank == 1:
        said = "forbids it here" if stage.kind == "ban" else "left it out"
        return say("{} was the model's first choice, but {} {}.", quote(gone[0].text), stage.phrase, said)
    return say("{} {} {}, which was likelier by the model alone.", stage.phrase, verb, quote(gone[0].text))


def _few(number: int) -> str:
    words = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    return words[number - 2] if number - 2 < len(words) else f"{number}"


def _put_ahead(event: TokenChosen, first: Alternative) -> str:
    """The stage behind which the chosen token led the model's first choice for good."""
    if event.method not in ("greedy", "sampled") or first.rank != 1 or first.probability >= event.probability:
        return ""
    last = max((place for place, stage in enumerate(event.funnel) if _leads(first.id, event.id, stage)), default=None)
    if last is None or last + 1 >= len(event.funnel):
        return ""
    cause = event.funnel[last + 1].phrase
    return say("{} was the model's first choice, but {} put {} ahead of it.",
               quote(first.text), cause, quote(event.piece))  # fmt: skip


def _leads(one: int, other: int, stage: Stage) -> bool:
    """Whether token `one` stands before `other` among the likeliest behind a stage."""
    order = [token for token, _ in stage.top]
    return one in order and (other not in order or order.index(one) < order.index(other))


def _end_of(item: Alternative, funnel: tuple[Stage, ...]) -> Stage | None:
    """The stage that a token did not come out of; None where it was not among the likeliest before."""
    last = max((place for place, stage in enumerate(funnel) if item.id in dict(stage.top)), default=None)
    return None if last is None or last + 1 >= len(funnel) else funnel[last + 1]


def _changed(event: TokenChosen) -> str:
    """The stage that changed the share that dice were thrown over most, where it is known before and behind it."""
    if event.method != "sampled":
        return ""
    best, told = _TELLING, ""
    for before, stage in pairwise(event.funnel):
        old, new = dict(before.top).get(event.id, 0.0), dict(stage.top).get(event.id, 0.0)
        if stage.kind != "shift" or not old or not new or max(old, new) < _TINY:
            continue
        if (factor := max(old / new, new / old)) > best:
            verb = "raised" if new > old else "lowered"
            best, told = factor, say("{} {} {} from {} to {}.",
                                     stage.phrase, verb, quote(event.piece), share(old), share(new))  # fmt: skip
    return told


def _cut(event: TokenChosen) -> str:
    """What the filter that cut most left over for the dice."""
    if event.method not in ("sampled", "dola_sampled"):
        return ""
    best, removed = None, 0.0
    for before, stage in pairwise(event.funnel):
        part = 1 - stage.survivors / before.survivors if before.survivors else 0.0
        if stage.kind == "cut" and part > removed:
            best, removed = (before, stage), part
    if best is None:
        return ""
    before, stage = best
    last = event.funnel[-1].survivors
    rest = f", and in the end {_left(last)} left" if last < stage.survivors else ""
    kept = Figure(f"{stage.survivors:,} of {before.survivors:,}")
    return say("{} kept {} tokens{}.", stage.phrase, kept, rest)


def _left(number: int) -> str:
    return "1 was" if number == 1 else f"{number:,} were"


# The choice


def _greedy(event: TokenChosen) -> Sentence:
    name, chosen = quote(event.piece), share(event.probability)
    if _is_alone(event):
        return say("only {} was left.", name)
    if min(event.raw_probability, event.probability) > _CERTAIN:
        return say("{} had {}: the model was nearly certain.", name, chosen)
    rival = _runner_up(event)
    if rival is None:
        return say("{} had {}, the most of all, so greedy decoding took it.", name, chosen)
    other = quote(rival.text)
    if rival.probability >= event.probability:
        return say("{} and {} had {} each, the most of all; greedy decoding took {}.", name, other, chosen, name)
    return say("{} had {}, the most of all, ahead of {} with {}.", name, chosen, other, share(rival.probability))


def _runner_up(event: TokenChosen) -> Alternative | None:
    """The likeliest other token after the settings."""
    others = [item for item in event.alternatives if item.id != event.id and item.probability > 0]
    return max(others, key=lambda item: item.probability, default=None)


def _is_alone(event: TokenChosen) -> bool:
    return bool(event.funnel) and event.funnel[-1].survivors == 1


def _sampled(event: TokenChosen) -> Sentence:
    name, chosen = quote(event.piece), share(event.probability)
    if _is_alone(event):
        return say("only {} was left, so no dice were needed.", name)
    if event.probability > _NEARLY_ALL:
        return say("{} had {}: the dice could hardly choose another.", name, chosen)
    return say("{} had {}, {}, and {}.", name, chosen, _place(event), _thrown(event))


def _place(event: TokenChosen) -> str:
    """Where it stands among what is left."""
    rank = event.final_rank or event.rank
    return "the most likely" if rank == 1 else f"the {ordinal(rank)} most likely"


def _thrown(event: TokenChosen) -> str:
    """What the dice did: they choose, or they judge a draft."""
    if event.origin == "draft":
        return "the dice accepted it"
    return "the dice chose it instead" if event.origin == "correction" else "the dice chose it"


def _contrastive(event: TokenChosen) -> Sentence:
    name = quote(event.piece)
    tried = [item for item in event.alternatives if item.score is not None and item.probability > 0]
    mine = next((item for item in tried if item.id == event.id), None)
    if mine is None:
        return say("{} had the best balance of likelihood ({}) and novelty.", name, share(event.probability))
    if len(tried) == 1:
        return say("{} was the only candidate.", name)
    likelier = max(tried, key=lambda item: item.probability)
    return _stayed_ahead(mine, tried) if likelier.probability <= mine.probability else _balanced(mine, likelier)


def _balanced(mine: Alternative, likelier: Alternative) -> Sentence:
    digits = 2
    old, new = likelier.degeneration_penalty or 0.0, mine.degeneration_penalty or 0.0
    while decimal(old, digits) == decimal(new, digits) and digits < 6:
        digits += 1
    against = Figure(f"{decimal(old, digits)} against {decimal(new, digits)}")
    return say(
        "{} was likelier ({}), but resembled the text before it more ({}), so {} with {} had the better balance.",
        quote(likelier.text), share(likelier.probability), against, quote(mine.text), share(mine.probability),
    )  # fmt: skip


def _stayed_ahead(mine: Alternative, tried: list[Alternative]) -> Sentence:
    second = max((item for item in tried if item is not mine), key=lambda item: item.score or 0.0)
    return say(
        "{} was the likeliest of {} candidates ({}), and with a likeness of {} to the text before it still the best "
        "balanced: its score is {}, that of {} {}.",
        quote(mine.text), f"{len(tried)}", share(mine.probability), decimal(mine.degeneration_penalty or 0.0),
        decimal(mine.score or 0.0), quote(second.text), decimal(second.score or 0.0),
    )  # fmt: skip


def _dola(event: TokenChosen) -> Sentence:
    if event.layer_choice is None:
        return _sampled(event) if event.method == "dola_sampled" else _greedy(event)
    layer = f"{event.layer_choice.layer}"
    if _is_alone(event):
        return say("layer {} differed most from the last one, but only {} was left to choose.",
                   layer, quote(event.piece))  # fmt: skip
    how = f"{_place(event)}, and {_thrown(event)}" if event.method == "dola_sampled" else "the most of all"
    old, new = share(event.raw_probability), share(event.probability)
    moved = fill("kept its {}", new) if old == new else fill("went from {} to {}", old, new)
    return say(
        "layer {} differed most from the last one. Set against its guess, {} {}, {}.",
        layer, quote(event.piece), moved, how,
    )  # fmt: skip


def _beam(event: TokenChosen) -> Sentence:
    """Figures are the model's own: a search's scores belong to whole texts."""
    name, own = quote(event.piece), share(event.raw_probability)
    if event.rank == 1:
        return say("{} had {} by the model alone, the most of all here, and the search kept it.", name, own)
    rival = max((item for item in event.alternatives if item.rank < event.rank),
                key=lambda item: item.raw_probability, default=None)  # fmt: skip
    less: str = f", the {ordinal(event.rank)} most likely"
    if rival is not None:
        less = fill(", less than {} with {}", quote(rival.text), share(rival.raw_probability))
    return say("{} had {} by the model alone{}; but the search compares whole texts, and kept one that has it.",
               name, own, less)  # fmt: skip


def _scored(event: TokenChosen) -> Sentence:
    """Nothing was chosen: the text says which token, the model only how likely it was."""
    name, own = quote(event.piece), share(event.raw_probability)
    if event.rank == 1:
        return say("{} was given by the text, and it is the model's first choice here, with {}.", name, own)
    place = f"{ordinal(event.rank)} most likely"
    first = next((item for item in event.alternatives if item.rank == 1), None)
    if first is None:
        return say("{} was given by the text; the model had it as the {}, with {}.", name, place, own)
    return say(
        "{} was given by the text; the model had it as the {}, with {}, and would have put {} first, with {}.",
        name, place, own, quote(first.text), share(first.raw_probability),
    )  # fmt: skip


_TELLERS = {
    "beam": _beam,
    "greedy": _greedy,
    "sampled": _sampled,
    "contrastive": _contrastive,
    "dola": _dola,
    "dola_sampled": _dola,
    "scored": _scored,
}


def _draft(event: TokenChosen) -> str:
    """What a draft had to do with it."""
    if event.origin == "draft":
        return "The draft had proposed it."
    if event.origin == "correction":
        return "The draft had proposed something else here, which was refused."
    return "All that was drafted before it was accepted, so it came as a bonus." if event.origin == "bonus" else ""
