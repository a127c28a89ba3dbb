"""A run: its events so far, and the cursor shared by all views. No Qt in here."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from decodescope import core
from decodescope.app.state.answer_thinking import ThinkingTracker
from decodescope.app.state.beam_tree import BeamTree, update_from_beams
from decodescope.app.state.cache_history import CacheHistory
from decodescope.app.state.draft_rounds import DraftRounds
from decodescope.app.state.sequences import RunSequence, get_sequence
from decodescope.app.state.worker_messages import Outcome, RunRequest
from decodescope.resources.language import trn

if TYPE_CHECKING:
    from decodescope.core.events import (
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
    from decodescope.core.thinking import AnswerThinking

_MIN_TOKENS_TO_KEEP = 8
"""A run replaced before this many tokens is not worth keeping."""


class Run:
    """The events of one run, with derived state; `cursor` is the number of tokens that the views draw."""

    def __init__(self, request: RunRequest) -> None:
        self.id = os.urandom(16).hex()
        """Permanent id, which history entries and branches refer to."""
        self.request = request
        self.events: list[Event] = []
        self.started: RunStarted | None = None
        self.prefilled: Prefilled | None = None
        self.cache: CacheMeasured | None = None
        self.finished: Finished | None = None
        self.outcome: Outcome | None = None
        self.is_withheld = False
        """Whether this is the beginning of a run whose rest is withheld for the guessing game."""
        self.notices: list[Notice] = []
        self.sequences: list[RunSequence] = [RunSequence(0)]
        self.beams: BeamTree | None = None
        """Tree of a beam search; its texts are the leading ones at the cursor, which then counts steps."""
        self.comparisons: list[TokenCompared] = []
        """Scoring with a comparison model: its values for each token, in text order."""
        self._endings: dict[int, SequenceFinished] = {}
        self._cache_history, self._rounds = CacheHistory(), DraftRounds()
        self._thinking: dict[int, ThinkingTracker] = {}
        self.shown_index = 0
        self.cursor = 0
        self.is_following = True
        self.selected: int | None = None
        self.is_loading = False
        """Whether the model is still being loaded."""
        self.was_replaced = False
        """Whether another run was started before this one had ended."""

    @property
    def prompt(self) -> tuple[PromptToken, ...]:
        """The prompt's tokens; empty until the run has started."""
        return self.started.prompt if self.started else ()

    @property
    def beginning(self) -> tuple[PromptToken, ...]:
        """Tokens that the answer begins with, if the run is a branch."""
        return self.started.beginning if self.started else ()

    def number_of(self, index: int) -> int:
        """Return the number of a generated token, starting at 1. A branch continues the numbering of the run it came
        from.
        """
        return len(self.beginning) + index + 1

    @property
    def before(self) -> tuple[PromptToken, ...]:
        """All tokens before the first new token."""
        return (*self.prompt, *self.beginning)

    @property
    def is_scored(self) -> bool:
        """Whether the text was scored instead of generated."""
        return self.request.scored or any(token.method == "scored" for token in self.tokens[:1])

    @property
    def sequence(self) -> RunSequence:
        """The sequence shown in the views."""
        return self.sequences[self.shown_index]

    @property
    def tokens(self) -> list[TokenChosen]:
        """All tokens of the shown sequence."""
        return self.sequence.tokens

    @property
    def thinking(self) -> AnswerThinking:
        """The thinking of the shown sequence; `ranges` counts from its first new token."""
        return self.thinking_of(self.shown_index)

    def thinking_of(self, index: int) -> AnswerThinking:
        """Return the thinking of a sequence."""
        sequence = self.sequences[index]
        tracker = self._thinking.setdefault(index, ThinkingTracker())
        return tracker.update(self.started, sequence.tokens, sequence.finished)

    @property
    def length(self) -> int:
        """Last cursor position: the number of tokens of the shown sequence, or of steps of a beam search."""
        return len(self.beams.steps) if self.beams is not None else len(self.tokens)

    @property
    def has_text(self) -> bool:
        """Whether at least one token was generated or scored."""
        return self.beams is not None or any(sequence.tokens for sequence in self.sequences)

    @property
    def is_worth_keeping(self) -> bool:
        """Whether it belongs in the history: it has text and was not replaced right after its start."""
        tokens = max((len(sequence.tokens) for sequence in self.sequences), default=0)
        return self.has_text and not (self.was_replaced and tokens < _MIN_TOKENS_TO_KEEP)

    @property
    def cursor_tokens(self) -> list[TokenChosen]:
        """One token per cursor position: the shown sequence, or the best continuation of every step."""
        return self.beams.best_per_step if self.beams is not None else self.tokens

    @property
    def leader_changes(self) -> list[int]:
        """Indices in the shown text at which the leader of a beam search had changed, up to the cursor."""
        return self.beams.leader_changes(self.cursor) if self.beams is not None and self.shown_index == 0 else []

    @property
    def text(self) -> str:
        """The shown text up to the cursor, without the prompt."""
        return self.sequence.text_until(self.cursor)

    @property
    def cache_history(self) -> CacheHistory:
        """The cache over the whole run so far; computed on demand and shared by all views."""
        self._cache_history.update(self.events)
        return self._cache_history

    @property
    def rounds(self) -> DraftRounds:
        """The rounds of speculative decoding so far, shared by all views."""
        self._rounds.update(self.events)
        return self._rounds

    def apply(self, events: Iterable[Event]) -> None:
        """Append events; the cursor moves along while it follows the end."""
        for event in events:
            self.events.append(event)
            self._process(event)
        if self.is_following:
            self.cursor = self.length
        self._update_beam_sequences()

    def move_cursor(self, count: int) -> bool:
        """Draw only the first `count` tokens; at the end the cursor follows again. Return whether anything changed."""
        count = max(0, min(count, self.length))
        following = count == self.length
        changed = (count, following) != (self.cursor, self.is_following)
        self.cursor, self.is_following = count, following
        self._update_beam_sequences()
        return changed

    def stop_following(self) -> None:
        """Fix the cursor at its position, even at the end of a growing run."""
        self.is_following = False

    def select(self, index: int | None) -> bool:
        """Select a token for the inspector; None or an index out of range selects none. Return whether the selection
        changed.
        """
        if index is not None and not 0 <= index < len(self.tokens):
            index = None
        changed = index != self.selected
        self.selected = index
        return changed

    def show_sequence(self, sequence: int) -> None:
        """Show another sequence, from its end.

        Raises IndexError if there is none with that number.
        """
        if not 0 <= sequence < len(self.sequences):
            raise IndexError(
                trn(
                    "This run has {count} sequence; number {sequence} does not exist.",
                    "This run has {count} sequences; number {sequence} does not exist.",
                    len(self.sequences),
                ).format(count=len(self.sequences), sequence=sequence)
            )
        self.shown_index = sequence
        self.selected = None
        self.is_following = True
        self.cursor = self.length
        self._update_beam_sequences()

    def _update_beam_sequences(self) -> None:
        """Set the sequences of a beam search to the best hypotheses at the cursor."""
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
