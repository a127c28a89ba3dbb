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
from app.state.guessing import GuessQuestion, between, questions, until, why_not_guess
from app.state.run import Run
from app.state.worker_messages import Outcome
from app.theme.theme import Theme, theme_for
from core import words
from resources.language import tr

if TYPE_CHECKING:
    from app.panels.guess_panel import GuessPanel
    from app.widgets.bars_layout import BarRow

STEP_MS = 90
"""From one token to the next between two questions."""


class GuessState(NamedTuple):
    """A game under way; plain values that outlive the parts of a window."""

    whole: Run
    shown: Run
    questions: list[GuessQuestion]
    number: int
    right: int
    models: int
    guess: int | None
    """The choice that was guessed last, whose answer is shown; None while a question is open."""


class GuessController(QObject):
    """`started`, `ended`; `asked(Question)` when the text holds.

    The views are shown a run that ends before the token in question (`app.state.guessing.until`); it grows as the game
    goes on, and the whole one takes its place again when the game is left.
    """

    started = Signal()
    ended = Signal()
    asked = Signal(object)

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
        self.number = self.right = self.models = 0
        """The question, how many guesses were right, and how many the model's likeliest choice would have been."""
        self._guess: int | None = None
        self._whole: Run | None = None
        self._shown: Run | None = None
        self._waits = False
        self._clock = QTimer(self, interval=STEP_MS)
        self._clock.timeout.connect(self._play_on)
        session.runStarted.connect(self._on_other)
        session.runShown.connect(self._on_other)
        session.finished.connect(self._on_ended)

    @property
    def is_on(self) -> bool:
        """Whether a game goes on, or waits for its text to end."""
        return self._whole is not None or self._waits

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
            self._waits = True
            self._session.move_cursor(max(0, run.cursor - 1))
            self.started.emit()
            self._borrowed.borrow(GUESS)
            self._open().tell(
                tr("Guess first"), tr("The text is being written to its end. It is held here until then.")
            )
            return
        if reason := why_not_guess(run):
            self._messages.show_notice(reason, tr("There is nothing to guess"))
            return
        assert run is not None
        self.started.emit()
        self._begin(run, 0 if run.following else run.cursor)

    def state(self) -> GuessState | None:
        """What `resume` needs in a window that is built again, in another language; None while no game is on."""
        if self._whole is None or self._shown is None:
            return None
        game = (self.questions, self.number, self.right, self.models, self._guess)
        return GuessState(self._whole, self._shown, *game)

    def resume(self, state: GuessState) -> None:
        """Show the question, or the answer, at which a game stood."""
        self._whole, self._shown = state.whole, state.shown
        self.questions, self.number, self.right, self.models, self._guess = state[2:]
        self.started.emit()
        self._session.show(self._shown)
        self._open()
        if self._guess is None:
            self._clock.start()
        else:
            self._tell(self.questions[self.number - 1], self._guess)

    @Slot(int)
    def pick(self, number: int) -> None:
        """Guess that choice: now it is shown."""
        question = self._question
        if question is None or self._clock.isActive() or number >= len(question.choices):
            return
        self.right += number == question.right
        self.models += question.likeliest == question.right
        self._grow(question.place + 1)
        self._session.select_token(question.place)
        self.number += 1
        self._tell(question, number)

    def _tell(self, question: GuessQuestion, number: int) -> None:
        """Show what stood there, beside the choice that was guessed."""
        self._guess = number
        is_last = self.number == len(self.questions)
        title = tr("See the score") if is_last else tr("Go on")
        self._open().tell(self._title(self.number), _verdict(question, number), _rows(question, number), title)

    @Slot()
    def next(self) -> None:
        """Play on to the next question, or tell the score; behind that the game is over."""
        if self._whole is None:
            return
        self._guess = None
        self._session.select_token(None)
        if self._question is not None:
            self._clock.start()
            return
        if self._shown is not None and self._shown.finished is None:
            self._grow(len(self._whole.tokens))
            score = tr("{right} of {all} guessed. Always saying the likeliest word would have guessed {models}.")
            told = score.format(right=self.right, all=len(self.questions), models=self.models)
            self._restore()
            self._open().tell(tr("The score"), told)

    @Slot()
    def leave(self) -> None:
        """End the game; the whole text can be seen again, up to where it was guessed."""
        if self.is_on or (self.panel is not None and self.panel.isVisible()):
            self._restore()
            self._close()

    @Slot(object)
    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes, now or once there is something to draw."""
        self._theme = theme
        if self.panel is not None:
            self.panel.set_theme(theme)

    @property
    def _question(self) -> GuessQuestion | None:
        return self.questions[self.number] if self.number < len(self.questions) else None

    def _begin(self, run: Run, start: int) -> None:
        self.number = self.right = self.models = 0
        self._guess = None
        self.questions = questions(run, start) or questions(run)
        start = min(start, self.questions[0].place)
        self._whole, self._shown = run, until(run, start)
        self._session.show(self._shown)
        self._borrowed.borrow(GUESS)
        self._centre.show_view("tokens")
        self._open()
        self._clock.start()

    @Slot()
    def _play_on(self) -> None:
        """One token more, until the next question."""
        question = self._question
        if question is None or self._shown is None:
            self._clock.stop()
        elif len(self._shown.tokens) < question.place:
            self._grow(len(self._shown.tokens) + 1)
        else:
            self._clock.stop()
            texts = [one.text.strip() for one in question.choices]
            self._open().ask(self._title(self.number + 1), tr("Which word comes next?"), texts)
            self.asked.emit(question)

    def _grow(self, stop: int) -> None:
        """Let the shown run have its text up to there."""
        if self._whole is not None and self._shown is not None:
            events = between(self._whole, len(self._shown.tokens), stop)
            self._shown.apply(events)
            self._session.eventsArrived.emit(self._shown, events)

    def _restore(self) -> None:
        """Show the whole run again."""
        self._clock.stop()
        whole, shown = self._whole, self._shown
        self._whole = self._shown = None
        self._waits = False
        if whole is not None and shown is not None and self._session.run is shown:
            self._session.show(whole)
            self._session.move_cursor(len(shown.tokens))

    def _title(self, number: int) -> str:
        place = tr("Question {number} of {all}").format(number=number, all=len(self.questions))
        right = tr("{count} right").format(count=self.right)  # apart: extraction on Python 3.11 sees no f-strings
        return f"{place} · {right}"

    def _open(self) -> GuessPanel:
        from app.panels.guess_panel import GuessPanel

        panel = self.panel
        if panel is None:
            panel = self.panel = GuessPanel()
            panel.hide()
            self._dock(panel)
            panel.picked.connect(self.pick)
            panel.nextWanted.connect(self.next)
            panel.leaveWanted.connect(self.leave)
            panel.set_theme(self._theme)
        if panel.isHidden():
            panel.show()
            panel.take_focus()
        return panel

    def _close(self) -> None:
        if self.panel is not None:
            self.panel.give_focus_back()
            self.panel.hide()
        self._borrowed.give_back_view(GUESS)
        self.ended.emit()

    @Slot(object)
    def _on_other(self, run: Run) -> None:
        """Another run takes the place of the one that is guessed at: the game is over."""
        if self.is_on and run is not self._shown and run is not self._whole:
            self._whole = self._shown = None
            self._restore()
            self._close()

    @Slot(object)
    def _on_ended(self, _outcome: Outcome) -> None:
        """The text that was waited for is there: what has not been seen of it is guessed."""
        run = self._session.run
        if not self._waits or run is None:
            return
        self._waits = False
        if reason := why_not_guess(run):
            self._open().tell(tr("Guess first"), reason)
        else:
            self._begin(run, run.cursor)


def _verdict(question: GuessQuestion, number: int) -> str:
    """What stood there and how likely it was, and how likely what was guessed."""
    chosen, guessed = question.choices[question.right], question.choices[number]
    share = words.percent(chosen.probability)
    if number == question.right:
        return tr("Right: {word} had {share}.").format(word=words.quote(chosen.text, chosen.special), share=share)
    return tr("{word} was chosen, with {share}. Your {guess} had {chance}.").format(
        word=words.quote(chosen.text, chosen.special), share=share, guess=words.quote(guessed.text, guessed.special),
        chance=words.percent(guessed.probability),
    )  # fmt: skip


def _rows(question: GuessQuestion, number: int) -> list[BarRow]:
    """What the model thought of the four, once everything that was set had been applied."""
    from app.widgets.bars_layout import BarRow

    return [
        BarRow(
            f"{'✓' if n == question.right else '·'} {one.text.strip()}",
            (one.probability,),
            (words.percent(one.probability),),
            strong=n == question.right,
            tip=tr("Your guess") if n == number else "",
        )
        for n, one in enumerate(question.choices)
    ]
