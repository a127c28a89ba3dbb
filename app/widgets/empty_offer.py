"""What a page with nothing on it offers: the button that fills it, or a sentence on why it cannot be filled."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QRect, Qt, Signal
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from app.theme.theme import Theme, theme_for
from app.widgets.plain_text import caption
from app.widgets.wrapped_label import WrappedLabel

Place = Callable[[QRect, Theme], float]
"""How far from the top of such an area the offer stands, in pixels."""


class EmptyOffer(QWidget):
    """`wanted`: the page is to be filled. With a `place` it stands there over its parent, in the middle; without one
    its parent's layout says where."""

    wanted = Signal()

    def __init__(self, text: str, parent: QWidget, place: Place | None = None) -> None:
        super().__init__(parent)
        self._place_in, self._theme = place, theme_for("light")
        self.button, self.why = QPushButton(caption(text), self), WrappedLabel("", self)
        self.button.setObjectName("fillButton")
        self.button.setCursor(Qt.CursorShape.PointingHandCursor)
        self.button.clicked.connect(self.wanted)
        self.why.setProperty("role", "muted")
        self.why.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.button, 0, Qt.AlignmentFlag.AlignHCenter if place else Qt.AlignmentFlag.AlignLeft)
        column.addWidget(self.why)
        self.hide()
        parent.installEventFilter(self)

    def set_theme(self, theme: Theme) -> None:
        """Other sizes."""
        self._theme = theme
        self.settle()

    def offer(self, is_empty: bool, why_not: str = "", about: str = "") -> None:
        """Whether there is nothing else on the page, what it is for, and why it cannot be filled, if so."""
        self.why.setText(why_not)
        self.why.setVisible(bool(why_not))
        self.button.setVisible(not why_not)
        self.button.setAccessibleDescription(about)
        self.setVisible(is_empty)
        self.settle()

    def settle(self) -> None:
        """Stand where it is to stand."""
        parent = self.parentWidget()
        if self._place_in is None or parent is None or self.isHidden():
            return
        area = parent.rect()
        width = min(area.width() - 32, 480)
        self.setFixedWidth(max(1, width))
        self.adjustSize()
        top = min(self._place_in(area, self._theme), area.height() - self.height() - 4)
        self.move((area.width() - self.width()) // 2, max(0, round(top)))
        self.raise_()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the parent's size."""
        if event.type() in (QEvent.Type.Resize, QEvent.Type.Show):
            self.settle()
        return False
