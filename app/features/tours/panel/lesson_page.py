"""Start page of the lessons: a card for each, the progress, and the printable sheet."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QDialogButtonBox,
    QGridLayout,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from decodescope.app.features.tours.state import Lesson, TourError
from decodescope.app.theme.theme import Theme, theme_for
from decodescope.app.theme.themed import surrounding_theme
from decodescope.app.widgets.building import STRETCH, arrange, set_up
from decodescope.app.widgets.dialog import BaseDialog
from decodescope.app.widgets.plain_text import PlainLabel, caption
from decodescope.app.widgets.screen import available_rect
from decodescope.resources.language import tr, trn

COLUMNS = 2
WIDTH, HEIGHT = 780, 480
"""Size in pixels at 100 %, if the screen is large enough."""
MINUTES = 10
"""Length of a lesson."""


class LessonCard(QPushButton):
    """Button with the title of a lesson, its description and whether it was done."""

    def __init__(self, number: int, lesson: Lesson, is_done: bool) -> None:
        super().__init__()
        state = tr("Done") if is_done else trn("{count} minute", "{count} minutes", MINUTES).format(count=MINUTES)
        set_up(self, name=f"lesson.{lesson.name}", role="tour", accessible_name=f"{tr(lesson.title)}, {state}",
               description=tr(lesson.about))  # fmt: skip
        title = set_up(PlainLabel(f"{number}  {tr(lesson.title)}", wordWrap=True), role="tourTitle")
        badge = set_up(PlainLabel(f"✓ {state}" if is_done else state), role="finished" if is_done else "muted")
        about = set_up(PlainLabel(tr(lesson.about), wordWrap=True), role="muted")
        for label in (title, badge, about):
            label.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        head = arrange(QHBoxLayout(), (title, 1), (badge, 0, Qt.AlignmentFlag.AlignTop))
        self._column = arrange(QVBoxLayout(self), head, about, STRETCH)

    def height_for(self, width: int) -> int:
        """Return the height that the texts need at this width."""
        return self._column.totalHeightForWidth(width)


class LessonPage(BaseDialog):
    """Start page of the lessons. `chosen(name)`: start a lesson; `sheetRequested`: save the printable sheet;
    `restartRequested`: delete the progress and the class's runs.
    """

    chosen = Signal(str)
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
        super().__init__(parent, "lessonPage", tr("Lessons"))
        self.setAccessibleName(tr("Lessons"))
        self.cards = [LessonCard(n, lesson, lesson.name in done) for n, lesson in enumerate(lessons, 1)]
        for card, lesson in zip(self.cards, lessons, strict=True):
            card.clicked.connect(lambda _checked=False, name=lesson.name: self._choose(name))
        self.sheet = set_up(QPushButton(caption(tr("Save the sheet…"))), name="saveSheet")
        self.sheet.setEnabled(has_records)
        self.sheet.setToolTip(
            tr("One page for each lesson, with the runs and votes of this class, to print")
            if has_records
            else tr("Take a lesson first: the sheet has its runs.")
        )
        self.restart = set_up(QPushButton(caption(tr("New class…"))), name="restartLessons")
        self.restart.setEnabled(has_records or bool(done))
        self.restart.setToolTip(tr("Forgets the progress, the runs and the votes"))
        self.sheet.clicked.connect(self.sheetRequested)
        self.restart.clicked.connect(self.restartRequested)
        done_count = sum(lesson.name in done for lesson in lessons)
        self.progress = set_up(
            PlainLabel(tr("{done} of {all} lessons done").format(done=done_count, all=len(lessons))),
            name="lessonProgress", role="muted",
        )  # fmt: skip
        self._lay_out(problems, surrounding_theme(parent) or theme_for("light"))
        following = next((n for n, lesson in enumerate(lessons) if lesson.name not in done), 0)
        if self.cards:
            self.cards[following].setFocus(Qt.FocusReason.OtherFocusReason)

    def _choose(self, name: str) -> None:
        self.accept()
        self.chosen.emit(name)

    def _lay_out(self, problems: Sequence[TourError], theme: Theme) -> None:
        page = QWidget()
        grid = self._grid = arrange(QGridLayout(page), margins=0, spacing=theme.space(10))
        for column in range(COLUMNS):
            grid.setColumnStretch(column, 1)
        for number, card in enumerate(self.cards):
            grid.addWidget(card, number // COLUMNS, number % COLUMNS)
        for problem in problems:
            label = set_up(PlainLabel(f"{problem.cause} {problem.remedy}", wordWrap=True), role="warning")
            grid.addWidget(label, grid.rowCount(), 0, 1, COLUMNS)
        grid.setRowStretch(grid.rowCount(), 1)
        scroll = self._scroll = set_up(QScrollArea(widgetResizable=True), accessible_name=tr("Lessons"))
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.setWidget(page)
        intro = set_up(
            PlainLabel(
                tr(
                    "Each lesson has a question, a guess, a run of a real model, what it shows, and a question to take "
                    "home. With a class, press F5 first: the room votes, and the votes stand beside the model."
                ),
                wordWrap=True,
            ),
            role="muted",
        )
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.reject)
        foot = arrange(QHBoxLayout(), STRETCH, self.restart, self.sheet, buttons, spacing=theme.px(8))
        margins = (theme.px(20), theme.px(16), theme.px(20), theme.px(16))
        arrange(QVBoxLayout(self), intro, scroll, self.progress, foot, margins=margins, spacing=theme.px(12))
        room = available_rect(self)
        self.resize(min(theme.px(WIDTH), room.width() - 40), min(theme.px(HEIGHT), room.height() - 80))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Give all cards the height that the longest text needs at this width."""
        super().resizeEvent(event)
        width = (self._scroll.viewport().width() - self._grid.horizontalSpacing()) // COLUMNS
        height = max((card.height_for(width) for card in self.cards), default=0)
        for card in self.cards:
            card.setFixedHeight(height)
