"""The Run: a run's events so far and the one cursor that every view obeys. No Qt in here."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

import core
from app.state.beam_tree import BeamTree
from app.state.cache_history import CacheHistory
from app.state.draft_rounds import DraftRounds
from app.state.sequences import RunSequence, get_sequence, update_from_beams
from app.state.worker_messages import Outcome, RunRequest
from resources.language import trn

if TYPE_CHECKING:
    from core.events import (
        CacheMeasured,
        Event,
        Finished,
        Notice,
        Prefilled,
        PromptToken,
        RunStarted,
        SequenceFinished,
        TokenChosen,
        TokenCompared,
    )

_MIN_TOKENS_TO_KEEP = 8
"""Fewer tokens than this nobody has read when the next run begins."""


class Run:
    """The events of one run, sorted as they come in; `cursor` says how many tokens the views draw."""

    def __init__(self, request: RunRequest) -> None:
        self.id = os.urandom(16).hex()
        """Its own, whatever becomes of it: what is kept of it and what branches from it refer to it."""
        self.request = request
        self.events: list[Event] = []
        self.started: RunStarted | None = None
        self.prefilled: Prefilled | None = None
        self.cache: CacheMeasured | None = None
        self.finished: Finished | None = None
        self.outcome: Outcome | None = None
        self.is_withheld = False
        """Whether this is the beginning of a run whose rest is kept back, for guessing."""
        self.notices: list[Notice] = []
        self.sequences: list[RunSequence] = [RunSequence(0)]
        self.beams: BeamTree | None = None
        """The tree of a beam search; its texts are those that lead at the cursor, which then counts steps."""
        self.comparisons: list[TokenCompared] = []
        """Scoring with a second model: what it holds of each token, in the order of the text."""
        self._endings: dict[int, SequenceFinished] = {}
        self._cache_history, self._rounds = CacheHistory(), DraftRounds()
        self.shown_index = 0
        self.cursor = 0
        self.is_following = True
        self.selected: int | None = None
        self.is_loading = False
        """Whether the model is still on its way into memory."""
        self.was_replaced = False
        """Whether another run was started before this one had ended."""

    @property
    def prompt(self) -> tuple[PromptToken, ...]:
        """The prompt's tokens; empty until the run has started."""
        return self.started.prompt if self.started else ()

    @property
    def beginning(self) -> tuple[PromptToken, ...]:
        """What the answer begins with, where the run is a branch."""
        return self.started.beginning if self.started else ()

    def number_of(self, index: int) -> int:
        """Number of a written token, 1 the first of the answer. A branch counts on where its text goes on, so that a
        token has the number that it has in the run it came from."""
        return len(self.beginning) + index + 1

    @property
    def before(self) -> tuple[PromptToken, ...]:
        """Everything before the first new token."""
        return (*self.prompt, *self.beginning)

    @property
    def is_scored(self) -> bool:
        """Whether nothing was chosen: the text was given."""
        return self.request.scored or any(token.method == "scored" for token in self.tokens[:1])

    @property
    def sequence(self) -> RunSequence:
        """The text the views show."""
        return self.sequences[self.shown_index]

    @property
    def tokens(self) -> list[TokenChosen]:
        """Every token of the shown text."""
        return self.sequence.tokens

    @property
    def length(self) -> int:
        """The cursor's last place: tokens of the shown text, or steps of a beam search."""
        return len(self.beams.steps) if self.beams is not None else len(self.tokens)

    @property
    def has_text(self) -> bool:
        """Whether it has written, or scored, at least one token."""
        return self.beams is not None or any(sequence.tokens for sequence in self.sequences)

    @property
    def is_worth_keeping(self) -> bool:
        """Whether it belongs in the history: not without text, nor when another run replaced it as it began."""
        tokens = max((len(sequence.tokens) for sequence in self.sequences), default=0)
        return self.has_text and not (self.was_replaced and tokens < _MIN_TOKENS_TO_KEEP)

    @property
    def cursor_tokens(self) -> list[TokenChosen]:
        """One token for each place of the cursor: the shown text, or the foremost continuation of every step."""
        return self.beams.best_per_step if self.beams is not None else self.tokens

    @property
    def leader_changes(self) -> list[int]:
        """Places in the shown text where, up to the cursor, a beam search changed its mind."""
        return self.beams.leader_changes(self.cursor) if self.beams is not None and self.shown_index == 0 else []

    @property
    def text(self) -> str:
        """The shown text up to the cursor, without the prompt."""
        return self.sequence.text_until(self.cursor)

    @property
    def cache_history(self) -> CacheHistory:
        """The cache over the whole run so far: reckoned once, and only when somebody asks, for all who show it."""
        self._cache_history.update(self.events)
        return self._cache_history

    @property
    def rounds(self) -> DraftRounds:
        """The rounds of speculation so far, sorted in once for all who show them."""
        self._rounds.update(self.events)
        return self._rounds

    def apply(self, events: Iterable[Event]) -> None:
        """Append a batch; the cursor moves along while it follows the end."""
        for event in events:
            self.events.append(event)
            self._process(event)
        if self.is_following:
            self.cursor = self.length
        self._update_beam_sequences()

    def move_cursor(self, count: int) -> bool:
        """Draw the first `count` tokens only; at the end it follows again. True when anything changed."""
        count = max(0, min(count, self.length))
        following = count == self.length
        changed = (count, following) != (self.cursor, self.is_following)
        self.cursor, self.is_following = count, following
        self._update_beam_sequences()
        return changed

    def stop_following(self) -> None:
        """Keep the cursor where it stands, at the end too, however the run grows."""
        self.is_following = False

    def select(self, index: int | None) -> bool:
        """Choose the token of the inspector; None or out of range for none. True when it changed."""
        if index is not None and not 0 <= index < len(self.tokens):
            index = None
        changed = index != self.selected
        self.selected = index
        return changed

    def show_sequence(self, sequence: int) -> None:
        """Show another text, from its end. Raises IndexError when there is none of that number."""
        if not 0 <= sequence < len(self.sequences):
            raise IndexError(
                trn(
                    "This run has {count} text; there is no number {sequence}.",
                    "This run has {count} texts; there is no number {sequence}.",
                    len(self.sequences),
                ).format(count=len(self.sequences), sequence=sequence)
            )
        self.shown_index = sequence
        self.selected = None
        self.is_following = True
        self.cursor = self.length
        self._update_beam_sequences()

    def _update_beam_sequences(self) -> None:
        """Let the texts of a beam search be the best hypotheses at the cursor."""
        if self.beams is not None:
            endings = self._endings if self.cursor == self.length else {}
            for number, sequence in enumerate(self.sequences):
                sequence.finished = endings.get(number)
            update_from_beams(self.beams, self.cursor, self.sequences)

    def _process(self, event: Event) -> None:
        match event:
            case core.events.TokenChosen():
                get_sequence(self.sequences, event.sequence).tokens.append(event)
            case core.events.TokenCompared():
                self.comparisons.append(event)
            case core.events.BeamStep() | core.events.BeamsRanked():
                self.beams = self.beams or BeamTree()
                self.beams.append(event)
            case core.events.SequenceFinished():
                get_sequence(self.sequences, event.sequence).finished = self._endings[event.sequence] = event
            case core.events.RunStarted():
                self.started = event
                get_sequence(self.sequences, event.sequences - 1)
                for sequence in self.sequences:
                    sequence.before = "".join(token.text for token in event.beginning)
            case core.events.Prefilled():
                self.prefilled = event
            case core.events.CacheMeasured():
                self.cache = event
            case core.events.Notice():
                self.notices.append(event)
            case core.events.Finished():
                self.finished = event
