"""Beams in their order, the leader on top: one that overtakes another glides past it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.theme.theme import Theme
from app.widgets.animation.motion import AnimatedWidget, interpolate
from resources.language import tr

ROW_HEIGHT = 18
"""Pixels of a row at 100 %."""
MAX_ROWS = 3
"""Rows that are shown."""


class BeamRow(NamedTuple):
    """One beam."""

    node: int
    parent: int
    """The node that it goes on from; its own where it has ended."""
    text: str
    figure: str


class BeamLadder(AnimatedWidget):
    """The best rungs; `row_positions` tells where each is painted now."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self.setObjectName("beamLadder")
        self._beams: tuple[BeamRow, ...] = ()
        self._previous_rows: dict[int, float] = {}
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(tr("Beams in their order"))

    def show_beams(self, beams: Sequence[BeamRow], animate: bool) -> None:
        """Show these, best first; each comes from where what it goes on from stood."""
        if tuple(beams) == self._beams:
            return
        self._previous_rows = {rung.node: float(place) for place, rung in enumerate(self._beams)}
        self._beams = tuple(beams)
        self.setAccessibleDescription("; ".join(f"{rung.text} {rung.figure}" for rung in beams))
        self.updateGeometry()
        self.start_motion(animate)

    def row_positions(self) -> list[float]:
        """The row, a whole number at the end, of every rung now."""
        last = float(len(self._beams))
        starts = [
            self._previous_rows.get(rung.node, self._previous_rows.get(rung.parent, last)) for rung in self._beams
        ]
        return [interpolate(start, place, self.progress) for place, start in enumerate(starts)]

    def sizeHint(self) -> QSize:
        """A row each."""
        return QSize(self._theme.px(200), self._row_height * min(MAX_ROWS, max(1, len(self._beams))))

    def minimumSizeHint(self) -> QSize:
        """Never cut off."""
        return QSize(self._theme.px(100), self.sizeHint().height())

    @property
    def _row_height(self) -> int:
        return max(self._theme.px(ROW_HEIGHT), round(QFontMetricsF(self._theme.font(13)).height()))

    def paintEvent(self, event: QPaintEvent) -> None:
        """The rungs where they are now, the leader last: it passes in front."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for place, rung in reversed(list(zip(self.row_positions(), self._beams, strict=True))):
            box = QRectF(0, place * self._row_height, self.width(), self._row_height)
            self._paint_beam(painter, box, rung, leads=rung is self._beams[0])

    def _paint_beam(self, painter: QPainter, box: QRectF, rung: BeamRow, leads: bool) -> None:
        theme = self._theme
        painter.setFont(theme.font(13, 600 if leads else 400, tabular=True))
        metrics = QFontMetricsF(painter.font())
        room = box.width() - metrics.horizontalAdvance(rung.figure) - theme.px(14)
        painter.fillRect(box, theme.color("panel", 0.85))
        painter.setPen(theme.color("best" if leads else "text"))
        shown = metrics.elidedText(rung.text, Qt.TextElideMode.ElideLeft, room)
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, shown)
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, rung.figure)
