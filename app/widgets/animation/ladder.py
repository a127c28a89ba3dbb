"""Beams in their order, the leader on top: one that overtakes another glides past it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.theme.theme import Theme
from app.widgets.animation.motion import Animated, between
from resources.language import tr

ROW = 18
"""Pixels of a row at 100 %."""
MOST = 3
"""Rows that are shown."""


class Rung(NamedTuple):
    """One beam."""

    node: int
    came_from: int
    """The node that it goes on from; its own where it has ended."""
    text: str
    figure: str


class Ladder(Animated):
    """The best rungs; `places` tells where each is painted now."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self.setObjectName("beamLadder")
        self._rungs: tuple[Rung, ...] = ()
        self._before: dict[int, float] = {}
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(tr("Beams in their order"))

    def show_rungs(self, rungs: Sequence[Rung], moves: bool) -> None:
        """Show these, best first; each comes from where what it goes on from stood."""
        if tuple(rungs) == self._rungs:
            return
        self._before = {rung.node: float(place) for place, rung in enumerate(self._rungs)}
        self._rungs = tuple(rungs)
        self.setAccessibleDescription("; ".join(f"{rung.text} {rung.figure}" for rung in rungs))
        self.updateGeometry()
        self.begin(moves)

    def places(self) -> list[float]:
        """The row, a whole number at the end, of every rung now."""
        last = float(len(self._rungs))
        starts = [self._before.get(rung.node, self._before.get(rung.came_from, last)) for rung in self._rungs]
        return [between(start, place, self.progress) for place, start in enumerate(starts)]

    def sizeHint(self) -> QSize:
        """A row each."""
        return QSize(self._theme.px(200), self._row * min(MOST, max(1, len(self._rungs))))

    def minimumSizeHint(self) -> QSize:
        """Never cut off."""
        return QSize(self._theme.px(100), self.sizeHint().height())

    @property
    def _row(self) -> int:
        return max(self._theme.px(ROW), round(QFontMetricsF(self._theme.font(13)).height()))

    def paintEvent(self, event: QPaintEvent) -> None:
        """The rungs where they are now, the leader last: it passes in front."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for place, rung in reversed(list(zip(self.places(), self._rungs, strict=True))):
            box = QRectF(0, place * self._row, self.width(), self._row)
            self._paint_rung(painter, box, rung, leads=rung is self._rungs[0])

    def _paint_rung(self, painter: QPainter, box: QRectF, rung: Rung, leads: bool) -> None:
        theme = self._theme
        painter.setFont(theme.font(13, 600 if leads else 400, tabular=True))
        metrics = QFontMetricsF(painter.font())
        room = box.width() - metrics.horizontalAdvance(rung.figure) - theme.px(14)
        painter.fillRect(box, theme.color("panel", 0.85))
        painter.setPen(theme.color("best" if leads else "text"))
        shown = metrics.elidedText(rung.text, Qt.TextElideMode.ElideLeft, room)
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, shown)
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, rung.figure)
