"""The guessing game: questions, choices, and a run without anything that comes later.

Tokens to be guessed are not hidden in the views; the run given to the views does not contain them.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from decodescope import core
from decodescope.app.state.run import Run
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.core.events import Alternative, Event, TokenChosen

CHOICES = 4
MAX_QUESTIONS = 8
"""Largest number of questions for one text."""
MAX_PROBABILITY = 0.9
"""Tokens with a higher probability are too easy to guess."""
MIN_DISTANCE = 3
"""Tokens between two questions, so that there is something to read."""


class GuessQuestion(NamedTuple):
    """A question: the text pauses before token `position`, which is one of the choices."""

    position: int
    choices: tuple[Alternative, ...]
    answer: int
    """Index of the chosen token."""

    @property
    def likeliest(self) -> int:
        """Index of the choice with the highest probability."""
        return max(range(len(self.choices)), key=lambda n: _probabilities(self.choices[n]))


def guess_unsupported_reason(run: Run | None) -> str:
    """Return why there is nothing to guess; empty if there is."""
    if run is None or not (run.tokens or run.beams):
        return tr("There is no text yet. Run something, then guess.")
    if run.is_scored:
        return tr("This text was scored, not generated, so there is nothing to guess.")
    if run.beams is not None:
        return tr("Beam search compares whole texts instead of choosing word by word, so there is nothing to guess.")
    if not any(token.alternatives for token in run.tokens):
        return tr("This run recorded no alternatives.")
    if not any(_is_guessable(token) for token in run.tokens):
        return tr("No choice in this text is uncertain enough to guess.")
    return ""


def make_questions(run: Run, start: int = 0) -> list[GuessQuestion]:
    """Return the questions for the shown text from token `start` on: uncertain choices, some distance apart, at most
    `MAX_QUESTIONS`.
    """
    questions: list[GuessQuestion] = []
    for place, token in enumerate(run.tokens):
        last = questions[-1].position if questions else start - MIN_DISTANCE - 1
        if place >= start and place - last > MIN_DISTANCE and _is_guessable(token):
            questions.append(_make_question(run, place))
    step = max(1, len(questions) / MAX_QUESTIONS)
    return [questions[int(n * step)] for n in range(min(MAX_QUESTIONS, len(questions)))]


def truncate_run(run: Run, index: int) -> Run:
    """Return the run as it was before token `index` of its shown text, without later events."""
    before = Run(run.request)
    before.id = run.id
    before.outcome = run.outcome
    before.is_withheld = True
    before.apply(_events(run, 0, index))
    if run.shown_index < len(before.sequences):
        before.show_sequence(run.shown_index)
    return before


def events_between(run: Run, start: int, stop: int) -> list[Event]:
    """Return the events of the shown text's tokens from `start` to before `stop`."""
    return list(_events(run, start, stop))


def _is_guessable(token: TokenChosen) -> bool:
    is_word = any(letter.isalnum() for letter in token.text) and not token.special
    return is_word and token.raw_probability < MAX_PROBABILITY and len(_plausible_alternatives(token)) >= CHOICES - 1


def _plausible_alternatives(token: TokenChosen) -> list[Alternative]:
    """Return other plausible tokens, the most likely first, without those that read like the chosen one."""
    seen = {token.piece.strip().casefold(), ""}
    found = []
    for one in sorted(token.alternatives, key=_probabilities, reverse=True):
        word = one.text.strip().casefold()
        if one.id != token.id and word not in seen:
            seen.add(word)
            found.append(one)
    return found


def _make_question(run: Run, index: int) -> GuessQuestion:
    """Create a question from the chosen token and the most likely others, shuffled by the run's seed."""
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
    """Yield the events from token `start` of the shown text up to token `stop`, without any that reveal more."""
    count = 0
    for event in run.events:
        if count >= stop and start < stop and isinstance(event, core.events.TokenChosen):
            return
        if count >= start and _reveals_nothing_after(event, stop):
            yield event
        if isinstance(event, core.events.TokenChosen) and event.sequence == run.shown_index:
            count += 1


def _reveals_nothing_after(event: Event, stop: int) -> bool:
    """Return whether an event reveals nothing beyond the first `stop` tokens."""
    match event:
        case core.events.TokenChosen() | core.events.CacheMeasured():
            return event.step < stop
        case core.events.DraftRound():
            return event.step + len(event.accepted) + (event.extra_kind != "none") <= stop
        case core.events.Finished() | core.events.SequenceFinished():
            return False
    return True
