"""Guess first: the text holds before a token, somebody guesses, then it is shown what the model thought."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QObject, QTimer, Signal, Slot
from PySide6.QtWidgets import QWidget

from app.control.borrowed_settings import GUESS, BorrowedSettings
from app.control.messages import Messages
from app.panels.centre import Centre
from app.session.session import Session
from app.state.guessing import GuessQuestion, events_between, guess_unsupported_reason, make_questions, truncate_run
from app.state.run import Run
from app.state.worker_messages import Outcome
from app.theme.theme import Theme, theme_for
from core import words
from resources.language import tr

if TYPE_CHECKING:
    from app.panels.tours.bottom_panels import GuessPanel
    from app.widgets.bars import BarRow

STEP_MS = 90
"""From one token to the next between two questions."""


class GuessState(NamedTuple):
    """A game under way; plain values that outlive the parts of a window."""

    full_run: Run
    shown_run: Run
    questions: list[GuessQuestion]
    number: int
    right: int
    model_right: int
    guess: int | None
    """The choice that was guessed last, whose answer is shown; None while a question is open."""


class GuessController(QObject):
    """`started`, `ended`; `questionShown(Question)` when the text holds.

    The views are shown a run that ends before the token in question (`app.state.guessing.truncate_run`); it grows as the game
    goes on, and the whole one takes its place again when the game is left.
    """

    started = Signal()
    ended = Signal()
    questionShown = Signal(object)

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
        self._theme = theme_for("light")
        self.panel: GuessPanel | None = None
        """None before the first game."""
        self.questions: list[GuessQuestion] = []
        self.number = self.right = self.model_right = 0
        """The question, how many guesses were right, and how many the model's likeliest choice would have been."""
        self._guess: int | None = None
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
        """Whether a game goes on, or waits for its text to end."""
        return self._full_run is not None or self._is_waiting

    @Slot()
    def toggle(self) -> None:
        """Begin a game, or leave it."""
        if self.is_on:
            self.leave()
        else:
            self.start()

    @Slot()
    def start(self) -> None:
        """Begin with the shown text: from where the cursor stands, else from its first token. A text that is still
        being written is held where it is, and played on from there once it has ended."""
        run = self._session.run
        if run is not None and self._session.busy and run.beams is None and not run.is_scored:
            self._is_waiting = True
            self._session.move_cursor(max(0, run.cursor - 1))
            self.started.emit()
            self._borrowed.borrow(GUESS)
            self._ensure_panel().show_result(
                tr("Guess first"), tr("The text is being written to its end. It is held here until then.")
            )
            return
        if reason := guess_unsupported_reason(run):
            self._messages.show_notice(reason, tr("There is nothing to guess"))
            return
        assert run is not None
        self.started.emit()
        self._begin(run, 0 if run.is_following else run.cursor)

    def state(self) -> GuessState | None:
        """What `resume` needs in a window that is built again, in another language; None while no game is on."""
        if self._full_run is None or self._shown_run is None:
            return None
        game = (self.questions, self.number, self.right, self.model_right, self._guess)
        return GuessState(self._full_run, self._shown_run, *game)

    def resume(self, state: GuessState) -> None:
        """Show the question, or the answer, at which a game stood."""
        self._full_run, self._shown_run = state.full_run, state.shown_run
        self.questions, self.number, self.right, self.model_right, self._guess = state[2:]
        self.started.emit()
        self._session.show(self._shown_run)
        self._ensure_panel()
        if self._guess is None:
            self._timer.start()
        else:
            self._show_answer(self.questions[self.number - 1], self._guess)

    @Slot(int)
    def pick(self, number: int) -> None:
        """Guess that choice: now it is shown."""
        question = self._current_question
        if question is None or self._timer.isActive() or number >= len(question.choices):
            return
        self.right += number == question.answer
        self.model_right += question.likeliest == question.answer
        self._reveal_until(question.position + 1)
        self._session.select_token(question.position)
        self.number += 1
        self._show_answer(question, number)

    def _show_answer(self, question: GuessQuestion, number: int) -> None:
        """Show what stood there, beside the choice that was guessed."""
        self._guess = number
        is_last = self.number == len(self.questions)
        title = tr("See the score") if is_last else tr("Go on")
        self._ensure_panel().show_result(
            self._title(self.number), _answer_text(question, number), _choice_bars(question, number), title
        )

    @Slot()
    def next(self) -> None:
        """Play on to the next question, or tell the score; behind that the game is over."""
        if self._full_run is None:
            return
        self._guess = None
        self._session.select_token(None)
        if self._current_question is not None:
            self._timer.start()
            return
        if self._shown_run is not None and self._shown_run.finished is None:
            self._reveal_until(len(self._full_run.tokens))
            score = tr("{right} of {all} guessed. Always saying the likeliest word would have guessed {models}.")
            result = score.format(right=self.right, all=len(self.questions), models=self.model_right)
            self._show_full_run()
            self._ensure_panel().show_result(tr("The score"), result)

    @Slot()
    def leave(self) -> None:
        """End the game; the whole text can be seen again, up to where it was guessed."""
        if self.is_on or (self.panel is not None and self.panel.isVisible()):
            self._show_full_run()
            self._close()

    @Slot(object)
    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes, now or once there is something to draw."""
        self._theme = theme
        if self.panel is not None:
            self.panel.set_theme(theme)

    @property
    def _current_question(self) -> GuessQuestion | None:
        return self.questions[self.number] if self.number < len(self.questions) else None

    def _begin(self, run: Run, start: int) -> None:
        self.number = self.right = self.model_right = 0
        self._guess = None
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
        """One token more, until the next question."""
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
        """Let the shown run have its text up to there."""
        if self._full_run is not None and self._shown_run is not None:
            events = events_between(self._full_run, len(self._shown_run.tokens), stop)
            self._shown_run.apply(events)
            self._session.eventsArrived.emit(self._shown_run, events)

    def _show_full_run(self) -> None:
        """Show the whole run again."""
        self._timer.stop()
        full_run, shown = self._full_run, self._shown_run
        self._full_run = self._shown_run = None
        self._is_waiting = False
        if full_run is not None and shown is not None and self._session.run is shown:
            self._session.show(full_run)
            self._session.move_cursor(len(shown.tokens))

    def _title(self, number: int) -> str:
        progress = tr("Question {number} of {all}").format(number=number, all=len(self.questions))
        right = tr("{count} right").format(count=self.right)  # apart: extraction on Python 3.11 sees no f-strings
        return f"{progress} · {right}"

    def _ensure_panel(self) -> GuessPanel:
        from app.panels.tours.bottom_panels import GuessPanel

        panel = self.panel
        if panel is None:
            panel = self.panel = GuessPanel()
            panel.hide()
            self._dock(panel)
            panel.picked.connect(self.pick)
            panel.nextRequested.connect(self.next)
            panel.leaveRequested.connect(self.leave)
            panel.set_theme(self._theme)
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
        """Another run takes the place of the one that is guessed at: the game is over."""
        if self.is_on and run is not self._shown_run and run is not self._full_run:
            self._full_run = self._shown_run = None
            self._show_full_run()
            self._close()

    @Slot(object)
    def _on_finished(self, _outcome: Outcome) -> None:
        """The text that was waited for is there: what has not been seen of it is guessed."""
        run = self._session.run
        if not self._is_waiting or run is None:
            return
        self._is_waiting = False
        if reason := guess_unsupported_reason(run):
            self._ensure_panel().show_result(tr("Guess first"), reason)
        else:
            self._begin(run, run.cursor)


def _answer_text(question: GuessQuestion, number: int) -> str:
    """What stood there and how likely it was, and how likely what was guessed."""
    chosen, guessed = question.choices[question.answer], question.choices[number]
    probability = words.percent(chosen.probability)
    if number == question.answer:
        return tr("Right: {word} had {share}.").format(word=words.quote(chosen.text, chosen.special), share=probability)
    return tr("{word} was chosen, with {share}. Your {guess} had {chance}.").format(
        word=words.quote(chosen.text, chosen.special), share=probability, guess=words.quote(guessed.text, guessed.special),
        chance=words.percent(guessed.probability),
    )  # fmt: skip


def _choice_bars(question: GuessQuestion, number: int) -> list[BarRow]:
    """What the model thought of the four, once everything that was set had been applied."""
    from app.widgets.bars import BarRow

    return [
        BarRow(
            f"{'✓' if n == question.answer else '·'} {one.text.strip()}",
            (one.probability,),
            (words.percent(one.probability),),
            strong=n == question.answer,
            tip=tr("Your guess") if n == number else "",
        )
        for n, one in enumerate(question.choices)
    ]
