"""What a page with nothing on it offers: the button that fills it, or a sentence on why it cannot be filled."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QRect, Qt, Signal
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from app.theme.theme import Theme, theme_for
from app.widgets.plain_text import caption
from app.widgets.wrapped_label import WrappedLabel

TopPosition = Callable[[QRect, Theme], float]
"""How far from the top of such an area the offer stands, in pixels."""


class FillButton(QWidget):
    """`fillRequested`: the page is to be filled. With a `top_position` it stands there over its parent, in the middle; without one
    its parent's layout says where."""

    fillRequested = Signal()

    def __init__(self, text: str, parent: QWidget, top_position: TopPosition | None = None) -> None:
        super().__init__(parent)
        self._top_position, self._theme = top_position, theme_for("light")
        self.button, self.reason_label = QPushButton(caption(text), self), WrappedLabel("", self)
        self.button.setObjectName("fillButton")
        self.button.setCursor(Qt.CursorShape.PointingHandCursor)
        self.button.clicked.connect(self.fillRequested)
        self.reason_label.setProperty("role", "muted")
        self.reason_label.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.button, 0, Qt.AlignmentFlag.AlignHCenter if top_position else Qt.AlignmentFlag.AlignLeft)
        column.addWidget(self.reason_label)
        self.hide()
        parent.installEventFilter(self)

    def set_theme(self, theme: Theme) -> None:
        """Other sizes."""
        self._theme = theme
        self.reposition()

    def update_state(self, is_empty: bool, disabled_reason: str = "", description: str = "") -> None:
        """Whether there is nothing else on the page, what it is for, and why it cannot be filled, if so."""
        self.reason_label.setText(disabled_reason)
        self.reason_label.setVisible(bool(disabled_reason))
        self.button.setVisible(not disabled_reason)
        self.button.setAccessibleDescription(description)
        self.setVisible(is_empty)
        self.reposition()

    def reposition(self) -> None:
        """Stand where it is to stand."""
        parent = self.parentWidget()
        if self._top_position is None or parent is None or self.isHidden():
            return
        area = parent.rect()
        width = min(area.width() - 32, 480)
        self.setFixedWidth(max(1, width))
        self.adjustSize()
        top = min(self._top_position(area, self._theme), area.height() - self.height() - 4)
        self.move((area.width() - self.width()) // 2, max(0, round(top)))
        self.raise_()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the parent's size."""
        if event.type() in (QEvent.Type.Resize, QEvent.Type.Show):
            self.reposition()
        return False
