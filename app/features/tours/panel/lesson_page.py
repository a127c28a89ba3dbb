"""Start page of the lessons: a card for each, the progress, and the printable sheet."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QPushButton, QWidget

from decodescope.app.features.tours.panel.card_dialog import CardDialog, DialogCard
from decodescope.app.features.tours.state import Lesson, TourError
from decodescope.app.widgets.building import set_up
from decodescope.app.widgets.plain_text import PlainLabel, caption
from decodescope.resources.language import tr, trn

_HEIGHT = 480
MINUTES = 10
"""Length of a lesson."""


def lesson_card(number: int, lesson: Lesson, is_done: bool) -> DialogCard:
    """Create the card with the title of a lesson, its description and whether it was done."""
    state = tr("Done") if is_done else trn("{count} minute", "{count} minutes", MINUTES).format(count=MINUTES)
    badge = set_up(PlainLabel(f"✓ {state}" if is_done else state), role="finished" if is_done else "muted")
    card = DialogCard(f"{number}  {tr(lesson.title)}", tr(lesson.about), badge)
    return set_up(card, name=f"lesson.{lesson.name}", accessible_name=f"{tr(lesson.title)}, {state}")


class LessonPage(CardDialog):
    """Start page of the lessons. `chosen(name)`: start a lesson; `sheetRequested`: save the printable sheet;
    `restartRequested`: delete the progress and the class's runs.
    """

    sheetRequested = Signal()
    restartRequested = Signal()

    def __init__(
        self,
        lessons: Sequence[Lesson],
        problems: Sequence[TourError],
        done: Collection[str],
        has_records: bool,
        parent: QWidget | None = None,
    ) -> None:
        """`done`: names of finished lessons; `has_records`: whether there are runs for a sheet."""
        cards = {lesson.name: lesson_card(n, lesson, lesson.name in done) for n, lesson in enumerate(lessons, 1)}
        sheet = set_up(QPushButton(caption(tr("Save the sheet…"))), name="saveSheet")
        sheet.setEnabled(has_records)
        sheet.setToolTip(
            tr("One page for each lesson, with the runs and votes of this class, to print")
            if has_records
            else tr("Take a lesson first: the sheet has its runs.")
        )
        restart = set_up(QPushButton(caption(tr("New class…"))), name="restartLessons")
        restart.setEnabled(has_records or bool(done))
        restart.setToolTip(tr("Forgets the progress, the runs and the votes"))
        done_count = sum(lesson.name in done for lesson in lessons)
        progress = set_up(
            PlainLabel(tr("{done} of {all} lessons done").format(done=done_count, all=len(lessons))),
            name="lessonProgress", role="muted",
        )  # fmt: skip
        intro = tr(
            "Each lesson has a question, a guess, a run of a real model, what it shows, and a question to take "
            "home. With a class, press F5 first: the room votes, and the votes stand beside the model."
        )
        super().__init__(
            "lessonPage", tr("Lessons"), intro, cards, problems, _HEIGHT, parent, progress, (restart, sheet)
        )
        self.sheet, self.restart, self.progress = sheet, restart, progress
        sheet.clicked.connect(self.sheetRequested)
        restart.clicked.connect(self.restartRequested)
        following = next((n for n, lesson in enumerate(lessons) if lesson.name not in done), 0)
        if self.cards:
            self.cards[following].setFocus(Qt.FocusReason.OtherFocusReason)
