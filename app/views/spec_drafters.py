"""Who is who among several drafters: mark, name, and how much of what each proposed was kept."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.theme import Theme, theme_for
from app.views.wording import percent
from app.widgets.drafter_marks import SIZE, letter, paint_mark


class DrafterLegend(QWidget):
    """One line: the drafters side by side, each with the same room."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="drafterLegend")
        self._theme = theme_for("light")
        self._entries: list[tuple[str, str]] = []
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self._theme = theme
        self.updateGeometry()
        self.update()

    def show_drafters(self, names: Sequence[str], shares: Sequence[tuple[int, int]]) -> None:
        """`shares`: (accepted, examined) tokens of each."""
        told = [f"{percent(kept / seen)} kept" if seen else "" for kept, seen in shares]
        entries = list(zip(names, told, strict=True))
        if entries != self._entries:
            self._entries = entries
            words = "; ".join(f"{letter(number)}: {name}, {share}" for number, (name, share) in enumerate(entries))
            self.setAccessibleName(f"Drafters. {words}")
            self.setToolTip(words.replace("; ", "\n"))
            self.update()

    @property
    def words(self) -> list[str]:
        """What stands behind each mark."""
        return [" · ".join(part for part in entry if part) for entry in self._entries]

    def sizeHint(self) -> QSize:
        """One line of small type."""
        return QSize(self._theme.px(200), self._theme.px(26))

    minimumSizeHint = sizeHint

    def paintEvent(self, event: QPaintEvent) -> None:
        """Mark, words, mark, words."""
        theme, painter = self._theme, QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(theme.font(12))
        fm = QFontMetricsF(painter.font())
        x, side, gap = float(theme.px(20)), SIZE * theme.scale, float(theme.px(22))
        room = (self.width() - 2 * x + gap) / max(1, len(self._entries)) - gap - side - theme.px(7)
        for number, text in enumerate(self.words):
            paint_mark(painter, theme, number, QRectF(x, (self.height() - side) / 2, side, side))
            shown = fm.elidedText(text, Qt.TextElideMode.ElideMiddle, room)
            painter.setPen(theme.color("muted"))
            painter.drawText(QPointF(x + side + theme.px(7), self.height() / 2 + fm.capHeight() / 2), shown)
            x += side + theme.px(7) + fm.horizontalAdvance(shown) + gap
        painter.end()
