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
MAX_QUESTIONS = 8
"""Questions to one text."""
MAX_PROBABILITY = 0.9
"""What the model was surer of than that is no riddle."""
MIN_DISTANCE = 3
"""Tokens between two questions, so that there is something to read."""


class GuessQuestion(NamedTuple):
    """Before token `position` the text holds; one of the choices stands there."""

    position: int
    choices: tuple[Alternative, ...]
    answer: int
    """Which of them was chosen."""

    @property
    def likeliest(self) -> int:
        """Which of them was the likeliest when it was chosen."""
        return max(range(len(self.choices)), key=lambda n: _probabilities(self.choices[n]))


def guess_unsupported_reason(run: Run | None) -> str:
    """Why there is nothing to guess; empty where there is."""
    if run is None or not (run.tokens or run.beams):
        return tr("Nothing has been written yet: run something, then guess.")
    if run.is_scored:
        return tr("This text was given, not chosen: there is no choice to guess.")
    if run.beams is not None:
        return tr("A beam search weighs whole texts, not one word after the other: there is no single choice to guess.")
    if not any(token.alternatives for token in run.tokens):
        return tr("This run kept no alternatives to choose from.")
    if not any(_is_guessable(token) for token in run.tokens):
        return tr("No choice in this text is open enough to be guessed.")
    return ""


def make_questions(run: Run, start: int = 0) -> list[GuessQuestion]:
    """What is asked of the shown text from token `start` on: open choices, some way apart, no more than `MAX_QUESTIONS`."""
    asked: list[GuessQuestion] = []
    for place, token in enumerate(run.tokens):
        last = asked[-1].position if asked else start - MIN_DISTANCE - 1
        if place >= start and place - last > MIN_DISTANCE and _is_guessable(token):
            asked.append(_make_question(run, place))
    step = max(1, len(asked) / MAX_QUESTIONS)
    return [asked[int(n * step)] for n in range(min(MAX_QUESTIONS, len(asked)))]


def truncate_run(run: Run, index: int) -> Run:
    """The run as it was before its shown text's token `index`: nothing that came later is in it."""
    before = Run(run.request)
    before.id = run.id
    before.outcome = run.outcome
    before.is_withheld = True
    before.apply(_events(run, 0, index))
    if run.shown_index < len(before.sequences):
        before.show_sequence(run.shown_index)
    return before


def events_between(run: Run, start: int, stop: int) -> list[Event]:
    """What was told of the shown text's tokens from `start` to before `stop`."""
    return list(_events(run, start, stop))


def _is_guessable(token: TokenChosen) -> bool:
    is_word = any(letter.isalnum() for letter in token.text) and not token.special
    return is_word and token.raw_probability < MAX_PROBABILITY and len(_plausible_alternatives(token)) >= CHOICES - 1


def _plausible_alternatives(token: TokenChosen) -> list[Alternative]:
    """Other tokens that could have stood there, the likeliest first; none that reads as the chosen one does."""
    seen = {token.piece.strip().casefold(), ""}
    found = []
    for one in sorted(token.alternatives, key=_probabilities, reverse=True):
        word = one.text.strip().casefold()
        if one.id != token.id and word not in seen:
            seen.add(word)
            found.append(one)
    return found


def _make_question(run: Run, index: int) -> GuessQuestion:
    """The chosen one and the likeliest others, in an order that the seed decides."""
    token = run.tokens[index]
    chosen = next((one for one in token.alternatives if one.id == token.id), None) or _alternative(token)
    choices = sorted([chosen, *_plausible_alternatives(token)[: CHOICES - 1]], key=lambda one: one.id)
    Random(f"{run.request.seed}/{index}").shuffle(choices)
    return GuessQuestion(index, tuple(choices), choices.index(chosen))


def _alternative(token: TokenChosen) -> Alternative:
    return core.events.Alternative(
        token.id, token.piece, token.raw_probability, token.probability, token.raw_log_probability,
        token.log_probability, token.rank, special=token.special,
    )  # fmt: skip


def _probabilities(one: Alternative) -> tuple[float, float]:
    return one.probability, one.raw_probability


def _events(run: Run, start: int, stop: int) -> Iterator[Event]:
    """Every event up to the shown text's token `stop`, from that of token `start` on; none that tells of more."""
    count = 0
    for event in run.events:
        if count >= stop and start < stop and isinstance(event, core.events.TokenChosen):
            return
        if count >= start and _reveals_nothing_after(event, stop):
            yield event
        if isinstance(event, core.events.TokenChosen) and event.sequence == run.shown_index:
            count += 1


def _reveals_nothing_after(event: Event, stop: int) -> bool:
    """Whether an event tells of nothing behind the first `stop` tokens."""
    match event:
        case core.events.TokenChosen() | core.events.CacheMeasured():
            return event.step < stop
        case core.events.DraftRound():
            return event.step + len(event.accepted) + (event.extra_kind != "none") <= stop
        case core.events.Finished() | core.events.SequenceFinished():
            return False
    return True
