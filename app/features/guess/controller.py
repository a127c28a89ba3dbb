"""Guessing game: the text pauses before a token, the user guesses it, then the model's prediction is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QObject, QTimer, Signal, Slot
from PySide6.QtWidgets import QWidget

from decodescope.app.control.borrowed_settings import GUESS, BorrowedSettings
from decodescope.app.control.messages import Messages
from decodescope.app.features.guess.state import (
    GuessQuestion,
    events_between,
    guess_unsupported_reason,
    make_questions,
    truncate_run,
)
from decodescope.app.panels.centre import Centre
from decodescope.app.session.session import Session
from decodescope.app.state.room_votes import LETTERS, RoomAnswer, plurality
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import Outcome
from decodescope.app.theme.themed import inherit_theme
from decodescope.core import words
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.app.features.guess.panel import GuessPanel
    from decodescope.app.widgets.bars import BarRow

STEP_MS = 90
"""Delay between two tokens while the text plays on."""


class GuessState(NamedTuple):
    """State of a game, independent of widgets."""

    full_run: Run
    shown_run: Run
    questions: list[GuessQuestion]
    number: int
    right: int
    model_right: int
    votes: tuple[int, ...] | None
    """The votes for the choices of the last question, while its answer is shown; None while a question is open."""
    is_room: bool
    """Whether these are the votes of an audience."""


class GuessController(QObject):
    """Runs the guessing game. Signals: `started`, `ended`, `questionShown(GuessQuestion)` when the text pauses,
    `answerShown` after a guess, `roomAnswered(RoomAnswer)` when a room has guessed.

    The views are shown a run that ends before the current question (`state.truncate_run`). It grows during the game,
    and the full run replaces it when the game ends.
    """

    started = Signal()
    ended = Signal()
    questionShown = Signal(object)
    answerShown = Signal()
    roomAnswered = Signal(object)

    def __init__(
        self,
        dock: Callable[[QWidget], None],
        centre: Centre,
        session: Session,
        messages: Messages,
        borrowed: BorrowedSettings,
    ) -> None:
        super().__init__(centre)
        self._borrowed = borrowed
        self._dock, self._centre, self._session, self._messages = dock, centre, session, messages
        self.panel: GuessPanel | None = None
        """None before the first game."""
        self.questions: list[GuessQuestion] = []
        self.number = self.right = self.model_right = 0
        """The current question's index, the number of right guesses, and how many times the model's likeliest choice
        was right.
        """
        self._votes: tuple[int, ...] | None = None
        self._is_room = False
        self._full_run: Run | None = None
        self._shown_run: Run | None = None
        self._is_waiting = False
        self._timer = QTimer(self, interval=STEP_MS)
        self._timer.timeout.connect(self._advance)
        session.runStarted.connect(self._on_run_changed)
        session.runShown.connect(self._on_run_changed)
        session.finished.connect(self._on_finished)

    @property
    def is_on(self) -> bool:
        """Whether a game is on, or waits for its text to end."""
        return self._full_run is not None or self._is_waiting

    @Slot()
    def toggle(self) -> None:
        """Start a game, or leave it."""
        if self.is_on:
            self.leave()
        else:
            self.start()

    @Slot()
    def start(self) -> None:
        """Start with the shown text, at the cursor or else at the first token. A text that is still being generated is
        paused and used once it has ended.
        """
        run = self._session.run
        if run is not None and self._session.busy and run.beams is None and not run.is_scored:
            self._is_waiting = True
            self._session.move_cursor(max(0, run.cursor - 1))
            self.started.emit()
            self._borrowed.borrow(GUESS)
            self._ensure_panel().show_result(
                tr("Guess first"), tr("The text is still being generated. The game starts when it is done.")
            )
            return
        if reason := guess_unsupported_reason(run):
            self._messages.show_notice(reason, tr("Nothing to guess"))
            return
        assert run is not None
        self.started.emit()
        self._begin(run, 0 if run.is_following else run.cursor)

    def state(self) -> GuessState | None:
        """Return what `resume` needs in a rebuilt window (another language); None without a game."""
        if self._full_run is None or self._shown_run is None:
            return None
        game = (self.questions, self.number, self.right, self.model_right, self._votes, self._is_room)
        return GuessState(self._full_run, self._shown_run, *game)

    def resume(self, state: GuessState) -> None:
        """Show the question or the answer of a saved game."""
        self._full_run, self._shown_run = state.full_run, state.shown_run
        self.questions, self.number, self.right, self.model_right, self._votes, is_room = state[2:]
        self.started.emit()
        self._session.show(self._shown_run)
        self._ensure_panel()
        if self._votes is None:
            self._timer.start()
        else:
            self._show_answer(self.questions[self.number - 1], self._votes, is_room)

    @Slot(bool)
    def set_room(self, is_room: bool) -> None:
        """Count the votes of an audience, as while presenting, or let one person guess."""
        self._is_room = is_room
        if self.panel is not None:
            self.panel.choice_row.set_room(is_room)

    @property
    def has_open_question(self) -> bool:
        """Whether a question waits for an answer."""
        return self.is_on and self.panel is not None and self.panel.choice_row.isVisible()

    def press(self, key: int) -> bool:
        """Handle a key of the open question; return False if it has no meaning now."""
        return self.has_open_question and self.panel is not None and self.panel.choice_row.press(key)

    @Slot(int)
    def pick(self, number: int) -> None:
        """Guess choice `number` and show the answer."""
        question = self._current_question
        if question is not None and number < len(question.choices):
            self._count_votes(tuple(int(number == n) for n in range(len(question.choices))), is_room=False)

    @Slot(tuple)
    def vote(self, votes: tuple[int, ...]) -> None:
        """Take the votes of an audience for the choices and show the answer."""
        self._count_votes(votes, is_room=True)

    def _count_votes(self, votes: tuple[int, ...], is_room: bool) -> None:
        question = self._current_question
        if question is None or self._timer.isActive():
            return
        before = self._shown_run.text if self._shown_run is not None else ""
        self.right += plurality(votes) == question.answer
        self.model_right += question.likeliest == question.answer
        self._reveal_until(question.position + 1)
        self._session.select_token(question.position)
        self.number += 1
        self._show_answer(question, votes, is_room)
        self.answerShown.emit()
        if is_room and any(votes):
            texts = tuple(one.text.strip() for one in question.choices)
            shares = tuple(words.percent(one.probability) for one in question.choices)
            self.roomAnswered.emit(RoomAnswer(texts, votes, shares, question.answer, before))

    def _show_answer(self, question: GuessQuestion, votes: tuple[int, ...], is_room: bool) -> None:
        """Show the actual token next to the guess."""
        self._votes = votes
        is_last = self.number == len(self.questions)
        title = tr("See the score") if is_last else tr("Continue")
        rows, heads = _choice_bars(question, votes, is_room)
        self._ensure_panel().show_result(
            self._title(self.number), _answer_text(question, votes, is_room), rows, title, heads
        )

    @Slot()
    def next(self) -> None:
        """Play on to the next question, or show the score and end the game. An open question stays until it is
        answered; a room goes on to its next choice.
        """
        is_open = self._votes is None and self._current_question is not None
        if self._full_run is not None and is_open and self._is_room and self.panel is not None:
            if self.has_open_question:
                self.panel.choice_row.confirm()
            return
        if self._full_run is None or is_open:
            return
        self._votes = None
        self._session.select_token(None)
        if self._current_question is not None:
            self._timer.start()
            return
        if self._shown_run is not None and self._shown_run.finished is None:
            self._reveal_until(len(self._full_run.tokens))
            score = tr("{right} of {all} right. Always picking the likeliest word would have scored {models}.")
            result = score.format(right=self.right, all=len(self.questions), models=self.model_right)
            self._show_full_run()
            self._ensure_panel().show_result(tr("Score"), result)

    @Slot()
    def leave(self) -> None:
        """End the game and show the full run, with the cursor where the game ended."""
        if self.is_on or (self.panel is not None and self.panel.isVisible()):
            self._show_full_run()
            self._close()

    def answer_preview(self) -> str:
        """Return the answer of the open question, for the one who asks it; empty while no question is open."""
        question = self._current_question
        if self._full_run is None or question is None or self._votes is not None or self._timer.isActive():
            return ""
        chosen = question.choices[question.answer]
        return tr("Answer: {letter}, {word} with {share}.").format(
            letter=LETTERS[question.answer],
            word=words.quote(chosen.text, chosen.special),
            share=words.percent(chosen.probability),
        )

    @property
    def _current_question(self) -> GuessQuestion | None:
        return self.questions[self.number] if self.number < len(self.questions) else None

    def _begin(self, run: Run, start: int) -> None:
        self.number = self.right = self.model_right = 0
        self._votes = None
        self.questions = make_questions(run, start) or make_questions(run)
        start = min(start, self.questions[0].position)
        self._full_run, self._shown_run = run, truncate_run(run, start)
        self._session.show(self._shown_run)
        self._borrowed.borrow(GUESS)
        self._centre.show_view("tokens")
        self._ensure_panel()
        self._timer.start()

    @Slot()
    def _advance(self) -> None:
        """Show one more token, or the next question."""
        question = self._current_question
        if question is None or self._shown_run is None:
            self._timer.stop()
        elif len(self._shown_run.tokens) < question.position:
            self._reveal_until(len(self._shown_run.tokens) + 1)
        else:
            self._timer.stop()
            texts = [one.text.strip() for one in question.choices]
            self._ensure_panel().show_choices(self._title(self.number + 1), tr("Which word comes next?"), texts)
            self.questionShown.emit(question)

    def _reveal_until(self, stop: int) -> None:
        """Extend the shown run to `stop` tokens."""
        if self._full_run is not None and self._shown_run is not None:
            events = events_between(self._full_run, len(self._shown_run.tokens), stop)
            self._shown_run.apply(events)
            self._session.eventsArrived.emit(self._shown_run, events)

    def _show_full_run(self) -> None:
        """Show the full run again."""
        self._timer.stop()
        full_run, shown = self._full_run, self._shown_run
        self._full_run = self._shown_run = None
        self._is_waiting = False
        if full_run is not None and shown is not None and self._session.run is shown:
            self._session.show(full_run)
            self._session.move_cursor(len(shown.tokens))

    def _title(self, number: int) -> str:
        progress = tr("Question {number} of {all}").format(number=number, all=len(self.questions))
        right = tr("{count} right").format(
            count=self.right
        )  # separate call: gettext extraction on Python 3.11 skips f-strings
        return f"{progress} · {right}"

    def _ensure_panel(self) -> GuessPanel:
        from decodescope.app.features.guess.panel import GuessPanel

        panel = self.panel
        if panel is None:
            panel = self.panel = GuessPanel()
            panel.hide()
            self._dock(panel)
            panel.picked.connect(self.pick)
            panel.voted.connect(self.vote)
            panel.choice_row.set_room(self._is_room)
            panel.nextRequested.connect(self.next)
            panel.leaveRequested.connect(self.leave)
            inherit_theme(panel)
        if panel.isHidden():
            panel.show()
            panel.take_focus()
        return panel

    def _close(self) -> None:
        if self.panel is not None:
            self.panel.restore_focus()
            self.panel.hide()
        self._borrowed.give_back_view(GUESS)
        self.ended.emit()

    @Slot(object)
    def _on_run_changed(self, run: Run) -> None:
        """End the game when another run is shown."""
        if self.is_on and run is not self._shown_run and run is not self._full_run:
            self._full_run = self._shown_run = None
            self._show_full_run()
            self._close()

    @Slot(object)
    def _on_finished(self, _outcome: Outcome) -> None:
        """Start the game with the finished text, from the part that was not seen yet."""
        run = self._session.run
        if not self._is_waiting or run is None:
            return
        self._is_waiting = False
        if reason := guess_unsupported_reason(run):
            self._ensure_panel().show_result(tr("Guess first"), reason)
        else:
            self._begin(run, run.cursor)


def _answer_text(question: GuessQuestion, votes: tuple[int, ...], is_room: bool) -> str:
    """Return the actual word and its probability, and the hands for it or the probability of the guess."""
    chosen = question.choices[question.answer]
    word, share = words.quote(chosen.text, chosen.special), words.percent(chosen.probability)
    guess = plurality(votes)
    if is_room:
        if not any(votes):
            return tr("The model chose {word} ({share}).").format(word=word, share=share)
        return tr("The model chose {word} ({share}). {right} of {all} hands were for it.").format(
            word=word, share=share, right=votes[question.answer], all=sum(votes)
        )
    if guess is None or guess == question.answer:
        return tr("Right: {word} had {share}.").format(word=word, share=share)
    guessed = question.choices[guess]
    return tr("The model chose {word} ({share}). Your guess {guess} had {chance}.").format(
        word=word,
        share=share,
        guess=words.quote(guessed.text, guessed.special),
        chance=words.percent(guessed.probability),
    )


def _choice_bars(
    question: GuessQuestion, votes: tuple[int, ...], is_room: bool
) -> tuple[list[BarRow], tuple[str, ...]]:
    """Return rows with the probabilities of the choices after all processors were applied, beside those of a room."""
    from decodescope.app.panels.choice_row import choice_bars

    texts = [one.text.strip() for one in question.choices]
    shares = [(one.probability, words.percent(one.probability)) for one in question.choices]
    return choice_bars(texts, question.answer, votes, is_room, shares)
