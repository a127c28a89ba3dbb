"""What views have in common whose parts stand below each other on one page that scrolls."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from app.state.empty_view import AS_SET
from app.theme.theme import Theme, theme_for
from app.views.base import View
from app.views.shared.empty_page import add_fill_button, paint_empty_page


class ScrolledView(View):
    """The page `_page` with its `_column` of parts; while `is_empty`, a title and a hint stand in its place."""

    def __init__(self, name: str, title: str, hint: str, offer: str, parent: QWidget | None = None) -> None:
        """`offer`: the words of the button that runs what is set, for the page to fill."""
        super().__init__(name, parent)
        self._theme = theme_for("light")
        self._title, self._hint = title, hint
        self._page, self._scroll = QFrame(self), QScrollArea(self)
        self._column = QVBoxLayout(self._page)
        self._scroll.setAccessibleName(title)
        self._scroll.setWidgetResizable(True)
        self._scroll.setFrameShape(QFrame.Shape.NoFrame)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._scroll.setWidget(self._page)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(self._scroll)
        self.offer = add_fill_button(self, self, offer, AS_SET, lambda: (self._title, self._hint))

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show yet."""
        return True

    def sizeHint(self) -> QSize:
        """Room for everything."""
        return QSize(self._theme.px(640), self._theme.px(560))

    def paintEvent(self, event: QPaintEvent) -> None:
        """What this page is for, as long as it is empty."""
        if self.is_empty:
            painter = QPainter(self)
            paint_empty_page(painter, self.rect(), self._theme, (self._title, self._hint))
            painter.end()

    def _show_offer(self, is_waiting: bool) -> None:
        """Offer to fill the page while it is empty, unless a run is about to."""
        self.offer.update_state(self.is_empty and not is_waiting, description=self._hint)

    def _set_spacing(self, theme: Theme, between: int) -> None:
        """Margins, and pixels at 100 % between the parts."""
        self._theme = theme
        self.offer.set_theme(theme)
        self._column.setContentsMargins(theme.px(20), theme.px(14), theme.px(20), theme.px(14))
        self._column.setSpacing(theme.px(between))
