"""The rounds as a strip of small stacks: a cell for every drafted token, with accepted ones filled."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QHelpEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from decodescope.app.theme.themed import Themed
from decodescope.app.views.speculation.round_report import describe_round
from decodescope.app.widgets.accessibility import AccessiblePart, AccessibleWidget, Role
from decodescope.app.widgets.plain_text import show_tooltip
from decodescope.core.events import DraftRound
from decodescope.resources.language import tr

MAX_CELLS = 8
"""Maximum number of accepted tokens drawn as cells; one more cell is for the model's own token."""


class RoundStrip(Themed, QWidget, AccessibleWidget):
    """Click or press ← and → to choose a round; the wheel scrolls if not all fit."""

    roundPicked = Signal(int)
    accessible_role = Role.List

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("roundStrip")
        self._rounds: Sequence[DraftRound] = ()
        self._shown = 0
        self._chosen = -1
        self._first = 0
        self._slots = 0
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(tr("Rounds of speculation"))

    def set_rounds(self, rounds: Sequence[DraftRound], shown: int, chosen: int) -> None:
        """Show the first `shown` of `rounds`, with `chosen` marked and visible."""
        self._rounds, self._shown, self._chosen = rounds, shown, chosen
        slots = max((len(_cell_colours(entry)) for entry in rounds), default=0)
        if slots != self._slots:
            self._slots = slots
            self.updateGeometry()
        self._scroll_to_chosen()
        if 0 <= chosen < len(rounds):
            self.setAccessibleDescription(describe_round(rounds[chosen]))
        self.update()

    def accessible_parts(self) -> list[AccessiblePart]:
        """Return one part per round."""
        return [
            AccessiblePart(describe_round(entry), partial(self._visible_rect, number), selected=number == self._chosen,
                 press=partial(self.roundPicked.emit, number))
            for number, entry in enumerate(self._rounds[: self._shown])
        ]  # fmt: skip

    def _visible_rect(self, number: int) -> QRect:
        in_sight = self._first <= number < self._first + self._visible_count
        return self._rect(number).toAlignedRect() if in_sight else QRect()

    @property
    def _pitch(self) -> float:
        return float(self._theme.px(40))

    @property
    def _visible_count(self) -> int:
        return max(1, int((self.width() - self._theme.px(16)) / self._pitch))

    def _scroll_to_chosen(self) -> None:
        last = max(0, self._shown - self._visible_count)
        if self._chosen >= 0:
            self._first = min(max(self._first, self._chosen - self._visible_count + 1), self._chosen)
        self._first = max(0, min(self._first, last))

    def sizeHint(self) -> QSize:
        """Return a height for the longest round and the round numbers."""
        return QSize(self._theme.px(240), self._theme.px(32 + 7 * max(self._slots, 2)))

    def minimumSizeHint(self) -> QSize:
        """Return the width of one round."""
        return QSize(self._theme.px(60), self.sizeHint().height())

    def _rect(self, index: int) -> QRectF:
        left = self._theme.px(12) + (index - self._first) * self._pitch
        return QRectF(left, self._theme.px(10), self._pitch - self._theme.px(8), self.height() - self._theme.px(30))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the visible rounds."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(self._theme.font(11, tabular=True))
        for index in range(self._first, min(self._shown, self._first + self._visible_count)):
            self._paint_round(painter, index)
        if self.hasFocus() and 0 <= self._chosen < self._shown:
            painter.setPen(QPen(self._theme.color("accent"), 1, Qt.PenStyle.DotLine))
        painter.end()

    def _paint_round(self, painter: QPainter, index: int) -> None:
        theme, rect, entry = self._theme, self._rect(index), self._rounds[index]
        cell = rect.height() / max(self._slots, 2)
        for row, colour in enumerate(_cell_colours(entry)):
            box = QRectF(rect.left(), rect.bottom() - (row + 1) * cell, rect.width(), cell - theme.px(2))
            painter.setPen(QPen(theme.color("faint"), 1) if not colour else Qt.PenStyle.NoPen)
            painter.setBrush(theme.color(colour) if colour else Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box, 2, 2)
        painter.setPen(theme.color("accent" if index == self._chosen else "muted"))
        slot = QRectF(rect.left() - 6, rect.bottom() + theme.px(3), rect.width() + 12, theme.px(14))
        painter.drawText(slot, int(Qt.AlignmentFlag.AlignCenter), str(index + 1))
        if index == self._chosen:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(theme.color("accent"), 2))
            painter.drawRoundedRect(rect.adjusted(-4, -4, 4, 2), 5, 5)

    def _index_at(self, point: QPointF) -> int | None:
        index = self._first + int((point.x() - self._theme.px(8)) / self._pitch)
        return index if 0 <= index < self._shown and point.x() >= self._theme.px(8) else None

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose the clicked round."""
        index = self._index_at(event.position())
        if index is not None:
            self.roundPicked.emit(index)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move between rounds with the arrow keys, Home and End."""
        steps = {
            Qt.Key.Key_Left: -1,
            Qt.Key.Key_Right: 1,
            Qt.Key.Key_Home: -len(self._rounds),
            Qt.Key.Key_End: len(self._rounds),
        }
        step = steps.get(Qt.Key(event.key()))
        if step is None or not self._shown:
            super().keyPressEvent(event)
            return
        self.roundPicked.emit(max(0, min(self._chosen + step, self._shown - 1)))

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scroll the strip."""
        delta = event.angleDelta().y() or event.angleDelta().x()
        self._first = max(0, min(self._first - (1 if delta > 0 else -1), max(0, self._shown - self._visible_count)))
        self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the chosen round visible."""
        self._scroll_to_chosen()

    def event(self, event: QEvent) -> bool:
        """Show the description of the round under the mouse."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            index = self._index_at(QPointF(event.pos()))
            show_tooltip(event.globalPos(), describe_round(self._rounds[index]) if index is not None else "", self)
            return True
        return super().event(event)


def _cell_colours(entry: DraftRound) -> list[str]:
    """Return colour names from bottom to top: accepted tokens, the model's own token, then empty cells up to the
    draft's depth.
    """
    depth = max((node.depth for node in entry.nodes), default=0)
    extra = {"bonus": ["finished"], "correction": ["refused"], "none": []}[entry.extra_kind]
    filled = ["kept"] * len(entry.accepted) + extra
    if len(filled) > MAX_CELLS + 1:
        filled = filled[: MAX_CELLS + 1 - len(extra)] + extra
    return filled + [""] * max(0, min(depth, MAX_CELLS) + 1 - len(filled))
