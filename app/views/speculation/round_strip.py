"""The rounds as a strip of small stacks: a cell for every drafted token, with accepted ones filled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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

MAX_PITCH, MIN_PITCH = 40, 24
"""Distance between two rounds in pixels at 100 %: smaller if there are many, until they scroll."""
MAX_HEIGHT, CELL_HEIGHT, MIN_CELL_HEIGHT = 60, 7, 4
"""Pixels at 100 %: largest height of the stacks, largest height of a cell, and the height below which the cells of one
colour are drawn as one bar.
"""


_SIDE = 16
"""Space at both sides in pixels at 100 %."""


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
        slots = max((sum(count for _, count in round_cells(entry)) for entry in rounds), default=0)
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
        room = (self.width() - self._theme.px(2 * _SIDE)) / max(1, self._shown)
        return min(float(self._theme.px(MAX_PITCH)), max(float(self._theme.px(MIN_PITCH)), room))

    @property
    def _visible_count(self) -> int:
        return max(1, int((self.width() - self._theme.px(2 * _SIDE)) / self._pitch + 1e-6))

    def _scroll_to_chosen(self) -> None:
        last = max(0, self._shown - self._visible_count)
        if self._chosen >= 0:
            self._first = min(max(self._first, self._chosen - self._visible_count + 1), self._chosen)
        self._first = max(0, min(self._first, last))

    def sizeHint(self) -> QSize:
        """Return a height for the longest round and the round numbers."""
        return QSize(self._theme.px(240), self._theme.px(32 + min(MAX_HEIGHT, CELL_HEIGHT * max(self._slots, 2))))

    def minimumSizeHint(self) -> QSize:
        """Return the width of one round."""
        return QSize(self._theme.px(60), self.sizeHint().height())

    def _rect(self, index: int) -> QRectF:
        left = self._theme.px(_SIDE) + (index - self._first) * self._pitch
        gap = self._theme.px(8)
        return QRectF(left + gap / 2, self._theme.px(10), self._pitch - gap, self.height() - self._theme.px(30))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the visible rounds."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(self._theme.font(11, tabular=True))
        for index in range(self._first, min(self._shown, self._first + self._visible_count)):
            self._paint_round(painter, index)
        self._paint_more(painter)
        painter.end()

    @property
    def hidden_counts(self) -> tuple[int, int]:
        """Numbers of rounds before and after the visible ones."""
        return self._first, max(0, self._shown - self._first - self._visible_count)

    def _paint_more(self, painter: QPainter) -> None:
        """Mark the sides at which more rounds can be scrolled into view."""
        theme = self._theme
        painter.setPen(theme.color("muted"))
        painter.setFont(theme.font(13))
        side = theme.px(_SIDE)
        for count, sign, left in zip(self.hidden_counts, "‹›", (0, self.width() - side), strict=True):
            if count:
                painter.drawText(QRectF(left, 0, side, self.height()), int(Qt.AlignmentFlag.AlignCenter), sign)

    def _paint_round(self, painter: QPainter, index: int) -> None:
        theme, rect, entry = self._theme, self._rect(index), self._rounds[index]
        for colour, box in self._boxes(rect, entry):
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color(colour))
            painter.drawRoundedRect(box, 2, 2)
        painter.setPen(theme.color("accent" if index == self._chosen else "muted"))
        slot = QRectF(rect.left() - 6, rect.bottom() + theme.px(3), rect.width() + 12, theme.px(14))
        painter.drawText(slot, int(Qt.AlignmentFlag.AlignCenter), str(index + 1))
        if index == self._chosen:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(theme.color("accent"), 2))
            painter.drawRoundedRect(rect.adjusted(-4, -4, 4, 2), 5, 5)

    def _boxes(self, rect: QRectF, entry: DraftRound) -> Iterator[tuple[str, QRectF]]:
        """Yield (colour name, rectangle) of the cells; one rectangle for each colour if cells would be too thin."""
        cell, gap, row = rect.height() / max(self._slots, 2), self._theme.px(2), 0
        joins = cell < self._theme.px(MIN_CELL_HEIGHT)
        for colour, count in round_cells(entry):
            for size in [count] if joins else [1] * count:
                row += size
                yield (
                    colour,
                    QRectF(rect.left(), rect.bottom() - row * cell, rect.width(), size * cell - (1 if joins else gap)),
                )

    def _index_at(self, point: QPointF) -> int | None:
        place = int((point.x() - self._theme.px(_SIDE)) // self._pitch)
        index = self._first + place
        return index if 0 <= place < self._visible_count and index < self._shown else None

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


def round_cells(entry: DraftRound) -> list[tuple[str, int]]:
    """Return (colour name, number of cells) from bottom to top: accepted tokens, the model's own token, then grey
    cells up to the draft's depth. No number is limited: rounds of 8 and of 16 tokens look different.
    """
    depth = max((node.depth for node in entry.nodes), default=0)
    extra = {"bonus": "finished", "correction": "refused", "none": ""}[entry.extra_kind]
    accepted = len(entry.accepted)
    cells = [("kept", accepted), (extra, int(bool(extra))), ("pruned", max(0, depth - accepted - (extra == "refused")))]
    return [(colour, count) for colour, count in cells if count]
