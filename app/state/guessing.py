"""The game of guessing first: which tokens are asked for, what can be chosen, and a run that knows no more than that.

What is not to be seen before the guess is not hidden from the views: the run that they are shown does not have it.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import core
from app.state.run import Run
from resources.language import tr

if TYPE_CHECKING:
    from core.events import Alternative, Event, TokenChosen

CHOICES = 4
MOST = 8
"""Questions to one text."""
CLEAR = 0.9
"""What the model was surer of than that is no riddle."""
APART = 3
"""Tokens between two questions, so that there is something to read."""


class GuessQuestion(NamedTuple):
    """Before token `place` the text holds; one of the choices stands there."""

    place: int
    choices: tuple[Alternative, ...]
    right: int
    """Which of them was chosen."""

    @property
    def likeliest(self) -> int:
        """Which of them was the likeliest when it was chosen."""
        return max(range(len(self.choices)), key=lambda n: _share(self.choices[n]))


def why_not_guess(run: Run | None) -> str:
    """Why there is nothing to guess; empty where there is."""
    if run is None or not (run.tokens or run.beams):
        return tr("Nothing has been written yet: run something, then guess.")
    if run.is_scored:
        return tr("This text was given, not chosen: there is no choice to guess.")
    if run.beams is not None:
        return tr("A beam search weighs whole texts, not one word after the other: there is no single choice to guess.")
    if not any(token.alternatives for token in run.tokens):
        return tr("This run kept no alternatives to choose from.")
    if not any(_can_ask(token) for token in run.tokens):
        return tr("No choice in this text is open enough to be guessed.")
    return ""


def questions(run: Run, start: int = 0) -> list[GuessQuestion]:
    """What is asked of the shown text from token `start` on: open choices, some way apart, no more than `MOST`."""
    asked: list[GuessQuestion] = []
    for place, token in enumerate(run.tokens):
        last = asked[-1].place if asked else start - APART - 1
        if place >= start and place - last > APART and _can_ask(token):
            asked.append(_question(run, place))
    step = max(1, len(asked) / MOST)
    return [asked[int(n * step)] for n in range(min(MOST, len(asked)))]


def until(run: Run, place: int) -> Run:
    """The run as it was before its shown text's token `place`: nothing that came later is in it."""
    before = Run(run.request)
    before.id = run.id
    before.outcome = run.outcome
    before.is_held = True
    before.apply(_events(run, 0, place))
    if run.shown < len(before.sequences):
        before.show(run.shown)
    return before


def between(run: Run, start: int, stop: int) -> list[Event]:
    """What was told of the shown text's tokens from `start` to before `stop`."""
    return list(_events(run, start, stop))


def _can_ask(token: TokenChosen) -> bool:
    is_word = any(letter.isalnum() for letter in token.text) and not token.special
    return is_word and token.raw_probability < CLEAR and len(_plausible(token)) >= CHOICES - 1


def _plausible(token: TokenChosen) -> list[Alternative]:
    """Other tokens that could have stood there, the likeliest first; none that reads as the chosen one does."""
    seen = {token.piece.strip().casefold(), ""}
    found = []
    for one in sorted(token.alternatives, key=_share, reverse=True):
        word = one.text.strip().casefold()
        if one.id != token.id and word not in seen:
            seen.add(word)
            found.append(one)
    return found


def _question(run: Run, place: int) -> GuessQuestion:
    """The chosen one and the likeliest others, in an order that the seed decides."""
    token = run.tokens[place]
    chosen = next((one for one in token.alternatives if one.id == token.id), None) or _alternative(token)
    choices = sorted([chosen, *_plausible(token)[: CHOICES - 1]], key=lambda one: one.id)
    Random(f"{run.request.seed}/{place}").shuffle(choices)
    return GuessQuestion(place, tuple(choices), choices.index(chosen))


def _alternative(token: TokenChosen) -> Alternative:
    return core.events.Alternative(
        token.id, token.piece, token.raw_probability, token.probability, token.raw_log_probability,
        token.log_probability, token.rank, special=token.special,
    )  # fmt: skip


def _share(one: Alternative) -> tuple[float, float]:
    return one.probability, one.raw_probability


def _events(run: Run, start: int, stop: int) -> Iterator[Event]:
    """Every event up to the shown text's token `stop`, from that of token `start` on; none that tells of more."""
    count = 0
    for event in run.events:
        if count >= stop and start < stop and isinstance(event, core.events.TokenChosen):
            return
        if count >= start and _is_known(event, stop):
            yield event
        if isinstance(event, core.events.TokenChosen) and event.sequence == run.shown:
            count += 1


def _is_known(event: Event, stop: int) -> bool:
    """Whether an event tells of nothing behind the first `stop` tokens."""
    match event:
        case core.events.TokenChosen() | core.events.CacheMeasured():
            return event.step < stop
        case core.events.DraftRound():
            return event.step + len(event.accepted) + (event.extra_kind != "none") <= stop
        case core.events.Finished() | core.events.SequenceFinished():
            return False
    return True
