"""Empty pages of views: title, hint, and the button that fills them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QEvent, QObject, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QPushButton, QScrollArea, QVBoxLayout, QWidget

from decodescope.app.state.empty_view import AS_SET
from decodescope.app.state.run import Run
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.views.base import View
from decodescope.app.widgets.building import arrange, show_text
from decodescope.app.widgets.labels import WrappedLabel
from decodescope.app.widgets.plain_text import caption
from decodescope.resources.language import tr

TopPosition = Callable[[QRect, Theme], float]
"""Returns the y position of the button in such an area."""


class FillButton(Themed, QWidget):
    """Emits `fillRequested` when the page should be filled. With a position function it floats over its parent,
    centred; otherwise it is part of its parent's layout.
    """

    fillRequested = Signal()

    def __init__(self, text: str, parent: QWidget, top_position: TopPosition | None = None) -> None:
        super().__init__(parent)
        self._top_position = top_position
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

    def restyle(self, theme: Theme) -> None:
        self.reposition()

    def update_state(self, is_empty: bool, disabled_reason: str = "", description: str = "") -> None:
        """Show the button if the page is empty, with the page's description, or the reason why it cannot be filled."""
        show_text(self.reason_label, disabled_reason)
        self.button.setVisible(not disabled_reason)
        self.button.setAccessibleDescription(description)
        self.setVisible(is_empty)
        self.reposition()

    def reposition(self) -> None:
        """Move to the current position."""
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


TitleAndHint = tuple[str, str]
"""Title and hint."""
GAP, BUTTON_HEIGHT = 14, 40
"""Pixels at 100 %: gap above the button, and the button's height."""
_FLAGS = Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop | Qt.TextFlag.TextWordWrap


def waiting_title(run: Run | None) -> str:
    """Return what a run is doing before its first token; empty if no run is in progress."""
    if run is None or run.finished is not None or run.outcome is not None:
        return ""
    return (
        tr("Loading {name}…").format(name=Path(run.request.model).name) if run.is_loading else tr("Reading the prompt…")
    )


def add_fill_button(
    view: View, parent: QWidget, text: str, action: str, title_and_hint: Callable[[], TitleAndHint]
) -> FillButton:
    """Add the button below the text of an empty page, which requests `action`. `title_and_hint()` returns the text."""
    offer = FillButton(text, parent, lambda area, theme: button_top(area, theme, title_and_hint()))
    offer.fillRequested.connect(lambda: view.signals.fillRequested.emit(action))
    return offer


def button_top(area: QRect, theme: Theme, title_and_hint: TitleAndHint) -> float:
    """Return the y position below the text of an empty page, with a gap."""
    return title_and_hint_rects(area, theme, title_and_hint)[1].bottom() + theme.px(GAP)


def title_and_hint_rects(
    area: QRect, theme: Theme, title_and_hint: TitleAndHint, extra: float = 0
) -> tuple[QRectF, QRectF]:
    """Return the rectangles of title and hint: centred, or higher if the button below and `extra` pixels need the
    room.
    """
    side = max(theme.px(16), (area.width() - theme.px(460)) / 2)
    room = QRectF(0, 0, area.width() - 2 * side, 10_000)
    title = QFontMetricsF(theme.font(18, 600)).boundingRect(room, int(_FLAGS), title_and_hint[0]).height()
    hint = QFontMetricsF(theme.font(13)).boundingRect(room, int(_FLAGS), title_and_hint[1]).height()
    title = max(title, theme.px(28))
    total = title + theme.px(4) + hint + theme.px(GAP + BUTTON_HEIGHT) + extra
    usual = QRectF(area).center().y() - theme.px(24)
    top = max(area.top() + 4.0, min(usual, area.bottom() - total))
    return QRectF(side, top, room.width(), title), QRectF(side, top + title + theme.px(4), room.width(), hint)


def paint_empty_page(
    painter: QPainter, area: QRect, theme: Theme, title_and_hint: TitleAndHint, extra: float = 0
) -> None:
    """Paint the title with the hint below it."""
    places = title_and_hint_rects(area, theme, title_and_hint, extra)
    for text, place, font, color in zip(
        title_and_hint, places, (theme.font(18, 600), theme.font(13)), ("text", "muted"), strict=True
    ):
        painter.setFont(font)
        painter.setPen(theme.color(color))
        painter.drawText(place, int(_FLAGS), text)


class ScrolledView(View):
    """A view with the page `_page` and its `_column` of parts. While `is_empty`, it shows a title and a hint
    instead.
    """

    def __init__(self, name: str, title: str, hint: str, offer: str, parent: QWidget | None = None) -> None:
        """Create the page. `offer`: the text of the button that starts a run with the current settings."""
        super().__init__(name, parent)
        self._title, self._hint = title, hint
        self._page, self._scroll = QFrame(self), QScrollArea(self)
        self._column = QVBoxLayout(self._page)
        self._scroll.setAccessibleName(title)
        self._scroll.setWidgetResizable(True)
        self._scroll.setFrameShape(QFrame.Shape.NoFrame)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._scroll.setWidget(self._page)
        arrange(QVBoxLayout(self), self._scroll, margins=0)
        self.offer = add_fill_button(self, self, offer, AS_SET, lambda: (self._title, self._hint))

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show yet."""
        return True

    def sizeHint(self) -> QSize:
        """Return a size with room for all parts."""
        return QSize(self._theme.px(640), self._theme.px(560))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the title and hint while the page is empty."""
        if self.is_empty:
            painter = QPainter(self)
            paint_empty_page(painter, self.rect(), self._theme, (self._title, self._hint))
            painter.end()

    def _show_offer(self, is_waiting: bool) -> None:
        """Show the button while the page is empty, unless a run is about to fill it."""
        self.offer.update_state(self.is_empty and not is_waiting, description=self._hint)

    def _set_spacing(self, theme: Theme, between: int) -> None:
        """Set the margins and the spacing between the parts, in pixels at 100 %."""
        self._column.setContentsMargins(theme.px(20), theme.px(14), theme.px(20), theme.px(14))
        self._column.setSpacing(theme.px(between))
