"""Dialog of cards in two columns, from which the user picks one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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

from decodescope.app.features.tours.state import TourError
from decodescope.app.theme.theme import theme_for
from decodescope.app.theme.themed import surrounding_theme
from decodescope.app.widgets.building import STRETCH, arrange, set_up
from decodescope.app.widgets.dialog import BaseDialog
from decodescope.app.widgets.plain_text import PlainLabel
from decodescope.app.widgets.screen import available_rect

COLUMNS = 2
WIDTH = 780
"""Width in pixels at 100 %, if the screen is large enough."""


class DialogCard(QPushButton):
    """Button with a heading, a description, and a badge beside the heading."""

    def __init__(self, heading: str, description: str, badge: PlainLabel | None = None) -> None:
        super().__init__()
        set_up(self, role="tour", description=description)
        title = set_up(PlainLabel(heading, wordWrap=True), role="tourTitle")
        about = set_up(PlainLabel(description, wordWrap=True), role="muted")
        head = arrange(QHBoxLayout(), (title, 1))
        if badge is not None:
            head.addWidget(badge, 0, Qt.AlignmentFlag.AlignTop)
        self._column = arrange(QVBoxLayout(self), head, about, STRETCH)
        for label in self.findChildren(PlainLabel):
            label.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)

    def height_for(self, width: int) -> int:
        """Return the height that the texts need at this width."""
        return self._column.totalHeightForWidth(width)


class CardDialog(BaseDialog):
    """Dialog of cards by name. Emits `chosen(name)` and closes."""

    chosen = Signal(str)

    def __init__(
        self,
        name: str,
        title: str,
        intro: str,
        cards: Mapping[str, DialogCard],
        problems: Sequence[TourError],
        height: int,
        parent: QWidget | None = None,
        note: QWidget | None = None,
        buttons: Sequence[QPushButton] = (),
    ) -> None:
        """`problems`: files that cannot be used, shown below the cards; `note`: shown above the `buttons` of the foot;
        `height`: in pixels at 100 %, if the screen is large enough.
        """
        super().__init__(parent, name, title)
        self.setAccessibleName(title)
        theme = surrounding_theme(parent) or theme_for("light")
        self.cards = list(cards.values())
        page = QWidget()
        grid = self._grid = arrange(QGridLayout(page), margins=0, spacing=theme.space(10))
        for column in range(COLUMNS):
            grid.setColumnStretch(column, 1)
        for number, (key, card) in enumerate(cards.items()):
            grid.addWidget(card, number // COLUMNS, number % COLUMNS)
            card.clicked.connect(lambda _checked=False, key=key: self._choose(key))
        for problem in problems:
            label = set_up(PlainLabel(f"{problem.cause} {problem.remedy}", wordWrap=True), role="warning")
            grid.addWidget(label, grid.rowCount(), 0, 1, COLUMNS)
        grid.setRowStretch(grid.rowCount(), 1)
        scroll = self._scroll = set_up(QScrollArea(widgetResizable=True), accessible_name=title)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.setWidget(page)
        closing = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        closing.rejected.connect(self.reject)
        foot = arrange(QHBoxLayout(), STRETCH, *buttons, closing, spacing=theme.px(8))
        parts = (set_up(PlainLabel(intro, wordWrap=True), role="muted"), scroll, *([note] if note else ()), foot)
        margins = (theme.px(20), theme.px(16), theme.px(20), theme.px(16))
        arrange(QVBoxLayout(self), *parts, margins=margins, spacing=theme.px(12))
        room = available_rect(self)
        self.resize(min(theme.px(WIDTH), room.width() - 40), min(theme.px(height), room.height() - 80))

    def _choose(self, name: str) -> None:
        self.accept()
        self.chosen.emit(name)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Give all cards the height that the longest text needs at this width."""
        super().resizeEvent(event)
        width = (self._scroll.viewport().width() - self._grid.horizontalSpacing()) // COLUMNS
        height = max((card.height_for(width) for card in self.cards), default=0)
        for card in self.cards:
            card.setFixedHeight(height)
