"""Tour chooser: a card with title and description for each tour."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QDialogButtonBox, QGridLayout, QPushButton, QScrollArea, QVBoxLayout, QWidget

from decodescope.app.features.tours.state import Tour, TourError
from decodescope.app.theme.theme import Theme, theme_for
from decodescope.app.theme.themed import surrounding_theme
from decodescope.app.widgets.building import arrange, set_up
from decodescope.app.widgets.dialog import BaseDialog
from decodescope.app.widgets.plain_text import PlainLabel
from decodescope.app.widgets.screen import available_rect
from decodescope.resources.language import tr

COLUMNS = 2
WIDTH, HEIGHT = 780, 640
"""Size in pixels at 100 %, if the screen is large enough."""


class TourCard(QPushButton):
    """Button with the title and description of a tour."""

    def __init__(self, number: int, tour: Tour) -> None:
        super().__init__()
        set_up(self, name=f"tour.{tour.name}", role="tour", accessible_name=tr(tour.title), description=tr(tour.about))
        column = QVBoxLayout(self)
        for text, role in ((f"{number}  {tr(tour.title)}", "tourTitle"), (tr(tour.about), "muted")):
            label = set_up(PlainLabel(text, wordWrap=True), role=role)
            label.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
            column.addWidget(label)
        column.addStretch(1)
        self._column = column

    def height_for(self, width: int) -> int:
        """Return the height that the texts need at this width."""
        return self._column.totalHeightForWidth(width)


class TourChooser(BaseDialog):
    """Tour chooser. Emits `chosen(name)` and closes."""

    chosen = Signal(str)

    def __init__(self, tours: Sequence[Tour], problems: Sequence[TourError], parent: QWidget | None = None) -> None:
        super().__init__(parent, "tourChooser", tr("Guided tours"))
        self.setAccessibleName(tr("Guided tours"))
        self.cards = [TourCard(number, tour) for number, tour in enumerate(tours, 1)]
        for card, tour in zip(self.cards, tours, strict=True):
            card.clicked.connect(lambda _checked=False, name=tour.name: self._choose(name))
        self._lay_out(problems, surrounding_theme(parent) or theme_for("light"))

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
        scroll = self._scroll = set_up(QScrollArea(widgetResizable=True), accessible_name=tr("Guided tours"))
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.setWidget(page)
        intro = PlainLabel(
            tr("Each tour plays in this window with a real model and takes about a minute."), wordWrap=True
        )
        intro.setProperty("role", "muted")
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.reject)
        margins = (theme.px(20), theme.px(16), theme.px(20), theme.px(16))
        arrange(QVBoxLayout(self), intro, scroll, buttons, margins=margins, spacing=theme.px(12))
        room = available_rect(self)
        self.resize(min(theme.px(WIDTH), room.width() - 40), min(theme.px(HEIGHT), room.height() - 80))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Give all cards the height that the longest text needs at this width."""
        super().resizeEvent(event)
        width = (self._scroll.viewport().width() - self._grid.horizontalSpacing()) // COLUMNS
        height = max((card.height_for(width) for card in self.cards), default=0)
        for card in self.cards:
            card.setFixedHeight(height)
